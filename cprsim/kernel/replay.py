"""Replaying a simulated job on a real model: it saves and loses shards where the log says so.

The log counts hours of progress, the kernel samples: the job's useful hours are all samples of the
run, and each event happens between the two batches nearest to it.

    (SUB_)SAVE_STARTED     fixes the content of a save
    (SUB_)SAVE_COMMITTED   makes it valid              SAVE_ABANDONED   forgets it
    REVERTED               a server's rows go back to what was last saved of them, and with those of
                           all servers the layers, unless a trainer is left that has them
    ROLLED_BACK            the whole run goes back to the last save, also in its data
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from cprsim.kernel.saving import Saver
from cprsim.kernel.training import ProxyTrainer
from cprsim.records import EventKind, EventLog, Floats, Ints

N_MARKS = 100  # points of a loss curve
STARTS = (EventKind.SAVE_STARTED, EventKind.SUB_SAVE_STARTED)
BACK = (EventKind.REPLACED, EventKind.RESUMED)
COMMITS = (EventKind.SAVE_COMMITTED, EventKind.SUB_SAVE_COMMITTED)
KINDS = (
    *STARTS,
    *COMMITS,
    EventKind.SAVE_ABANDONED,
    EventKind.REVERTED,
    EventKind.ROLLED_BACK,
    EventKind.FINISHED,
    EventKind.STOPPED,
)


@dataclass(frozen=True, slots=True)
class LossCurve:
    """Training loss over a run: each batch is predicted before it is learned from."""

    position: Ints  # (n,) samples, ascending
    loss: Floats  # (n,) mean since the position before [nats]


@dataclass(frozen=True, slots=True)
class Bookmark:
    """A position of a training, and what it takes to go back there."""

    position: int  # samples
    noted: Any  # (n_marks,) losses up to it; of a trainer of the user's own its state


class TracedTraining:
    """A trainer going from event to event, noting its loss at regular marks on the way."""

    def __init__(
        self, trainer: ProxyTrainer, on_progress: Callable[[int], None] | None = None
    ) -> None:
        self.trainer: Any = trainer
        self._tell = on_progress or (lambda position: None)
        marks = np.linspace(0, trainer.n_samples, N_MARKS + 1)[1:]
        self._marks = np.unique([at for at in map(trainer.on_grid, marks) if at])
        self._summed = np.zeros(len(self._marks))  # loss of the samples up to each mark

    def go_to(self, position: int) -> None:
        """Train up to a position, if the trainer is not there yet."""
        while (first := self.trainer.position) < position:
            mark = int(np.searchsorted(self._marks, first, side="right"))
            stop = min(position, int(self._marks[mark]))
            self._summed[mark] += self.trainer.run(stop) * (stop - first)
            self._tell(stop)

    def curve(self) -> LossCurve:
        """What was noted so far."""
        passed = self._marks <= self.trainer.position
        mean = self._summed / np.diff(self._marks, prepend=0)
        return LossCurve(self._marks[passed], mean[passed])

    def bookmark(self) -> Bookmark:
        """Where it stands, to go back to."""
        return Bookmark(self.trainer.position, self._summed.copy())

    def go_back(self, to: Bookmark) -> None:
        """Go back in the data, not in the weights; a batch that is trained again is noted once."""
        self.trainer.rewind(to.position)
        self._summed[:] = to.noted


@dataclass(frozen=True, slots=True)
class Moment:
    """One thing that happened to the job: shards that go back together are one moment."""

    kind: EventKind
    progress_h: float
    slots: tuple[int, ...]
    keeps_layers: bool = False  # these slots failed themselves, and a trainer has the layers


def moments(log: EventLog, replica_slots: range) -> Iterator[Moment]:
    """What the kernel has to do, in order, from the log of one replication."""
    wanted = np.flatnonzero(np.isin(log.kind, KINDS))
    failed, without_trainer = _failed_at(log, set(replica_slots))
    for (kind, at_h), events in groupby(wanted, key=lambda i: (log.kind[i], log.at_h[i])):
        rows = list(events)
        slots = tuple(int(log.slot[i]) for i in rows)
        keeps_layers = failed[at_h].issuperset(slots) and at_h not in without_trainer
        yield Moment(EventKind(kind), float(log.progress_h[rows[0]]), slots, keeps_layers)


def _failed_at(log: EventLog, trainers: set[int]) -> tuple[dict[float, set[int]], set[float]]:
    """Which slots failed at each instant, and the instants from which no trainer was left."""
    failed: dict[float, set[int]] = defaultdict(set)
    down: set[int] = set()
    without_trainer = set()
    for i in np.flatnonzero(np.isin(log.kind, (EventKind.FAILED, *BACK))):
        at_h, slot = float(log.at_h[i]), int(log.slot[i])
        if log.kind[i] == EventKind.FAILED:
            failed[at_h].add(slot)
            down |= {slot} & trainers
            if down and down == trainers:
                without_trainer.add(at_h)
        else:
            down = down - {slot} if log.kind[i] == EventKind.REPLACED else set()
    return failed, without_trainer


def act(moment: Moment, saver: Saver, first_slot: int) -> None:
    """Do to a saver what a moment did to the job's saves and shards."""
    if moment.kind in STARTS:
        saver.start(ends_interval=moment.kind is EventKind.SAVE_STARTED)
    elif moment.kind in COMMITS:
        saver.commit()
    elif moment.kind is EventKind.SAVE_ABANDONED:
        saver.abandon()
    elif moment.kind is EventKind.REVERTED:
        servers = [slot - first_slot for slot in moment.slots]
        saver.lose(servers, keeps_layers=moment.keeps_layers)


def replay(
    log: EventLog,
    useful_h: float,
    shard_slots: range,
    replica_slots: range,
    course: TracedTraining,
    saver: Saver,
) -> LossCurve:
    """Train to the end of the log, and do to the model what the log says was done to the job."""
    trainer = course.trainer
    last_save = pending = course.bookmark()
    for moment in moments(log, replica_slots):
        if moment.kind is EventKind.ROLLED_BACK:
            course.go_back(last_save)
            saver.lose(range(saver.shards.n_servers))
            continue
        course.go_to(trainer.on_grid(moment.progress_h / useful_h * trainer.n_samples))
        if moment.kind in STARTS:
            pending = course.bookmark()
        elif moment.kind in COMMITS:
            last_save = pending
        act(moment, saver, shard_slots.start)
    return course.curve()


def losses_of_shards(log: EventLog, useful_h: float) -> Floats:
    """(n,) shares of the run done when shards went back, in order."""
    reverted = log.kind == EventKind.REVERTED
    return np.unique(log.progress_h[reverted] / useful_h)
