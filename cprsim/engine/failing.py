"""What a failure does: who goes back, and when the recovery ends; compiled into the loops."""

from __future__ import annotations

from math import isnan
from typing import Any

from cprsim.compiling import inlined
from cprsim.engine.standing import (
    GOING,
    LEFT,
    MOST_UNDER_WAY,
    STOPPED,
    WANTS_COSTS,
    WANTS_ROOM,
    due_h,
    stand_at_save,
)
from cprsim.engine.terms import Drawn, Plan
from cprsim.failures.block import Strikes
from cprsim.records import Ints
from cprsim.setting import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H


@inlined
def suffer(plan: Plan, job: Any) -> int:
    """Give up where failure follows failure and the job gets no further, or hardly."""
    if job.n_failures >= HARDLY_AFTER:
        beyond_h = job.wall_h - HARDLY_TIMES * job.frontier_h
        if abs(beyond_h) < plan.near_h:
            return LEFT
        if beyond_h > 0.0:
            return STOPPED
    job.n_fruitless += 1
    if job.frontier_h > job.frontier_at_failure_h + NO_WORK_H:
        job.frontier_at_failure_h = job.frontier_h
        job.n_fruitless = 1
    return STOPPED if job.n_fruitless > HOPELESS_AFTER else GOING


@inlined
def price_recovery(plan: Plan, drawn: Drawn, row: int, job: Any) -> int:
    """Look up what the recovery from the failure at hand takes."""
    number = job.n_failures
    if isnan(plan.detect_h):
        if number >= len(drawn.detect_h):
            return WANTS_COSTS
        job.detection_h = drawn.detect_h[number, row]
    if isnan(plan.reschedule_h):
        if number >= len(drawn.reschedule_h):
            return WANTS_COSTS
        job.staffing_h = drawn.reschedule_h[number, row]
    if isnan(plan.load_h):
        if number >= len(drawn.load_h):
            return WANTS_COSTS
        job.loading_h = drawn.load_h[number, row]
    return GOING


@inlined
def hours_to_load(plan: Plan, drawn_h: float, n_loading: int) -> float:
    """Hours in which so many servers load, with the storage to themselves."""
    if n_loading == 0:
        return 0.0
    if plan.shard_bytes > 0.0:
        rate = min(plan.server_rate_bytes_per_h, plan.rate_bytes_per_h / n_loading)
        return plan.shard_bytes / rate
    return drawn_h


@inlined
def go_back(plan: Plan, job: Any) -> None:
    """Everybody goes back, and a recovery that was under way starts again."""
    job.writing = job.stalled = False
    if not plan.rolls_back:
        job.n_saved = 0
    job.progress_h = job.n_saved * plan.interval_h
    if not plan.steady:
        stand_at_save(plan, job, due_h(plan, job.n_saved), job.n_saved)
    n_loading = plan.n_shards if plan.rolls_back else 0
    job.detected_at_h = job.wall_h + job.detection_h
    job.staffed_at_h = job.detected_at_h + job.staffing_h
    job.resumes_at_h = job.staffed_at_h + hours_to_load(plan, job.loading_h, n_loading)


@inlined
def reload(
    plan: Plan, strikes: Strikes, failure: int, row: int, job: Any,
    losses: Any, slots: Any, under_way: Any, desk: Any,
) -> int:  # fmt: skip
    """The struck shards alone go back; they recover beside those that are under way."""
    if job.writing or job.stalled:  # abandoned, and tried again when the job goes on
        is_due = job.progress_h >= job.due_h
        job.due_whole = job.saving_whole or (is_due and job.due_whole)
        job.due_h = job.progress_h
        job.writing = job.stalled = False
    drop_ended(job.wall_h, under_way, desk)
    if desk.n_under_way == MOST_UNDER_WAY:
        return LEFT
    desk.recovery += 1
    struck = strikes.slot[strikes.first_slot[failure] : strikes.first_slot[failure + 1]]
    n_shards, n_replicas = hand_over(plan, struck, slots, under_way, desk)
    all_lost = n_replicas > 0 and n_replicas + n_down(under_way, desk) == plan.n_replicas
    n_loading = plan.n_shards if all_lost else n_shards
    if n_loading and plan.shard_bytes > 0.0 and n_loaders(under_way, desk):
        return LEFT  # they share the storage
    if desk.keeps and desk.n_losses + n_loading > len(losses):
        return WANTS_ROOM
    for i in range(plan.n_shards if all_lost else len(struck)):
        slot = plan.first_shard + i if all_lost else struck[i]
        if is_shard(plan, slot):
            take_load(slots[slot], under_way, desk)
            lose(row, job, slot, slots[slot], losses, desk)
    drop_idle(job.wall_h, under_way, desk)
    recovery = under_way[desk.n_under_way]
    desk.n_under_way += 1
    recovery.number = desk.recovery
    recovery.n_slots, recovery.n_replicas, recovery.n_loading = len(struck), n_replicas, n_loading
    schedule(plan, job, recovery)
    job.detected_at_h = job.staffed_at_h = job.resumes_at_h = job.wall_h
    for i in range(desk.n_under_way):
        job.detected_at_h = max(job.detected_at_h, under_way[i].detected_at_h)
        job.staffed_at_h = max(job.staffed_at_h, under_way[i].staffed_at_h)
        job.resumes_at_h = max(job.resumes_at_h, under_way[i].resumes_at_h)
    return GOING


