"""Many jobs on one clock that share nodes, spares and storage, compiled.

`fleets.events` says the same by SimPy. Each job is a replication that goes from instant to instant
as in `replications`; what others decide of it has no end of its own (an infinite instant): the
nodes that its slots wait for, and the flows of its saves and loads. What is not known yet is asked
for, and the loop goes on from where it stood.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import depends, uncounted, uncounted_part
from cprsim.fleets.fast.flows import (
    STORAGE,
    StorageFlows,
    advance,
    change,
    enter,
    put_in,
    storage_of,
    take_out,
)
from cprsim.fleets.fast.heaps import HEAP, Heap, drop, first_of, put
from cprsim.records import Floats, Ints
from cprsim.recovery.legal import MOST_IN_FLIGHT
from cprsim.simulate import transitions
from cprsim.simulate.fast import recoveries, replications, saves, skipping, state
from cprsim.simulate.fast.recoveries import refresh, return_nodes, strike
from cprsim.simulate.fast.replications import (
    fastest_of,
    lose_for_good,
    pass_to,
    plan,
    settle,
    start,
)
from cprsim.simulate.fast.state import JOB, MOST_PARTS, Drawn
from cprsim.simulate.numbers import (
    FINISHED,
    GOING,
    LEFT,
    LOAD,
    LOSS,
    MOST_CAPTURES,
    NONE,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
)
from cprsim.simulate.transitions import rate_of_each

depends(Path(__file__).parent, transitions, recoveries, replications, saves, skipping, state)

NEAR = 1e-9  # of a job: a fleet's clock goes on over many jobs, so that more of it is rounded
SAVES, NODES, STAGES, STEPS, FAILURES = (n << 50 for n in (1, 2, 3, 4, 6))  # as events.alarms

# Places of a job among the alarms: itself, its stalling save, saves in flight, loads
STALL, FLIGHTS = 1, 2
LOADS = FLIGHTS + 2 * MOST_IN_FLIGHT
N_PLACES = LOADS + 16  # jobs with more saves and loads under way are left to SimPy

PLANNED = np.dtype(
    [
        ("kind", "i8"),
        ("arrive_h", "f8"),
        ("n_nodes", "i8"),
        ("first_node", "i8"),  # among the slots of all
        ("until_h", "f8"),  # failures are known
        ("place", "i8"),  # where it runs; NONE: it does not
        ("has_started", "?"),
        # what became of it
        ("start_h", "f8"),
        ("wall_h", "f8"),
        ("useful_h", "f8"),
        ("stale_h", "f8"),
        ("status", "i8"),
        ("n_failures", "i8"),
        ("n_saves", "i8"),
        ("hours", "f8", (MOST_PARTS,)),
    ],
    align=True,
)
KIND = np.dtype(
    [
        ("n_chunks", "i8"),  # of the failures of its jobs
        ("n_flows", "i8", (MOST_CAPTURES,)),  # of a save over the shared storage; 0: it is not
        ("cap", "f8", (MOST_CAPTURES,)),  # bytes per hour of each
    ],
    align=True,
)
SPAN = np.dtype([("first", "i8"), ("end", "i8")], align=True)
FAILURE = np.dtype(
    [("at_h", "f8"), ("scope", "i8"), ("first_slot", "i8"), ("end_slot", "i8")], align=True
)
PLACE = np.dtype(
    [
        ("left", "i8"),  # the nth place that is free again
        ("job", "i8"),
        ("began_h", "f8"),
        ("n_flows", "i8"),  # places of its own that are not free
        ("n_told", "i8"),  # slots of it that are in the queue of all
        ("chunk", "i8"),  # of its failures
        ("nth", "i8"),  # failure of that
        ("fails_at_h", "f8"),  # the failure that was planned with, or up to where none is known
        ("is_known", "?"),  # that failure
    ],
    align=True,
)
POOL = np.dtype(
    [
        ("n_nodes", "i8"),  # NONE: without limit
        ("n_crews", "i8"),  # likewise
        ("backfill", "?"),
        ("n_free", "i8"),
        ("n_slots", "i8"),  # of the jobs that run
        ("n_owed", "i8"),  # to be scrapped: their jobs ended without them, and took no other
        ("n_waiting", "i8"),  # slots
        ("first_slot", "i8"),  # in the queue, counted through
        ("last_slot", "i8"),
        ("n_in_repair", "i8"),
        ("n_repairs", "i8"),  # so far
        ("first_repair", "i8"),  # that waits for a crew, counted through
        ("last_repair", "i8"),
        ("first_job", "i8"),  # that may wait for nodes
        ("n_arrived", "i8"),
        ("n_ended", "i8"),
        ("n_places", "i8"),  # for jobs, that have been used
        ("n_left", "i8"),  # of those, free again
        ("now_h", "f8"),
    ],
    align=True,
)


class Jobs(NamedTuple):
    """The jobs of a fleet in the order of arrival, and what they meet."""

    numbers: Any  # (n_kinds,) of NUMBERS
    kinds: Any  # (n_kinds,) of KIND
    planned: Any  # (n_jobs,) of PLANNED
    spans: Any  # (n_chunks, n_jobs) of SPAN, among the failures
    failures: Any  # (n_failures,) of FAILURE
    slot: Ints  # (n_failed_nodes,) as in ScopedStrikes
    repair_h: Floats  # (n_failed_nodes,)
    drawn: Drawn  # a row for each job


class Running(NamedTuple):
    """What goes on; a place for each job that runs."""

    pool: Any  # (1,) of POOL
    places: Any  # (n_places,) of PLACE
    jobs: Any  # (n_places,) of JOB
    storage: StorageFlows
    timers: Heap  # alarms: of the storage, then N_PLACES for each place
    slots: Any  # (n_nodes of all jobs,) of SLOTS
    queue: Ints  # (n_nodes of all jobs,) of which job the slots are that wait
    repairs: Heap  # nodes in repair
    to_repair: Floats  # (n_failed_nodes,) hours of those that wait for a crew
    losses: Any  # (0,) of LOSS


def running(n_places: int, slots: Any, bandwidth_bytes_per_h: float) -> Running:
    """What goes on before the first job arrives.

    Parameters
    ----------
    slots : (n_nodes of all jobs,) of SLOTS
    """
    n_alarms = 1 + n_places * N_PLACES
    return Running(
        np.zeros(1, POOL), np.zeros(n_places, PLACE), np.zeros(n_places, JOB),
        storage_of(n_alarms, bandwidth_bytes_per_h), np.zeros(n_alarms, HEAP),
        slots, np.zeros(len(slots), dtype=np.int64), np.zeros(0, HEAP), np.zeros(0),
        np.zeros(0, LOSS),
    )  # fmt: skip


@uncounted
def run_together(jobs: Jobs, on: Running) -> tuple[int, int]:
    """Run all jobs to their ends, or until something is wanted: the status, and for which job."""
    pool, n_jobs = on.pool[0], len(jobs.planned)
    while True:
        status, of = distribute(jobs, on)
        if status != GOING:
            return status, of
        if pool.n_ended == n_jobs:
            return FINISHED, NONE
        arrives_h = jobs.planned[pool.n_arrived].arrive_h if pool.n_arrived < n_jobs else inf
        repair, alarm = first_of(on.repairs), first_of(on.timers)
        repaired_h = on.repairs[repair].key if repair != NONE else inf
        rings_h = on.timers[alarm].key if alarm != NONE else inf
        rank = on.timers[alarm].order if alarm != NONE else STEPS
        if (
            repair != NONE
            and repaired_h <= arrives_h
            and (repaired_h < rings_h or (repaired_h == rings_h and rank >= NODES))
        ):
            pool.now_h = repaired_h
            drop(on.repairs, repair)
            end_repair(on)
            continue
        if arrives_h < rings_h or (arrives_h == rings_h and rank >= STEPS):
            pool.now_h = arrives_h
            pool.n_arrived += 1
            continue
        if alarm == NONE:
            return LEFT, NONE
        place = (alarm - 1) // N_PLACES
        if alarm == STORAGE:
            place = (first_of(on.storage.by_end) - 1) // N_PLACES
        wanted = wants(jobs, on, place, alarm)
        if wanted != GOING:
            return wanted, on.places[place].job
        pool.now_h = rings_h
        ring(jobs, on, place, alarm)
        if go_on(jobs, on, place) == LEFT:
            return LEFT, on.places[place].job


@uncounted_part
def wants(jobs: Jobs, on: Running, place: int, alarm: int) -> int:
    """What has to be known before a job goes on; GOING where nothing is missing."""
    at, job = on.places[place], on.jobs[place]
    of_saves, of_failures = jobs.drawn.of_saves, jobs.drawn.of_failures
    if of_failures.shape[0] and job.n_failures + 2 > of_failures.shape[1]:
        return WANTS_COSTS
    if of_saves.shape[0]:
        for capture in range(jobs.numbers[jobs.planned[at.job].kind].n_captures):
            if job.saves[capture].n_begun + 2 * MOST_IN_FLIGHT > of_saves.shape[1]:
                return WANTS_SAVES
    is_own = alarm == 1 + place * N_PLACES
    is_unknown = is_own and job.fails_h < job.next_h and not at.is_known
    reaches = is_unknown and jobs.planned[at.job].until_h == at.fails_at_h
    return WANTS_FAILURES if reaches and not find_failure(jobs, at) else GOING


@uncounted_part
def find_failure(jobs: Jobs, at: Any) -> bool:
    """Go on to the chunk that has the job's next failure; whether it is known."""
    n_chunks = jobs.kinds[jobs.planned[at.job].kind].n_chunks
    while at.chunk < n_chunks and (
        jobs.spans[at.chunk, at.job].first + at.nth >= jobs.spans[at.chunk, at.job].end
    ):
        at.chunk += 1
        at.nth = 0
    return bool(at.chunk < n_chunks)


