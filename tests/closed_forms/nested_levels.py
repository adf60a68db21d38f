"""The exact expected overhead of saves on nested levels, by first-step analysis.

Level 1 saves every `interval_h`, level i at every `every[i]`-th of these points. Saves due at one
point are made one after another, the lowest level first; each is valid from its end. A failure of
level i destroys the copies of all levels below i, and the job goes back to the newest valid save of
level i or higher. A save that is struck is lost; if a lower level's save of the same point survives
it is made again at once. A failure of level i costs recovery R_i.

A *unit* is a save together with the work that leads up to it, if it is the first of its point. The
failures are exponential, so what is yet to come depends on the unit in hand alone. Derived here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cprsim.records import Floats, Ints


def nested_uptime_h(
    useful_h: float,
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> float:
    """Overhead on the `uptime` clock [h]; the job is whole intervals of the highest level.

    A unit of d hours is got through with probability e^(-d lambda); else (1 - e^(-d lambda))/lambda
    hours pass on average, the recovery is added, and the job is at the unit after the newest save
    that survives. These equations of all units between two saves of the highest level are solved
    together.
    """
    rates = np.asarray(failures_per_h, float)
    shares = rates / rates.sum()
    recovery_h = float(shares @ np.asarray(recoveries_h, float))
    each_h = _segment_h(interval_h, every, saves_h, rates.sum(), recovery_h, shares)
    return round(useful_h / (interval_h * every[-1])) * each_h - useful_h


def nested_wall_h(
    useful_h: float,
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> float:
    """The same on the `wall` clock [h].

    A failure of level j during a recovery of level i starts a recovery of level max(i, j). That
    changes the mean recovery and the level from which it ends, and nothing else.
    """
    rates = np.asarray(failures_per_h, float)
    recovery_h, shares = _struck_recovery(np.asarray(recoveries_h, float), rates)
    each_h = _segment_h(interval_h, every, saves_h, rates.sum(), recovery_h, shares)
    return round(useful_h / (interval_h * every[-1])) * each_h - useful_h


def _segment_h(
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    rate: float,
    recovery_h: float,
    shares: Floats,
) -> float:
    """Expected hours from one valid save of the highest level to the next one's end."""
    units = [
        (saves_h[level] + (interval_h if level == 0 else 0.0), level)
        for point in range(1, every[-1] + 1)
        for level, nth in enumerate(every)
        if point % nth == 0
    ]
    units_h, levels = np.array([hours for hours, _ in units]), np.array([one for _, one in units])
    p_struck = -np.expm1(-rate * units_h)
    equations = np.eye(len(units_h)) - np.diag(np.exp(-rate * units_h[:-1]), 1)
    for level, share in enumerate(shares):
        np.subtract.at(equations, (np.arange(len(units_h)), _back(levels, level)), p_struck * share)
    return float(np.linalg.solve(equations, p_struck * (1.0 / rate + recovery_h))[0])


def _back(levels: Ints, level: int) -> Ints:
    """Where the job goes on after a failure of this level in each unit, (n_units,)."""
    after_save = np.where(levels >= level, np.arange(1, len(levels) + 1), 0)
    newest: Ints = np.maximum.accumulate(np.concatenate(([0], after_save[:-1])))
    return newest


def _struck_recovery(recoveries_h: Floats, rates: Floats) -> tuple[float, Floats]:
    """Mean hours of a recovery that is struck itself, and the chances of the level it ends at."""
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
