"""The cluster in SimPy: jobs on shared nodes, spares and storage, event by event.

A job is a process (`RunningJob.run`). It arrives, waits for its nodes and, until it ends, processes
events: its own next one (`step.next_event`), a granted node, or the end of a transfer. At each
event `step` updates the job: work, saves, failures, recoveries. A repair is a process. Free nodes
are a `simpy.Container`. The storage is a process that divides its bandwidth
(`storage.SharedStorage`)::

    job:   arrives --(gets its nodes)--> runs --(processes an event)--> runs ... --> leaves
    node:  free --(a slot or a job takes it)--> in a job --(breaks)--> in repair --> free
           in a job --(the job leaves)--> free

`instants` orders simultaneous events. `run_one` runs a single job, `run_fleet` several.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple, cast

import numpy as np
import simpy
from simpy.events import EventPriority

from cprsim.job.records import EventLog, Floats
from cprsim.simulation import step
from cprsim.simulation.cycles import skip_cycles
from cprsim.simulation.draws import BlockDraws
from cprsim.simulation.instants import ARRIVALS, JOBS, RETURNS, Instant, Process, TickClock
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.log import LogLines
from cprsim.simulation.nodes import FreeNodes, NodeRequest
from cprsim.simulation.saves import needed_by_step
from cprsim.simulation.spec import COLUMNS, FINISHED, NONE, RUNNING, SAME_INSTANT, spec_of
from cprsim.simulation.state import N_OF_LOSS, Drawn, no_recovery, sim_of
from cprsim.simulation.step import FailedSlots, complete, fail, next_event, start
from cprsim.simulation.storage import NOT_SHARED, SharedSaves, SharedStorage, Transfers
from cprsim.simulation.strikes import ScopedFailures, next_failure

FIRST_DRAWS_OF_BLOCK = 64  # number of values of each cost that a new block draws

# --------------------------------------------------------------------------- shared resources


class SharedCluster:
    """The nodes and the storage that jobs share.

    Parameters
    ----------
    n_nodes : limit of slots in use; a job waits for slots, then for nodes; None: unlimited
    n_spares : additional nodes to replace failed ones; None: jobs ask for none
    storage_bytes_per_h : bandwidth of all saves and loads together; infinite: not shared
    """

    def __init__(
        self,
        n_nodes: int | None = None,
        n_spares: int | None = None,
        storage_bytes_per_h: float = inf,
    ) -> None:
        self.env = TickClock()
        self.free = FreeNodes(self.env, (n_nodes or 0) + (n_spares or 0))
        self.job_slots = None if n_nodes is None else simpy.Container(self.env, init=n_nodes)
        self.n_to_discard = 0  # repaired nodes to drop: one per vacant slot of ended jobs
        self.storage: SharedStorage | None = None
        if storage_bytes_per_h < inf:
            self.storage = SharedStorage(self.env, storage_bytes_per_h)

    def get_nodes(self, n: int) -> Process:
        """Take `n` nodes for a new job when they are free; immediately if nodes are unlimited."""
        if self.job_slots is not None:
            yield self.job_slots.get(n)
            yield NodeRequest(self.free, n, ARRIVALS)

    def repair(self, returns_at_h: float) -> Process:
        """Repair a node; at `returns_at_h` it is free again, or dropped."""
        yield Instant(self.env, returns_at_h, RETURNS)
        if self.n_to_discard:
            self.n_to_discard -= 1
        else:
            self.free.put(1)

    def release_nodes(self, n: int, n_vacant: int) -> None:
        """Free a leaving job's nodes, `n` less `n_vacant`; if unlimited, drop those in repair."""
        if self.job_slots is None:
            self.n_to_discard += n_vacant
            return
        if n > n_vacant:
            self.free.put(n - n_vacant)
        self.job_slots.put(n)


# --------------------------------------------------------------------------- failures and draws


class ReplicationBlock:
    """A block of a job's replications: their failures and random draws, extended on demand."""

    def __init__(
        self,
        job: SimulatedJob,
        failures: ScopedFailures,
        draws: BlockDraws,
        shared_saves: SharedSaves = NOT_SHARED,
    ) -> None:
        self.job, self.failures, self.draws = job, failures, draws
        self.shared_saves = shared_saves
        self.spec, _ = spec_of(job)
        self.losses: Floats = np.zeros((2 * self.spec.n_slots, N_OF_LOSS))  # a buffer
        self.draw_costs(FIRST_DRAWS_OF_BLOCK)
        self.draw_failures(1)

    def draw_costs(self, n: int) -> None:
        """Draw at least n values of each cost."""
        self.n_drawn, self.saves_vary = n, len(self.draws.of_saves) > 0
        # memory views: Python reads single values faster from them than from arrays
        self.drawn = Drawn(*map(memoryview, self.draws.first(n)))  # type: ignore[arg-type]

    def draw_failures(self, n_chunks: int) -> None:
        """Draw the failures of the first n chunks, consecutive parts of the failures' clock."""
        drawn = self.failures.strikes(n_chunks)
        self.strikes = type(drawn)(drawn.until_h, *map(memoryview, drawn[1:]))  # type: ignore[arg-type]
        self.no_slots = FailedSlots(NONE, self.strikes.slot[:0], self.strikes.repair_h[:0])


