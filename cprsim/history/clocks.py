"""Clocks of nodes that differ: what comes after something else can't be logged before it.

The clock of the node that writes most is taken for right. Any other is moved by the least that puts
its events into the order in which a recovery goes; a clock that is off by less is not seen.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cprsim.history.table import CODE, NS_PER_S, Others, taken
from cprsim.records import Floats, Ints

RANK = {
    "failure": 0,
    "failure.detected": 1,
    "wait.start": 2,
    "reschedule.start": 3,
    "load.start": 4,
    "train.resume": 5,
}
"""The order in which a recovery goes."""
NEAR = 0.25  # of the usual time between recoveries: what is further away is of another one
NEAR_S = 600.0  # the same where there is one recovery alone


def corrected(others: Others) -> tuple[Others, int]:
    """Events of one job with the clocks of its nodes put right, and how many nodes that were."""
    nodes, counts = np.unique(others.node[others.node >= 0], return_counts=True)
    if len(nodes) < 2:
        return others, 0
    reference = nodes[np.argmax(counts)]
    rank = np.full(len(others.kind), -1)
    for name, number in RANK.items():
        rank[others.kind == CODE[name]] = number
    at_s = (others.time_ns - others.time_ns[0]) / NS_PER_S
    time_ns, n_moved = others.time_ns.copy(), 0
    held = (others.node == reference) & (rank >= 0)
    for node in nodes[nodes != reference]:
        mine = (others.node == node) & (rank >= 0)
        shift_s = _shift_s(at_s[mine], rank[mine], at_s[held], rank[held])
        if shift_s:
            time_ns[others.node == node] += round(shift_s * NS_PER_S)
            n_moved += 1
    if not n_moved:
        return others, 0
    moved = replace(others, time_ns=time_ns)
    return taken(moved, np.lexsort((rank, time_ns))), n_moved


def _shift_s(at_s: Floats, rank: Ints, held_s: Floats, held_rank: Ints) -> float:
    """The least by which a clock has to be moved; 0 where nothing says that it is off."""
    low_s, high_s = -np.inf, np.inf
    resumed = held_s[held_rank == RANK["train.resume"]]
    near_s = NEAR * float(np.median(np.diff(resumed))) if len(resumed) > 2 else NEAR_S
    for here_s, one in zip(at_s.tolist(), rank.tolist(), strict=True):
        for other in np.unique(held_rank[held_rank != one]):
            of_other = held_s[held_rank == other]
            off_s = of_other - here_s
            off_s = off_s[np.abs(off_s) <= near_s]
            if len(off_s) == 0:
                continue
            least = float(off_s[np.argmin(np.abs(off_s))])
            if one < other:
                high_s = min(high_s, least)
            else:
                low_s = max(low_s, least)
    if low_s > high_s or low_s <= 0.0 <= high_s:
        return 0.0
    return low_s if low_s > 0.0 else high_s
