"""Events of a run: saves, failures of servers, steps back in the data.

A trial has its schedule from a grid of saves (`Trial.schedule`), a simulated or real job from its
event log (`of_log`). `Saver.do` applies an event to a model, `play` a whole schedule.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from cprsim.job.records import EventKind as K
from cprsim.job.records import EventLog


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run: a save starts, which fixes its content, commits or is abandoned.

    Servers that are REVERTED fail together, and their rows go back to the last saved ones; after
    ROLLED_BACK the whole run does, also in its data; FINISHED is its end.
    """

    at: float  # share of the run; of a step back where that save began
    kind: K
    ends_interval: bool = True  # a save
    servers: tuple[int, ...] = ()  # that are lost
    keeps_layers: bool = False  # where all servers fail: a trainer is left that has the layers


Schedule = tuple[RunEvent, ...]

PLAYED_KINDS = (
    K.SAVE_STARTED,
    K.SAVE_COMMITTED,
    K.SAVE_ABANDONED,
    K.REVERTED,
    K.ROLLED_BACK,
    K.FINISHED,
)
COUNTED_AS = {
    K.SUB_SAVE_STARTED: K.SAVE_STARTED,
    K.SUB_SAVE_COMMITTED: K.SAVE_COMMITTED,
    K.STOPPED: K.FINISHED,
}
BACK_IN_SERVICE = (K.REPLACED, K.RESUMED)


def of_log(log: EventLog, useful_h: float, shard_slots: range, replica_slots: range) -> Schedule:
    """Events of the job in the log of one replication; its useful hours are the whole run."""
    rows_of_events = np.flatnonzero(np.isin(log.kind, (*PLAYED_KINDS, *COUNTED_AS)))
    failed, without_trainer = _failed_at(log, set(replica_slots))
    schedule = []
    for (number, at_h), events in groupby(rows_of_events, key=lambda i: (log.kind[i], log.at_h[i])):
        rows, kind = list(events), K(number)
        at, ends_interval = log.progress_h[rows[0]] / useful_h, kind is not K.SUB_SAVE_STARTED
        event = RunEvent(float(at), COUNTED_AS.get(kind, kind), ends_interval)
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
