"""Saves on nested levels whose recoveries are struck too; see `cprsim.analytic.nested_levels`.

A failure of level j during a recovery of level i starts a recovery of level max(i, j).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cprsim.analytic.domain import whole_intervals
from cprsim.analytic.nested_levels import rates_of, segment_h
from cprsim.records import Floats


def nested_wall_h(
    useful_h: float,
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> float:
    """Overhead of full recovery from nested levels, `wall` clock [h].

    Parameters, errors and source as in `nested_uptime_h`; rates per hour of wall time.

    Notes
    -----
    A recovery is struck too, and starts again at the deeper of the two levels. That changes the
    mean recovery and the level from which it ends, and nothing else.
    """
    rates = rates_of(every, saves_h, recoveries_h, failures_per_h)
    recovery_h, shares = _struck_recovery(np.asarray(recoveries_h, float), rates)
    each_h = segment_h(interval_h, every, saves_h, rates.sum(), recovery_h, shares)
    return whole_intervals(useful_h, interval_h * every[-1]) * each_h - useful_h


def _struck_recovery(recoveries_h: Floats, rates: Floats) -> tuple[float, Floats]:
    """Mean hours of a recovery that is struck itself, and the chances of the level it ends at.

    Returns
    -------
    mean hours from a failure to the end of the recovery [h]; (n_levels,) probabilities
    """
    shares = rates / rates.sum()
    hours, ends_at = np.zeros(len(rates)), np.zeros((len(rates), len(rates)))
    for level in reversed(range(len(rates))):
        p_ends = np.exp(-rates.sum() * recoveries_h[level])
        deeper = (1.0 - p_ends) * shares[level + 1 :]
        p_leaves = p_ends + deeper.sum()  # a failure that is no deeper only starts it again
        in_hand_h = -np.expm1(-rates.sum() * recoveries_h[level]) / rates.sum()
        hours[level] = (in_hand_h + deeper @ hours[level + 1 :]) / p_leaves
        ends_at[level] = deeper @ ends_at[level + 1 :] / p_leaves
        ends_at[level, level] = p_ends / p_leaves
    return float(shares @ hours), shares @ ends_at