class JobResult(NamedTuple):
    """Results of one replication of a job."""

    start_h: float  # on the cluster's clock
    wall_h: float
    useful_h: float
    finished: bool
    n_failures: int
    n_saves: int
    hours: list[float]  # in the order of `policy.parts`
    losses: Floats  # a row per shard left stale, (n, N_OF_LOSS)


# --------------------------------------------------------------------------- a job


class RunningJob:
    """A job of a cluster; its times count from its start, `start_h` on the cluster's clock."""

    def __init__(
        self, cluster: SharedCluster, block: ReplicationBlock, row: int, number: int = 0
    ) -> None:
        self.cluster, self.block, self.row = cluster, block, row
        self.rank = EventPriority(JOBS + number)
        # skip whole cycles of work and save, for speed; saves over a shared storage vary
        self.skips_cycles = not block.shared_saves.captures
        self.log: LogLines | None = None

    def run(self, arrive_h: float = 0.0) -> Process:
        """Simulate the job from its arrival to its end."""
        env, n_nodes = self.cluster.env, self.block.spec.n_slots
        if arrive_h > 0.0:
            yield Instant(env, arrive_h, ARRIVALS)
        yield from self.cluster.get_nodes(n_nodes)
        self.begin(env.at_h)
        self.find_next_event()
        while self.job.status == RUNNING:
            own_event = Instant(env, self.start_h + self.next_h, self.rank)
            transfer_ends = [flow.over for flow in self.transfers.flows.values()]
            shared_events = [*self.requests, *transfer_ends]
            yield env.any_of((own_event, *shared_events)) if shared_events else own_event
            if not any(event.processed for event in (own_event, *transfer_ends)):
                # only a request was granted: jobs that arrived earlier act first
                yield Instant(env, env.at_h, self.rank)
            if any(event.triggered for event in shared_events):
                is_own = own_event.processed
                self.apply_shared_events(self.next_h if is_own else env.at_h - self.start_h)
            else:
                self.apply_own_event()
            self.find_next_event()
        return self.end(n_nodes)

    def begin(self, now_h: float) -> None:
        """Initialise the job's state when it has got its nodes."""
        block, self.start_h = self.block, now_h
        self.sim = sim_of(block.job, block.drawn, self.row, block.losses, self.log)
        self.job = self.sim.job
        self.requests = list[NodeRequest]()  # requests of waiting slots, in the order of the queue
        self.transfers = Transfers(self.cluster.storage, block.shared_saves, self.rank)
        self.losses = list[Floats]()
        self.find_failure(0, self.block.strikes.first[0, self.row])
        start(self.sim)

    def find_next_event(self) -> None:
        """Begin due saves and loads, skip whole cycles of work and save, find the next event."""
        job, free = self.job, self.cluster.free
        while job.status == RUNNING:
            self.prepare_draws()
            fails_at_h = self.fails_at_h()
            if self.log is not None:
                self.log.resumes(job)
            job.n_free = n_free = int(free.level)
            self.event = event = next_event(self.sim, fails_at_h)
            self.apply_outcome(n_free)  # elastic jobs may take nodes in `next_event`
            if job.status != RUNNING:
                return
            if self.transfers.start_new(self.sim):
                continue
            if self.log is not None:
                self.log.name_activity(job)
            may_skip = self.skips_cycles and not self.requests and not self.transfers.flows
            if not may_skip or not skip_cycles(self.sim, event, fails_at_h):
                tie_h = SAME_INSTANT * self.sim.spec.useful_h
                self.fails_next = event.fails_h < event.at_h - tie_h  # in a tie failures come last
                self.next_h = max(job.now_h, event.fails_h) if self.fails_next else event.at_h
                return

    def apply_own_event(self) -> None:
        """Advance the job to its own next event, and apply the event."""
        job, block = self.job, self.block
        if self.fails_next and self.failure == NONE:  # not drawn yet: `next_h` is a lower bound
            block.draw_failures(self.chunk + 1)
            return
        job.n_free = n_free = int(self.cluster.free.level)
        self.advance(self.next_h)
        if self.fails_next:
            n, strikes = self.failure, block.strikes
            hit = slice(strikes.first_slot[n], strikes.first_slot[n + 1])
            fail(self.sim, FailedSlots(strikes.scope[n], strikes.slot[hit], strikes.repair_h[hit]))
            self.find_failure(self.chunk, n + 1)
        else:
            complete(self.sim, self.event, block.no_slots)
        self.apply_outcome(n_free)

    def apply_shared_events(self, now_h: float) -> None:
        """Apply the events of this instant: granted nodes, ends of transfers, the job's own.

        A failure at the same instant is processed afterwards.
        """
        job = self.job
        n_got = sum(request.triggered for request in self.requests)
        self.requests = self.requests[n_got:]  # earlier requests are granted first
        self.advance(min(self.next_h, max(job.now_h, now_h)))
        self.transfers.end_moved(self.sim)
        n_free = int(self.cluster.free.level)
        job.n_free = n_free + n_got  # the granted nodes, as if repaired now:
        if n_got:
            job.next_return_h = job.now_h  # `complete` gives them to slots
        event = self.event._replace(commits_h=job.now_h)  # of saves whose transfer ended
        complete(self.sim, event, self.block.no_slots)
        self.apply_outcome(n_free)

    def advance(self, to_h: float) -> None:
        """Advance the job to an instant, and book its hours."""
        step.advance(self.sim, to_h, self.event)
        self.transfers.update_link(self.sim)

    def find_failure(self, chunk: int, failure: int) -> None:
        """Find the next failure, at or after `failure` in `chunk`; NONE if it is not drawn."""
        self.chunk, self.failure = next_failure(self.block.strikes, self.row, chunk, failure)

    def fails_at_h(self) -> float:
        """Hour of the next failure on the failures' clock; a lower bound if it is not drawn yet."""
        strikes = self.block.strikes
        if self.failure == NONE and self.chunk < len(strikes.first):  # drawn meanwhile
            self.find_failure(self.chunk, strikes.first[self.chunk, self.row])
        return strikes.until_h if self.failure == NONE else strikes.at_h[self.failure]

    def prepare_draws(self) -> None:
        """Provide enough draws, and enough empty records of recoveries, for the next event."""
        block, (n_of_saves, n, n_recoveries) = self.block, needed_by_step(self.sim)
        if max(n, n_of_saves if block.saves_vary else 0) > block.n_drawn:
            block.draw_costs(2 * block.n_drawn)
        if self.sim.drawn is not block.drawn:
            self.sim = self.sim._replace(drawn=block.drawn)
        while len(self.sim.recoveries) < n_recoveries:
            self.sim.recoveries.append(no_recovery())

    # ----------------------------------------------------------------- nodes

    def apply_outcome(self, n_free: int) -> None:
        """Store the event's losses, and apply its requests and repairs to the cluster.

        `n_free` nodes were free before the event.
        """
        cluster, job, slots = self.cluster, self.job, self.sim.slots
        if job.n_losses:
            self.losses.append(self.block.losses[: job.n_losses].copy())
            job.n_losses = 0
        if n_free > job.n_free:
            taken = NodeRequest(cluster.free, n_free - job.n_free, JOBS)
            assert taken.triggered, "a request for a free node is granted immediately"
        for n in range(job.n_repairs):  # slots[n] holds repair n, not slot n's: `state.Slot`
            cluster.env.process(cluster.repair(self.start_h + slots[n].returns_at_h))
        job.n_repairs, job.next_return_h = 0, inf  # `SharedCluster.repair` tracks them
        for _ in range(job.n_queued - len(self.requests)):
            self.requests.append(NodeRequest(cluster.free, 1, JOBS))

    def end(self, n_nodes: int) -> JobResult:
        """Release the job's nodes, stop its transfers, and return its results."""
        job, slots = self.job, self.sim.slots
        for request in self.requests:
            if request.triggered:  # granted at this instant
                self.cluster.free.put(1)
            request.cancel()
        self.transfers.stop()
        self.cluster.release_nodes(n_nodes, sum(slot.vacant for slot in slots.values()))
        step.end(self.sim)
        if self.log is not None:
            self.log.end(job, self.sim.spec)
        parts = self.block.job.policy.parts
        losses = np.concatenate(self.losses) if self.losses else np.zeros((0, N_OF_LOSS))
        result = JobResult(
            self.start_h, job.now_h, job.frontier_h, job.status == FINISHED, job.n_failures,
            job.n_saves, [job.hours[COLUMNS.index(part)] for part in parts], losses,
        )  # fmt: skip
        # SimPy keeps the process until the fleet ends; the job's state is large
        del self.job, self.sim, self.requests, self.transfers, self.losses
        return result


# --------------------------------------------------------------------------- runs


def run_one(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    row: int = 0,
    *,
    skips: bool = False,
) -> tuple[JobResult, EventLog]:
    """Run one replication of a job alone, and return its results and its log.

    Parameters
    ----------
    skips : skip whole cycles of work and save; the log has no lines of skipped cycles
    """
    cluster = SharedCluster(n_spares=job.cluster.n_spares)
    running = RunningJob(cluster, ReplicationBlock(job, failures, draws), row)
    running.skips_cycles, running.log = skips, LogLines()
    result = cluster.env.run(until=cluster.env.process(running.run()))
    return cast(JobResult, result), running.log.log()


def run_fleet(
    cluster: SharedCluster, arrive_h: Sequence[float], jobs: Sequence[tuple[ReplicationBlock, int]]
) -> list[JobResult]:
    """Run jobs that share a cluster, each a replication (block, row); return their results."""
    processes = [
        cluster.env.process(RunningJob(cluster, block, row, number).run(at_h))
        for number, (at_h, (block, row)) in enumerate(zip(arrive_h, jobs, strict=True))
    ]
    cluster.env.run()
    return [cast(JobResult, process.value) for process in processes]
