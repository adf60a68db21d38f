"""Many replications of a job under a recovery system, compiled.

A replication goes from one instant at which something happens to the next. Between two failures,
saves that are all alike are taken in one step, so that its cost grows with failures and not with
saves. Decisions are those of `transitions`; what is not known yet (failures, costs) is asked for,
and the replication is run again from its start when it is there.
"""

from __future__ import annotations

from math import inf, isnan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import shared, uncounted
from cprsim.records import Floats, Ints
from cprsim.recovery.legal import MOST_IN_FLIGHT
from cprsim.recovery.policy import PARTS_IN_ORDER
from cprsim.setting import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H
from cprsim.simulate import transitions
from cprsim.simulate.job import NOTICE
from cprsim.simulate.numbers import (
    ALL,
    DETECT,
    FINISHED,
    GOING,
    LEFT,
    LOAD,
    MOST_CAPTURES,
    NEAR,
    NONE,
    OF_JOB,
    PROGRESS,
    REGROUP,
    REPLAY,
    SHARDS,
    STOPPED,
    STRUCK,
    UPTIME,
    WAIT,
    WALL,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
    Numbers,
)
from cprsim.simulate.strikes import ScopedStrikes
from cprsim.simulate.transitions import (
    COPIES,
    SLOT,
    begin,
    choose,
    come_back,
    completes,
    cycles_to_skip,
    drop_beyond,
    due_after,
    flushes_go_along,
    forget_wipes,
    goes_back_to,
    is_flushed,
    is_in_rhythm,
    is_of,
    keep,
    keep_latest,
    number_of,
    rate,
    regroup_h_of,
    reverts_of,
    shared_load_h,
    speed_of,
    survives,
    uniform,
    wipe,
)

shared(transitions, Path(__file__).parent)

MOST_RECOVERIES = 64
MOST_PARTS = len(PARTS_IN_ORDER)

SAVES = np.dtype(
    [("due_h", "f8"), ("n_begun", "i8"), ("n_in_flight", "i8"), ("completes", "?")], align=True
)
FLIGHT = np.dtype(
    [("content_h", "f8"), ("at_h", "f8"), ("number", "i8"), ("order", "i8"), ("completes", "?")],
    align=True,
)
RECOVERY = np.dtype(
    [
        ("rule", "i8"),  # NONE: this place is free
        ("stage", "i8"),  # of its rule
        ("kind", "i8"),
        ("part", "i8"),
        ("ends_at_h", "f8"),
        ("load_h", "f8"),
        ("replay_h", "f8"),
        ("detect_h", "f8"),
        ("speed", "f8"),
        ("number", "i8"),  # of its failure
        ("n_slots", "i8"),
        ("serial", "i8"),  # counts through all replications
        ("n_loads", "i8"),  # shards to load
        ("blocks", "?"),
        ("loads", "?"),
        ("shares", "?"),  # the link with other loads
        ("hands_over", "?"),  # its shards to later failures that take them back again
        ("of_all", "?"),  # its rule reverts all
    ],
    align=True,
)
SLOTS = np.dtype(
    [
        *SLOT,
        ("vacant", "?"),  # its node is lost, and it has no other
        ("asked", "?"),  # and it waits for one
        ("queued", "i8"),  # the nth slot that waits for a node, the first to ask first
        ("returns_at_h", "f8"),  # the nth node in repair
        ("reloaded_at_h", "f8"),  # progress at which its shard alone went back last ...
        ("course", "i8"),  # ... in this course
        ("loaded_by", "i8"),  # the latest recovery that loads its shard, by serial
    ],
    align=True,
)
"""One table for all that there is one of per slot, or at most: compiled functions hand on one
array. Further rows, one for each spare, hold nothing but nodes in repair."""

JOB = np.dtype(
    [
        ("now_h", "f8"),
        ("progress_h", "f8"),
        ("frontier_h", "f8"),
        ("speed", "f8"),
        ("replay_speed", "f8"),
        ("blocked_h", "f8"),  # so far
        ("stale_h", "f8"),  # summed over shards: since the content that they went back to
        ("stale_net_h", "f8"),  # since the later of that and their own last reload
        ("course", "i8"),  # number of stretches without a rollback, of all replications
        ("n_losses", "i8"),  # that are kept, of all replications
        ("stall_ends_at_h", "f8"),
        ("stall_content_h", "f8"),
        ("stall_number", "i8"),
        ("stall_completes", "?"),
        ("stalled_by", "i8"),  # capture
        ("waits_for", "i8"),  # capture
        ("n_failures", "i8"),
        ("serial", "i8"),  # of the latest recovery of all
        ("n_met", "i8"),  # failures, the missed ones included
        ("n_saves", "i8"),
        ("n_recoveries", "i8"),  # places in use, the free ones between them included
        ("blocked_by", "i8"),  # the least advanced recovery that blocks the job
        ("frontier_at_failure_h", "f8"),
        ("n_fruitless", "i8"),
        ("n_free", "i8"),  # spares
        ("n_repairs", "i8"),
        ("n_queued", "i8"),
        ("status", "i8"),
        ("hours", "f8", (MOST_PARTS,)),  # of each part
        ("saves", SAVES, (MOST_CAPTURES,)),
        ("flights", FLIGHT, (MOST_CAPTURES, MOST_IN_FLIGHT)),  # in order of their start
        ("recoveries", RECOVERY, (MOST_RECOVERIES,)),
        *COPIES,
    ],
    align=True,
)