# ------------------------------------------------------------------------------ one job


@uncounted_part
def begin_job(jobs: Jobs, on: Running, number: int) -> int:
    """A job starts at a free place: which."""
    pool = on.pool[0]
    if pool.n_left > 0:
        pool.n_left -= 1
        place = on.places[pool.n_left].left
    else:
        place = pool.n_places
        pool.n_places += 1
    at, job = on.places[place], on.jobs[place]
    planned = jobs.planned[number]
    num = jobs.numbers[planned.kind]
    at.job, at.began_h, at.is_known = number, pool.now_h, False
    at.n_flows = at.n_told = at.chunk = at.nth = 0
    planned.place, planned.has_started, planned.start_h = place, True, pool.now_h
    job.n_recent = 0
    start(num, job, on.slots[span_of(jobs, number)])
    job.is_of_fleet, job.n_free = True, 0
    for part in range(num.n_parts):
        job.hours[part] = 0.0
    return int(place)


@uncounted_part
def span_of(jobs: Jobs, number: int) -> slice:
    """Where the slots of a job are."""
    planned = jobs.planned[number]
    return slice(planned.first_node, planned.first_node + planned.n_nodes)


@uncounted_part
def ring(jobs: Jobs, on: Running, place: int, alarm: int) -> None:
    """What happens to a job when an alarm of it rings: its own, or that of a flow."""
    at, job = on.places[place], on.jobs[place]
    num = jobs.numbers[jobs.planned[at.job].kind]
    slots = on.slots[span_of(jobs, at.job)]
    first = 1 + place * N_PLACES
    if alarm != first:
        end_flow(jobs, on, place, alarm)
        settle(num, job, slots, jobs.drawn, at.job)
        return
    struck = job.fails_h < job.next_h
    if at.is_known and abs(job.fails_h - job.next_h) < NEAR * num.useful_h:
        job.status = LEFT
        return
    pass_to(num, job, min(job.fails_h, job.next_h))
    if not struck:
        settle(num, job, slots, jobs.drawn, at.job)
    elif at.is_known:
        failure = jobs.failures[jobs.spans[at.chunk, at.job].first + at.nth]
        of = slice(failure.first_slot, failure.end_slot)
        strike(
            num, job, slots, jobs.drawn, at.job,
            failure.scope, jobs.slot[of], jobs.repair_h[of], on.losses, False,
        )  # fmt: skip
        at.nth += 1
        refresh(num, job, slots)
        for n in range(job.n_recoveries):  # others have taken all its shards over
            load = job.recoveries[n]
            if load.rule != NONE and load.kind == LOAD and load.shares and load.n_loads == 0:
                load.ends_at_h = job.now_h
        if job.status == GOING:
            settle(num, job, slots, jobs.drawn, at.job)
    if num.n_spares != NONE:
        for n in range(job.n_repairs):
            repair(on, slots[n].returns_at_h - job.now_h)
        job.n_repairs, job.next_return_h = 0, inf


