"""The storage that jobs share: a SimPy process that divides its bandwidth max-min fairly."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from typing import NamedTuple

import simpy
from simpy.events import EventPriority

from cprsim.simulation.instants import (
    JOBS,
    TICKS,
    TRANSFERS,
    Instant,
    Process,
    TickClock,
    come_now,
)
from cprsim.simulation.recoveries import rate_of_each
from cprsim.simulation.spec import NONE
from cprsim.simulation.state import Sim

RATE_ROUNDING = 1e-12  # of a rate
Place = tuple[float, int, "Flow"]  # in a sorted list


class Flow:
    """Equal transfers of one save or load.

    `over` is triggered when all bytes have moved, with the rank of its job.
    """

    def __init__(
        self, env: simpy.Environment, n: int, each_bytes: float, cap: float, rank: EventPriority
    ) -> None:
        self.n, self.left_bytes, self.bytes_per_h = n, each_bytes, cap  # at most, each
        self.rank = rank
        self.each_bytes = each_bytes
        self.over = env.event()
        self.number = 0
        self.since_h = 0.0  # instant at which `left_bytes` were left
        self.is_capped = False  # it has its cap; else what all others have
        self.ends_at = inf  # instant if it has its cap, else bytes on the odometer


class SharedStorage:
    """Bandwidth that flows share: those with low caps have their cap, all others one level.

    An odometer counts the bytes that each of the others has moved, so that a change of the level
    touches none of them.
    """

    def __init__(self, env: TickClock, bytes_per_h: float) -> None:
        self.env, self.bytes_per_h, self.n_begun = env, bytes_per_h, 0
        self.capped: list[Place] = []  # by cap
        self.slowed: list[Place] = []  # by cap
        self.ends_capped: list[Place] = []  # by instant
        self.ends_slowed: list[Place] = []  # by bytes on the odometer
        self.n_slowed, self.capped_bytes_per_h = 0, 0.0  # of all flows together
        self.level_bytes_per_h = inf  # of each that has less than its cap
        self.odometer_bytes = self.read_at_h = 0.0
        self.earlier = env.event()
        self.wakes_h = inf
        env.process(self.runs())

    def runs(self) -> Process:
        """End one flow after another; it is woken where another flow makes the next end earlier."""
        while True:
            self.earlier = self.env.event()
            self.wakes_h, _ = self.first_end()
            own = Instant(self.env, self.wakes_h, TRANSFERS) if self.wakes_h < inf else None
            yield self.earlier if own is None else own | self.earlier
            self.read()
            at_h, flow = self.first_end()
            while flow is not None and at_h <= self.env.at_h + 1.0 / TICKS:
                self.take(flow)
                flow.left_bytes = 0.0
                come_now(flow.over, flow.rank)
                at_h, flow = self.first_end()
            self.balance()

    def start(self, n: int, each_bytes: float, cap: float, rank: EventPriority = JOBS) -> Flow:
        """Begin a bundle of `n` equal flows of a job."""
        flow = Flow(self.env, n, each_bytes, cap, rank)
        self.n_begun += 1
        flow.number = self.n_begun
        self.read()
        flow.since_h = self.read_at_h
        level = (self.bytes_per_h - self.capped_bytes_per_h) / (self.n_slowed + n)
        self.put(flow, capped=cap <= level * (1.0 + RATE_ROUNDING))
        self.balance()
        return flow

    def stop(self, flow: Flow) -> None:
        """A flow stops before its end."""
        if not flow.over.triggered:
            self.read()
            self.take(flow)
            self.balance()

    def moved_bytes(self, flow: Flow) -> float:
        """Bytes that each of these flows has moved."""
        self.read()
        return flow.each_bytes - self.left_bytes(flow)

    def left_bytes(self, flow: Flow) -> float:
        """Bytes that are left of each, as of the latest reading."""
        if flow.over.triggered or flow.ends_at == inf:
            return flow.left_bytes
        if flow.is_capped:
            return max(0.0, flow.left_bytes - (self.read_at_h - flow.since_h) * flow.bytes_per_h)
        return max(0.0, flow.ends_at - self.odometer_bytes)

    def read(self) -> None:
        """Move the odometer on to this instant."""
        if self.slowed:
            self.odometer_bytes += (self.env.at_h - self.read_at_h) * self.level_bytes_per_h
        else:
            self.odometer_bytes = 0.0
        self.read_at_h = self.env.at_h

    def first_end(self) -> tuple[float, Flow | None]:
        """Return the earliest end of a flow, and the flow; infinite and None without flows."""
        at_h, _, flow = self.ends_capped[0] if self.ends_capped else (inf, 0, None)
        if self.ends_slowed:
            ends_at_bytes, _, slowed = self.ends_slowed[0]
            left_bytes = max(0.0, ends_at_bytes - self.odometer_bytes)
            ends_at_h = self.read_at_h + left_bytes / self.level_bytes_per_h
            if ends_at_h < at_h:
                return ends_at_h, slowed
        return at_h, flow

    # ----------------------------------------------------------------- who has its cap

    def put(self, flow: Flow, *, capped: bool) -> None:
        """A flow is among those that have their cap, or among the others."""
        flow.is_capped = capped
        if capped:
            flow.ends_at = self.read_at_h + flow.left_bytes / flow.bytes_per_h
            self.capped_bytes_per_h += flow.n * flow.bytes_per_h
        else:
            flow.ends_at = self.odometer_bytes + flow.left_bytes
            self.n_slowed += flow.n
        insort(self.capped if capped else self.slowed, (flow.bytes_per_h, flow.number, flow))
        ends = self.ends_capped if capped else self.ends_slowed
        insort(ends, (flow.ends_at, flow.number, flow))

    def take(self, flow: Flow) -> None:
        """Remove a flow, and record its remaining bytes."""
        some = self.capped if flow.is_capped else self.slowed
        ends = self.ends_capped if flow.is_capped else self.ends_slowed
        flow.left_bytes, flow.since_h = self.left_bytes(flow), self.read_at_h
        del some[bisect_left(some, (flow.bytes_per_h, flow.number))]
        del ends[bisect_left(ends, (flow.ends_at, flow.number))]
        if not flow.is_capped:
            self.n_slowed -= flow.n
        elif self.capped:
            self.capped_bytes_per_h -= flow.n * flow.bytes_per_h
        else:
            self.capped_bytes_per_h = 0.0  # without rounding

    def balance(self) -> None:
        """Find the level, and wake the process where a flow now ends earlier."""
        while self.capped and self.has_too_much(self.capped[-1][2]):
            self.moves(self.capped[-1][2], capped=False)
        while self.slowed:
            self.level_bytes_per_h = (self.bytes_per_h - self.capped_bytes_per_h) / self.n_slowed
            low = self.slowed[0][2]
            if low.bytes_per_h > self.level_bytes_per_h * (1.0 + RATE_ROUNDING):
                break
            self.moves(low, capped=True)
        if self.first_end()[0] < self.wakes_h and not self.earlier.triggered:
            self.earlier.succeed()

    def moves(self, flow: Flow, *, capped: bool) -> None:
        """A flow goes over to those that have their cap, or to the others."""
        self.take(flow)
        self.put(flow, capped=capped)

    def has_too_much(self, high: Flow) -> bool:
        """Whether flows with their cap would have less at the level."""
        left = self.bytes_per_h - self.capped_bytes_per_h + high.n * high.bytes_per_h
        level = left / (self.n_slowed + high.n)
        return high.bytes_per_h > level * (1.0 + 2.0 * RATE_ROUNDING)


# --------------------------------------------------------------------------- a job's transfers


class SharedSaves(NamedTuple):
    """Saves of a job over the cluster's storage.

    A save that takes h hours without other traffic moves h x `bytes_per_h` bytes in each flow.
    """

    captures: frozenset[int] = frozenset()
    n_flows: int = 1
    bytes_per_h: float = 1.0


ALL_ALONE = SharedSaves()

LINK = (NONE, 0)  # in place of a save: the loads, which share a link
Key = tuple[int, int]  # capture, and the number of a save; less than 0: that stalls the job


class Transfers:
    """Transfers of a job over the storage: its shared saves, and loads over its link.

    In the step their end is infinite until the storage has moved them.
    """

    def __init__(
        self, storage: SharedStorage | None, saves: SharedSaves, rank: EventPriority
    ) -> None:
        self.storage, self.saves, self.rank = storage, saves, rank
        self.flows = dict[Key, Flow]()
        self.link_began_bytes = 0.0  # the link's odometer as its flow began

    def start_new(self, sim: Sim) -> bool:
        """Start the flows of new transfers, stop aborted ones; return whether any flow began."""
        if self.storage is None:
            return False
        job, n_before, under_way = sim.job, self.storage.n_begun, set[Key]()
        for capture in self.saves.captures:
            n, flights = job.saves[capture].n_in_flight, job.flights[capture]
            for flight in flights[:n]:
                flight.at_h = self.start_save((capture, flight.number), flight.at_h, job.now_h)
                under_way.add((capture, flight.number))
            if job.stalled_by == capture:
                key = (capture, -1 - flights[n].number)
                job.stall_ends_at_h = self.start_save(key, job.stall_ends_at_h, job.now_h)
                under_way.add(key)
        if job.now_h < job.link_ends_at_h < inf and job.n_moving:
            if flow := self.flows.pop(LINK, None):
                self.storage.stop(flow)
            self.link_began_bytes, job.link_ends_at_h = job.link_bytes, inf
            left_bytes, cap = (
                job.link_ends_bytes - job.link_bytes,
                rate_of_each(sim.spec, job.n_moving),
            )
            self.flows[LINK] = self.storage.start(job.n_moving, left_bytes, cap, self.rank)
        if job.n_moving:
            under_way.add(LINK)
        for key in [key for key in self.flows if key not in under_way]:
            self.storage.stop(self.flows.pop(key))
        return self.storage.n_begun > n_before

    def start_save(self, key: Key, ends_h: float, now_h: float) -> float:
        """A save that ends alone at an instant ends by the storage; when it ends now."""
        assert self.storage is not None
        if ends_h <= now_h:
            return ends_h
        if key not in self.flows:
            _, n_flows, bytes_per_h = self.saves
            each_bytes = (ends_h - now_h) * bytes_per_h
            self.flows[key] = self.storage.start(n_flows, each_bytes, bytes_per_h, self.rank)
        return inf

    def move_link(self, sim: Sim) -> None:
        """The link's odometer is where the storage has moved it by this instant."""
        if self.storage is not None and (flow := self.flows.get(LINK)):
            sim.job.link_bytes = self.link_began_bytes + self.storage.moved_bytes(flow)
            sim.job.link_read_at_h = sim.job.now_h

    def end_moved(self, sim: Sim) -> None:
        """End the completed transfers at this instant."""
        job = sim.job
        for key in [key for key, flow in self.flows.items() if flow.over.triggered]:
            del self.flows[key]
            capture, number = key
            if key == LINK:
                job.link_bytes, job.link_ends_at_h = job.link_ends_bytes, job.now_h
            elif number < 0:
                job.stall_ends_at_h = job.now_h
            else:
                for flight in job.flights[capture][: job.saves[capture].n_in_flight]:
                    if flight.number == number:
                        flight.at_h = job.now_h

    def stop(self) -> None:
        """Stop all transfers of a job that has ended."""
        for flow in self.flows.values():
            assert self.storage is not None
            self.storage.stop(flow)
