"""Tiers of first order, against a job on the progress clock and a numerical search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from cprsim.analytic.tiers import least_tier_overhead_fraction, optimal_tier_intervals_h
from cprsim.errors import ParameterError
from tests.analytic.sampling import assert_mean, draws
from tests.closed_forms.tiers import tier_overhead_fraction

JOB = {
    "intervals_h": (0.5, 2.0, 6.0),
    "saves_h": (0.02, 0.1, 0.4),
    "failures_per_h": (0.3, 0.1, 0.05),
    "recoveries_h": (0.05, 0.2, 1.0),
}
LEVELS = ((5 / 3600, 300 / 3600), (1 / 5, 1 / 100))  # saves of 5 s and 5 min; failures per hour


def overhead_h(rng: np.random.Generator, useful_h: float) -> float:
    """One job on the progress clock: every failure goes back to the last save of its tier."""
    total_h = 0.0
    for interval_h, save_h, rate, recovery_h in zip(*JOB.values(), strict=True):
        saves_at_h = np.arange(1, round(useful_h / interval_h) + 1) * interval_h
        total_h += save_h * len(saves_at_h)
        for strike_h in rng.uniform(0.0, useful_h, rng.poisson(rate * useful_h)):
            before = saves_at_h[saves_at_h <= strike_h]
            total_h += recovery_h + strike_h - (before[-1] if len(before) else 0.0)
    return total_h


def test_the_overhead_is_that_of_a_job_on_the_progress_clock() -> None:
    rng = draws("tiers")
    found = [overhead_h(rng, 30.0) / 30.0 for _ in range(4000)]
    assert_mean(found, tier_overhead_fraction(**JOB, backgrounds_h=(0.0,) * 3))


def test_time_until_the_commit_is_lost_too() -> None:
    without = tier_overhead_fraction(**JOB, backgrounds_h=(0.0,) * 3)
    with_it = tier_overhead_fraction(**JOB, backgrounds_h=(0.1, 0.2, 0.3))
    assert with_it - without == pytest.approx(0.3 * 0.1 + 0.1 * 0.2 + 0.05 * 0.3)


def test_a_search_finds_the_optimal_intervals() -> None:
    saves_h, rates = LEVELS

    def overhead(log_intervals: np.ndarray) -> float:
        tiers = zip(np.exp(log_intervals), saves_h, rates, strict=True)
        return sum(save / wait + rate * wait / 2 for wait, save, rate in tiers)

    found = minimize(overhead, np.zeros(2), tol=1e-12)
    intervals_h = optimal_tier_intervals_h(saves_h, rates)
    assert np.exp(found.x) == pytest.approx(intervals_h, rel=1e-3)
    assert found.fun == pytest.approx(least_tier_overhead_fraction(saves_h, rates))


def test_the_numbers_of_two_levels_worked_out_elsewhere() -> None:
    assert least_tier_overhead_fraction(*LEVELS) == pytest.approx(0.0644, abs=5e-5)
    assert optimal_tier_intervals_h(*LEVELS) == pytest.approx([0.11785, 4.0825], rel=1e-4)


@given(st.floats(1e-3, 1.0), st.floats(1e-3, 1.0))
def test_at_the_optimum_saving_costs_as_much_as_losing(save_h: float, rate: float) -> None:
    (interval_h,) = optimal_tier_intervals_h([save_h], [rate])
    assert save_h / interval_h == pytest.approx(rate * interval_h / 2)


def test_tiers_of_different_lengths_and_of_no_interval_are_refused() -> None:
    with pytest.raises(ParameterError):
        tier_overhead_fraction([1.0], [0.1, 0.2], [0.1], [0.1], [0.0])
    with pytest.raises(ParameterError):
        tier_overhead_fraction([0.0], [0.1], [0.1], [0.1], [0.0])
    with pytest.raises(ParameterError):
        tier_overhead_fraction([], [], [], [], [])
    with pytest.raises(ParameterError):
        optimal_tier_intervals_h([0.1], [0.0])
