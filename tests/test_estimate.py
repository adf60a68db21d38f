"""Intervals of counts and shares, against published ones; of means the goldens hold them."""

from __future__ import annotations

import pytest
from scipy import stats

from cprsim.job.records import Estimate


def test_the_interval_of_a_count_is_garwoods() -> None:
    # Garwood 1936 for 10 events; with none seen the upper bound is -log(0.025)
    assert Estimate.of_count(10).triple == pytest.approx((10, 4.795, 18.390), abs=1e-3)
    assert Estimate.of_count(0).triple == pytest.approx((0.0, 0.0, 3.689), abs=1e-3)


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    exact = stats.binomtest(7, 20).proportion_ci(method="exact")
    assert Estimate.of_share(7, 20).triple == pytest.approx((0.35, exact.low, exact.high))
    assert Estimate.of_share(0, 20).low == 0.0
    assert Estimate.of_share(20, 20).high == 1.0
