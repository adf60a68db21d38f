"""Failures and recoveries of one replication, compiled."""

from __future__ import annotations

from math import inf, isnan
from typing import Any

from cprsim.compiling import part
from cprsim.records import Floats, Ints
from cprsim.recovery.giving_up import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H
from cprsim.simulate.fast.saves import abandon_saves, make_due
from cprsim.simulate.fast.state import MOST_RECOVERIES, Drawn
from cprsim.simulate.job import NOTICE
from cprsim.simulate.numbers import (
    ALL,
    DETECT,
    LEFT,
    LOAD,
    NONE,
    REGROUP,
    REPLAY,
    SHARDS,
    STOPPED,
    STRUCK,
    WAIT,
    WANTS_COSTS,
    WANTS_ROOM,
    Numbers,
)
from cprsim.simulate.transitions import (
    choose,
    come_back,
    drop_beyond,
    err,
    forget_wipes,
    goes_back_to,
    grows_in_h,
    is_of,
    regroup_h_of,
    reverts_of,
    shared_load_h,
    speed_of,
    uneven_load_h,
    wipe,
)


@part
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
def next_stage(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, place: int) -> None:
    """A recovery goes on to its next stage that takes time, or ends."""
    recovery = job.recoveries[place]
    rule = num.rules[recovery.rule]
    while True:
        if recovery.stage >= 0 and num.stages[rule.first_stage + recovery.stage].copies_again:
            for n in range(job.n_recent):
                if slots[slots[n].recent].recovery == place:
                    slots[slots[n].recent].left = True
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
                hours = alone_load_h(num, slots, recovery)
        elif stage.kind == REPLAY and not stage.has_cost:
            hours = recovery.replay_h
        elif stage.kind == REGROUP and not stage.has_cost:
            hours = regroup_h_of(num, job, slots)
        elif stage.kind == WAIT and not isnan(stage.grows_h):
            hours = grows_in_h(stage.grows_h, job.now_h)
        elif stage.kind == WAIT:
            if num.n_spares == NONE:
                continue
            hours = inf if has_to_wait(job, slots, place, stage) else 0.0
        if hours > 0.0:
            recovery.ends_at_h = job.now_h + hours
            recovery.kind, recovery.part, recovery.blocks = stage.kind, stage.part, stage.blocks
            return


@part
def has_to_wait(job: Any, slots: Any, place: int, stage: Any) -> bool:
    """Whether a wait goes on; from one for each slot those that still wait stay behind."""
    n_waiting = ask_for_nodes(job, slots, place)
    if n_waiting == 0 or not stage.each or n_waiting == job.recoveries[place].n_slots:
        return bool(n_waiting > 0)
    behind = free_place(job)
    if behind == MOST_RECOVERIES:
        job.status = LEFT
        return True
    job.n_recoveries = max(job.n_recoveries, behind + 1)
    job.recoveries[behind] = job.recoveries[place]
    waiting = job.recoveries[behind]
    waiting.kind, waiting.part, waiting.blocks = stage.kind, stage.part, stage.blocks
    waiting.ends_at_h, waiting.n_slots = inf, n_waiting
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place and slots[slot].asked:
            slots[slot].recovery = behind
    job.recoveries[place].n_slots -= n_waiting
    return False


@part
def is_held(num: Numbers, recovery: Any) -> bool:
    """Whether a recovery waits for the job to take its slots in."""
    if recovery.rule == NONE or recovery.kind != WAIT:
        return False
    return not isnan(num.stages[num.rules[recovery.rule].first_stage + recovery.stage].grows_h)