@uncounted_part
def come_to(jobs: Jobs, on: Running, place: int) -> None:
    """Book a job's hours up to now, as others have come between."""
    at, job = on.places[place], on.jobs[place]
    to_h = max(job.now_h, on.pool[0].now_h - at.began_h)
    num = jobs.numbers[jobs.planned[at.job].kind]
    if at.is_known and abs(job.fails_h - to_h) < NEAR * num.useful_h:
        job.status = LEFT
    pass_to(num, job, min(to_h, min(job.fails_h, job.next_h)))


@uncounted_part
def go_on(jobs: Jobs, on: Running, place: int) -> int:
    """Plan what a job does from now on, and until when; or end it. Its status."""
    at, job = on.places[place], on.jobs[place]
    number = at.job
    kind = jobs.planned[number].kind
    num, slots = jobs.numbers[kind], on.slots[span_of(jobs, number)]
    for _ in range(at.n_told, job.n_queued):
        tell(on, number)
    at.n_told = job.n_queued
    at.is_known = find_failure(jobs, at)
    at.fails_at_h = jobs.planned[number].until_h
    if at.is_known:
        at.fails_at_h = jobs.failures[jobs.spans[at.chunk, number].first + at.nth].at_h
    fastest = fastest_of(num)
    for capture in range(num.n_captures):
        if jobs.kinds[kind].n_flows[capture]:
            fastest = NONE
    book_flows(jobs, on, place)
    again = True
    while again and job.status == GOING:
        held_up = at.n_flows > 0 or job.n_queued > 0
        skips = NONE if held_up else fastest
        plan(num, job, slots, jobs.drawn, number, at.fails_at_h, skips)
        again = book_flows(jobs, on, place)
    if job.status == LEFT:
        return LEFT
    if job.status != GOING:
        end_job(jobs, on, place)
        return FINISHED
    struck = job.fails_h < job.next_h
    at_h = at.began_h + min(job.fails_h, job.next_h)
    put(on.timers, 1 + place * N_PLACES, at_h, (FAILURES if struck else STEPS) + number)
    return GOING


