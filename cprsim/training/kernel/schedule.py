"""Events of a run: saves, failures of servers, steps back in the data.

A trial has its schedule from a grid of saves (`Trial.schedule`), a simulated or real job from its
event log (`of_log`). `Saver.do` applies an event to a model, `play` a whole schedule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from enum import Enum
from itertools import groupby

import numpy as np

from cprsim.job.records import EventKind as K
from cprsim.job.records import EventLog


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

SCHEDULED_KINDS = {
    K.SAVE_STARTED: RunEventKind.SAVE_STARTS,
    K.SUB_SAVE_STARTED: RunEventKind.SAVE_STARTS,
    K.SAVE_COMMITTED: RunEventKind.SAVE_COMMITS,
    K.SUB_SAVE_COMMITTED: RunEventKind.SAVE_COMMITS,
    K.SAVE_ABANDONED: RunEventKind.SAVE_ABANDONED,
    K.REVERTED: RunEventKind.LOSE,
    K.ROLLED_BACK: RunEventKind.REWIND,
    K.FINISHED: RunEventKind.END,
    K.STOPPED: RunEventKind.END,
}
BACK_IN_SERVICE = (K.REPLACED, K.RESUMED)


def of_log(log: EventLog, useful_h: float, shard_slots: range, replica_slots: range) -> Schedule:
    """Events of the job in the log of one replication; its useful hours are the whole run."""
    rows_of_events = np.flatnonzero(np.isin(log.kind, list(SCHEDULED_KINDS)))
    failed, without_trainer = _failed_at(log, set(replica_slots))
    schedule = []
    for (number, at_h), events in groupby(rows_of_events, key=lambda i: (log.kind[i], log.at_h[i])):
        rows, kind = list(events), K(number)
        at, ends_interval = log.progress_h[rows[0]] / useful_h, kind is not K.SUB_SAVE_STARTED
        event = RunEvent(float(at), SCHEDULED_KINDS[kind], ends_interval)
        if kind is K.REVERTED:
            slots = [int(log.slot[i]) for i in rows]
            servers = tuple(slot - shard_slots.start for slot in slots)
            keeps_layers = failed[at_h].issuperset(slots) and at_h not in without_trainer
            event = replace(event, servers=servers, keeps_layers=keeps_layers)
        schedule.append(event)
    return tuple(schedule)


def _failed_at(log: EventLog, trainers: set[int]) -> tuple[dict[float, set[int]], set[float]]:
    """Which slots failed at each instant, and the instants from which no trainer was left."""
    failed: dict[float, set[int]] = defaultdict(set)
    down: set[int] = set()
    without_trainer = set()
    for i in np.flatnonzero(np.isin(log.kind, (K.FAILED, *BACK_IN_SERVICE))):
        at_h, slot = float(log.at_h[i]), int(log.slot[i])
        if log.kind[i] == K.FAILED:
            failed[at_h].add(slot)
            down |= {slot} & trainers
            if down and down == trainers:
                without_trainer.add(at_h)
        else:
            down = down - {slot} if log.kind[i] == K.REPLACED else set()
    return failed, without_trainer
