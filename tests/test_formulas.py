"""Interval formulas and closed forms: limits first, then what the paper prints."""

from __future__ import annotations

from math import inf, sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.recovery.intervals import (
    cpr_h,
    daly_h,
    expected_pls,
    full_overhead_fraction,
    partial_overhead_fraction,
    young_h,
)
from tests import closed_forms

positive = st.floats(1e-3, 1e3)


def test_a_free_save_is_made_all_the_time_and_without_failures_never() -> None:
    assert young_h(0.0, 20.0) == 0.0
    assert young_h(0.1, inf) == inf
    assert daly_h(0.1, inf) == inf
    assert daly_h(50.0, 20.0) == 20.0


@given(save_h=positive, mtbf_h=positive, recovery_h=positive, other=st.floats(0.1, 10.0))
def test_no_interval_is_better_than_youngs(
    save_h: float, mtbf_h: float, recovery_h: float, other: float
) -> None:
    best_h = young_h(save_h, mtbf_h)
    best = full_overhead_fraction(best_h, save_h, recovery_h, mtbf_h)
    worse = full_overhead_fraction(other * best_h, save_h, recovery_h, mtbf_h)
    assert best <= worse * (1 + 1e-12)


@given(save_h=st.floats(0.01, 1.0), mtbf_h=st.floats(5.0, 50.0))
def test_dalys_interval_is_better_than_youngs_where_saves_are_struck(
    save_h: float, mtbf_h: float
) -> None:
    def per_useful_hour(interval_h: float) -> float:
        useful_h = 100 * interval_h
        wall_h = useful_h + closed_forms.full_uptime_h(useful_h, interval_h, save_h, 0.0, mtbf_h)
        return wall_h / useful_h

    at_daly = per_useful_hour(daly_h(save_h, mtbf_h))
    assert at_daly <= per_useful_hour(young_h(save_h, mtbf_h)) * (1 + 1e-4)


def test_dalys_interval_by_hand() -> None:
    """With x = 1/5: sqrt(2 * 2 * 25) (1 + 1/15 + 1/225) - 2."""
    assert daly_h(2.0, 25.0) == pytest.approx(10 * (1 + 1 / 15 + 1 / 225) - 2)


@given(target=st.floats(0.001, 1.0), n=st.integers(1, 100), mtbf_h=positive, k=st.integers(1, 8))
def test_cprs_divided_interval_meets_the_target(
    target: float, n: int, mtbf_h: float, k: int
) -> None:
    interval_h = cpr_h(target, n, mtbf_h, k)
    assert expected_pls(interval_h, n, mtbf_h, k) == pytest.approx(target)
    assert expected_pls(cpr_h(target, n, mtbf_h), n, mtbf_h, k) == pytest.approx(k * target)


# Costs derived from the paper's overheads for k = 1 (facts in scenarios/criteo-*.yaml): the
# published and recalled overheads come out of the formulas again.
@pytest.mark.parametrize(
    ("save_min", "recovery_min", "full", "partial", "cpr"),
    [(5.62, 5.39, 8.5, 4.4, 0.53), (4.99, 8.31, 8.2, 4.4, 0.68)],
)
def test_the_papers_emulation(
    save_min: float, recovery_min: float, full: float, partial: float, cpr: float
) -> None:
    save_h, recovery_h, mtbf_h = save_min / 60, recovery_min / 60, 28.0
    young = young_h(save_h, mtbf_h)
    assert 100 * full_overhead_fraction(young, save_h, recovery_h, mtbf_h) == pytest.approx(
        full, abs=0.05
    )
    assert 100 * partial_overhead_fraction(young, save_h, recovery_h, mtbf_h) == pytest.approx(
        partial, abs=0.06
    )
    at_target = cpr_h(0.1, 8, mtbf_h)
    assert at_target == pytest.approx(44.8)
    assert 100 * partial_overhead_fraction(at_target, save_h, recovery_h, mtbf_h) == pytest.approx(
        cpr, abs=0.005
    )


FORMS = [
    (closed_forms.full_progress_h, closed_forms.full_uptime_h, closed_forms.full_wall_h),
    (closed_forms.partial_progress_h, closed_forms.partial_uptime_h, closed_forms.partial_wall_h),
]


@pytest.mark.parametrize("forms", FORMS)
def test_closed_forms_meet_where_failures_are_rare(forms: tuple) -> None:  # type: ignore[type-arg]
    overheads = [form(50.0, 1.25, 0.05, 0.3, 1e9) for form in forms]
    assert overheads == pytest.approx([2.0] * 3, rel=1e-5)  # the saves alone


@pytest.mark.parametrize("forms", FORMS)
@given(interval_h=st.floats(0.5, 5.0), save_h=st.floats(0.0, 1.0), recovery_h=st.floats(0.0, 2.0))
def test_the_more_ages_the_more_it_costs(
    forms: tuple,  # type: ignore[type-arg]
    interval_h: float,
    save_h: float,
    recovery_h: float,
) -> None:
    progress, uptime, wall = (
        form(20 * interval_h, interval_h, save_h, recovery_h, 10.0) for form in forms
    )
    assert progress <= uptime * (1 + 1e-9) + 1e-9
    assert uptime <= wall * (1 + 1e-9) + 1e-9


def test_the_numbers_of_a_job_worked_out_elsewhere() -> None:
    """50 h, saves of 0.05 h every 1.25 h, load 0.1 h, rescheduling 0.2 h, MTBF 20 h."""
    job = (50.0, 1.25, 0.05, 0.3, 20.0)
    assert closed_forms.full_progress_h(*job) == pytest.approx(4.3125)
    assert closed_forms.partial_progress_h(*job) == pytest.approx(2.75)
    assert closed_forms.full_uptime_h(*job) == pytest.approx(4.533, abs=5e-4)


def test_decision_threshold() -> None:
    """Equal recovery costs, k = 1: partial pays for PLS above sqrt(2 O_save/T_fail)/(4 N_emb)."""
    save_h, mtbf_h, n = 0.1, 20.0, 8
    threshold = sqrt(2 * save_h / mtbf_h) / (4 * n)
    full = full_overhead_fraction(young_h(save_h, mtbf_h), save_h, 0.3, mtbf_h)
    at = partial_overhead_fraction(cpr_h(threshold, n, mtbf_h), save_h, 0.3, mtbf_h)
    assert at == pytest.approx(full)
