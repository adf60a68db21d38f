"""Intervals of shares, against published ones; of means the goldens hold them."""

from __future__ import annotations

import pytest
from scipy import stats

from cprsim.job.records import Estimate


def test_the_interval_of_a_share_is_clopper_and_pearsons() -> None:
    exact = stats.binomtest(7, 20).proportion_ci(method="exact")
    assert Estimate.of_share(7, 20).triple == pytest.approx((0.35, exact.low, exact.high))
    assert Estimate.of_share(0, 20).low == 0.0
    assert Estimate.of_share(20, 20).high == 1.0
