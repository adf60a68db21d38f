"""The shared storage: a SimPy process that divides its bandwidth between jobs, max-min fairly."""

from __future__ import annotations

from bisect import bisect_left, insort
from math import inf
from typing import NamedTuple

import simpy
from simpy.events import EventPriority

from cprsim.simulation.instants import JOBS, TICKS, TRANSFERS, Instant, Process, TickClock, trigger
from cprsim.simulation.recoveries import rate_of_each
from cprsim.simulation.spec import NONE
from cprsim.simulation.state import Sim


class FlowGroup:
    """Flows with the same highest rate per transfer, hence with the same rate.

    The odometer counts the bytes that one transfer has moved: a change of the rate updates no flow.
    """

    def __init__(self, cap: float) -> None:
        self.cap, self.bytes_per_h, self.odometer_bytes = cap, 0.0, 0.0
        self.n = 0  # transfers
        self.flows: list[tuple[float, int, Flow]] = []  # by their end on the odometer, and number


class Flow:
    """Equal simultaneous transfers of one save or load.

    The event `over`, with the rank of the job, is triggered when all bytes have moved.
    """

    def __init__(self, over: simpy.Event, n: int, each_bytes: float, rank: EventPriority) -> None:
        self.over, self.n, self.each_bytes, self.rank = over, n, each_bytes, rank


class SharedStorage:
    """Bandwidth that flows share: each has its highest rate, or an equal part of the rest."""

    def __init__(self, env: TickClock, bytes_per_h: float) -> None:
        self.env, self.bytes_per_h, self.n_begun = env, bytes_per_h, 0
        self.groups = dict[float, FlowGroup]()  # those with flows, by their highest rate
        self.group_of = dict[Flow, tuple[FlowGroup, float, int]]()  # and the flow's place there
        self.updated_at_h = 0.0
        self.earlier = env.event()
        self.next_end: tuple[float, Flow | None] = (inf, None)
        self.wakes_h = inf
        env.process(self.end_flows())

    def end_flows(self) -> Process:
        """End flows in order; `earlier` wakes the process if the next end becomes earlier."""
        while True:
            self.earlier = self.env.event()
            self.wakes_h, _ = self.next_end
            own = Instant(self.env, self.wakes_h, TRANSFERS) if self.wakes_h < inf else None
            yield self.earlier if own is None else own | self.earlier
            self.update_odometers()
            at_h, flow = self.next_end
            while flow is not None and at_h <= self.env.at_h + 1.0 / TICKS:
                self.remove(flow)
                trigger(flow.over, flow.rank)
                at_h, flow = self.first_end()
            self.balance()

    def start(self, n: int, each_bytes: float, cap: float, rank: EventPriority = JOBS) -> Flow:
        """Start a flow of `n` equal transfers of a job."""
        self.update_odometers()
        flow = Flow(self.env.event(), n, each_bytes, rank)
        group = self.groups.setdefault(cap, FlowGroup(cap))
        self.n_begun += 1
        self.group_of[flow] = group, group.odometer_bytes + each_bytes, self.n_begun
        group.n += n
        insort(group.flows, (group.odometer_bytes + each_bytes, self.n_begun, flow))
        self.balance()
        return flow

    def stop(self, flow: Flow) -> None:
        """Stop a flow before its end."""
        if flow in self.group_of:
            self.update_odometers()
            self.remove(flow)
            self.balance()

    def remove(self, flow: Flow) -> None:
        """Remove a flow."""
        group, *place = self.group_of.pop(flow)
        del group.flows[bisect_left(group.flows, tuple(place))]
        group.n -= flow.n
        if not group.flows:
            del self.groups[group.cap]

    def moved_bytes(self, flow: Flow) -> float:
        """Bytes that each transfer of a flow has moved."""
        if flow not in self.group_of:
            return flow.each_bytes
        self.update_odometers()
        group, ends_bytes, _ = self.group_of[flow]
        return flow.each_bytes - max(0.0, ends_bytes - group.odometer_bytes)

    def update_odometers(self) -> None:
        """Advance the odometers to the current instant."""
        for group in self.groups.values():
            group.odometer_bytes += (self.env.at_h - self.updated_at_h) * group.bytes_per_h
        self.updated_at_h = self.env.at_h

    def first_end(self) -> tuple[float, Flow | None]:
        """Return the earliest end of a flow, and the flow; infinite and None without flows."""
        at_h, first = inf, None
        for group in self.groups.values():
            ends_bytes, _, flow = group.flows[0]
            left_bytes = max(0.0, ends_bytes - group.odometer_bytes)
            ends_at_h = self.updated_at_h + left_bytes / group.bytes_per_h
            if ends_at_h < at_h:
                at_h, first = ends_at_h, flow
        return at_h, first

    def balance(self) -> None:
        """Update the rates, low ones first, and wake the process if a flow now ends earlier."""
        left, n = self.bytes_per_h, sum(group.n for group in self.groups.values())
        for _, group in sorted(self.groups.items()):
            group.bytes_per_h = min(group.cap, left / n)
            left, n = left - group.n * group.bytes_per_h, n - group.n
        self.next_end = self.first_end()
        if self.next_end[0] < self.wakes_h and not self.earlier.triggered:
            self.earlier.succeed()


# --------------------------------------------------------------------------- a job's transfers


class SharedSaves(NamedTuple):
    """Saves of a job over the cluster's storage.

    A save that takes h hours without other traffic moves h x `bytes_per_h` bytes per transfer.
    """

    captures: frozenset[int] = frozenset()
    n_flows: int = 1
    bytes_per_h: float = 1.0


NOT_SHARED = SharedSaves()

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

    def update_link(self, sim: Sim) -> None:
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
