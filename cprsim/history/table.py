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
