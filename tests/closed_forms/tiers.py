"""First-order overhead of saves on several tiers at given intervals.

Tiers and parameters are those of `cprsim.analytic.tiers`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cprsim.analytic.domain import require_not_negative, require_positive, require_same_length
from cprsim.records import Floats


def tier_overhead_fraction(
    intervals_h: Sequence[float],
    saves_h: Sequence[float],
    failures_per_h: Sequence[float],
    recoveries_h: Sequence[float],
    backgrounds_h: Sequence[float],
) -> float:
    """Overhead of periodic saves on several tiers, as a share of useful time.

    Parameters
    ----------
    intervals_h : progress between saves of each tier [h], (n_tiers,)
    saves_h : stall of one save [h], (n_tiers,)
    failures_per_h : failures per hour of progress that this tier is the nearest to survive,
        (n_tiers,)
    recoveries_h : stall of a recovery from this tier [h], (n_tiers,)
    backgrounds_h : from the start of a save to its commit [h], (n_tiers,)

    Raises
    ------
    ParameterError
        lengths differ, an interval is not positive, or another number is negative

    Notes
    -----
    ``sum_i s_i/w_i + sum_i lambda_i (R_i + w_i/2 + b_i)``. On the `progress` clock, in a job of
    whole intervals of every tier, it lacks the saves of nearer tiers that are made again on the way
    back from a further one (``lambda_i s_j (w_i/w_j - 1)/2`` for each nearer tier j of nested
    intervals) and nothing else for b = 0; with b in the limit of a long job. On the other clocks
    of first order in s/w and w lambda. Source: derived here; Young 1974 for one tier.
    """
    wait, stall, rate, recovery, background = _checked(
        intervals_h, saves_h, failures_per_h, recoveries_h, backgrounds_h
    )
    lost = wait / 2.0 + background
    return float((stall / wait + rate * (recovery + lost)).sum())


def _checked(intervals_h: Sequence[float], *others: Sequence[float]) -> list[Floats]:
    names = ("saves_h", "failures_per_h", "recoveries_h", "backgrounds_h")
    named = dict(zip(names, others, strict=True))
    require_same_length(intervals_h=intervals_h, **named)
    for i, interval_h in enumerate(intervals_h):
        require_positive(interval_h=interval_h)
        require_not_negative(**{name: values[i] for name, values in named.items()})
    return [np.asarray(values, float) for values in (intervals_h, *others)]