@uncounted_part
def end_job(jobs: Jobs, on: Running, place: int) -> None:
    """A job ends, and its nodes are free."""
    at, job, pool = on.places[place], on.jobs[place], on.pool[0]
    number = at.job
    planned = jobs.planned[number]
    num, slots = jobs.numbers[planned.kind], on.slots[span_of(jobs, number)]
    first = 1 + place * N_PLACES
    drop(on.timers, first)
    n_vacant = 0
    if num.n_spares != NONE:
        for n in range(len(slots)):
            n_vacant += slots[n].vacant
    pool.n_waiting -= at.n_told
    if pool.n_nodes != NONE:
        pool.n_free += len(slots) - n_vacant
        pool.n_slots -= len(slots)
    else:
        pool.n_owed += n_vacant
    on.places[pool.n_left].left = place
    pool.n_left += 1
    pool.n_ended += 1
    lose_for_good(num, job)
    planned.place, planned.status = NONE, job.status
    planned.wall_h, planned.useful_h, planned.stale_h = job.now_h, job.frontier_h, job.stale_h
    planned.n_failures, planned.n_saves = job.n_failures, job.n_saves
    for part in range(num.n_parts):
        planned.hours[part] = job.hours[part]


# ------------------------------------------------------------------------------ its flows


@uncounted_part
def end_flow(jobs: Jobs, on: Running, place: int, alarm: int) -> None:
    """Flows have moved all their bytes: what they are of ends now, and `book_flows` stops them."""
    job = on.jobs[place]
    if alarm == STORAGE:
        alarm = first_of(on.storage.by_end)
    come_to(jobs, on, place)
    nth = alarm - 1 - place * N_PLACES
    flow = on.storage.flows[alarm]
    if nth == STALL:
        job.stall_ends_at_h = job.now_h
    elif nth >= LOADS:
        job.recoveries[nth - LOADS].ends_at_h = job.now_h
    else:
        for n in range(job.saves[flow.capture].n_in_flight):
            if job.flights[flow.capture][n].number == flow.number:
                job.flights[flow.capture][n].at_h = job.now_h


