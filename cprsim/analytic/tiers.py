"""First-order overhead of saves on several tiers, and the intervals that make it least.

Tier i is saved every w_i hours of progress with a stall of s_i; failures for which it is the
nearest tier that survives come at rate lambda_i. Faster tiers come first; the order changes no
number.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cprsim.analytic.domain import require_positive, require_same_length
from cprsim.records import Floats


def optimal_tier_intervals_h(saves_h: Sequence[float], failures_per_h: Sequence[float]) -> Floats:
    """Intervals at which saves on several tiers cost least [h], (n_tiers,).

    Notes
    -----
    ``w_i = sqrt(2 s_i / lambda_i)``: each tier has Young's interval for its own failures. Source:
    derived here; Young 1974 for one tier.
    """
    require_same_length(saves_h=saves_h, failures_per_h=failures_per_h)
    for save_h, rate in zip(saves_h, failures_per_h, strict=True):
        require_positive(save_h=save_h, failures_per_h=rate)
    intervals_h: Floats = np.sqrt(2.0 * np.asarray(saves_h) / np.asarray(failures_per_h))
    return intervals_h


def least_tier_overhead_fraction(
    saves_h: Sequence[float], failures_per_h: Sequence[float]
) -> float:
    """Saving and losing at the optimal intervals, as a share of useful time.

    Notes
    -----
    ``sum_i sqrt(2 lambda_i s_i)``. No interval changes the rest of the overhead,
    ``sum_i lambda_i (R_i + b_i)``. Source: recalled for multi-level checkpoints; derived here.
    """
    intervals_h = optimal_tier_intervals_h(saves_h, failures_per_h)
    return float((intervals_h * np.asarray(failures_per_h, float)).sum())
