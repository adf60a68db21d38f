"""The compiled loop: many replications of one job, in the order of `docs/recovery.md`.

A replication goes from one instant at which something happens to the next: the job works, saves,
is struck, recovers. Cycles of work and save that are all alike are taken in one step. What is not
known yet (failures, costs, room) is asked for, and the replication is run again from its start.
"""

from __future__ import annotations

from math import inf, isnan
from typing import Any

from cprsim.compiling import inlined, part, parts_of
from cprsim.records import Floats, Ints
from cprsim.simulate import transitions
from cprsim.simulate.job import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H, NOTICE
from cprsim.simulate.loop_state import Drawn
from cprsim.simulate.numbers import (
    ALL,
    DETECT,
    FINISHED,
    GOING,
    LOAD,
    NEAR,
    NONE,
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
    WANTS_ROOM,
    WANTS_SAVES,
    Numbers,
)
from cprsim.simulate.transitions import (
    begin,
    choose,
    come_back,
    completes,
    cycles_to_skip,
    drop_beyond,
    due_after,
    err,
    flushes_go_along,
    forget_wipes,
    goes_back_to,
    grows_in_h,
    hours_of,
    is_due,
    is_flushed,
    is_in_rhythm,
    is_of,
    keep,
    keep_latest,
    number_of,
    rate,
    rate_of_each,
    regroup_h_of,
    reverts_of,
    speed_of,
    survives,
    uniform,
    wipe,
)

parts_of(transitions)

# --------------------------------------------------------------------------- saves


@part
def stand_on_grid(num: Numbers, job: Any, capture: int, progress_h: float) -> None:
    """The next save of a capture is that which the grid has beyond some progress."""
    saves = job.saves[capture]
    saves.due_h = due_after(num, capture, progress_h)
    saves.completes_h = saves.due_h if completes(num, capture, saves.due_h) else inf


@part
def make_due(job: Any, capture: int, due_h: float, completes_h: float) -> None:
    """A save is due as the job goes on: one, also if others of its capture are by then."""
    saves = job.saves[capture]
    saves.due_h = min(saves.due_h, due_h)
    saves.completes_h = min(saves.completes_h, completes_h)


@part
def next_due(num: Numbers, job: Any) -> float:
    """Progress at which the next save is due; infinite if none is."""
    due_h = inf
    for capture in range(num.n_captures):
        other_h = job.saves[capture].due_h
        if other_h < due_h:
            due_h = other_h
    return due_h


@part
def next_flight(num: Numbers, job: Any) -> tuple[float, int, int]:
    """When the next save in flight commits, its capture and place; of one instant the first."""
    at_h, begun_h, found, place = inf, inf, NONE, NONE
    for capture in range(num.n_captures):
        for n in range(job.saves[capture].n_in_flight):
            other = job.flights[capture][n]
            if other.at_h < at_h or (other.at_h == at_h and other.begun_h < begun_h):
                at_h, begun_h, found, place = other.at_h, other.begun_h, capture, n
    return at_h, found, place


@inlined
def cost_h(fixed_h: float, drawn_h: Floats, table: int, n: int, row: int) -> float:
    """Hours that something takes the nth time in a replication: NaN varies, and is drawn."""
    return float(drawn_h[table, n, row]) if isnan(fixed_h) else fixed_h