@inlined
def is_shard(plan: Plan, slot: int) -> bool:
    """Whether a slot holds a shard."""
    return plan.first_shard <= slot < plan.first_shard + plan.n_shards


@inlined
def is_replica(plan: Plan, slot: int) -> bool:
    """Whether a slot holds a replica."""
    return plan.first_replica <= slot < plan.first_replica + plan.n_replicas


@inlined
def lose(row: int, job: Any, slot: int, of_slot: Any, losses: Any, desk: Any) -> None:
    """A shard goes back to the last whole save."""
    fresh_at_h = job.whole_h
    if of_slot.course == desk.course:
        fresh_at_h = max(fresh_at_h, of_slot.reverted_at_h)
    of_slot.course, of_slot.reverted_at_h = desk.course, job.progress_h
    job.stale_h += job.progress_h - job.whole_h
    job.stale_net_h += job.progress_h - fresh_at_h
    if desk.keeps:
        loss = losses[desk.n_losses]
        loss.replication, loss.slot, loss.progress_h = row, slot, job.progress_h
        loss.since_save_h = job.progress_h - job.whole_h
        loss.since_reload_h = job.progress_h - fresh_at_h
        desk.n_losses += 1


# --------------------------------------------------------------------------- recoveries together


@inlined
def schedule(plan: Plan, job: Any, recovery: Any) -> None:
    """When the stages of a recovery end that begins now."""
    recovery.detected_at_h = job.wall_h + job.detection_h
    recovery.staffed_at_h = recovery.detected_at_h + job.staffing_h
    loaded_h = hours_to_load(plan, job.loading_h, recovery.n_loading)
    recovery.resumes_at_h = recovery.staffed_at_h + loaded_h


@inlined
def drop_ended(now_h: float, under_way: Any, desk: Any) -> None:
    """Forget the recoveries that are over."""
    n = 0
    for i in range(desk.n_under_way):
        if under_way[i].resumes_at_h > now_h:
            under_way[n] = under_way[i]
            n += 1
    desk.n_under_way = n


@inlined
def hand_over(plan: Plan, struck: Ints, slots: Any, under_way: Any, desk: Any) -> tuple[int, int]:
    """Slots leave the recoveries that they were in; how many shards and replicas are struck."""
    n_shards = n_replicas = 0
    for slot in struck:
        n_shards += is_shard(plan, slot)
        n_replicas += is_replica(plan, slot)
        for i in range(desk.n_under_way):
            if under_way[i].number == slots[slot].recovery:
                under_way[i].n_slots -= 1
                under_way[i].n_replicas -= is_replica(plan, slot)
        slots[slot].recovery = desk.recovery
    return n_shards, n_replicas


@inlined
def take_load(of_slot: Any, under_way: Any, desk: Any) -> None:
    """A shard is not loaded any more by the recovery that it was in."""
    for i in range(desk.n_under_way):
        if under_way[i].number == of_slot.load:
            under_way[i].n_loading -= 1
    of_slot.load = desk.recovery


@inlined
def drop_idle(now_h: float, under_way: Any, desk: Any) -> None:
    """Recoveries without slots stop; those with nothing to load any more end without a load."""
    n = 0
    for i in range(desk.n_under_way):
        if under_way[i].n_loading == 0 and now_h < under_way[i].staffed_at_h:
            under_way[i].resumes_at_h = under_way[i].staffed_at_h
        if under_way[i].n_slots > 0:
            under_way[n] = under_way[i]
            n += 1
    desk.n_under_way = n


@inlined
def n_down(under_way: Any, desk: Any) -> int:
    """Replicas in the recoveries under way."""
    n = 0
    for i in range(desk.n_under_way):
        n += under_way[i].n_replicas
    return n


@inlined
def n_loaders(under_way: Any, desk: Any) -> int:
    """Shards that the recoveries under way load."""
    n = 0
    for i in range(desk.n_under_way):
        n += under_way[i].n_loading
    return n