@uncounted_part
def book_flows(jobs: Jobs, on: Running, place: int) -> bool:
    """Have the flows that the job's saves and loads are; whether some of them begin."""
    at, job = on.places[place], on.jobs[place]
    kind = jobs.planned[at.job].kind
    num, first = jobs.numbers[kind], 1 + place * N_PLACES
    advance(on.storage, on.pool[0].now_h)
    n_before, n_over, n_listed = at.n_flows, 0, 0
    for nth in range(STALL, N_PLACES if n_before else STALL):
        flow = on.storage.flows[first + nth]
        if flow.n and (job.status != GOING or not goes_on(job, flow, nth)):
            take_out(on.storage, on.timers, first + nth)
            n_over += 1
    at.n_flows -= n_over
    began = False
    for capture in range(num.n_captures):
        n, cap = jobs.kinds[kind].n_flows[capture], jobs.kinds[kind].cap[capture]
        if n == 0:
            continue
        if job.stalled_by == capture and job.stall_ends_at_h < inf:
            each_bytes = (job.stall_ends_at_h - job.now_h) * cap
            n_listed = put_in(on.storage, first + STALL, n, each_bytes, cap, n_listed)
            of_save(on, first + STALL, capture, job.stall_number)
            job.stall_ends_at_h, began = inf, True
            at.n_flows += 1
        for i in range(job.saves[capture].n_in_flight):
            flight = job.flights[capture][i]
            if flight.at_h < inf:
                alarm = first + FLIGHTS
                while alarm < first + LOADS and on.storage.flows[alarm].n:
                    alarm += 1
                if alarm == first + LOADS:
                    job.status = LEFT
                    return False
                each_bytes = (flight.at_h - job.now_h) * cap
                n_listed = put_in(on.storage, alarm, n, each_bytes, cap, n_listed)
                of_save(on, alarm, capture, flight.number)
                flight.at_h, began = inf, True
                at.n_flows += 1
    n_all = n_loads_of(job) if job.status == GOING else 0
    if n_all:
        cap = rate_of_each(num, n_all)
        for i in range(job.n_recoveries):
            load, alarm = job.recoveries[i], first + LOADS + i
            if not loads_over_link(load):
                continue
            if alarm >= first + N_PLACES:
                job.status = LEFT
                return False
            if load.ends_at_h == inf:
                n_listed = change(on.storage, on.timers, alarm, load.n_loads, cap, n_listed)
                continue
            size = num.shard_bytes
            n_listed = put_in(on.storage, alarm, load.n_loads, size, cap, n_listed)
            of_save(on, alarm, NONE, load.serial)
            load.ends_at_h, began = inf, True
            at.n_flows += 1
    if n_over or n_listed:
        enter(on.storage, on.timers, STAGES if n_all else SAVES, n_listed)
    return began


@uncounted_part
def of_save(on: Running, alarm: int, capture: int, number: int) -> None:
    """Whose some flows are."""
    on.storage.flows[alarm].capture, on.storage.flows[alarm].number = capture, number


@uncounted_part
def loads_over_link(load: Any) -> bool:
    """Whether a recovery has shards under way."""
    return bool(load.rule != NONE and load.kind == LOAD and load.shares and load.n_loads > 0)


@uncounted_part
def n_loads_of(job: Any) -> int:
    """Shards that are loaded now."""
    n_all = 0
    for i in range(job.n_recoveries):
        if loads_over_link(job.recoveries[i]):
            n_all += job.recoveries[i].n_loads
    return n_all


