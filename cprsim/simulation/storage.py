"""The shared storage: a SimPy process that divides its bandwidth between jobs, max-min fairly."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from typing import NamedTuple

import simpy
from simpy.events import EventPriority

from cprsim.simulation.instants import JOBS, TICKS, TRANSFERS, Instant, Process, TickClock, come_now
from cprsim.simulation.recoveries import rate_of_each
from cprsim.simulation.spec import NONE
from cprsim.simulation.state import Sim

RATE_ROUNDING = 1e-12  # of a rate
Place = tuple[float, int, "Flow"]  # sort key, number, flow: an item of a sorted list


class Flow:
    """Equal simultaneous transfers of one save or load.

    The event `over`, with the rank of the job, is triggered when all bytes have moved.
    """

    def __init__(
        self, env: simpy.Environment, n: int, each_bytes: float, cap: float, rank: EventPriority
    ) -> None:
        self.n, self.left_bytes, self.bytes_per_h = n, each_bytes, cap  # per transfer; highest rate
        self.rank = rank
        self.each_bytes = each_bytes
        self.over = env.event()
        self.number = 0
        self.since_h = 0.0  # instant at which `left_bytes` were left
        self.is_capped = False  # its rate is its cap; else the level
        self.ends_at = inf  # instant if `is_capped`, else a reading of the odometer [bytes]


class SharedStorage:
    """Bandwidth that flows share: flows with a low cap move at their cap, all others at the level.

    The level is one common rate. An odometer counts the bytes that a transfer at the level moves,
    so that a change of the level needs no update of these flows.
    """

    def __init__(self, env: TickClock, bytes_per_h: float) -> None:
        self.env, self.bytes_per_h, self.n_begun = env, bytes_per_h, 0
        self.capped: list[Place] = []  # by cap
        self.slowed: list[Place] = []  # by cap
        self.ends_capped: list[Place] = []  # by instant
        self.ends_slowed: list[Place] = []  # by bytes on the odometer
        self.n_slowed, self.capped_bytes_per_h = 0, 0.0  # of all flows together
        self.level_bytes_per_h = inf  # common rate of transfers below their cap
        self.odometer_bytes = self.read_at_h = 0.0
        self.earlier = env.event()
        self.wakes_h = inf
        env.process(self.runs())

    def runs(self) -> Process:
        """End flows in order; `earlier` wakes the process if the next end moves forward."""
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
        """Start a flow of `n` equal transfers of a job."""
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
        """Stop a flow before its end."""
        if not flow.over.triggered:
            self.read()
            self.take(flow)
            self.balance()

    def moved_bytes(self, flow: Flow) -> float:
        """Bytes that each transfer of a flow has moved."""
        self.read()
        return flow.each_bytes - self.left_bytes(flow)

    def left_bytes(self, flow: Flow) -> float:
        """Bytes that each transfer still has to move, as of the latest reading."""
        if flow.over.triggered or flow.ends_at == inf:
            return flow.left_bytes
        if flow.is_capped:
            return max(0.0, flow.left_bytes - (self.read_at_h - flow.since_h) * flow.bytes_per_h)
        return max(0.0, flow.ends_at - self.odometer_bytes)

    def read(self) -> None:
        """Advance the odometer to the current instant."""
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

    # ----------------------------------------------------------------- flows at cap or level

    def put(self, flow: Flow, *, capped: bool) -> None:
        """Add a flow to those at their cap, or to those at the level."""
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
            self.capped_bytes_per_h = 0.0  # exact: drops rounding errors

    def balance(self) -> None:
        """Update the level, and wake the process if a flow now ends earlier."""
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
        """Move a flow to those at their cap, or to those at the level."""
        self.take(flow)
        self.put(flow, capped=capped)

    def has_too_much(self, high: Flow) -> bool:
        """Whether the level would be below the cap of a flow that now moves at its cap."""
        left = self.bytes_per_h - self.capped_bytes_per_h + high.n * high.bytes_per_h
        level = left / (self.n_slowed + high.n)
        return high.bytes_per_h > level * (1.0 + 2.0 * RATE_ROUNDING)


# --------------------------------------------------------------------------- a job's transfers


class SharedSaves(NamedTuple):
    """Saves of a job over the cluster's storage.

    A save that takes h hours without other traffic moves h x `bytes_per_h` bytes per transfer.
    """

    captures: frozenset[int] = frozenset()
    n_flows: int = 1
    bytes_per_h: float = 1.0


ALL_ALONE = SharedSaves()

LINK = (NONE, 0)  # key of the loads, which share the link of the job
Key = tuple[int, int]  # capture and number of a save; negative: the save stalls the job


class Transfers:
    """Transfers of a job over the storage: its shared saves, and loads over its link.

    In `step` a transfer ends at infinity until the storage has moved all of it.
    """

    def __init__(
        self, storage: SharedStorage | None, saves: SharedSaves, rank: EventPriority
    ) -> None:
        self.storage, self.saves, self.rank = storage, saves, rank
        self.flows = dict[Key, Flow]()
        self.link_began_bytes = 0.0  # the link's odometer at the start of its flow

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
        """Start the flow of a save that lasts until `ends_h` alone; return its end, or infinity."""
        assert self.storage is not None
        if ends_h <= now_h:
            return ends_h
        if key not in self.flows:
            _, n_flows, bytes_per_h = self.saves
            each_bytes = (ends_h - now_h) * bytes_per_h
            self.flows[key] = self.storage.start(n_flows, each_bytes, bytes_per_h, self.rank)
        return inf

    def move_link(self, sim: Sim) -> None:
        """Set the link's odometer to the bytes that the storage has moved by this instant."""
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
