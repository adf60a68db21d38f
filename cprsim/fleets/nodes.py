"""Nodes of a cluster that jobs share: queues at arrival and after failures, repairs; by SimPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

import simpy

from cprsim.simulate.events.alarms import NODES, Alarm


class NodePool:
    """One pool: free nodes go to slots that lost theirs first, then to jobs in order of arrival.

    All jobs together have at most `n_nodes` slots, and a slot takes any free node. So jobs start
    later because of failures only where more nodes are in repair than there are spares. Node by
    node::

        free --(a job starts)--> in a job --(it fails)--> in repair --> free
                in a job --(the job ends)--> free

    Parameters
    ----------
    n_nodes : for jobs, which queue for them at arrival; None: without limit
    n_spares : more nodes, for failures; None: one is always free
    """

    def __init__(
        self, env: simpy.Environment, n_nodes: int | None = None, n_spares: int | None = None
    ) -> None:
        self._env, self._n_nodes, self.replaces = env, n_nodes, n_spares is not None
        self.n_free = (n_spares or 0) + (n_nodes or 0)
        self._n_slots = 0  # of the running jobs
        self._n_owed = 0  # to be scrapped: their jobs ended without them, and took no other
        self._slots: deque[tuple[NodesOfJob, int]] = deque()  # that wait
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()  # that wait to start

    @property
    def now_h(self) -> float:
        return float(self._env.now)

    def arrive(self, n_nodes: int, start: Callable[[], object]) -> None:
        """A job arrives; `start` is called as soon as it has its nodes."""
        if self._n_nodes is None:
            start()
            return
        self._jobs.append((n_nodes, start))
        self._start_jobs()

    def leave(self, n_nodes: int, nodes: NodesOfJob) -> None:
        """A job ends, and its nodes are free."""
        n_vacant = len(nodes.vacant)
        if nodes.queued:
            self._slots = deque(one for one in self._slots if one[0] is not nodes)
        if self._n_nodes is None:
            self._n_owed += n_vacant
        else:
            self.n_free += n_nodes - n_vacant
            self._n_slots -= n_nodes
        self._give()

    def repair(self, hours: float) -> None:
        """A failed node is free again after its repair."""
        Alarm(self._env, hours, NODES, self._repaired)

    def queue(self, of: NodesOfJob, slot: int) -> None:
        """A slot waits for a node."""
        self._slots.append((of, slot))
        self._give(of)

    def _repaired(self) -> None:
        if self._n_owed:
            self._n_owed -= 1
            return
        self.n_free += 1
        self._give()

    def _give(self, asks: NodesOfJob | None = None) -> None:
        """Free nodes to slots, then to jobs; a job that asks just now is not called."""
        served: dict[NodesOfJob, None] = {}
        while self.n_free and self._slots:
            of, slot = self._slots.popleft()
            of.take(slot)
            self.n_free -= 1
            served[of] = None
        for of in served:
            if of is not asks:
                of.on_node()
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


@dataclass(slots=True, eq=False)
class NodesOfJob:
    """The slots of one job that lost their nodes (`simulate.events.NodeSource`)."""

    pool: NodePool
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
        return self.pool.now_h if self.queued else inf
