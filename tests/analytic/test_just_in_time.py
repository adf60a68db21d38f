"""Just-in-time saving against periodic saves, with jobs on the progress clock."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.analytic.systems import break_even_failures_per_h
from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

DETECT_H, REGROUP_H, FETCH_H, STEP_H = 0.3, 0.5, 0.2, 0.1
RECOVERY_H = 0.4
COST_H = DETECT_H + REGROUP_H + FETCH_H + STEP_H / 2
N_INTERVALS = 20


def overheads(rng: np.random.Generator, rate: float, save_h: float) -> tuple[float, float]:
    """Both overheads of one job that meets the same failures, per useful hour."""
    interval_h = np.sqrt(2 * save_h / rate)
    useful_h = N_INTERVALS * interval_h
    periodic_h, just_in_time_h = N_INTERVALS * save_h, 0.0
    for strike_h in rng.uniform(0.0, useful_h, rng.poisson(rate * useful_h)):
        periodic_h += RECOVERY_H + strike_h % interval_h
        into_step_h = rng.uniform(0.0, STEP_H)
        just_in_time_h += DETECT_H + REGROUP_H + FETCH_H + into_step_h
    return just_in_time_h / useful_h, periodic_h / useful_h


def many(rate: float, save_h: float, name: str) -> np.ndarray:
    rng = draws(f"just-in-time/{name}")
    return np.array([overheads(rng, rate, save_h) for _ in range(4000)])


def test_both_overheads_are_those_of_jobs_on_the_progress_clock() -> None:
    rate, save_h = 0.05, 0.02
    just_in_time, periodic = many(rate, save_h, "both").T
    step_h = closed_forms.retried_step_loss_h(STEP_H)
    theory = closed_forms.just_in_time_overhead_fraction(rate, DETECT_H, REGROUP_H, FETCH_H, step_h)
    assert_mean(just_in_time, theory)
    assert_mean(periodic, closed_forms.periodic_overhead_fraction(rate, save_h, RECOVERY_H))


def test_at_the_break_even_save_both_cost_the_same() -> None:
    save_h = closed_forms.break_even_save_h(0.05, COST_H, RECOVERY_H)
    just_in_time, periodic = many(0.05, save_h, "save").T
    assert_mean(just_in_time - periodic, 0.0)


def test_at_the_break_even_rate_both_cost_the_same() -> None:
    rate = break_even_failures_per_h(0.03, COST_H, RECOVERY_H)
    just_in_time, periodic = many(rate, 0.03, "rate").T
    assert_mean(just_in_time - periodic, 0.0)


def test_just_in_time_wins_where_saves_are_dear_and_failures_rare() -> None:
    save_h = closed_forms.break_even_save_h(0.05, COST_H, RECOVERY_H)
    just_in_time, periodic = many(0.05, 2 * save_h, "dear").T
    assert just_in_time.mean() < periodic.mean()
    just_in_time, periodic = many(0.02, save_h, "rare").T
    assert just_in_time.mean() < periodic.mean()
    just_in_time, periodic = many(0.1, save_h, "often").T
    assert just_in_time.mean() > periodic.mean()


@given(st.floats(1e-3, 1.0), st.floats(0.5, 3.0), st.floats(0.0, 0.4))
def test_the_two_break_evens_are_one_line(rate: float, cost_h: float, recovery_h: float) -> None:
    save_h = closed_forms.break_even_save_h(rate, cost_h, recovery_h)
    found = break_even_failures_per_h(save_h, cost_h, recovery_h)
    assert found == pytest.approx(rate)


def test_a_recovery_that_is_no_longer_always_wins() -> None:
    assert closed_forms.break_even_save_h(0.1, 0.3, 0.4) == 0.0
    assert break_even_failures_per_h(0.1, 0.4, 0.4) == float("inf")


def test_numbers_that_can_not_be_are_refused() -> None:
    with pytest.raises(ParameterError):
        closed_forms.just_in_time_overhead_fraction(-0.1, 0.1, 0.1, 0.1, 0.1)
    with pytest.raises(ParameterError):
        closed_forms.periodic_overhead_fraction(0.1, -0.1, 0.1)
    with pytest.raises(ParameterError):
        break_even_failures_per_h(0.0, 0.4, 0.1)
    with pytest.raises(ParameterError):
        closed_forms.break_even_save_h(float("nan"), 0.4, 0.1)
