"""The recoveries of a replication in the compiled loop: stages, waits for nodes, and loads."""

from __future__ import annotations

from math import inf, isnan
from typing import Any

from cprsim.compiling import part
from cprsim.simulate.loop_saves import cost_h
from cprsim.simulate.loop_state import Drawn
from cprsim.simulate.numbers import (
    DETECT,
    LOAD,
    NONE,
    REGROUP,
    REPLAY,
    WAIT,
    WANTS_ROOM,
    Numbers,
)
from cprsim.simulate.transitions import (
    come_back,
    grows_in_h,
    rate_of_each,
    regroup_h_of,
    speed_of,
)

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
    first = NONE
    for n in range(job.n_recoveries):
        recovery = recoveries[n]
        is_later = recovery.rule != NONE and recovery.begun > begun
        if is_later and (first == NONE or recovery.begun < recoveries[first].begun):
            first = n
    return first


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
            candidate = slots[n].recent
            if (
                last < candidate < slot
                and slots[candidate].vacant
                and slots[candidate].recovery == recovery
            ):
                slot = candidate
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
    took_in = False
    place = begun_after(job, recoveries, NONE)
    while place != NONE:
        begun = recoveries[place].begun
        if is_held(num, recoveries[place]):
            next_stage(num, job, slots, recoveries, drawn, row, place)
            took_in = True
        place = begun_after(job, recoveries, begun)
    if took_in:
        refresh(num, job, slots, recoveries)
    return took_in
