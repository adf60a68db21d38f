"""Events of a run: saves, failures of servers, steps back in the data.

A trial has its schedule from a grid of saves (`Trial.schedule`), a simulated or real job from its
event log (`of_log`). `Saver.do` applies an event to a model, `play` a whole schedule.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import groupby

import numpy as np

from cprsim.job.records import EventKind, EventLog


class RunEventKind(Enum):
    """Kinds of events of a run; the content of a save is fixed at its start."""

    SAVE = "save"  # start and commit at the same position
    SAVE_STARTS = "save starts"  # the run may continue until its commit
    SAVE_COMMITS = "save commits"
    SAVE_ABANDONED = "save abandoned"
    LOSE = "lose"  # servers fail together: their rows revert to the last saved ones
    REWIND = "rewind"  # the whole run goes back to the last save, also in its data
    END = "end"


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run."""

    at: float  # share of the run; of a step back where that save began
    kind: RunEventKind = RunEventKind.SAVE
    ends_interval: bool = True  # a save
    servers: tuple[int, ...] = ()  # that are lost
    keeps_layers: bool = False  # where all servers fail: a trainer is left that has the layers


Schedule = tuple[RunEvent, ...]

SAVE_STAGES = {
    EventKind.SAVE_STARTED: RunEventKind.SAVE_STARTS,
    EventKind.SUB_SAVE_STARTED: RunEventKind.SAVE_STARTS,
    EventKind.SAVE_COMMITTED: RunEventKind.SAVE_COMMITS,
    EventKind.SUB_SAVE_COMMITTED: RunEventKind.SAVE_COMMITS,
    EventKind.SAVE_ABANDONED: RunEventKind.SAVE_ABANDONED,
}
ENDS = (EventKind.FINISHED, EventKind.STOPPED)
SCHEDULED_KINDS = (*SAVE_STAGES, EventKind.REVERTED, EventKind.ROLLED_BACK, *ENDS)
BACK_IN_SERVICE = (EventKind.REPLACED, EventKind.RESUMED)


def of_log(log: EventLog, useful_h: float, shard_slots: range, replica_slots: range) -> Schedule:
    """Events of the job in the log of one replication; its useful hours are the whole run."""
    return tuple(_events(log, useful_h, shard_slots.start, set(replica_slots)))


def _events(log: EventLog, useful_h: float, first: int, trainers: set[int]) -> Iterator[RunEvent]:
    rows_of_events = np.flatnonzero(np.isin(log.kind, SCHEDULED_KINDS))
    failed, without_trainer = _failed_at(log, trainers)
    for (number, at_h), events in groupby(rows_of_events, key=lambda i: (log.kind[i], log.at_h[i])):
        rows, kind = list(events), EventKind(number)
        at = float(log.progress_h[rows[0]]) / useful_h
        if kind in SAVE_STAGES:
            yield RunEvent(at, SAVE_STAGES[kind], kind is not EventKind.SUB_SAVE_STARTED)
        elif kind is EventKind.REVERTED:
            slots = [int(log.slot[i]) for i in rows]
            keeps_layers = failed[at_h].issuperset(slots) and at_h not in without_trainer
            servers = tuple(slot - first for slot in slots)
            yield RunEvent(at, RunEventKind.LOSE, servers=servers, keeps_layers=keeps_layers)
        else:
            rewinds = kind is EventKind.ROLLED_BACK
            yield RunEvent(at, RunEventKind.REWIND if rewinds else RunEventKind.END)


def _failed_at(log: EventLog, trainers: set[int]) -> tuple[dict[float, set[int]], set[float]]:
    """Which slots failed at each instant, and the instants from which no trainer was left."""
    failed: dict[float, set[int]] = defaultdict(set)
    down: set[int] = set()
    without_trainer = set()
    for i in np.flatnonzero(np.isin(log.kind, (EventKind.FAILED, *BACK_IN_SERVICE))):
        at_h, slot = float(log.at_h[i]), int(log.slot[i])
        if log.kind[i] == EventKind.FAILED:
            failed[at_h].add(slot)
            down |= {slot} & trainers
            if down and down == trainers:
                without_trainer.add(at_h)
        else:
            down = down - {slot} if log.kind[i] == EventKind.REPLACED else set()
    return failed, without_trainer
