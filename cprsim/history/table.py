"""Events of many jobs as columns: steps reached, which are many, apart from everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from cprsim.events import EVENTS
from cprsim.records import Bools, Floats, Ints

CODE = {name: number for number, name in enumerate(EVENTS)}
"""Numbers that stand for the names of events."""
NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Steps:
    """`progress` events: a row each."""

    job: NDArray[np.int32]
    time_ns: Ints
    step: Floats
    attempt: NDArray[np.int32]  # -1 where the log does not say


@dataclass(frozen=True, slots=True)
class Others:
    """All other events: a row each. Numbers that a row does not say are NaN, names -1."""

    job: NDArray[np.int32]
    time_ns: Ints
    kind: NDArray[np.int8]  # of `CODE`
    step: Floats
    attempt: NDArray[np.int32]
    step_seconds: Floats
    fraction: Floats
    last_seen_ns: Ints  # 0: not said
    part: NDArray[np.int32]
    mode: NDArray[np.int32]
    node: NDArray[np.int32]
    role: NDArray[np.int32]
    cause: NDArray[np.int32]
    save_id: NDArray[np.int32]
    outcome: NDArray[np.int32]


Table = TypeVar("Table", Steps, Others)


@dataclass(frozen=True, slots=True)
class Events:
    """What was read, in order of job and time, with the words that its numbers stand for."""

    steps: Steps
    others: Others
    jobs: tuple[str, ...]
    words: tuple[str, ...]  # of parts, nodes, roles, causes, save ids and outcomes
    notes: tuple[str, ...] = ()  # what was left out or assumed

    @property
    def n_events(self) -> int:
        return len(self.steps.job) + len(self.others.job)

    def each(self) -> Iterator[tuple[str, Steps, Others]]:
        """Job after job: its name, and its rows in order of time."""
        for number, name in enumerate(self.jobs):
            yield name, _of(self.steps, number), _of(self.others, number)

    def word(self, number: int) -> str:
        """What a number stands for; empty for none."""
        return "" if number < 0 else self.words[number]


def _of(table: Table, job: int) -> Table:
    first, last = np.searchsorted(table.job, [job, job + 1])
    columns = {one.name: getattr(table, one.name)[first:last] for one in fields(table)}
    return replace(table, **columns)


def in_order(table: Table) -> Table:
    """The rows by job and time; those of one instant as they came."""
    job, time_ns = table.job, table.time_ns
    later = (job[1:] > job[:-1]) | ((job[1:] == job[:-1]) & (time_ns[1:] >= time_ns[:-1]))
    if later.all():
        return table
    return taken(table, np.lexsort((time_ns, job)))


def taken(table: Table, rows: Ints | Bools) -> Table:
    """Some rows of a table, in this order."""
    columns = {one.name: getattr(table, one.name)[rows] for one in fields(table)}
    return replace(table, **columns)


# ---------------------------------------------------------------------- clocks of nodes that differ

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
