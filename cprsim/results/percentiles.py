"""Percentiles over replications, with intervals that assume no distribution."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.records import CONFIDENCE, Estimate, Floats, Ints

PERCENT: Ints = np.arange(1, 100)


@dataclass(frozen=True, slots=True)
class Percentiles:
    """The percentiles 1 to 99 of a sample, each with its 95 % interval.

    `value`, `low`, `high`: (99,), in the sample's unit; `low` or `high` is NaN where the sample is
    too small to bound the percentile on that side.
    """

    percent: Ints
    value: Floats
    low: Floats
    high: Floats
    n: int

    def at(self, percent: int) -> Estimate:
        """One percentile; `mean` holds its value."""
        i = percent - 1
        return Estimate(float(self.value[i]), float(self.low[i]), float(self.high[i]), self.n)


def percentiles(values: Floats) -> Percentiles:
    """Percentiles of independent values.

    Values by linear interpolation. The interval is that of two order statistics, whose ranks are
    binomial: between ranks l and u lies the true percentile with a probability of at least 95 %,
    whatever the distribution (David and Nagaraja, Order Statistics, 2003, section 7.1).
    """
    from scipy import stats  # slow to load, and most commands need none

    ordered = np.sort(values)
    n, share = len(ordered), PERCENT / 100
    tail = (1 - CONFIDENCE) / 2
    low_rank = np.asarray(stats.binom.ppf(tail, n, share), np.int64)
    high_rank = np.asarray(stats.binom.ppf(1 - tail, n, share), np.int64) + 1
    bounded = np.concatenate([[np.nan], ordered, [np.nan]])
    return Percentiles(
        percent=PERCENT,
        value=np.quantile(ordered, share),
        low=bounded[low_rank],
        high=bounded[high_rank],
        n=n,
    )