class Drawn(NamedTuple):
    """What varies, as far as it is drawn [h]: (n_tables, n_drawn, n_replications)."""

    of_saves: Floats
    of_failures: Floats
    keys: Ints  # (n_captures, n_replications) of `uniform`


# --------------------------------------------------------------------------- saves


@uncounted
def start(num: Numbers, job: Any, slots: Any) -> None:
    """Stand at the start of the job."""
    for n in range(job.n_recent):
        slot = slots[n].recent
        slots[slot].recovery = NONE
        slots[slot].vacant = slots[slot].asked = False
    begin(num, job, slots)
    job.now_h = job.progress_h = job.frontier_h = job.blocked_h = 0.0
    job.stale_h = job.stale_net_h = 0.0
    job.course += 1
    job.speed = job.replay_speed = 1.0
    job.stalled_by = job.waits_for = job.blocked_by = NONE
    job.n_failures = job.n_met = job.n_saves = job.n_recoveries = job.n_fruitless = 0
    job.n_repairs = job.n_queued = 0
    job.n_free = num.n_spares
    job.frontier_at_failure_h = -1.0
    job.status = GOING
    for capture in range(num.n_captures):
        stand_on_grid(num, job, capture, 0.0)
        job.saves[capture].n_begun = job.saves[capture].n_in_flight = 0


@uncounted
def stand_on_grid(num: Numbers, job: Any, capture: int, progress_h: float) -> None:
    """The next save of a capture is that which the grid has beyond some progress."""
    due_h = due_after(num, capture, progress_h)
    job.saves[capture].due_h = due_h
    job.saves[capture].completes = completes(num, capture, due_h)


@uncounted
def try_again(job: Any, capture: int, completing: bool) -> None:
    """An abandoned save is due as the job goes on: one save, also if the next is due by then."""
    saves = job.saves[capture]
    saves.completes = completing or (saves.due_h <= job.progress_h and saves.completes)
    saves.due_h = job.progress_h


@uncounted
def commit(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int,
    capture: int, content_h: float, number: int, completing: bool,
) -> None:  # fmt: skip
    """A save comes to its end; the flushes that follow it begin."""
    if not completing:
        return
    saves = num.captures[capture]
    p_corrupt = num.tiers[saves.tier].p_corrupt
    corrupt = False
    if saves.p_fail > 0.0 or p_corrupt > 0.0:
        u = uniform(drawn.keys[capture, row], number)
        if u < saves.p_fail:
            return
        corrupt = u < saves.p_fail + (1.0 - saves.p_fail) * p_corrupt
    job.n_saves += 1
    keep(num, job, saves.tier, content_h, corrupt)
    if not saves.is_followed:
        return
    for flush in range(num.n_captures):
        if (
            num.captures[flush].after == capture
            and is_flushed(num, flush, content_h)
            and job.saves[flush].n_in_flight < num.captures[flush].in_flight
        ):
            begin_flush(num, job, slots, drawn, row, flush, content_h)


@uncounted
def begin_flush(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, capture: int, content_h: float
) -> None:
    """A flush begins."""
    number = job.saves[capture].n_begun
    job.saves[capture].n_begun += 1
    background_h = num.captures[capture].background_h
    if isnan(background_h):
        table = num.captures[capture].background_table
        if number >= drawn.of_saves.shape[1]:
            job.status = WANTS_SAVES
            return
        background_h = drawn.of_saves[table, number, row]
    add_flight(job, capture, content_h, job.now_h + background_h, number, True)


@uncounted
def add_flight(
    job: Any, capture: int, content_h: float, at_h: float, number: int, completing: bool
) -> None:
    """A save goes on in the background, and commits at an instant."""
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.content_h, flight.at_h, flight.number = content_h, at_h, number
    flight.completes = completing
    flight.order = job.latest
    job.saves[capture].n_in_flight += 1


@uncounted
def remove_flight(job: Any, capture: int, place: int) -> None:
    """A save is no longer in flight."""
    last = job.saves[capture].n_in_flight - 1
    for n in range(place, last):
        here, after = job.flights[capture][n], job.flights[capture][n + 1]
        here.content_h, here.at_h = after.content_h, after.at_h
        here.number, here.order, here.completes = after.number, after.order, after.completes
    job.saves[capture].n_in_flight = last


