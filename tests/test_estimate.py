"""The intervals of `Estimate`, against published and independent ones."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from scipy import stats

from cprsim.records import ROUNDED_Z_95, Z_95, Estimate

VALUES = np.array([3.0, 4.5, 1.0, 7.25])


def test_the_interval_of_a_mean_is_students() -> None:
    found = Estimate.of_mean(VALUES)
    low, high = stats.t.interval(0.95, 3, loc=VALUES.mean(), scale=stats.sem(VALUES))
    assert found.triple == pytest.approx((VALUES.mean(), low, high))
    assert found.n == 4
    assert found.half_width == pytest.approx((high - low) / 2)
    single = Estimate.of_mean(np.array([2.0]))
    assert (single.mean, isnan(single.low), single.has_interval) == (2.0, True, False)


def test_the_interval_of_draws_lies_between_their_quantiles() -> None:
    found = Estimate.of_draws(np.arange(1001.0))
    assert found.triple == (500.0, 25.0, 975.0)


def test_the_interval_of_a_count_is_garwoods() -> None:
    # Garwood 1936 for 10 events; with none seen the upper bound is -log(0.025)
    assert Estimate.of_count(10).triple == pytest.approx((10, 4.795, 18.390), abs=1e-3)
    assert Estimate.of_count(0).triple == pytest.approx((0.0, 0.0, 3.689), abs=1e-3)


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    exact = stats.binomtest(7, 20).proportion_ci(method="exact")
    assert Estimate.of_share(7, 20).triple == pytest.approx((0.35, exact.low, exact.high))
    assert Estimate.of_share(0, 20).low == 0.0
    assert Estimate.of_share(20, 20).high == 1.0


def test_the_rounded_quantile_is_the_normal_one_to_three_digits() -> None:
    assert float(f"{Z_95:.3g}") == ROUNDED_Z_95
