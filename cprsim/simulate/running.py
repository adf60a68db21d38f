"""Alarms and recoveries of a job on the SimPy cluster, and the nodes that jobs share."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from math import inf, isnan, nextafter
from typing import Any

import simpy
from simpy.events import EventPriority

from cprsim.simulate.numbers import LOAD, WAIT

# Of events at one instant: commits first, a failure last; of stages that of the recovery that began
# first, whose number is added
SAVES, NODES, STAGES, NOTICES, JOB, END, FAILURES = (EventPriority(n << 32) for n in range(1, 8))


class Alarm(simpy.Event):
    """Something to wait for, or that calls a function, after a delay, unless it is cancelled.

    An infinite delay ends by `moved` alone.
    Instants of one job that are nearer than `near_h`, this one included, are one: rounding does not
    decide what comes first. `pending` are the alarms of the job.
    """

    def __init__(
        self, env: simpy.Environment, delay_h: float, order: EventPriority,
        call: Callable[[], object] | None, pending: dict[Alarm, None], near_h: float = 0.0,
    ) -> None:  # fmt: skip
        now_h = env.now
        if delay_h < near_h:
            delay_h = 0.0
        self.env, self.at_h = env, now_h + delay_h  # no super().__init__: there are millions
        self._order, self._near_h = order, near_h
        for alarm in pending:
            if self.at_h != alarm.at_h and abs(self.at_h - alarm.at_h) < near_h:
                self.at_h, delay_h = alarm.at_h, alarm.at_h - now_h
                while now_h + delay_h != alarm.at_h:
                    delay_h = nextafter(delay_h, inf if now_h + delay_h < alarm.at_h else 0.0)
                break
        self._ok, self._value = True, None
        self._call: Any = call
        self._pending = pending
        self.callbacks = [self._ring]
        pending[self] = None
        if delay_h < inf:
            env.schedule(self, order, delay_h)

    def _ring(self, _: simpy.Event) -> None:
        del self._pending[self]
        call, self._call = self._call, None  # no cycle of references for the garbage collector
        if call is not None:
            call()

    def cancel(self) -> None:
        """Call nothing. The alarm stays in the queue, where it refers to nothing."""
        if self.callbacks:
            del self._pending[self]
            self.callbacks.clear()
            self._call = None

    def moved(self, delay_h: float) -> Alarm:
        """The same alarm, for the same who wait, after another delay from now."""
        call, waiting = self._call, self.callbacks[1:]
        self.cancel()
        alarm = Alarm(self.env, delay_h, self._order, call, self._pending, self._near_h)
        alarm.callbacks += waiting
        return alarm


SetAlarm = Callable[[float, EventPriority, Callable[[], object]], Alarm]


@dataclass(slots=True, eq=False)
class Recovery:
    """The recovery of some slots, on its way through its stages."""

    number: int
    of_all: bool  # its rule reverts all
    speed: float  # of the job, in stages that do not block it
    slots: set[int]
    ahead: deque[tuple[Any, float]]  # stages, with their hours
    loading: set[int] | None = None  # shards to load, where later failures may take them over
    sharing: Collection[int] = ()  # shards to load over a link that loads share
    stage: Any = None  # the one that it is in
    order: EventPriority = STAGES  # of its stages, where others end at the same instant
    alarm: Alarm | None = None  # of the end of its stage

    @property
    def is_held(self) -> bool:
        """Whether it waits for the job to take its slots in."""
        return self.stage.kind == WAIT and not isnan(self.stage.grows_h)

    @property
    def has_load(self) -> bool:
        """Whether a load is before it or under way; one that takes no time is none."""
        takes_time = bool(self.sharing)
        ahead = any(s.kind == LOAD and (hours > 0.0 or takes_time) for s, hours in self.ahead)
        return ahead or self.stage.kind == LOAD


Running = Any  # `cluster.RunningJob`, which is made of what takes this


class Nodes:
    """One pool: free nodes go to slots that lost theirs, then to jobs in order of arrival.

        free --(a job starts)--> in a job --(it fails)--> in repair --> free
                in a job --(the job ends)--> free

    A slot takes any free node; it is vacant from its failure until then, and queued since it asked.

    Parameters
    ----------
    n_nodes : for jobs, which queue for them at arrival; None: without limit
    n_spares : more nodes, for failures; None: one is always free
    """

    def __init__(self, n_nodes: int | None = None, n_spares: int | None = None) -> None:
        self._n_nodes, self._replaces = n_nodes, n_spares is not None
        self.n_free = (n_spares or 0) + (n_nodes or 0)
        self._n_slots = 0  # of the running jobs; at most `n_nodes`
        self._n_owed = 0  # to be scrapped: without limit, jobs that end leave no nodes behind
        self._slots: deque[tuple[Running, int]] = deque()  # that wait
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()  # that wait to start

    def arrive(self, n_nodes: int, start: Callable[[], object]) -> None:
        """A job arrives; `start` is called as soon as it has its nodes."""
        if self._n_nodes is None:
            start()
        else:
            self._jobs.append((n_nodes, start))
            self._start_jobs()

    def leave(self, job: Running, n_nodes: int) -> None:
        """A job ends, and its nodes are free."""
        if job.queued:
            self._slots = deque(waiting for waiting in self._slots if waiting[0] is not job)
        if self._n_nodes is None:
            self._n_owed += len(job.vacant)
        else:
            self.n_free += n_nodes - len(job.vacant)
            self._n_slots -= n_nodes
        self._give()

    def lose(self, job: Running, slot: int, repair_h: float) -> None:
        """The node of a slot goes to repair; a slot without one loses none."""
        if self._replaces and slot not in job.vacant:
            job.vacant.add(slot)
            job.at(repair_h, NODES, self._repaired)

    def ask(self, job: Running, slots: Iterable[int]) -> None:
        """Queue those of the slots that are vacant and have not asked before."""
        for slot in sorted(job.vacant.intersection(slots) - job.queued):
            job.queued.add(slot)
            self._slots.append((job, slot))
        self._give()

    def _repaired(self) -> None:
        if self._n_owed:
            self._n_owed -= 1
            return
        self.n_free += 1
        self._give()

    def _give(self) -> None:
        """Free nodes to slots, whose jobs go on when all of this instant are given; or to jobs."""
        while self.n_free and self._slots:
            job, slot = self._slots.popleft()
            job.queued.remove(slot)
            job.vacant.remove(slot)
            self.n_free -= 1
            job.at(0.0, STAGES, job.on_node)
        self._start_jobs()

    def _start_jobs(self) -> None:
        while self._jobs and not self._slots:
            n_nodes, start = self._jobs[0]
            if n_nodes > min(self.n_free, (self._n_nodes or 0) - self._n_slots):
                return
            self._jobs.popleft()
            self.n_free -= n_nodes
            self._n_slots += n_nodes
            start()
