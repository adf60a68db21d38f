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


class SaveStage(Enum):
    """Stages of a save: its start fixes the content; the run may continue until its commit."""

    STARTS = "starts"
    COMMITS = "commits"
    ABANDONED = "abandoned"
    WHOLE = "whole"  # start and commit at the same position


@dataclass(frozen=True, slots=True)
class SaveEvent:
    """A save, or a stage of it."""

    at: float  # share of the run
    ends_interval: bool = True
    stage: SaveStage = SaveStage.WHOLE


@dataclass(frozen=True, slots=True)
class Lose:
    """Servers fail together: their rows revert to the last saved ones."""

    at: float
    servers: tuple[int, ...]
    keeps_layers: bool = False  # where all servers fail: a trainer is left that has the layers


@dataclass(frozen=True, slots=True)
class Rewind:
    """The whole run goes back to the last save, also in its data."""

    at: float  # where that save began


@dataclass(frozen=True, slots=True)
class End:
    """The run ends."""

    at: float = 1.0


Event = SaveEvent | Lose | Rewind | End
Schedule = tuple[Event, ...]

SAVE_STAGES = {
    EventKind.SAVE_STARTED: SaveStage.STARTS,
    EventKind.SUB_SAVE_STARTED: SaveStage.STARTS,
    EventKind.SAVE_COMMITTED: SaveStage.COMMITS,
    EventKind.SUB_SAVE_COMMITTED: SaveStage.COMMITS,
    EventKind.SAVE_ABANDONED: SaveStage.ABANDONED,
}
ENDS = (EventKind.FINISHED, EventKind.STOPPED)
SCHEDULED_KINDS = (*SAVE_STAGES, EventKind.REVERTED, EventKind.ROLLED_BACK, *ENDS)
BACK_IN_SERVICE = (EventKind.REPLACED, EventKind.RESUMED)


def of_log(log: EventLog, useful_h: float, shard_slots: range, replica_slots: range) -> Schedule:
    """Events of the job in the log of one replication; its useful hours are the whole run."""
    return tuple(_events(log, useful_h, shard_slots.start, set(replica_slots)))


def _events(log: EventLog, useful_h: float, first: int, trainers: set[int]) -> Iterator[Event]:
    rows_of_events = np.flatnonzero(np.isin(log.kind, SCHEDULED_KINDS))
    failed, without_trainer = _failed_at(log, trainers)
    for (number, at_h), events in groupby(rows_of_events, key=lambda i: (log.kind[i], log.at_h[i])):
        rows, kind = list(events), EventKind(number)
        at = float(log.progress_h[rows[0]]) / useful_h
        if kind in SAVE_STAGES:
            yield SaveEvent(at, kind is not EventKind.SUB_SAVE_STARTED, SAVE_STAGES[kind])
        elif kind is EventKind.REVERTED:
            slots = [int(log.slot[i]) for i in rows]
            keeps_layers = failed[at_h].issuperset(slots) and at_h not in without_trainer
            yield Lose(at, tuple(slot - first for slot in slots), keeps_layers)
        else:
            yield Rewind(at) if kind is EventKind.ROLLED_BACK else End(at)


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