@part
def takes_in(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> bool:
    """Whether slots wait for the job to take them in; it does so, as it stands still."""
    n_held = 0
    for n in range(job.n_recoveries):
        if is_held(num, job.recoveries[n]):
            n_held += 1
            next_stage(num, job, slots, drawn, row, n)
    if n_held:
        refresh(num, job, slots)
    return n_held > 0


@part
def free_place(job: Any) -> int:
    """The first place for a recovery that none is in; `MOST_RECOVERIES` where there is none."""
    place = 0
    while place < job.n_recoveries and job.recoveries[place].rule != NONE:
        place += 1
    return place


@part
def alone_load_h(num: Numbers, slots: Any, recovery: Any) -> float:
    """Hours of a load over the link while no other one uses it."""
    if not num.is_uneven:
        return shared_load_h(num, recovery.n_loads)
    tier = num.tiers[recovery.source]
    serial = recovery.serial if recovery.hands_over else NONE
    return uneven_load_h(num, slots, tier.first, tier.size, serial)


@part
def is_shared_by_another(job: Any, place: int) -> bool:
    """Whether another recovery loads over the link now."""
    for n in range(job.n_recoveries):
        other = job.recoveries[n]
        if n != place and other.rule != NONE and other.shares and other.kind == LOAD:
            return True
    return False


@part
def end_recovery(job: Any, slots: Any, place: int) -> None:
    """A recovery ends, and its slots are up."""
    job.recoveries[place].rule = NONE
    for n in range(job.n_recent):
        slot = slots[n].recent
        if slots[slot].recovery == place:
            slots[slot].recovery = NONE
            come_back(job, slots, slot)


@part
def return_nodes(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """Nodes come back from repair; the first slots in the queue get them."""
    n_left = 0
    job.next_return_h = inf
    for n in range(job.n_repairs):
        returns_at_h = slots[n].returns_at_h
        if returns_at_h <= job.now_h:
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
        place = slots[slot].recovery
        recovery = job.recoveries[place]
        stage = num.stages[num.rules[recovery.rule].first_stage + recovery.stage]
        if recovery.kind != WAIT or is_held(num, recovery):
            continue
        if not has_to_wait(job, slots, place, stage):
            next_stage(num, job, slots, drawn, row, place)
    refresh(num, job, slots)


@part
def strike(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int,
    scope: int, named: Ints, repair_h: Floats, losses: Any, keeps: bool,
) -> None:  # fmt: skip
    """What a failure does, at the instant when it strikes; or what the notice of one does."""
    if scope == NOTICE:
        for capture in range(num.n_captures):
            if num.captures[capture].on_notice:
                make_due(job, capture, job.progress_h, job.progress_h)
        return
    silent = scope == num.silent
    if silent and len(named):  # an error; as it is noticed, no slot is named
        latency_h = num.scopes[scope].latency_h
        if isnan(latency_h):
            if job.n_errors >= drawn.of_failures.shape[1]:
                job.status = WANTS_COSTS
                return
            latency_h = drawn.of_failures[num.scopes[scope].latency_table, job.n_errors, row]
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
        wipe(job, slots, slot, num.scopes[scope].wipes)
        if num.n_spares != NONE and num.scopes[scope].needs_node and not slots[slot].vacant:
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
        abandon_saves(num, job, slots, reverts == ALL, silent)

    job.serial += 1
    if n_lost:
        take_loads(num, job, slots, source, reverts)
    place = free_place(job)
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
    recovery.source = source
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
        and (tried_h > 0.0 or own_h > 0.0 or isnan(own_h) or recovery.shares)
    )
    for n in range(job.n_recoveries):
        if n != place and is_held(num, job.recoveries[n]):
            end_recovery(job, slots, n)
    next_stage(num, job, slots, drawn, row, place)
    forget_wipes(num, job, slots, oldest_flush(num, job))


@part
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
        loss = losses[job.n_losses]
        loss.replication, loss.slot, loss.progress_h = row, slot, job.progress_h
        loss.since_save_h = job.progress_h - content_h
        loss.since_reload_h = job.progress_h - fresh_h
        job.n_losses += 1


@part
def oldest_flush(num: Numbers, job: Any) -> int:
    """Order of the oldest flush in flight; the latest of all where there is none."""
    oldest: int = job.latest
    for capture in range(num.n_captures):
        if num.captures[capture].after != NONE:
            for n in range(job.saves[capture].n_in_flight):
                oldest = min(oldest, job.flights[capture][n].order)
    return oldest


@part
def load_cost_h(num: Numbers, rule: int) -> float:
    """What the load stages of a rule cost by themselves; NaN where that varies, -1 without any."""
    hours = -1.0
    first = num.rules[rule].first_stage
    for n in range(first, first + num.rules[rule].n_stages):
        if num.stages[n].kind == LOAD and num.stages[n].has_cost:
            hours = max(hours, 0.0) + num.stages[n].cost_h
    return hours


@part
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


@part
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