@uncounted
def commit_all_due(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, until_h: float
) -> None:
    """Commit whatever is in flight and due by an instant, in the order of the instants."""
    while True:
        found, place, at_h = NONE, NONE, inf
        for capture in range(num.n_captures):
            for n in range(job.saves[capture].n_in_flight):
                if job.flights[capture][n].at_h < at_h:
                    found, place, at_h = capture, n, job.flights[capture][n].at_h
        if at_h > until_h:
            return
        content_h = job.flights[found][place].content_h
        number = job.flights[found][place].number
        completing = job.flights[found][place].completes
        remove_flight(job, found, place)
        commit(num, job, slots, drawn, row, found, content_h, number, completing)
        if job.waits_for == found:
            job.waits_for = NONE


@uncounted
def end_stall(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """A save has stalled the job long enough: it goes on in the background, or commits."""
    capture, number, completing = job.stalled_by, job.stall_number, job.stall_completes
    job.stalled_by = NONE
    background_h = num.captures[capture].background_h
    if isnan(background_h):
        background_h = drawn.of_saves[num.captures[capture].background_table, number, row]
    if background_h > 0.0:
        at_h = job.now_h + background_h
        add_flight(job, capture, job.stall_content_h, at_h, number, completing)
    else:
        commit(num, job, slots, drawn, row, capture, job.stall_content_h, number, completing)


@uncounted
def next_due(num: Numbers, job: Any) -> float:
    """Progress at which the next save is due; infinite if none is."""
    due_h = inf
    for capture in range(num.n_captures):
        due_h = min(due_h, job.saves[capture].due_h)
    return due_h


@uncounted
def may_skip(
    num: Numbers, job: Any, capture: int,
    within_h: float, per_h: float, target_h: float, ends_h: float,
) -> bool:  # fmt: skip
    """Whether there is room for a cycle of a capture at all: soon seen, and mostly there is none.

    Parameters
    ----------
    within_h, per_h : wall hours until its next save is due, and progress in each
    target_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    every_h = num.captures[capture].every_h
    next_but_one_h = job.saves[capture].due_h + every_h
    if next_but_one_h >= target_h:
        return False
    for other in range(num.n_captures):
        if other != capture and job.saves[other].due_h < next_but_one_h:
            return False
    cycle_h = every_h / per_h + num.captures[capture].stall_h
    return bool(job.now_h + within_h + cycle_h <= ends_h)


@uncounted
def cycles_until(
    num: Numbers, job: Any, capture: int,
    within_h: float, per_h: float, steady_h: float, ends_h: float,
) -> int:  # fmt: skip
    """How many cycles of a capture come before anything else happens.

    Parameters
    ----------
    steady_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    due_h = job.saves[capture].due_h
    until_h = inf
    for other in range(num.n_captures):
        if other == capture:
            continue
        saves = num.captures[other]
        holds = saves.stall_h != 0.0 or (
            not saves.skips and job.saves[other].n_in_flight >= saves.in_flight
        )
        if holds:
            steady_h = min(steady_h, job.saves[other].due_h)
        else:
            until_h = min(until_h, job.saves[other].due_h)
        if saves.is_followed:  # commits of others may wait until the cycles are over
            for n in range(job.saves[other].n_in_flight):
                ends_h = min(ends_h, job.flights[other][n].at_h)
    return cycles_to_skip(
        num, capture, job.saves[capture].n_in_flight, due_h, within_h, per_h,
        until_h, steady_h, ends_h - job.now_h,
    )  # fmt: skip


@uncounted
def next_flight(num: Numbers, job: Any) -> float:
    """Instant at which the next save in flight commits."""
    at_h = inf
    for capture in range(num.n_captures):
        for n in range(job.saves[capture].n_in_flight):
            at_h = min(at_h, job.flights[capture][n].at_h)
    return at_h


@uncounted
def are_in_rhythm(num: Numbers, job: Any, capture: int, within_h: float, per_h: float) -> bool:
    """Whether all saves of a capture in flight are what they are in a steady rhythm."""
    n_in_flight = job.saves[capture].n_in_flight
    for n in range(n_in_flight):
        flight = job.flights[capture][n]
        if not is_in_rhythm(
            num, capture, job.saves[capture].due_h, within_h, per_h, n_in_flight - n,
            flight.content_h, flight.completes, flight.at_h - job.now_h,
        ):  # fmt: skip
            return False
    if not flushes_go_along(num, capture, per_h):
        return True
    commits_in_h = within_h + num.captures[capture].stall_h + num.captures[capture].background_h
    if n_in_flight:
        commits_in_h = job.flights[capture][0].at_h - job.now_h
    for flush in range(num.n_captures):
        if num.captures[flush].after == capture:
            for n in range(job.saves[flush].n_in_flight):
                if job.flights[flush][n].at_h - job.now_h > commits_in_h:
                    return False
    return True


@uncounted
def wait_for_last(num: Numbers, job: Any) -> None:
    """All work is done: a save of the final state in the background has to commit."""
    for capture in range(num.n_captures):
        if num.captures[capture].after == NONE:
            for n in range(job.saves[capture].n_in_flight):
                if job.flights[capture][n].content_h == num.useful_h:
                    job.waits_for = capture


@uncounted
def begin_saves(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """Begin the saves that are due, until one stalls the job or has to wait."""
    for capture in range(num.n_captures):
        if job.saves[capture].due_h > job.progress_h:
            continue
        saves = num.captures[capture]
        if job.saves[capture].n_in_flight >= saves.in_flight:
            if not saves.skips:
                job.waits_for = capture
                return
            stand_on_grid(num, job, capture, job.progress_h)
            continue
        number = job.saves[capture].n_begun
        stall_h = saves.stall_h
        if isnan(stall_h) or isnan(saves.background_h):
            if number >= drawn.of_saves.shape[1]:
                job.status = WANTS_SAVES
                return
            if isnan(stall_h):
                stall_h = drawn.of_saves[saves.stall_table, number, row]
        job.saves[capture].n_begun += 1
        job.stalled_by, job.stall_number = capture, number
        job.stall_completes = job.saves[capture].completes
        stand_on_grid(num, job, capture, job.progress_h)
        job.stall_content_h = job.progress_h
        job.stall_ends_at_h = job.now_h + stall_h
        if stall_h > 0.0:
            return
        end_stall(num, job, slots, drawn, row)


@uncounted
def abandon_saves(num: Numbers, job: Any, slots: Any, all_go_back: bool) -> None:
    """A failure takes the saves under way, except flushes of what survives."""
    if all_go_back:
        for capture in range(num.n_captures):
            if job.saves[capture].due_h > job.progress_h:
                stand_on_grid(num, job, capture, job.progress_h)
    if job.stalled_by != NONE:
        if job.stall_content_h <= job.progress_h:
            try_again(job, job.stalled_by, job.stall_completes)
        job.stalled_by = NONE
    job.waits_for = NONE
    for capture in range(num.n_captures):
        after = num.captures[capture].after
        for n in range(job.saves[capture].n_in_flight - 1, -1, -1):
            flight = job.flights[capture][n]
            if (
                after != NONE
                and flight.content_h <= job.progress_h
                and survives(num, job, slots, num.captures[after].tier, flight.order, False)
            ):
                continue
            if after == NONE and flight.content_h <= job.progress_h:
                try_again(job, capture, flight.completes)
            remove_flight(job, capture, n)


# --------------------------------------------------------------------------- recoveries


@uncounted
def refresh(num: Numbers, job: Any, slots: Any) -> None:
    """See what blocks the job, and how fast it works if nothing does."""
    job.blocked_by = NONE
    speed = 1.0
    n_used = 0
    for n in range(job.n_recoveries):
        recovery = job.recoveries[n]
        if recovery.rule == NONE:
            continue
        n_used = n + 1
        if not recovery.blocks:
            speed = min(speed, recovery.speed)
        elif job.blocked_by == NONE or recovery.kind < job.recoveries[job.blocked_by].kind:
            job.blocked_by = n
    job.n_recoveries = n_used
    if num.is_elastic and n_used:
        speed *= speed_of(num, job, slots)
    job.speed = speed


@uncounted
def ask_for_nodes(job: Any, slots: Any, recovery: int) -> int:
    """Each slot of a recovery without a node asks for one; how many have to wait."""
    n_waiting = 0
    last = NONE
    while True:  # in ascending order of the slots
        slot = 2**62
        for n in range(job.n_recent):
            other = slots[n].recent
            if slots[other].recovery == recovery and last < other < slot:
                slot = other
        if slot == 2**62:
            return n_waiting
        last = slot
        if not slots[slot].vacant:
            continue
        if not slots[slot].asked and job.n_free > 0:
            job.n_free -= 1
            slots[slot].vacant = False
            continue
        n_waiting += 1
        if not slots[slot].asked:
            slots[slot].asked = True
            slots[job.n_queued].queued = slot
            job.n_queued += 1


@uncounted
def next_stage(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, place: int) -> None:
    """A recovery goes on to its next stage that takes time, or ends."""
    recovery = job.recoveries[place]
    rule = num.rules[recovery.rule]
    while True:
        recovery.stage += 1
        if recovery.stage == rule.n_stages:
            end_recovery(job, slots, place)
            return
        stage = num.stages[rule.first_stage + recovery.stage]
        hours = stage.cost_h
        if isnan(hours):
            hours = drawn.of_failures[stage.table, recovery.number, row]
        if stage.kind == DETECT and not stage.has_cost:
            hours = recovery.detect_h
        elif stage.kind == LOAD:
            if not recovery.loads or (recovery.hands_over and recovery.n_loads == 0):
                continue
            hours += recovery.load_h
            if recovery.shares:
                if is_shared_by_another(job, place):
                    job.status = LEFT
                    return
                hours = shared_load_h(num, recovery.n_loads)
        elif stage.kind == REPLAY and not stage.has_cost:
            hours = recovery.replay_h
        elif stage.kind == REGROUP and not stage.has_cost:
            hours = regroup_h_of(num, job, slots)
        elif stage.kind == WAIT:
            if num.n_spares == NONE:
                continue
            hours = inf if ask_for_nodes(job, slots, place) else 0.0
        if hours > 0.0:
            recovery.ends_at_h = job.now_h + hours
            recovery.kind, recovery.part, recovery.blocks = stage.kind, stage.part, stage.blocks
            return


@uncounted
def is_shared_by_another(job: Any, place: int) -> bool:
    """Whether another recovery loads over the link now."""
    for n in range(job.n_recoveries):
        other = job.recoveries[n]
        if n != place and other.rule != NONE and other.shares and other.kind == LOAD:
            return True
    return False


@uncounted
def end_recovery(job: Any, slots: Any, place: int) -> None:
    """A recovery ends, and its slots are up."""
    job.recoveries[place].rule = NONE
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place:
            slots[slot].recovery = NONE
            come_back(job, slots, slot)


@uncounted
def return_nodes(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """Nodes come back from repair; the first slots in the queue get them."""
    n_left = 0
    for n in range(job.n_repairs):
        if slots[n].returns_at_h <= job.now_h:
            job.n_free += 1
        else:
            slots[n_left].returns_at_h = slots[n].returns_at_h
            n_left += 1
    job.n_repairs = n_left
    while job.n_free > 0 and job.n_queued > 0:
        slot = slots[0].queued
        job.n_queued -= 1
        for n in range(job.n_queued):
            slots[n].queued = slots[n + 1].queued
        job.n_free -= 1
        slots[slot].vacant = slots[slot].asked = False
        place = slots[slot].recovery
        if job.recoveries[place].kind == WAIT and not ask_for_nodes(job, slots, place):
            next_stage(num, job, slots, drawn, row, place)


@uncounted
def strike(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int,
    scope: int, named: Ints, repair_h: Floats, losses: Any, keeps: bool,
) -> None:  # fmt: skip
    """What a failure does, at the instant when it strikes; or what the notice of one does."""
    if scope == NOTICE:
        for capture in range(num.n_captures):
            if num.captures[capture].on_notice:
                job.saves[capture].due_h = job.progress_h
        return
    job.n_met += 1
    if job.n_met > HARDLY_AFTER and job.now_h > HARDLY_TIMES * job.frontier_h:
        job.status = STOPPED
        return
    job.n_struck = 0
    for n in range(len(named)):
        slot = named[n]
        if slots[slot].asked:
            continue
        slots[job.n_struck].struck = slot
        job.n_struck += 1
        wipe(job, slots, slot, num.scopes[scope].wipes)
        if num.n_spares != NONE and num.scopes[scope].needs_node and not slots[slot].vacant:
            slots[slot].vacant = True
            slots[job.n_repairs].returns_at_h = job.now_h + repair_h[n]
            job.n_repairs += 1
    if job.n_struck == 0:
        return
    job.n_fruitless += 1
    if job.frontier_h > job.frontier_at_failure_h + NO_WORK_H:
        job.frontier_at_failure_h = job.frontier_h
        job.n_fruitless = 1
    if job.n_fruitless > HOPELESS_AFTER:
        job.status = STOPPED
        return
    number = job.n_failures
    job.n_failures += 1
    if drawn.of_failures.shape[0] and number >= drawn.of_failures.shape[1]:
        job.status = WANTS_COSTS
        return

    chosen, source, content_h = choose(num, job, slots, scope)
    rule = chosen if chosen != NONE else num.n_rules - 1
    reverts = reverts_of(num, chosen)
    tried_h = 0.0
    for tier in range(num.n_tiers):
        n_loads = job.tries[tier] + (tier == source)
        if n_loads:
            load_h = num.tiers[tier].load_h
            if isnan(load_h):
                load_h = drawn.of_failures[num.tiers[tier].load_table, number, row]
            tried_h += n_loads * load_h
    n_lost = 0
    if reverts == STRUCK:
        for n in range(job.n_struck):
            n_lost += is_of(num, source, slots[n].struck)
    elif reverts == SHARDS:
        n_lost = num.tiers[source].size
    replay_h = 0.0
    if reverts == ALL:
        job.progress_h = goes_back_to(num, chosen, job.progress_h, content_h)
        job.replay_speed = num.rules[rule].replay_speed
        drop_beyond(num, job, job.progress_h)
        job.course += 1
    elif num.rules[rule].replays and n_lost:
        replay_h = (job.progress_h - content_h) / num.rules[rule].replay_speed
    elif n_lost:
        if keeps and job.n_losses + n_lost > len(losses):
            job.status = WANTS_ROOM
            return
        first = num.tiers[source].first
        for n in range(num.tiers[source].size if reverts == SHARDS else job.n_struck):
            slot = first + n if reverts == SHARDS else slots[n].struck
            if is_of(num, source, slot):
                lose(job, slots, slot, content_h, row, losses, keeps)
    if not num.rules[rule].stops_nothing or reverts == ALL:
        abandon_saves(num, job, slots, reverts == ALL)

    job.serial += 1
    if n_lost:
        take_loads(num, job, slots, source, reverts)
    place = 0
    while place < job.n_recoveries and job.recoveries[place].rule != NONE:
        place += 1
    if place == MOST_RECOVERIES:
        job.status = LEFT
        return
    job.n_recoveries = max(job.n_recoveries, place + 1)
    take_over(num, job, slots, place, reverts == ALL)
    recovery = job.recoveries[place]
    recovery.rule, recovery.stage, recovery.number = rule, -1, number
    recovery.serial, recovery.kind = job.serial, NONE
    recovery.of_all = reverts == ALL
    recovery.hands_over = n_lost > 0
    recovery.n_loads = num.tiers[source].size if reverts == ALL and source != NONE else n_lost
    recovery.shares = source != NONE and num.tiers[source].shares
    recovery.speed = num.rules[rule].speed
    recovery.load_h, recovery.replay_h = tried_h, replay_h
    detect_h = num.scopes[scope].detect_h
    if isnan(detect_h):
        detect_h = drawn.of_failures[num.scopes[scope].table, number, row]
    recovery.detect_h = detect_h
    own_h = load_cost_h(num, rule)
    recovery.loads = (
        num.rules[rule].loads
        and (reverts != STRUCK or n_lost > 0)
        and (source != NONE or own_h >= 0.0 or isnan(own_h))
        and (tried_h > 0.0 or own_h > 0.0 or isnan(own_h) or recovery.shares)
    )
    next_stage(num, job, slots, drawn, row, place)
    forget_wipes(num, job, slots, oldest_flush(num, job))


@uncounted
def take_loads(num: Numbers, job: Any, slots: Any, tier: int, reverts: int) -> None:
    """Shards that go back are loaded by a new recovery, not by one that is under way."""
    first = num.tiers[tier].first
    for n in range(num.tiers[tier].size if reverts == SHARDS else job.n_struck):
        slot = first + n if reverts == SHARDS else slots[n].struck
        if not is_of(num, tier, slot):
            continue
        for place in range(job.n_recoveries):
            other = job.recoveries[place]
            if other.rule == NONE or other.serial != slots[slot].loaded_by:
                continue
            other.n_loads -= 1
            if other.shares and other.kind == LOAD:
                job.status = LEFT
        slots[slot].loaded_by = job.serial


@uncounted
def lose(
    job: Any, slots: Any, slot: int, content_h: float, row: int, losses: Any, keeps: bool
) -> None:
    """A shard alone goes back to a content."""
    fresh_h = content_h
    if slots[slot].course == job.course:
        fresh_h = max(fresh_h, slots[slot].reloaded_at_h)
    slots[slot].course, slots[slot].reloaded_at_h = job.course, job.progress_h
    job.stale_h += job.progress_h - content_h
    job.stale_net_h += job.progress_h - fresh_h
    if keeps:
        loss = losses[job.n_losses]
        loss.replication, loss.slot, loss.progress_h = row, slot, job.progress_h
        loss.since_save_h = job.progress_h - content_h
        loss.since_reload_h = job.progress_h - fresh_h
        job.n_losses += 1


@uncounted
def oldest_flush(num: Numbers, job: Any) -> int:
    """Order of the oldest flush in flight; the latest of all where there is none."""
    oldest: int = job.latest
    for capture in range(num.n_captures):
        if num.captures[capture].after != NONE:
            for n in range(job.saves[capture].n_in_flight):
                oldest = min(oldest, job.flights[capture][n].order)
    return oldest


@uncounted
def load_cost_h(num: Numbers, rule: int) -> float:
    """What the load stages of a rule cost by themselves; NaN where that varies, -1 without any."""
    hours = -1.0
    first = num.rules[rule].first_stage
    for n in range(first, first + num.rules[rule].n_stages):
        if num.stages[n].kind == LOAD and num.stages[n].has_cost:
            hours = max(hours, 0.0) + num.stages[n].cost_h
    return hours


@uncounted
def take_over(num: Numbers, job: Any, slots: Any, place: int, of_all: bool) -> None:
    """A new recovery takes its slots from those under way; some of them end."""
    n_slots = job.n_struck
    for n in range(job.n_struck):
        slot = slots[n].struck
        before = slots[slot].recovery
        slots[slot].recovery = place
        if before != NONE:
            other = job.recoveries[before]
            other.n_slots -= 1
            if other.n_slots == 0 and not (other.of_all and has_load_to_come(num, job, before)):
                other.rule = NONE
    if of_all:
        for n in range(job.n_recent):
            slot = slots[n].recent
            before = slots[slot].recovery
            if before != NONE and before != place and job.recoveries[before].blocks:
                slots[slot].recovery = place
                n_slots += 1
        for n in range(job.n_recoveries):
            if n != place and job.recoveries[n].blocks:
                job.recoveries[n].rule = NONE
    job.recoveries[place].n_slots = n_slots


@uncounted
def has_load_to_come(num: Numbers, job: Any, place: int) -> bool:
    """Whether a recovery has a load before it or under way."""
    recovery = job.recoveries[place]
    if not recovery.loads:
        return False
    first = num.rules[recovery.rule].first_stage
    for n in range(first + recovery.stage, first + num.rules[recovery.rule].n_stages):
        if num.stages[n].kind == LOAD:
            return True
    return False


# --------------------------------------------------------------------------- the course


@uncounted
def run(
    numbers: Any, drawn: Drawn, strikes: ScopedStrikes, rows: Ints,
    scratch: Any, slots: Any, hours: Floats, counts: Ints,
    losses: Any, keeps: bool,
) -> int:  # fmt: skip
    """Run some replications; how many losses of them there are.

    Parameters
    ----------
    rows : (n_rows,) numbers of the replications
    scratch : (1,) of JOB
    hours : (4 + n_parts, n_replications) wall hours, useful hours, staleness summed over shards
        (since the content, and since the later of that and the shard's own last reload); the parts
    counts : (3, n_replications) status, failures, saves
    losses : (n_room,) of LOSS, which are kept if `keeps`
    """
    num, job = numbers[0], scratch[0]
    near_h = NEAR * num.useful_h
    job.n_losses = 0
    fastest = NONE  # the capture whose cycles are worth to be taken at once
    for capture in range(num.n_captures):
        if num.captures[capture].n_due > 1 and (
            fastest == NONE or num.captures[capture].every_h < num.captures[fastest].every_h
        ):
            fastest = capture
    for row in rows:
        start(num, job, slots)
        n_losses = job.n_losses
        for part in range(num.n_parts):
            job.hours[part] = 0.0
        chunk, failure = 0, strikes.first[0, row]
        while job.status == GOING:
            while chunk < len(strikes.first) and failure == strikes.first[chunk, row + 1]:
                chunk += 1
                failure = strikes.first[chunk, row] if chunk < len(strikes.first) else NONE
            fails_at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]

            # where the job stands
            blocked = job.blocked_by != NONE
            due_h = inf
            if not blocked and job.stalled_by == NONE and job.waits_for == NONE:
                due_h = next_due(num, job)
                if due_h <= job.progress_h:
                    begin_saves(num, job, slots, drawn, row)
                    if job.status != GOING:
                        break
                    due_h = next_due(num, job)
                if job.progress_h >= num.useful_h and job.stalled_by == NONE:
                    wait_for_last(num, job)
                    if job.waits_for == NONE:
                        commit_all_due(num, job, slots, drawn, row, job.now_h + near_h)
                        job.status = FINISHED
                        break
            held = job.stalled_by != NONE or job.waits_for != NONE
            behind = job.progress_h < job.frontier_h
            per_h = 0.0
            if not blocked and not held:
                per_h = rate(num, job.speed, job.replay_speed, behind)

            ages_by_work = num.clock == PROGRESS and not behind

            # when the failure comes, if the job stands as it does
            if num.clock == WALL:
                fails_h = fails_at_h
            elif num.clock == UPTIME:
                fails_h = inf if blocked else fails_at_h + job.blocked_h
            elif per_h > 0.0 and not behind:
                fails_h = job.now_h + (fails_at_h - job.frontier_h) / per_h
            else:
                fails_h = inf

            # what else comes next
            next_h = num.end_h
            for n in range(job.n_recoveries):
                if job.recoveries[n].rule != NONE:
                    next_h = min(next_h, job.recoveries[n].ends_at_h)
            if job.n_queued:
                for n in range(job.n_repairs):
                    next_h = min(next_h, slots[n].returns_at_h)
            reaches_h, target_h = inf, num.useful_h
            if per_h > 0.0:
                if behind:
                    target_h = min(target_h, job.frontier_h)
                if fastest != NONE:
                    ends_h = next_h if ages_by_work else min(next_h, fails_h)
                    within_h = (job.saves[fastest].due_h - job.progress_h) / per_h
                    if may_skip(
                        num, job, fastest, within_h, per_h, target_h, ends_h
                    ) and are_in_rhythm(num, job, fastest, within_h, per_h):
                        n = cycles_until(
                            num, job, fastest, within_h, per_h,
                            min(target_h, fails_at_h) if ages_by_work else target_h, ends_h,
                        )  # fmt: skip
                        if n > 0:
                            skip(num, job, fastest, n, per_h)
                            commit_all_due(num, job, slots, drawn, row, job.now_h)
                            continue
                target_h = min(target_h, due_h)
                reaches_h = job.now_h + (target_h - job.progress_h) / per_h
                next_h = min(next_h, reaches_h)
            elif job.stalled_by != NONE:
                next_h = min(next_h, job.stall_ends_at_h)
            flight_h = next_flight(num, job)
            next_h = min(next_h, flight_h)
            if abs(fails_h - next_h) < near_h and failure != NONE:
                job.status = LEFT
                break
            struck = fails_h < next_h
            if struck:
                next_h = fails_h

            # on to that instant
            passed_h = next_h - job.now_h
            if blocked:
                job.hours[job.recoveries[job.blocked_by].part] += passed_h
                job.blocked_h += passed_h
            elif held:
                job.hours[num.save] += passed_h
            elif job.speed == 0.0:
                job.hours[num.wait] += passed_h
            else:
                before_h = job.progress_h
                if reaches_h == next_h:
                    job.progress_h = target_h
                else:
                    job.progress_h += passed_h * per_h
                book(num, job, before_h, passed_h)
            job.now_h = next_h
            if num.n_spares != NONE:
                return_nodes(num, job, slots, drawn, row)
            if struck:
                if failure == NONE:
                    job.status = WANTS_FAILURES
                    break
                of = slice(strikes.first_slot[failure], strikes.first_slot[failure + 1])
                strike(
                    num, job, slots, drawn, row,
                    strikes.scope[failure], strikes.slot[of], strikes.repair_h[of],
                    losses, keeps,
                )  # fmt: skip
                refresh(num, job, slots)
                failure += 1
                continue
            if flight_h <= job.now_h:
                commit_all_due(num, job, slots, drawn, row, job.now_h)
            changed = False
            for n in range(job.n_recoveries):
                if job.recoveries[n].rule != NONE and job.recoveries[n].ends_at_h <= job.now_h:
                    next_stage(num, job, slots, drawn, row, n)
                    changed = True
            if changed or num.n_spares != NONE:
                refresh(num, job, slots)
            if job.stalled_by != NONE and job.stall_ends_at_h <= job.now_h:
                end_stall(num, job, slots, drawn, row)
            if job.now_h >= num.end_h and job.status == GOING:
                job.status = FINISHED if num.end_is_planned else STOPPED
        for part in range(num.n_parts):
            hours[OF_JOB + part, row] = job.hours[part]
        hours[0, row] = job.now_h
        hours[1, row] = job.frontier_h
        hours[2, row] = job.stale_h
        hours[3, row] = job.stale_net_h
        counts[0, row] = job.status
        counts[1, row] = job.n_failures
        counts[2, row] = job.n_saves
        if job.status >= LEFT:
            job.n_losses = n_losses
    return int(job.n_losses)


@uncounted
def book(num: Numbers, job: Any, before_h: float, passed_h: float) -> None:
    """Book hours of work that took progress from `before_h` to where it is."""
    gained_h = job.progress_h - before_h
    if before_h < job.frontier_h:
        gained_h /= job.replay_speed
        job.hours[num.lost] += gained_h
    else:
        job.frontier_h = job.progress_h
    if num.taxed != NONE:
        job.hours[num.taxed] += num.tax * gained_h
    if num.degraded != NONE:
        job.hours[num.degraded] += passed_h * (1.0 - job.speed)


@uncounted
def skip(num: Numbers, job: Any, capture: int, n: int, per_h: float) -> None:
    """Take n cycles of work and save at once."""
    every_h = num.captures[capture].every_h
    stall_h = num.captures[capture].stall_h
    worked_h = n * every_h / per_h
    passed_h = worked_h + n * stall_h
    before_h = job.progress_h
    due_h = job.saves[capture].due_h
    job.saves[capture].due_h = due_after(num, capture, due_h + (n - 1) * every_h)
    job.progress_h += job.saves[capture].due_h - due_h
    job.now_h += passed_h
    book(num, job, before_h, worked_h)
    job.hours[num.save] += n * stall_h
    next_number = number_of(num, capture, due_h) - job.saves[capture].n_in_flight
    keep_latest(num, job, capture, next_number, next_number + n - 1)
    along = flushes_go_along(num, capture, per_h)
    for other in range(num.n_captures):
        if other != capture and not (along and num.captures[other].after == capture):
            continue
        nth = 1 if other == capture else num.captures[other].nth
        job.saves[other].n_begun += n // nth
        job.n_saves += n // nth // num.captures[other].parts
        for k in range(job.saves[other].n_in_flight):
            job.flights[other][k].content_h += n * every_h
            job.flights[other][k].at_h += passed_h
            job.flights[other][k].number += n // nth
