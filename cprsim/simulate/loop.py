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
from cprsim.simulate.loop_recoveries import (
    end_loads,
    end_recovery,
    end_stages,
    free_place,
    is_held,
    next_stage,
    plan_link,
    read_link,
    refresh,
    return_nodes,
    takes_in,
)
from cprsim.simulate.loop_saves import (
    abandon_saves,
    begin_saves,
    commit_all_due,
    cost_h,
    end_stall,
    make_due,
    next_due,
    next_flight,
    stand_on_grid,
    wait_for_last,
)
from cprsim.simulate.loop_state import Drawn
from cprsim.simulate.numbers import (
    ALL,
    FINISHED,
    GOING,
    LOAD,
    NEAR,
    NONE,
    PROGRESS,
    SHARDS,
    STOPPED,
    STRUCK,
    UPTIME,
    WALL,
    WANTS_COSTS,
    WANTS_ROOM,
    Numbers,
)
from cprsim.simulate.transitions import (
    begin,
    choose,
    cycles_to_skip,
    drop_beyond,
    err,
    flushes_go_along,
    forget_wipes,
    goes_back_to,
    hours_of,
    is_due,
    is_in_rhythm,
    is_of,
    keep_latest,
    number_of,
    rate,
    reverts_of,
    wipe,
)

parts_of(transitions)

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
        of, state = num.captures[other], job.saves[other]
        if state.due_h < due_h + saves.every_h:
            return 0
        if of.stall_h != 0.0 or (not of.skips and state.n_in_flight >= of.in_flight):
            steady_h = min(steady_h, state.due_h)  # it holds the job
        else:
            until_h = min(until_h, state.due_h)
        if of.is_followed:  # commits of others may wait until the cycles are over
            for n in range(state.n_in_flight):
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
    for number in range(num.n_captures):
        if number != capture and not (along and num.captures[number].after == capture):
            continue
        n_begun = n if number == capture else n // num.captures[number].nth
        parts = num.captures[number].parts
        job.saves[number].n_begun += n_begun
        job.n_saves += n_begun if parts == 1 else n_begun // parts
        for k in range(job.saves[number].n_in_flight):
            flight = job.flights[number][k]
            flight.content_h += n * every_h
            flight.due_h += n * every_h
            flight.completes_h += n * every_h
            flight.begun_h += passed_h
            flight.at_h += passed_h
            flight.number += n_begun


# --------------------------------------------------------------------------- failures


@part
def strike(
    num: Numbers, job: Any, slots: Any, recoveries: Any, drawn: Drawn, row: int,
    scope: int, failed: Ints, repair_h: Floats, losses: Any, keeps: bool,
) -> None:  # fmt: skip
    """What a failure does, at the instant when it strikes; or what the notice of one does."""
    if scope == NOTICE:
        for capture in range(num.n_captures):
            if num.captures[capture].on_notice:
                make_due(job, capture, job.progress_h, job.progress_h)
        return
    silent, of = scope == num.silent, num.scopes[scope]
    if silent and len(failed):  # an error; as it is noticed, no slot is named
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
    for n in range(num.n_slots if silent else len(failed)):
        slot = n if silent else failed[n]
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
