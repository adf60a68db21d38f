"""What is done failure after failure while they are drawn; compiled where there are many."""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled_for_much
from cprsim.records import Floats, Ints


@compiled_for_much
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
    the first clock that is not done; how many gaps are used: as many as there are failures
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
            # where the gap rounds off: always later than the last
            now_h = np.nextafter(now_h, np.inf) if next_h <= now_h else next_h
            used += 1
        next_at_h[clock] = now_h
        first[clock + 1] = n_before + used
    return len(next_at_h), used


@compiled_for_much
def settle(first: Ints, clock: Ints, marks: Ints, missing: Ints, place: Ints) -> int:
    """Give clocks to nodes that were drawn for them, unless they have one.

    Parameters
    ----------
    first : (n_chunks, n_replications + 1) where the clocks of each replication begin in `clock`;
        those to be given are in the last chunk
    clock : (n_clocks,) replication * n_slots + place of each, -1 where it is missing; filled
    marks : (n_slots,) what they hold from the call before, at first nothing but 0
    missing : (n_missing,) which clocks are missing, in order; those that stay so move to the front
    place : (n_missing,) the node that was drawn for each

    Returns
    -------
    how many are still missing
    """
    n_slots, n_chunks = len(marks), len(first)
    mark, replication, n_left = marks.max(), -1, 0
    for i in range(len(missing)):
        if replication < 0 or missing[i] >= first[n_chunks - 1, replication + 1]:
            replication += 1
            while missing[i] >= first[n_chunks - 1, replication + 1]:
                replication += 1
            mark += 1
            for chunk in range(n_chunks):
                for j in range(first[chunk, replication], first[chunk, replication + 1]):
                    if clock[j] >= 0:
                        marks[clock[j] - replication * n_slots] = mark
        if marks[place[i]] == mark:
            missing[n_left] = missing[i]
            n_left += 1
        else:
            marks[place[i]] = mark
            clock[missing[i]] = replication * n_slots + place[i]
    return n_left
