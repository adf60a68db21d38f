"""Formulas at their limits and against published ones: between, goldens and closed forms hold."""

from math import inf

import pytest
from scipy import stats

from cprsim.job.intervals import daly_h, young_h
from cprsim.job.records import Estimate


def test_a_free_save_is_made_all_the_time_and_without_failures_never() -> None:
    assert young_h(0.0, 20.0) == 0.0
    assert young_h(0.1, inf) == inf
    assert daly_h(0.1, inf) == inf
    assert daly_h(50.0, 20.0) == 20.0
    # with x = 1/5: sqrt(2 * 2 * 25) (1 + 1/15 + 1/225) - 2
    assert daly_h(2.0, 25.0) == pytest.approx(10 * (1 + 1 / 15 + 1 / 225) - 2)


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    exact = stats.binomtest(7, 20).proportion_ci(method="exact")
    assert Estimate.of_share(7, 20).triple == pytest.approx((0.35, exact.low, exact.high))
    assert Estimate.of_share(0, 20).low == 0.0
    assert Estimate.of_share(20, 20).high == 1.0
