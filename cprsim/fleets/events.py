"""The jobs of a fleet on one clock, event by event, by SimPy.

Each job is a replication of `simulate.events` that lives in surroundings which it shares: it gets
its nodes from the fleet's pool, and its saves and loads go over the fleet's storage.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from typing import Any, cast

import simpy

from cprsim.fleets.nodes import NodePool, NodesOfJob
from cprsim.fleets.records import Arrival, Ran, Shared
from cprsim.fleets.storage import LinkOfJob, SharedStorage
from cprsim.simulate.events.alarms import JOB, SAVES, Alarm
from cprsim.simulate.events.replication import Link, Replication, Save
from cprsim.simulate.events.sharing import SharedLink
from cprsim.simulate.job import ReplicationDraws, ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import Numbers


@dataclass(frozen=True, slots=True)
class RemoteSaves:
    """Saves of one capture that others may hold up.

    Over the shared storage a save that takes so many hours alone moves hours x `cap_bytes_per_h`
    bytes in each flow.
    """

    n_flows: int
    cap_bytes_per_h: float  # of each flow, where the job has the storage to itself


@dataclass(frozen=True, slots=True)
class JobToRun:
    """A job, its failures, and which of its saves go over the shared storage."""

    job: SimulatedJob
    n_nodes: int
    failures: Iterator[ScopedFailure]
    draws: ReplicationDraws
    num: Numbers  # of the job
    remote: Mapping[int, RemoteSaves] = field(default_factory=dict)  # by capture


def run_jobs(
    arrivals: Iterable[Arrival],
    shared: Shared,
    to_run: Callable[[Arrival], JobToRun],
    on_end: Callable[[int], None] | None = None,
) -> list[Ran]:
    """Run all jobs of a fleet to their ends.

    Parameters
    ----------
    to_run : called when a job starts
    on_end : called with the number of jobs that have ended

    Returns
    -------
    what became of each, in the order of `arrivals`
    """
    fleet = _Fleet(shared)
    jobs = list(arrivals)
    ran: list[Ran | None] = [None] * len(jobs)
    n_ended = 0

    def ends(number: int, began_h: float, outcome: ReplicationOutcome) -> None:
        nonlocal n_ended
        n_ended += 1
        ran[number] = _ran(began_h, outcome)
        if on_end is not None:
            on_end(n_ended)

    def arrives(number: int) -> None:
        job = to_run(jobs[number])

        def starts() -> None:
            _JobInFleet(fleet, job, number, ends)

        fleet.nodes.arrive(job.n_nodes, starts)

    for number, arrival in enumerate(jobs):
        Alarm(fleet.env, arrival.at_h, JOB, lambda number=number: arrives(number))  # type: ignore[misc]
    with _seldom_collecting():
        while n_ended < len(jobs):
            fleet.env.step()
    return cast(list[Ran], ran)


@contextmanager
def _seldom_collecting() -> Iterator[None]:
    """Look for cycles of dead objects a hundred times less often: each look takes all jobs in."""
    before = gc.get_threshold()
    gc.set_threshold(100 * before[0], *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


def queue_jobs(
    arrivals: Iterable[Arrival], shared: Shared, n_nodes: list[int], wall_h: list[float]
) -> list[float]:
    """When jobs start whose hours are known beforehand [h], in the order of `arrivals`."""
    env = simpy.Environment()
    nodes = NodePool(env, shared.capacity)
    start_h = [inf] * len(wall_h)

    def starts(number: int) -> None:
        start_h[number] = float(env.now)
        Alarm(env, wall_h[number], JOB, lambda: nodes.leave(n_nodes[number]))

    def arrives(number: int) -> None:
        nodes.arrive(n_nodes[number], lambda: starts(number))

    for number, arrival in enumerate(arrivals):
        Alarm(env, arrival.at_h, JOB, lambda number=number: arrives(number))  # type: ignore[misc]
    env.run()
    return start_h


def _ran(start_h: float, outcome: ReplicationOutcome) -> Ran:
    stale_h = sum(shard.progress_h - shard.content_h for shard in outcome.stale)
    return Ran(
        start_h, outcome.wall_h, outcome.finished, outcome.useful_h, outcome.hours,
        outcome.n_failures, outcome.n_saves, stale_h,
    )  # fmt: skip


class _Fleet:
    """What the jobs of a fleet share."""

    def __init__(self, shared: Shared) -> None:
        self.env = simpy.Environment()
        self.nodes = NodePool(self.env, shared.capacity)
        bandwidth = shared.storage_bytes_per_h
        self.storage = None if bandwidth is None else SharedStorage(self.env, bandwidth)
        self.turns = None if shared.n_savers is None else _Turns(shared.n_savers)


class _Turns:
    """Who may save; the others go on working until it is their turn."""

    def __init__(self, n: int) -> None:
        self._n_left = n
        self._held: dict[_JobInFleet, None] = {}
        self._queue: deque[_JobInFleet] = deque()

    def has(self, job: _JobInFleet) -> bool:
        return job in self._held

    def ask(self, job: _JobInFleet) -> bool:
        """Whether it is the job's turn; else it is told when it is."""
        if self._n_left:
            self._n_left -= 1
            self._held[job] = None
            return True
        if job not in self._queue:
            self._queue.append(job)
        return False

    def give_back(self, job: _JobInFleet) -> None:
        """The job saves no more; the next one may."""
        if job not in self._held:
            return
        del self._held[job]
        self._n_left += 1
        if self._queue:
            following = self._queue.popleft()
            self._n_left -= 1
            self._held[following] = None
            following.on_turn()

    def forget(self, job: _JobInFleet) -> None:
        """The job has ended."""
        if job in self._queue:
            self._queue.remove(job)
        self.give_back(job)