@part
def begin_saves(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """Begin the saves that are due, until one stalls the job or has to wait."""
    for capture in range(num.n_captures):
        own = job.saves[capture]
        if not is_due(num, own.due_h, job.progress_h):
            continue
        saves = num.captures[capture]
        if own.n_in_flight >= saves.in_flight:
            if not saves.skips:
                job.waits_for = capture
                return
            stand_on_grid(num, job, capture, job.progress_h)
            continue
        number = own.n_begun
        stall_h = saves.stall_h
        if isnan(stall_h) or isnan(saves.background_h):
            if number >= drawn.of_saves.shape[1]:
                job.status = WANTS_SAVES
                return
            if isnan(stall_h):
                stall_h = drawn.of_saves[saves.stall_table, number, row]
        own.n_begun += 1
        completing = saves.parts == 1 or is_due(num, own.completes_h, job.progress_h)
        save = job.flights[capture][own.n_in_flight]
        save.number, save.content_h, save.due_h = number, job.progress_h, own.due_h
        save.completes_h = own.completes_h if completing else inf
        job.stalled_by, job.stall_ends_at_h = capture, job.now_h + stall_h
        stand_on_grid(num, job, capture, job.progress_h)
        if stall_h > 0.0:
            return
        end_stall(num, job, slots, drawn, row)


@part
def end_stall(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """A save has stalled the job long enough: it goes on in the background, or commits."""
    capture = job.stalled_by
    job.stalled_by = NONE
    saves, save = num.captures[capture], job.flights[capture][job.saves[capture].n_in_flight]
    number = save.number
    behind_h = cost_h(saves.background_h, drawn.of_saves, saves.background_table, number, row)
    if behind_h > 0.0:
        go_behind(job, capture, behind_h)
    else:
        completing = save.completes_h < inf
        commit(num, job, slots, drawn, row, capture, save.content_h, number, completing)


@part
def commit(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int,
    capture: int, content_h: float, number: int, completing: bool,
) -> None:  # fmt: skip
    """A save comes to its end; the flushes that follow it begin."""
    if num.captures[capture].checks and job.error_h < inf:
        job.noticed_at_h = job.now_h
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
            begin_flush(num, job, drawn, row, flush, content_h)


@part
def begin_flush(
    num: Numbers, job: Any, drawn: Drawn, row: int, capture: int, content_h: float
) -> None:
    """A flush begins."""
    saves, number = num.captures[capture], job.saves[capture].n_begun
    if isnan(saves.background_h) and number >= drawn.of_saves.shape[1]:
        job.status = WANTS_SAVES
        return
    job.saves[capture].n_begun += 1
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.content_h, flight.number, flight.due_h, flight.completes_h = content_h, number, 0.0, 0.0
    behind_h = cost_h(saves.background_h, drawn.of_saves, saves.background_table, number, row)
    go_behind(job, capture, behind_h)


@part
def go_behind(job: Any, capture: int, behind_h: float) -> None:
    """The save at the first free place goes on in the background for so long."""
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.begun_h, flight.at_h, flight.order = job.now_h, job.now_h + behind_h, job.latest
    job.saves[capture].n_in_flight += 1


@part
def remove_flight(job: Any, capture: int, place: int) -> None:
    """A save is no longer in flight; those behind it move up, and one that stalls the job."""
    job.saves[capture].n_in_flight -= 1
    for n in range(place, job.saves[capture].n_in_flight + (job.stalled_by == capture)):
        here, after = job.flights[capture][n], job.flights[capture][n + 1]
        here.content_h, here.begun_h, here.at_h = after.content_h, after.begun_h, after.at_h
        here.number, here.order = after.number, after.order
        here.due_h, here.completes_h = after.due_h, after.completes_h


@part
def commit_all_due(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, until_h: float
) -> None:
    """Commit whatever is in flight and due by an instant, in the order of the instants."""
    while True:
        at_h, found, place = next_flight(num, job)
        if at_h > until_h:
            return
        flight = job.flights[found][place]
        content_h, number, completing = flight.content_h, flight.number, flight.completes_h < inf
        remove_flight(job, found, place)
        commit(num, job, slots, drawn, row, found, content_h, number, completing)
        if job.waits_for == found:
            job.waits_for = NONE


@part
def wait_for_last(num: Numbers, job: Any) -> None:
    """All work is done: a save of the final state in the background has to commit."""
    for capture in range(num.n_captures):
        if num.captures[capture].after == NONE:
            for n in range(job.saves[capture].n_in_flight):
                if job.flights[capture][n].content_h == num.useful_h:
                    job.waits_for = capture


@part
def abandon_saves(num: Numbers, job: Any, slots: Any, all_go_back: bool, silent: bool) -> None:
    """A failure takes the saves under way, except flushes of what survives without an error."""
    if all_go_back:
        for capture in range(num.n_captures):
            if not is_due(num, job.saves[capture].due_h, job.progress_h):
                stand_on_grid(num, job, capture, job.progress_h)
    if job.stalled_by != NONE:
        save = job.flights[job.stalled_by][job.saves[job.stalled_by].n_in_flight]
        if is_due(num, save.due_h, job.progress_h):
            make_due(job, job.stalled_by, save.due_h, save.completes_h)
        job.stalled_by = NONE
    job.waits_for = NONE
    for capture in range(num.n_captures):
        after = num.captures[capture].after
        for n in range(job.saves[capture].n_in_flight - 1, -1, -1):
            flight = job.flights[capture][n]
            if (
                after != NONE
                and not silent
                and flight.content_h <= job.progress_h
                and survives(num, job, slots, num.captures[after].tier, flight.order, False)
            ):
                continue
            if after == NONE and is_due(num, flight.due_h, job.progress_h):
                make_due(job, capture, flight.due_h, flight.completes_h)
            remove_flight(job, capture, n)


# --------------------------------------------------------------------------- cycles at once


@part
def cycles_ahead(
    num: Numbers, job: Any, capture: int, per_h: float, steady_h: float, ends_h: float
) -> int:
    """How many cycles of a capture come before anything else happens; mostly none, soon seen.

    Parameters
    ----------
    per_h : progress in each wall hour
    steady_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    saves, due_h = num.captures[capture], job.saves[capture].due_h
    cycle_h = hours_of(saves.every_h, per_h) + saves.stall_h
    if due_h + saves.every_h >= steady_h or job.now_h + cycle_h > ends_h:
        return 0
    until_h = inf
    for other in range(num.n_captures):
        if other == capture:
            continue
        of, own = num.captures[other], job.saves[other]
        if own.due_h < due_h + saves.every_h:
            return 0
        if of.stall_h != 0.0 or (not of.skips and own.n_in_flight >= of.in_flight):
            steady_h = min(steady_h, own.due_h)  # it holds the job
        else:
            until_h = min(until_h, own.due_h)
        if of.is_followed:  # commits of others may wait until the cycles are over
            for n in range(own.n_in_flight):
                ends_h = min(ends_h, job.flights[other][n].at_h)
    within_h = hours_of(due_h - job.progress_h, per_h)
    if not are_in_rhythm(num, job, capture, within_h, per_h):
        return 0
    return cycles_to_skip(
        num, capture, job.saves[capture].n_in_flight, due_h, within_h, per_h,
        until_h, steady_h, ends_h - job.now_h,
    )  # fmt: skip


@part
def are_in_rhythm(num: Numbers, job: Any, capture: int, within_h: float, per_h: float) -> bool:
    """Whether all saves of a capture in flight are what they are in a steady rhythm."""
    n_in_flight = job.saves[capture].n_in_flight
    for n in range(n_in_flight):
        flight = job.flights[capture][n]
        if not is_in_rhythm(
            num, capture, job.saves[capture].due_h, within_h, per_h, n_in_flight - n,
            flight.content_h, flight.completes_h < inf, flight.at_h - job.now_h,
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


@part
def skip(num: Numbers, job: Any, capture: int, n: int, per_h: float) -> None:
    """Take n cycles of work and save at once."""
    every_h = num.captures[capture].every_h
    stall_h = num.captures[capture].stall_h
    worked_h = hours_of(n * every_h, per_h)
    passed_h = worked_h + n * stall_h
    before_h = job.progress_h
    due_h = job.saves[capture].due_h
    stand_on_grid(num, job, capture, due_h + (n - 1) * every_h)
    job.progress_h += job.saves[capture].due_h - due_h
    job.now_h += passed_h
    book_work(num, job, before_h, worked_h)
    job.hours[num.save] += n * stall_h
    next_number = number_of(num, capture, due_h) - job.saves[capture].n_in_flight
    keep_latest(num, job, capture, next_number, next_number + n - 1)
    along = flushes_go_along(num, capture, per_h)
    for other in range(num.n_captures):
        if other != capture and not (along and num.captures[other].after == capture):
            continue
        n_begun = n if other == capture else n // num.captures[other].nth
        parts = num.captures[other].parts
        job.saves[other].n_begun += n_begun
        job.n_saves += n_begun if parts == 1 else n_begun // parts
        for k in range(job.saves[other].n_in_flight):
            flight = job.flights[other][k]
            flight.content_h += n * every_h
            flight.due_h += n * every_h
            flight.completes_h += n * every_h
            flight.begun_h += passed_h
            flight.at_h += passed_h
            flight.number += n_begun


# --------------------------------------------------------------------------- loads over the link


@part
def read_link(num: Numbers, job: Any) -> None:
    """Move the shards that load over the link on to this instant."""
    if job.n_moving:
        job.link_bytes += (job.now_h - job.link_read_at_h) * rate_of_each(num, job.n_moving)
    job.link_read_at_h = job.now_h


@part
def moves(num: Numbers, recovery: Any) -> bool:
    """Whether a recovery loads over the link now."""
    return bool(recovery.rule != NONE and recovery.shares and recovery.kind == LOAD)


@part
def moving(num: Numbers, job: Any, slots: Any, recovery: Any) -> tuple[int, float]:
    """How many shards of a load over the link still move, and when the next of them has moved."""
    if not num.is_uneven:
        ends_bytes = recovery.began_bytes + num.shard_bytes
        n = recovery.n_loads if ends_bytes > job.link_bytes else 0
        return n, ends_bytes
    n, next_bytes = 0, inf
    first = num.tiers[recovery.source].first
    for slot in range(first, first + num.tiers[recovery.source].size):
        ends_bytes = recovery.began_bytes + slots[slot].shard_bytes
        if ends_bytes > job.link_bytes and (
            not recovery.hands_over or slots[slot].loaded_by == recovery.serial
        ):
            n += 1
            next_bytes = min(next_bytes, ends_bytes)
    return n, next_bytes


@part
def plan_link(num: Numbers, job: Any, slots: Any, recoveries: Any) -> None:
    """See which shards share the link from now on, and when the next of them has moved."""
    read_link(num, job)
    job.n_moving, job.link_ends_bytes, job.link_ends_at_h = 0, inf, inf
    for n in range(job.n_recoveries):
        if moves(num, recoveries[n]):
            n_moving, ends_bytes = moving(num, job, slots, recoveries[n])
            job.n_moving += n_moving
            if n_moving:
                job.link_ends_bytes = min(job.link_ends_bytes, ends_bytes)
    if job.n_moving:
        left_bytes = job.link_ends_bytes - job.link_bytes
        job.link_ends_at_h = job.now_h + left_bytes / rate_of_each(num, job.n_moving)


@part
def end_loads(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int, but: int
) -> None:
    """Loads over the link of which no shard moves any more are over; not that at a place."""
    for n in range(job.n_recoveries):
        if n != but and moves(num, recoveries[n]):
            n_moving, _ = moving(num, job, slots, recoveries[n])
            if n_moving == 0:
                next_stage(num, job, slots, recoveries, drawn, row, n)


# --------------------------------------------------------------------------- recoveries


@part
def refresh(num: Numbers, job: Any, slots: Any, recoveries: Any) -> None:
    """See what blocks the job, how fast it works if nothing does, and which stage ends next."""
    job.blocked_by = NONE
    speed, ends_at_h = 1.0, inf
    n_used = 0
    for n in range(job.n_recoveries):
        recovery = recoveries[n]
        if recovery.rule == NONE:
            continue
        n_used = n + 1
        ends_at_h = min(ends_at_h, recovery.ends_at_h)
        if not recovery.blocks:
            speed = min(speed, recovery.speed)
        elif job.blocked_by == NONE or recovery.kind < job.blocked_by:
            job.blocked_by, job.blocked_part = recovery.kind, recovery.part
    job.n_recoveries, job.stage_ends_at_h = n_used, ends_at_h
    if num.elastic_size and n_used:
        speed *= speed_of(num, job, slots)
    job.speed = speed
    if num.shares:
        plan_link(num, job, slots, recoveries)


@part
def next_stage(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int, place: int
) -> None:
    """A recovery goes on to its next stage that takes time, or ends."""
    recovery = recoveries[place]
    rule = num.rules[recovery.rule]
    while True:
        if recovery.stage >= 0 and num.stages[rule.first_stage + recovery.stage].copies_again:
            for n in range(job.n_recent):
                if slots[slots[n].recent].recovery == place:
                    slots[slots[n].recent].left = True
        recovery.stage += 1
        if recovery.stage == rule.n_stages:
            end_recovery(job, slots, recoveries, place)
            return
        stage = num.stages[rule.first_stage + recovery.stage]
        hours = cost_h(stage.cost_h, drawn.of_failures, stage.table, recovery.number, row)
        if stage.kind == DETECT and not stage.has_cost:
            hours = recovery.detect_h
        elif stage.kind == LOAD:
            if not recovery.loads or (recovery.hands_over and recovery.n_loads == 0):
                continue
            hours += recovery.load_h
            if recovery.shares:
                read_link(num, job)
                recovery.began_bytes, hours = job.link_bytes, inf
        elif stage.kind == REPLAY and not stage.has_cost:
            hours = recovery.replay_h
        elif stage.kind == REGROUP and not stage.has_cost:
            hours = regroup_h_of(num, job, slots)
        elif stage.kind == WAIT and not isnan(stage.grows_h):
            hours = grows_in_h(stage.grows_h, job.now_h)
        elif stage.kind == WAIT:
            if num.n_spares == NONE:
                continue
            hours = inf if has_to_wait(job, slots, recoveries, place, stage) else 0.0
        if hours > 0.0:
            recovery.ends_at_h = job.now_h + hours
            recovery.kind, recovery.part, recovery.blocks = stage.kind, stage.part, stage.blocks
            return


@part
def begun_after(job: Any, recoveries: Any, begun: int) -> int:
    """The recovery that began next after the nth; NONE where there is none."""
    found = NONE
    for n in range(job.n_recoveries):
        other = recoveries[n]
        is_later = other.rule != NONE and other.begun > begun
        if is_later and (found == NONE or other.begun < recoveries[found].begun):
            found = n
    return found


@part
def end_stages(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int, until_h: float
) -> None:
    """Recoveries whose stage has ended by an instant go on, in the order in which they began."""
    place = begun_after(job, recoveries, NONE)
    while place != NONE:
        begun = recoveries[place].begun
        if recoveries[place].ends_at_h <= until_h:
            next_stage(num, job, slots, recoveries, drawn, row, place)
        place = begun_after(job, recoveries, begun)


@part
def end_recovery(job: Any, slots: Any, recoveries: Any, place: int) -> None:
    """A recovery ends, and its slots are up."""
    recoveries[place].rule = NONE
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place:
            slots[slot].recovery = NONE
            come_back(job, slots, slot)


@part
def free_place(job: Any, recoveries: Any) -> int:
    """The first place for a recovery that none is in; NONE where there is no room."""
    place = 0
    while place < job.n_recoveries and recoveries[place].rule != NONE:
        place += 1
    if place == len(recoveries):
        job.status = WANTS_ROOM
        return NONE
    job.n_recoveries = max(job.n_recoveries, place + 1)
    return place


@part
def ask_for_nodes(job: Any, slots: Any, recovery: int) -> int:
    """Each slot of a recovery without a node asks for one; how many have to wait."""
    n_waiting = 0
    last = NONE
    while True:  # in ascending order of the slots
        slot = 2**62
        for n in range(job.n_recent):
            other = slots[n].recent
            if last < other < slot and slots[other].vacant and slots[other].recovery == recovery:
                slot = other
        if slot == 2**62:
            return n_waiting
        last = slot
        if not slots[slot].asked and job.n_free > 0:
            job.n_free -= 1
            slots[slot].vacant = False
            continue
        n_waiting += 1
        if not slots[slot].asked:
            slots[slot].asked = True
            slots[job.n_queued].queued = slot
            job.n_queued += 1


@part
def has_to_wait(job: Any, slots: Any, recoveries: Any, place: int, stage: Any) -> bool:
    """Whether a wait goes on; from one for each slot those that still wait stay behind."""
    n_waiting = ask_for_nodes(job, slots, place)
    if n_waiting == 0 or not stage.each or n_waiting == recoveries[place].n_slots:
        return bool(n_waiting > 0)
    behind = free_place(job, recoveries)
    if behind == NONE:
        return True
    recoveries[behind] = recoveries[place]
    waiting = recoveries[behind]
    waiting.kind, waiting.part, waiting.blocks = stage.kind, stage.part, stage.blocks
    waiting.ends_at_h, waiting.n_slots = inf, n_waiting
    job.n_begun += 1
    waiting.begun = job.n_begun
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place and slots[slot].asked:
            slots[slot].recovery = behind
    recoveries[place].n_slots -= n_waiting
    return False


@part
def return_nodes(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int, until_h: float
) -> None:
    """Nodes come back from repair; the first slots in the queue get them."""
    n_left = 0
    job.next_return_h = inf
    for n in range(job.n_repairs):
        returns_at_h = slots[n].returns_at_h
        if returns_at_h <= until_h:
            job.n_free += 1
        else:
            slots[n_left].returns_at_h = returns_at_h
            job.next_return_h = min(job.next_return_h, returns_at_h)
            n_left += 1
    job.n_repairs = n_left
    if job.n_free == 0 or job.n_queued == 0:
        return
    while job.n_free > 0 and job.n_queued > 0:
        slot = slots[0].queued
        job.n_queued -= 1
        for n in range(job.n_queued):
            slots[n].queued = slots[n + 1].queued
        job.n_free -= 1
        slots[slot].vacant = slots[slot].asked = False
    place = begun_after(job, recoveries, NONE)
    while place != NONE:
        recovery, begun = recoveries[place], recoveries[place].begun
        stage = num.stages[num.rules[recovery.rule].first_stage + recovery.stage]
        waits = recovery.kind == WAIT and not is_held(num, recovery)
        if waits and not has_to_wait(job, slots, recoveries, place, stage):
            next_stage(num, job, slots, recoveries, drawn, row, place)
        place = begun_after(job, recoveries, begun)
    refresh(num, job, slots, recoveries)


@part
def is_held(num: Numbers, recovery: Any) -> bool:
    """Whether a recovery waits for the job to take its slots in."""
    if recovery.rule == NONE or recovery.kind != WAIT:
        return False
    return not isnan(num.stages[num.rules[recovery.rule].first_stage + recovery.stage].grows_h)


@part
def takes_in(num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int) -> bool:
    """Whether slots wait for the job to take them in; it does so, as it stands still."""
    held = False
    place = begun_after(job, recoveries, NONE)
    while place != NONE:
        begun = recoveries[place].begun
        if is_held(num, recoveries[place]):
            next_stage(num, job, slots, recoveries, drawn, row, place)
            held = True
        place = begun_after(job, recoveries, begun)
    if held:
        refresh(num, job, slots, recoveries)
    return held


# --------------------------------------------------------------------------- failures


@part
def strike(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int,
    scope: int, named: Ints, repair_h: Floats, losses: Any, keeps: bool,
) -> None:  # fmt: skip
    """What a failure does, at the instant when it strikes; or what the notice of one does."""
    if scope == NOTICE:
        for capture in range(num.n_captures):
            if num.captures[capture].on_notice:
                make_due(job, capture, job.progress_h, job.progress_h)
        return
    silent, of = scope == num.silent, num.scopes[scope]
    if silent and len(named):  # an error; as it is noticed, no slot is named
        if isnan(of.latency_h) and job.n_errors >= drawn.of_failures.shape[1]:
            job.status = WANTS_COSTS
            return
        latency_h = cost_h(of.latency_h, drawn.of_failures, of.latency_table, job.n_errors, row)
        err(job, job.progress_h, job.now_h + latency_h)
        return
    if silent:
        drop_beyond(num, job, job.error_h)
    job.n_met += 1
    if job.n_met > HARDLY_AFTER and job.now_h > HARDLY_TIMES * job.frontier_h:
        job.status = STOPPED
        return
    job.n_struck = 0
    for n in range(num.n_slots if silent else len(named)):
        slot = n if silent else named[n]
        if slots[slot].asked:
            continue
        slots[job.n_struck].struck = slot
        job.n_struck += 1
        wipe(job, slots, slot, of.wipes)
        if num.n_spares != NONE and of.needs_node and not slots[slot].vacant:
            slots[slot].vacant = True
            returns_at_h = job.now_h + repair_h[n]
            slots[job.n_repairs].returns_at_h = returns_at_h
            job.n_repairs += 1
            job.next_return_h = min(job.next_return_h, returns_at_h)
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
    for n in range(num.n_tiers):
        n_loads = job.tries[n] + (n == source)
        if n_loads:
            tier = num.tiers[n]
            tried_h += n_loads * cost_h(
                tier.load_h, drawn.of_failures, tier.load_table, number, row
            )
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
    elif keeps and job.n_losses + n_lost > len(losses):
        job.status = WANTS_ROOM
        return
    if not num.rules[rule].stops_nothing or reverts == ALL:
        abandon_saves(num, job, slots, reverts == ALL, silent)

    place = free_place(job, recoveries)
    if place == NONE:
        return
    job.serial += 1
    if num.shares:
        read_link(num, job)
    first, loses = num.tiers[source].first, not num.rules[rule].replays
    for n in range(n_lost if reverts == SHARDS else job.n_struck if n_lost else 0):
        slot = first + n if reverts == SHARDS else slots[n].struck
        if is_of(num, source, slot):
            take_load(job, slots, recoveries, slot)
            if loses:
                lose(job, slots, slot, content_h, row, losses, keeps)
    take_over(num, job, slots, recoveries, place, reverts == ALL)
    recovery = recoveries[place]
    recovery.rule, recovery.stage, recovery.number = rule, -1, number
    job.n_begun += 1
    recovery.serial, recovery.begun, recovery.kind = job.serial, job.n_begun, NONE
    recovery.of_all = reverts == ALL
    recovery.hands_over = n_lost > 0
    recovery.n_loads = num.tiers[source].size if reverts == ALL and source != NONE else n_lost
    recovery.source = source
    recovery.shares = source != NONE and num.tiers[source].shares
    recovery.speed = num.rules[rule].speed
    recovery.load_h, recovery.replay_h = tried_h, replay_h
    recovery.detect_h = cost_h(of.detect_h, drawn.of_failures, of.table, number, row)
    takes_time = tried_h > 0.0 or recovery.shares or not num.rules[rule].load_h <= 0.0
    recovery.loads = num.rules[rule].loads and (reverts != STRUCK or n_lost > 0) and takes_time
    for n in range(job.n_recoveries):
        if n != place and is_held(num, recoveries[n]):
            end_recovery(job, slots, recoveries, n)
    if num.shares:
        end_loads(num, job, slots, recoveries, drawn, row, place)
    next_stage(num, job, slots, recoveries, drawn, row, place)
    forget_wipes(num, job, slots, oldest_flush(num, job))


@part
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
        losses[job.n_losses, 0], losses[job.n_losses, 1] = row, slot
        losses[job.n_losses, 2] = job.progress_h
        losses[job.n_losses, 3] = job.progress_h - content_h
        losses[job.n_losses, 4] = job.progress_h - fresh_h
        job.n_losses += 1


@part
def take_load(job: Any, slots: Any, recoveries: Any, slot: int) -> None:
    """A shard that goes back is loaded by a new recovery, not by one that is under way."""
    for place in range(job.n_recoveries):
        other = recoveries[place]
        if other.rule != NONE and other.serial == slots[slot].loaded_by:
            other.n_loads -= 1
    slots[slot].loaded_by = job.serial


@part
def take_over(
    num: Numbers, job: Any, slots: Any, recoveries: Any, place: int, of_all: bool
) -> None:
    """A new recovery takes its slots from those under way; some of them end."""
    n_slots = job.n_struck
    for n in range(job.n_struck):
        slot = slots[n].struck
        before = slots[slot].recovery
        slots[slot].recovery = place
        if before != NONE:
            other = recoveries[before]
            other.n_slots -= 1
            if other.n_slots == 0 and not (other.of_all and has_load_to_come(num, other)):
                other.rule = NONE
    if of_all:
        for n in range(job.n_recent):
            slot = slots[n].recent
            before = slots[slot].recovery
            if before != NONE and before != place and recoveries[before].blocks:
                slots[slot].recovery = place
                n_slots += 1
        for n in range(job.n_recoveries):
            if n != place and recoveries[n].blocks:
                recoveries[n].rule = NONE
    recoveries[place].n_slots = n_slots


@part
def has_load_to_come(num: Numbers, recovery: Any) -> bool:
    """Whether a recovery has a load before it or under way."""
    if not recovery.loads:
        return False
    first = num.rules[recovery.rule].first_stage
    for n in range(first + recovery.stage, first + num.rules[recovery.rule].n_stages):
        if num.stages[n].kind == LOAD:
            return True
    return False


@part
def oldest_flush(num: Numbers, job: Any) -> int:
    """Order of the oldest flush in flight; the latest of all where there is none."""
    oldest: int = job.latest
    for capture in range(num.n_captures):
        if num.captures[capture].after != NONE:
            for n in range(job.saves[capture].n_in_flight):
                oldest = min(oldest, job.flights[capture][n].order)
    return oldest


# --------------------------------------------------------------------------- the replication


@part
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
    job.n_repairs = job.n_queued = job.n_moving = 0
    job.next_return_h = job.stage_ends_at_h = job.link_ends_at_h = inf
    job.link_bytes = job.link_read_at_h = 0.0
    job.n_free = num.n_spares
    job.frontier_at_failure_h = -1.0
    job.status = GOING
    for capture in range(num.n_captures):
        stand_on_grid(num, job, capture, 0.0)
        job.saves[capture].n_begun = job.saves[capture].n_in_flight = 0
    for column in range(num.n_parts):
        job.hours[column] = 0.0


@inlined
def plan(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int,
    fails_at_h: float,
) -> tuple[float, float, float, float, float, float]:  # fmt: skip
    """What the job does from here on, and until when; of no meaning once it is over.

    Parameters
    ----------
    fails_at_h : on the failures' clock

    Returns
    -------
    when the failure comes, and anything else; when a save in flight commits; progress per hour, and
    when it reaches which progress
    """
    over, fastest = (inf, inf, inf, 0.0, inf, inf), num.fastest
    while job.status == GOING:
        # where the job stands
        blocked = job.blocked_by != NONE
        works = not blocked and job.stalled_by == NONE and job.waits_for == NONE
        due_h = inf
        if works:
            due_h = next_due(num, job)
            if is_due(num, due_h, job.progress_h):
                begin_saves(num, job, slots, drawn, row)
                if job.status != GOING:
                    return over
                works = job.stalled_by == NONE and job.waits_for == NONE
                due_h = next_due(num, job) if works else inf
            if works and job.progress_h >= num.useful_h:
                wait_for_last(num, job)
                if job.waits_for == NONE:
                    commit_all_due(num, job, slots, drawn, row, job.now_h + NEAR * num.useful_h)
                    job.status = FINISHED
                    return over
                works = False
        if job.now_h >= num.end_h:
            job.status = FINISHED if num.end_is_planned and job.progress_h > 0.0 else STOPPED
            return over
        behind = job.progress_h < job.frontier_h
        per_h = rate(num, job.speed, job.replay_speed, behind) if works else 0.0
        if works and per_h == 0.0 and takes_in(num, job, slots, recoveries, drawn, row):
            continue

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
        next_h = min(num.end_h, job.stage_ends_at_h, job.link_ends_at_h, job.noticed_at_h)
        if job.n_queued and job.next_return_h < next_h:
            next_h = job.next_return_h
        reaches_h, target_h = inf, num.useful_h
        if per_h > 0.0:
            if behind and job.frontier_h < target_h:
                target_h = job.frontier_h
            if fastest != NONE and job.error_h == inf:
                ends_h = fails_h if fails_h < next_h and not ages_by_work else next_h
                steady_h = min(target_h, fails_at_h) if ages_by_work else target_h
                n = cycles_ahead(num, job, fastest, per_h, steady_h, ends_h)
                if n > 0:
                    skip(num, job, fastest, n, per_h)
                    commit_all_due(num, job, slots, drawn, row, job.now_h)
                    continue
            if due_h < target_h:
                target_h = due_h
            reaches_h = job.now_h + hours_of(target_h - job.progress_h, per_h)
            if reaches_h < next_h:
                next_h = reaches_h
        elif job.stalled_by != NONE and job.stall_ends_at_h < next_h:
            next_h = job.stall_ends_at_h
        flight_h, _, _ = next_flight(num, job)
        if flight_h < next_h:
            next_h = flight_h
        return fails_h, next_h, flight_h, per_h, reaches_h, target_h
    return over


@inlined
def pass_to(
    num: Numbers, job: Any, to_h: float, per_h: float, reaches_h: float, target_h: float
) -> None:
    """On to an instant, not after the one that was planned: book the hours up to then."""
    passed_h = to_h - job.now_h
    if job.blocked_by != NONE:
        job.hours[job.blocked_part] += passed_h
        job.blocked_h += passed_h
    elif job.stalled_by != NONE or job.waits_for != NONE:
        job.hours[num.save] += passed_h
    elif job.speed == 0.0:
        job.hours[num.wait] += passed_h
    else:
        before_h = job.progress_h
        job.progress_h = target_h if reaches_h == to_h else before_h + passed_h * per_h
        book_work(num, job, before_h, passed_h)
    job.now_h = to_h


@part
def book_work(num: Numbers, job: Any, before_h: float, passed_h: float) -> None:
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


@inlined
def settle(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int, flight_h: float
) -> None:
    """End what ends at this instant, but for rounding: saves, then repairs, then stages."""
    now_h = job.now_h + NEAR * num.useful_h
    if flight_h <= now_h:
        commit_all_due(num, job, slots, drawn, row, now_h)
    if job.stalled_by != NONE and job.stall_ends_at_h <= now_h:
        end_stall(num, job, slots, drawn, row)
    if job.next_return_h <= now_h:
        return_nodes(num, job, slots, recoveries, drawn, row, now_h)
    changed = False
    while job.link_ends_at_h <= now_h:
        job.link_bytes, job.link_read_at_h = job.link_ends_bytes, job.now_h
        end_loads(num, job, slots, recoveries, drawn, row, NONE)
        plan_link(num, job, slots, recoveries)
        changed = True
    if job.stage_ends_at_h <= now_h:
        end_stages(num, job, slots, recoveries, drawn, row, now_h)
        changed = True
    if changed:
        refresh(num, job, slots, recoveries)
