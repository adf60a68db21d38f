"""Whether the rate of failures has changed since an earlier fit."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.estimate import Estimate
from cprsim.records import Floats, Ints

LEVEL = 0.05
WORTH_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Change:
    """Two rates of failures, compared by the exact conditional test."""

    n_before: int
    n_since: int
    before_h: float  # node-hours watched
    since_h: float
    ratio: Estimate  # of the rate since over that before; infinite where there was none before
    p_value: float
    power_of_doubling: float  # probability that a doubled rate would have been noticed at 5 %
    least_noticed: (
        float  # smallest increase noticed with a probability of 80 %; inf: none up to 100
    )

    @property
    def is_change(self) -> bool:
        """Whether the rates differ at 5 %."""
        return self.p_value < LEVEL


def change(n_before: int, before_h: float, n_since: int, since_h: float) -> Change:
    """Compare two Poisson rates: given both numbers' sum, one of them is binomial.

    Parameters
    ----------
    n_before, n_since : failures
    before_h, since_h : node-hours in which they were seen

    Raises
    ------
    ParameterError
        where nothing was watched, or nothing failed.
    """
    if not (before_h > 0 and since_h > 0):
        raise ParameterError("both times have to be watched for longer than no time at all")
    n = n_before + n_since
    if n == 0:
        raise ParameterError("no failure before or since: no rate can be told")
    share = since_h / (before_h + since_h)
    since = Estimate.of_share(n_since, n)  # of all failures
    ratio, low, high = (_odds(end) * (before_h / since_h) for end in since.triple)
    rate = n_before / before_h
    return Change(
        n_before, n_since, before_h, since_h,
        Estimate(ratio, low, high, n, since.how),
        float(p_values(n_before, np.array([n_since]), share)[0]),
        power(n_before, rate * since_h, share, 2.0),
        _least_noticed(n_before, rate * since_h, share),
    )  # fmt: skip


def power(n_before: int, expected_since: float, share: float, ratio: float) -> float:
    """Probability that a rate grown by `ratio` differs at 5 % from the one before.

    Parameters
    ----------
    n_before : failures before, as they were
    expected_since : failures expected since, had nothing changed
    share : of all node-hours, those since
    ratio : of the true rates
    """
    mean = expected_since * ratio
    counts = np.arange(int(mean + 8 * sqrt(mean)) + 30, dtype=np.int64)  # more are never seen
    probability = np.exp(special.xlogy(counts, mean) - mean - special.gammaln(counts + 1))
    return float(probability[p_values(n_before, counts, share) < LEVEL].sum())


def p_values(n_before: int, n_since: Ints, share: float) -> Floats:
    """Two-sided p-values of numbers since, (n,): twice the smaller tail, as the interval has it."""
    # binomial tails as incomplete beta functions, which know no number 0
    below = special.betainc(max(n_before, 1), n_since + 1, 1 - share) if n_before else 1.0
    above = special.betainc(np.maximum(n_since, 1), n_before + 1, share)
    above = np.where(n_since > 0, above, 1.0)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, above)), dtype=np.float64)


def _least_noticed(n_before: int, expected_since: float, share: float) -> float:
    for ratio in np.geomspace(1.05, 100.0, 94):
        if expected_since * ratio > 1e6:
            return float(ratio)
        if power(n_before, expected_since, share, float(ratio)) >= WORTH_POWER:
            return float(ratio)
    return inf


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else inf
