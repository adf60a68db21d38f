"""Renewing clock after clock; compiled."""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.records import Floats, Ints


@compiled
def renew(
    until_h: float, next_at_h: Floats, stretch: Floats, gap_h: Floats,
    first: int, clock_of: Ints, at_h: Floats,
) -> tuple[int, int]:  # fmt: skip
    """Take the clocks from `first` on beyond an instant, as far as the gaps reach.

    Parameters
    ----------
    next_at_h : (n_clocks,) next failure of each [h]; moved on in place
    stretch : (n_clocks,) by what its gaps are longer; none for 1
    gap_h : (n_gaps,) to use one after the other [h]
    clock_of, at_h : (n_gaps,) where the failures go: clock and instant [h]

    Returns
    -------
    the first clock that is not done, and how many gaps are used: as many as there are failures
    """
    used = 0
    for clock in range(first, len(next_at_h)):
        now_h = next_at_h[clock]
        while now_h < until_h:
            if used == len(gap_h):
                next_at_h[clock] = now_h
                return clock, used
            clock_of[used], at_h[used] = clock, now_h
            gap = gap_h[used] * stretch[clock] if len(stretch) else gap_h[used]
            # always later than the last, also where a gap rounds off
            now_h = max(now_h + gap, np.nextafter(now_h, np.inf))
            used += 1
        next_at_h[clock] = now_h
    return len(next_at_h), used
