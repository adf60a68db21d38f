"""The nodes that jobs share: queues at arrival and after failures, and repairs; by SimPy."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from cprsim.simulate.running import NODES, STAGES, Running


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
            self._slots = deque(one for one in self._slots if one[0] is not job)
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
