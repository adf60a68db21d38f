"""Flows over one bandwidth, divided max-min fairly, compiled; `fleets.storage` says it by SimPy."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import uncounted_part
from cprsim.fleets.fast.heaps import HEAP, Heap, drop, first_of, put
from cprsim.simulate.numbers import NONE

NEAR = 1e-12  # of a rate: rounding
STORAGE = 0  # number of the storage's own alarm among those of flows
BOOKED_NOT, BOOKED_BY_LEVEL, BOOKED_BY_CAP = range(3)

FLOW = np.dtype(
    [
        ("n", "i8"),  # equal flows; 0: this place is free
        ("capture", "i8"),  # of the save that they are of
        ("number", "i8"),  # of that save, or of the recovery whose load they are of
        ("left_bytes", "f8"),  # of each, at `since_h`; of flows at their cap
        ("cap", "f8"),  # bytes per hour of each
        ("ends_at_bytes", "f8"),  # on the odometer; of flows at the level
        ("since_h", "f8"),
        ("has_cap", "?"),
        ("booked", "i8"),  # how their end has been booked
        ("is_listed", "?"),
        ("listed", "i8"),  # the nth flows to book
    ],
    align=True,
)
BANDWIDTH = np.dtype(
    [
        ("bandwidth", "f8"),  # bytes per hour
        ("n_flows", "i8"),  # places that are not free
        ("n_slowed", "i8"),  # flows that have less than their cap
        ("capped", "f8"),  # bytes per hour of all others together
        ("level", "f8"),
        ("odometer_bytes", "f8"),
        ("read_at_h", "f8"),
        ("counter", "i8"),
    ],
    align=True,
)


class StorageFlows(NamedTuple):
    """The storage and its flows; those of each job have places of their own, from 1 on."""

    of_all: Any  # (1,) of BANDWIDTH
    flows: Any  # (n_room,) of FLOW
    by_cap: Heap  # those that have their cap, the greatest first
    by_least_cap: Heap  # those that have less
    by_end: Heap  # those


def storage_of(n_room: int, bandwidth_bytes_per_h: float) -> StorageFlows:
    """A storage without flows."""
    of_all = np.zeros(1, BANDWIDTH)
    of_all["bandwidth"], of_all["level"] = bandwidth_bytes_per_h, inf
    heaps = [np.zeros(n_room, HEAP) for _ in range(3)]
    return StorageFlows(of_all, np.zeros(n_room, FLOW), *heaps)


@uncounted_part
def advance(storage: StorageFlows, now_h: float) -> None:
    """Read the odometer."""
    all_ = storage.of_all[0]
    if all_.n_slowed:
        all_.odometer_bytes += (now_h - all_.read_at_h) * all_.level
    all_.read_at_h = now_h


@uncounted_part
def put_in(
    storage: StorageFlows, place: int, n: int, each_bytes: float, cap: float, n_listed: int
) -> int:
    """List flows at a free place to be entered; how many are listed then."""
    flow = storage.flows[place]
    flow.n, flow.left_bytes, flow.cap = n, each_bytes, cap
    flow.since_h, flow.booked, flow.has_cap = storage.of_all[0].read_at_h, BOOKED_NOT, False
    storage.of_all[0].n_flows += 1
    storage.flows[n_listed].listed = place
    return n_listed + 1


@uncounted_part
def change(
    storage: StorageFlows, timers: Heap, place: int, n: int, cap: float, n_listed: int
) -> int:
    """List flows to be entered with another number or cap; how many are listed then."""
    flow = storage.flows[place]
    if flow.n == n and flow.cap == cap:
        return n_listed
    leave(storage, timers, place)
    flow.n, flow.cap = n, cap
    storage.flows[n_listed].listed = place
    return n_listed + 1


@uncounted_part
def take_out(storage: StorageFlows, timers: Heap, place: int) -> None:
    """Flows are over; `enter` has to follow."""
    storage.of_all[0].n_flows -= 1
    leave(storage, timers, place)
    storage.flows[place].n = 0


@uncounted_part
def leave(storage: StorageFlows, timers: Heap, place: int) -> None:
    """Take flows out, with what is left of them."""
    unbook(storage, timers, place)
    flow, all_ = storage.flows[place], storage.of_all[0]
    drop(storage.by_cap, place)
    drop(storage.by_least_cap, place)
    if flow.has_cap:
        all_.capped -= flow.n * flow.cap
    else:
        all_.n_slowed -= flow.n
    if all_.n_flows == 0:
        all_.capped = 0.0  # without rounding


@uncounted_part
def unbook(storage: StorageFlows, timers: Heap, place: int) -> None:
    """Set down what is left of flows, and how they end no more."""
    flow, all_ = storage.flows[place], storage.of_all[0]
    if flow.booked == BOOKED_BY_CAP:
        moved = (all_.read_at_h - flow.since_h) * flow.cap
        flow.left_bytes = max(0.0, flow.left_bytes - moved)
        drop(timers, place)
    elif flow.booked == BOOKED_BY_LEVEL:
        flow.left_bytes = max(0.0, flow.ends_at_bytes - all_.odometer_bytes)
        drop(storage.by_end, place)
    flow.since_h, flow.booked = all_.read_at_h, BOOKED_NOT


@uncounted_part
def enter(storage: StorageFlows, timers: Heap, rank: int, n_listed: int) -> None:
    """Put the listed flows in, find the level, and let each end when it does.

    Parameters
    ----------
    rank : of their alarms among others at one instant
    """
    all_, flows = storage.of_all[0], storage.flows
    more = 0.0
    for i in range(n_listed):
        more += flows[storage.flows[i].listed].n * flows[storage.flows[i].listed].cap
    at_cap = all_.n_slowed == 0 and all_.capped + more <= all_.bandwidth
    for i in range(n_listed):
        place = storage.flows[i].listed
        flows[place].is_listed = True
        if at_cap:
            flows[place].has_cap = True
            all_.capped += flows[place].n * flows[place].cap
            all_.counter += 1
            put(storage.by_cap, place, -flows[place].cap, all_.counter)
        else:
            flows[place].has_cap = False
            all_.n_slowed += flows[place].n
            all_.counter += 1
            put(storage.by_least_cap, place, flows[place].cap, all_.counter)
    if not at_cap:
        n_listed = find_level(storage, n_listed)
    else:
        all_.level = inf
    for i in range(n_listed):
        place = storage.flows[i].listed
        flows[place].is_listed = False
        wanted = BOOKED_BY_CAP if flows[place].has_cap else BOOKED_BY_LEVEL
        if flows[place].booked != wanted:
            book(storage, timers, place, rank)
    first = first_of(storage.by_end)
    if first == NONE:
        all_.odometer_bytes = 0.0
        drop(timers, STORAGE)
    else:
        left_bytes = max(0.0, flows[first].ends_at_bytes - all_.odometer_bytes)
        all_.counter += 1
        put(timers, STORAGE, all_.read_at_h + left_bytes / all_.level, rank + all_.counter)


@uncounted_part
def find_level(storage: StorageFlows, n_listed: int) -> int:
    """Have flows get their cap that may, and others no more; list these, too."""
    all_, flows = storage.of_all[0], storage.flows
    while all_.n_slowed > 0:
        left = all_.bandwidth - all_.capped
        level = left / all_.n_slowed
        low, high = first_of(storage.by_least_cap), first_of(storage.by_cap)
        if low != NONE and flows[low].cap <= level * (1.0 + NEAR):
            moved = low
        elif high != NONE and flows[high].cap > level and has_too_much(storage, high):
            moved = high
        else:
            all_.level = level
            return n_listed
        move(storage, moved)
        if not flows[moved].is_listed:
            flows[moved].is_listed = True
            storage.flows[n_listed].listed = moved
            n_listed += 1
    all_.level = inf
    return n_listed


@uncounted_part
def has_too_much(storage: StorageFlows, high: int) -> bool:
    """Whether the level with flows that have their cap now stays below it."""
    all_, flow = storage.of_all[0], storage.flows[high]
    left = all_.bandwidth - all_.capped + flow.n * flow.cap
    level = left / (all_.n_slowed + flow.n)
    return bool(flow.cap > level * (1.0 + 2.0 * NEAR))


@uncounted_part
def move(storage: StorageFlows, place: int) -> None:
    """Flows get their cap, or have it no more."""
    all_, flow = storage.of_all[0], storage.flows[place]
    all_.counter += 1
    if flow.has_cap:
        drop(storage.by_cap, place)
        put(storage.by_least_cap, place, flow.cap, all_.counter)
        all_.n_slowed += flow.n
        all_.capped -= flow.n * flow.cap
    else:
        drop(storage.by_least_cap, place)
        put(storage.by_cap, place, -flow.cap, all_.counter)
        all_.n_slowed -= flow.n
        all_.capped += flow.n * flow.cap
    flow.has_cap = not flow.has_cap


@uncounted_part
def book(storage: StorageFlows, timers: Heap, place: int, rank: int) -> None:
    """Let flows end by an alarm of their own, or by the odometer."""
    unbook(storage, timers, place)
    flow, all_ = storage.flows[place], storage.of_all[0]
    all_.counter += 1
    if flow.has_cap:
        flow.booked = BOOKED_BY_CAP
        put(timers, place, all_.read_at_h + flow.left_bytes / flow.cap, rank + all_.counter)
    else:
        flow.booked = BOOKED_BY_LEVEL
        flow.ends_at_bytes = all_.odometer_bytes + flow.left_bytes
        put(storage.by_end, place, flow.ends_at_bytes, all_.counter)
