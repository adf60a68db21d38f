"""Renewing clock after clock; compiled."""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.records import Floats, Ints


@compiled
def due(until_h: float, next_at_h: Floats, begin: int) -> tuple[int, float]:
    """How many clocks from `begin` on fail before an instant; hours from then to it, in all."""
    n_due, to_come_h = 0, 0.0
    for clock in range(begin, len(next_at_h)):
        left_h = until_h - next_at_h[clock]
        n_due += left_h > 0.0
        to_come_h += max(left_h, 0.0)
    return n_due, to_come_h


@compiled
def renew(
    until_h: float, next_at_h: Floats, stretch: Floats, gap_h: Floats,
    begin: int, n_before: int, first: Ints, at_h: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Take the clocks from `begin` on beyond an instant, as far as the gaps reach.

    Parameters
    ----------
    next_at_h : (n_clocks,) next failure of each [h]; moved on in place
    stretch : (n_clocks,) by what its gaps are longer; none for 1
    gap_h : (n_gaps,) to use one after the other [h]
    n_before : failures of the clocks before, and of the first one if it was not done
    first : (n_clocks + 1,) where the failures of each clock begin; filled
    at_h : (n_gaps,) where the instants of the failures go [h]

    Returns
    -------
    the first clock that is not done, and how many gaps are used: as many as there are failures
    """
    used = 0
    for clock in range(begin, len(next_at_h)):
        now_h = next_at_h[clock]
        while now_h < until_h:
            if used == len(gap_h):
                next_at_h[clock] = now_h
                return clock, used
            at_h[used] = now_h
            gap = gap_h[used] * stretch[clock] if len(stretch) else gap_h[used]
            next_h = now_h + gap
            if next_h <= now_h:  # the gap rounds off: always later than the last
                next_h = np.nextafter(now_h, np.inf)
            now_h = next_h
            used += 1
        next_at_h[clock] = now_h
        first[clock + 1] = n_before + used
    return len(next_at_h), used