class _JobInFleet(Replication):
    """One job among others."""

    def __init__(
        self,
        fleet: _Fleet,
        to_run: JobToRun,
        number: int,
        on_end: Callable[[int, float, ReplicationOutcome], None],
    ) -> None:
        self._fleet, self._to_run, self._number, self._on_over = fleet, to_run, number, on_end
        self._put_off: dict[int, None] = {}  # captures whose saves wait for the job's turn
        super().__init__(to_run.job, to_run.failures, to_run.draws, False, not to_run.remote, self)

    # what `simulate.events.Surroundings` asks for

    @property
    def env(self) -> simpy.Environment:
        return self._fleet.env

    @property
    def num(self) -> Numbers:
        return self._to_run.num

    def nodes_for(self, on_node: Callable[[], None]) -> NodesOfJob:
        self._nodes = NodesOfJob(self._fleet.nodes, self._fleet.env, on_node)
        return self._nodes

    def link_for(self, num: Numbers, on_end: Callable[[Any], None]) -> Link:
        if self._fleet.storage is None:
            return SharedLink(self._fleet.env, num, on_end)
        return LinkOfJob(self._fleet.storage, self._fleet.env, num, on_end)

    # saves over the shared storage

    def _set_alarm(self, save: Save, delay_h: float, call: Callable[[Save], None]) -> None:
        remote, storage = self._to_run.remote.get(save.capture), self._fleet.storage
        if remote is None or storage is None:
            super()._set_alarm(save, delay_h, call)
            return
        each_bytes = delay_h * remote.cap_bytes_per_h
        save.alarm = storage.start(
            remote.n_flows, each_bytes, remote.cap_bytes_per_h, SAVES, lambda: call(save)
        )

    def _has_to_save(self) -> bool:
        turns = self._fleet.turns
        if turns is None:
            return super()._has_to_save()
        if self._progress_h < self._num.useful_h:  # the last save waits for nobody
            for capture in self._to_run.remote:
                if self._progress_h >= self._due_h[capture] and not turns.has(self):
                    self._wait_for_turn(turns, capture)
        stalls = super()._has_to_save()
        self._end_turn()
        return stalls

    def _wait_for_turn(self, turns: _Turns, capture: int) -> None:
        if not turns.ask(self):
            self._put_off[capture] = None
            self._due_h[capture] = inf

    def on_turn(self) -> None:
        """Saves that were put off are due now, if the job has not gone back behind them."""
        self._settle()
        for capture in self._put_off:
            if self._due_h[capture] == inf:
                self._due_h[capture] = self._progress_h
        self._put_off.clear()
        self._plan_next_step()

    def _commit(self, save: Save) -> None:
        super()._commit(save)
        self._end_turn()

    def _abandon_saves(self) -> None:
        super()._abandon_saves()
        self._end_turn()

    def _end_turn(self) -> None:
        """Another job may save, where none of this one's saves goes over the storage."""
        turns = self._fleet.turns
        if turns is None or not turns.has(self):
            return
        under_way = [self._stalling, *(one for some in self._in_flight for one in some)]
        due = [n for n in self._to_run.remote if self._due_h[n] <= self._progress_h]
        if not due and all(
            one is None or one.capture not in self._to_run.remote for one in under_way
        ):
            turns.give_back(self)

    # the end

    def _end(self, finished: bool) -> None:
        super()._end(finished)
        self._fall_silent()
        if self._fleet.turns is not None:
            self._fleet.turns.forget(self)
        assert self._outcome is not None
        self._on_over(self._number, self._began_at_h, self._outcome)
        self._fleet.nodes.leave(self._to_run.n_nodes, self._nodes)
        vars(self).clear()  # no circle of references: what the job took of memory is free at once

    def _fall_silent(self) -> None:
        """Nothing of the job happens any more."""
        for alarm in (self._step, self._last, self._failure_alarm):
            if alarm is not None:
                alarm.cancel()
        saves = [one for some in self._in_flight for one in some]
        for save in [*saves, *([] if self._stalling is None else [self._stalling])]:
            save.alarm.cancel()
        for recovery in list(self._recoveries):
            self._stop_recovery(recovery)
