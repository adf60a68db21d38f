"""Nodes of a cluster that jobs share: queues at arrival and after failures, repairs; by SimPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

import simpy

from cprsim.simulate.events.alarms import NODES, Alarm


@dataclass(frozen=True, slots=True)
class Capacity:
    """What of nodes there is for all jobs together; None: without limit.

    Parameters
    ----------
    n_nodes : for jobs; a job that finds too few free queues at its arrival
    n_spares : more than those, for failures; without a number a spare is always free
    n_crews : nodes that can be repaired at once
    backfill : whether a job that fits starts before one that came earlier and does not
    """

    n_nodes: int | None = None
    n_spares: int | None = None
    n_crews: int | None = None
    backfill: bool = False


@dataclass(slots=True, eq=False)
class Waiting:
    """A job that waits for its nodes at arrival."""

    n_nodes: int
    start: Callable[[], None]


class NodePool:
    """One pool: free nodes go to slots that lost theirs first, then to jobs that wait to start.

    All jobs together have at most `Capacity.n_nodes` slots; a slot takes any free node. So jobs
    start later for failures only where more nodes are in repair than there are spares. Node by
    node::

        free --(a job starts)--> in a job --(it fails)--> in repair --> free
                in a job --(the job ends)--> free
    """

    def __init__(self, env: simpy.Environment, capacity: Capacity) -> None:
        self._env, self._capacity = env, capacity
        self.n_free = (capacity.n_spares or 0) + (capacity.n_nodes or 0)
        self._n_slots = 0  # of the jobs that run
        self._n_owed = 0  # to be scrapped: their jobs ended without them, and took no other
        self._slots: deque[tuple[NodesOfJob, int]] = deque()  # that wait
        self._jobs: deque[Waiting] = deque()  # that wait to start
        self._n_in_repair = 0
        self._to_repair: deque[float] = deque()  # hours

    @property
    def replaces(self) -> bool:
        """Whether failed slots wait for a node of the pool."""
        return self._capacity.n_spares is not None

    def arrive(self, n_nodes: int, start: Callable[[], None]) -> None:
        """A job arrives; `start` is called as soon as it has its nodes."""
        if self._capacity.n_nodes is None:
            start()
            return
        self._jobs.append(Waiting(n_nodes, start))
        self._start_jobs()

    def leave(self, n_nodes: int, nodes: NodesOfJob | None = None) -> None:
        """A job ends; what it has of nodes is free."""
        n_vacant = 0
        if nodes is not None:
            n_vacant = len(nodes.vacant)
            if nodes.queued:
                self._slots = deque(one for one in self._slots if one[0] is not nodes)
        if self._capacity.n_nodes is not None:
            self.n_free += n_nodes - n_vacant
            self._n_slots -= n_nodes
        else:
            self._n_owed += n_vacant
        self._give(None)

    def repair(self, hours: float) -> None:
        """A failed node goes to repair, or waits for a crew."""
        n_crews = self._capacity.n_crews
        if n_crews is not None and self._n_in_repair >= n_crews:
            self._to_repair.append(hours)
            return
        self._n_in_repair += 1
        Alarm(self._env, hours, NODES, self._repaired)

    def queue(self, of: NodesOfJob, slot: int) -> None:
        """A slot waits for a node."""
        self._slots.append((of, slot))
        self._give(of)

    def _repaired(self) -> None:
        self._n_in_repair -= 1
        if self._to_repair:
            self.repair(self._to_repair.popleft())
        if self._n_owed:
            self._n_owed -= 1
            return
        self.n_free += 1
        self._give(None)

    def _give(self, asks: NodesOfJob | None) -> None:
        """Free nodes to slots, then to jobs; who asks just now needs not be told."""
        told: dict[NodesOfJob, None] = {}
        while self.n_free and self._slots:
            of, slot = self._slots.popleft()
            of.take(slot)
            self.n_free -= 1
            told[of] = None
        for of in told:
            if of is not asks:
                of.on_node()
        self._start_jobs()

    def _start_jobs(self) -> None:
        while not self._slots and (job := self._next_job()) is not None:
            self._jobs.remove(job)
            self.n_free -= job.n_nodes
            self._n_slots += job.n_nodes
            job.start()

    def _next_job(self) -> Waiting | None:
        n_left = min(self.n_free, (self._capacity.n_nodes or 0) - self._n_slots)
        for job in self._jobs:
            if job.n_nodes <= n_left:
                return job
            if not self._capacity.backfill:
                return None
        return None


@dataclass(slots=True, eq=False)
class NodesOfJob:
    """The slots of one job that lost their nodes (`simulate.events.NodeSource`)."""

    pool: NodePool
    env: simpy.Environment
    on_node: Callable[[], None]
    vacant: set[int] = field(default_factory=set)
    queued: dict[int, None] = field(default_factory=dict)

    def lose(self, slot: int, repair_h: float) -> None:
        """The node of a slot goes to repair; a slot without one loses none."""
        if self.pool.replaces and slot not in self.vacant:
            self.vacant.add(slot)
            self.pool.repair(repair_h)

    def ask(self, slots: Iterable[int]) -> None:
        """Queue those of the slots that are vacant and have not asked before."""
        for slot in sorted(self.vacant.intersection(slots)):
            if slot not in self.queued:
                self.queued[slot] = None
                self.pool.queue(self, slot)

    def take(self, slot: int) -> None:
        """A slot gets a node."""
        del self.queued[slot]
        self.vacant.remove(slot)

    def lacks(self, slots: set[int]) -> bool:
        """Whether one of the slots has no node."""
        return not self.vacant.isdisjoint(slots)

    @property
    def next_at_h(self) -> float:
        """Before which no slot gets a node: now, where one waits, as others decide when."""
        return float(self.env.now) if self.queued else inf
