"""The exact expected overhead of saves on nested levels, by first-step analysis.

Level 1 saves every `interval_h`, level i at every `every[i]`-th of these points. The rules:

- Saves that are due at one point are made one after another, the lowest level first; each holds the
  progress of that point and is valid from its end.
- A failure of level i destroys the copies of all levels below i, and the job goes back to the
  newest valid save of level i or higher. Levels below the one it came from are not saved again
  there.
- A save that is struck is lost. If a lower level's save of the same point survives, the job goes
  back to that point, and the struck save is made again at once; else it is due again on the way
  back.
- A failure of level i costs recovery R_i, whichever level holds the content.

A *unit* is a save together with the work that leads up to it, if it is the first of its point. The
failures are exponential, so what is yet to come depends on the unit in hand alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cprsim.analytic.domain import (
    require_count,
    require_not_negative,
    require_positive,
    require_same_length,
    whole_intervals,
)
from cprsim.errors import ParameterError
from cprsim.records import Floats, Ints


def nested_uptime_h(
    useful_h: float,
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> float:
    """Overhead of full recovery from nested levels, `uptime` clock [h].

    Parameters
    ----------
    useful_h : useful work of the job [h], a whole number of intervals of the highest level
    interval_h : progress between saves of the lowest level [h]
    every : level i saves at every such point, (n_levels,); 1 first, each a multiple of the one
        before
    saves_h : stall of one save of each level [h], (n_levels,)
    recoveries_h : stall of a recovery from a failure of each level [h], (n_levels,)
    failures_per_h : rates of failures of each level per hour of uptime, (n_levels,), positive in
        sum

    Raises
    ------
    ParameterError
        lengths differ, levels are not nested, or the job ends between saves of the highest level

    Notes
    -----
    A unit of d hours is got through with probability e^(-d lambda); else (1 - e^(-d lambda))/lambda
    hours pass on average, the recovery is added, and the job is at the unit after the newest save
    that survives. These equations of all units between two saves of the highest level are solved
    together. Exact for exponential failures. Source: derived here.
    """
    rates = rates_of(every, saves_h, recoveries_h, failures_per_h)
    shares = rates / rates.sum()
    recovery_h = float(shares @ np.asarray(recoveries_h, float))
    each_h = segment_h(interval_h, every, saves_h, rates.sum(), recovery_h, shares)
    return whole_intervals(useful_h, interval_h * every[-1]) * each_h - useful_h


def segment_h(
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    rate: float,
    recovery_h: float,
    shares: Floats,
) -> float:
    """Expected hours from one valid save of the highest level to the next one's end."""
    units_h, levels = _units(interval_h, every, saves_h)
    p_struck = -np.expm1(-rate * units_h)
    equations = np.eye(len(units_h)) - np.diag(np.exp(-rate * units_h[:-1]), 1)
    for level, share in enumerate(shares):
        np.subtract.at(equations, (np.arange(len(units_h)), _back(levels, level)), p_struck * share)
    return float(np.linalg.solve(equations, p_struck * (1.0 / rate + recovery_h))[0])


def _units(
    interval_h: float, every: Sequence[int], saves_h: Sequence[float]
) -> tuple[Floats, Ints]:
    """Length [h] and level of the units between saves of the highest level, (n_units,) each."""
    units = [
        (saves_h[level] + (interval_h if level == 0 else 0.0), level)
        for point in range(1, every[-1] + 1)
        for level, nth in enumerate(every)
        if point % nth == 0
    ]
    return np.array([hours for hours, _ in units]), np.array([level for _, level in units])


def _back(levels: Ints, level: int) -> Ints:
    """Where the job goes on after a failure of this level in each unit, (n_units,)."""
    after_save = np.where(levels >= level, np.arange(1, len(levels) + 1), 0)
    newest: Ints = np.maximum.accumulate(np.concatenate(([0], after_save[:-1])))
    return newest


def rates_of(
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> Floats:
    """The rates of failures, after all parameters have been checked."""
    require_same_length(
        every=every, saves_h=saves_h, recoveries_h=recoveries_h, failures_per_h=failures_per_h
    )
    for save_h, recovery_h, rate in zip(saves_h, recoveries_h, failures_per_h, strict=True):
        require_not_negative(save_h=save_h, recovery_h=recovery_h, failures_per_h=rate)
    require_positive(sum_of_failures_per_h=sum(failures_per_h))
    for nth in every:
        require_count(1, every=nth)
    if every[0] != 1 or any(upper % lower for lower, upper in pairwise(every)):
        raise ParameterError(f"levels that save every {list(every)} points are not nested from 1")
    return np.asarray(failures_per_h, float)