@uncounted_part
def goes_on(job: Any, flow: Any, nth: int) -> bool:
    """Whether what flows are of is under way still."""
    if nth == STALL:
        return bool(
            job.stalled_by == flow.capture
            and job.stall_number == flow.number
            and job.stall_ends_at_h == inf
        )
    if nth >= LOADS:
        load = job.recoveries[nth - LOADS]
        return bool(
            nth - LOADS < job.n_recoveries
            and loads_over_link(load)
            and load.serial == flow.number
            and load.ends_at_h == inf
        )
    for i in range(job.saves[flow.capture].n_in_flight):
        if job.flights[flow.capture][i].number == flow.number:
            return True
    return False


# ------------------------------------------------------------------------------ its nodes


@uncounted_part
def distribute(jobs: Jobs, on: Running) -> tuple[int, int]:
    """Give free nodes to slots, then to jobs that wait; the status, and of which job."""
    pool = on.pool[0]
    while True:
        if pool.n_waiting > 0 and pool.n_free > 0:
            number = on.queue[pool.first_slot % len(on.queue)]
            place = jobs.planned[number].place
            if place != NONE:
                wanted = wants(jobs, on, place, NONE)
                if wanted != GOING:
                    return wanted, number
            pool.first_slot += 1
            if place == NONE:  # it has ended
                continue
            pool.n_free -= 1
            pool.n_waiting -= 1
            take_node(jobs, on, place)
        else:
            number = next_job(jobs, on)
            if number == NONE:
                return GOING, NONE
            if pool.n_left == 0 and pool.n_places == len(on.places):
                return WANTS_ROOM, number
            if pool.n_nodes != NONE:
                pool.n_free -= jobs.planned[number].n_nodes
                pool.n_slots += jobs.planned[number].n_nodes
            place = begin_job(jobs, on, number)
        if go_on(jobs, on, place) == LEFT:
            return LEFT, number


@uncounted_part
def take_node(jobs: Jobs, on: Running, place: int) -> None:
    """The first of a job's slots that wait has a node."""
    at, job = on.places[place], on.jobs[place]
    num, slots = (
        jobs.numbers[jobs.planned[at.job].kind],
        on.slots[span_of(jobs, at.job)],
    )
    come_to(jobs, on, place)
    at.n_told -= 1
    job.n_free = 1
    return_nodes(num, job, slots, jobs.drawn, at.job)
    job.n_free = 0
    settle(num, job, slots, jobs.drawn, at.job)


@uncounted_part
def next_job(jobs: Jobs, on: Running) -> int:
    """The job that starts next; NONE where none can."""
    pool = on.pool[0]
    while pool.first_job < pool.n_arrived and jobs.planned[pool.first_job].has_started:
        pool.first_job += 1
    n_left = min(pool.n_free, pool.n_nodes - pool.n_slots)
    for number in range(pool.first_job, pool.n_arrived):
        if jobs.planned[number].has_started:
            continue
        if pool.n_nodes == NONE or (pool.n_waiting == 0 and jobs.planned[number].n_nodes <= n_left):
            return int(number)
        if not pool.backfill:
            return NONE
    return NONE


@uncounted_part
def tell(on: Running, number: int) -> None:
    """A slot of a job waits for a node."""
    pool = on.pool[0]
    on.queue[pool.last_slot % len(on.queue)] = number
    pool.last_slot += 1
    pool.n_waiting += 1


@uncounted_part
def repair(on: Running, hours: float) -> None:
    """A failed node goes to repair, or waits for a crew."""
    pool = on.pool[0]
    if pool.n_crews != NONE and pool.n_in_repair >= pool.n_crews:
        on.to_repair[pool.last_repair] = hours
        pool.last_repair += 1
        return
    pool.n_in_repair += 1
    put(on.repairs, pool.n_repairs, pool.now_h + hours, pool.n_repairs)
    pool.n_repairs += 1


@uncounted_part
def end_repair(on: Running) -> None:
    """A node is free, unless it is to be scrapped; the crew takes the next one."""
    pool = on.pool[0]
    pool.n_in_repair -= 1
    if pool.first_repair < pool.last_repair:
        pool.first_repair += 1
        repair(on, on.to_repair[pool.first_repair - 1])
    if pool.n_owed > 0:
        pool.n_owed -= 1
    else:
        pool.n_free += 1
