"""One replication after the other, from failure to failure; compiled.

A job is taken from one failure to the next in a few steps, whatever lies between: whole intervals
are jumped over. Where something is not known yet (failures, costs, room for losses), a replication
says so and is run again from its start when it is.

    work --a save is due--> stall --committed--> work ... --a failure strikes--> recovery --> work
"""

from __future__ import annotations

from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import compiled, inlined
from cprsim.engine.terms import Drawn, Plan
from cprsim.failures.block import Strikes
from cprsim.records import Floats, Ints
from cprsim.setting import HOPELESS_AFTER, ROUNDING

# What has become of a replication
GOING, FINISHED, STOPPED, LEFT, WANTS_FAILURES, WANTS_COSTS, WANTS_ROOM, AT_SAVE = range(8)
INTRICATE = 8  # for `steady.hurry`

MOST_UNDER_WAY = 256  # recoveries at once

HOURS = (
    "wall_h", "useful_h", "lost_h", "save_h", "detect_h", "reschedule_h", "load_h",
    "stale_h", "stale_net_h",
)  # fmt: skip
COUNTS = ("status", "n_failures", "n_saves")

JOB = np.dtype(
    [
        # what comes out
        ("wall_h", "f8"),  # booked so far
        ("worked_h", "f8"),  # for the first time or again
        ("frontier_h", "f8"),  # the furthest progress that it has ever had
        ("save_h", "f8"),
        ("detect_h", "f8"),
        ("reschedule_h", "f8"),
        ("load_h", "f8"),
        ("n_failures", "i8"),
        ("n_saves", "i8"),  # committed, also those that a restart has thrown away
        ("stale_h", "f8"),  # summed over reverted shards: since the last save
        ("stale_net_h", "f8"),  # since the later of that and the shard's own last reload
        # where it stands
        ("uptime_h", "f8"),  # hours without its recoveries
        ("progress_h", "f8"),
        ("whole_h", "f8"),  # content of the last whole save
        ("n_saved", "i8"),  # number of the last save on the grid
        ("n_due", "i8"),  # number of the next one
        ("due_h", "f8"),  # progress at which it saves next
        ("saving_h", "f8"),  # content of the save in hand
        ("writing_h", "f8"),  # what is left of its part in the background
        ("n_attempts", "i8"),  # at a save: the number of its draw
        ("detected_at_h", "f8"),  # ends of the stages of recovery, in wall time
        ("staffed_at_h", "f8"),
        ("resumes_at_h", "f8"),
        ("frontier_at_failure_h", "f8"),
        ("n_fruitless", "i8"),  # failures in a row without first-time work between
        # what the next save and recovery take, where that varies
        ("stall_h", "f8"),
        ("behind_h", "f8"),
        ("detection_h", "f8"),
        ("staffing_h", "f8"),
        ("loading_h", "f8"),
        # the stretch in hand
        ("left_h", "f8"),  # hours until the failure, or until the deadline
        ("passed_h", "f8"),  # hours since it began, whenever the failure comes
        ("until_h", "f8"),  # progress
        ("since_h", "f8"),  # hours since the last instant at which the order of things matters
        ("doubtful", "?"),  # rounding decides what comes before the failure
        ("due_whole", "?"),  # whether the next save is
        ("saving_whole", "?"),  # whether the save in hand is
        ("stalled", "?"),  # by the save in hand
        ("writing", "?"),  # the save in hand goes on in the background
        ("priced", "?"),  # the next save
        ("limited", "?"),  # by the deadline
    ],
    align=True,
)

RECOVERY = np.dtype(
    [
        ("number", "i8"),
        ("detected_at_h", "f8"),
        ("staffed_at_h", "f8"),
        ("resumes_at_h", "f8"),
        ("n_slots", "i8"),
        ("n_replicas", "i8"),
        ("n_loading", "i8"),  # shards
    ]
)

SLOT = np.dtype(
    [
        ("recovery", "i8"),  # number of the last one that it was in
        ("load", "i8"),  # number of the last one that loads its shard
        ("course", "i8"),  # number of the course in which it went back last
        ("reverted_at_h", "f8"),  # at which progress
    ]
)

DESK = np.dtype(
    [
        ("n_losses", "i8"),
        ("n_under_way", "i8"),
        ("recovery", "i8"),
        ("course", "i8"),
        ("keeps", "i8"),
    ]
)


class Stretch(NamedTuple):
    """What a job does before the next failure, or before its end."""

    n: float  # saves that commit
    done_h: float  # of work since the last of them
    worked_h: float
    save_h: float
    passed_h: float
    reached: bool  # the progress at which the failure strikes
    finished: bool
    doubtful: bool  # rounding decides what comes before the failure


@compiled
def run(
    plan: Plan, drawn: Drawn, strikes: Strikes, rows: Ints,
    hours: Floats, counts: Ints, losses: Any, keeps: bool, slots: Any, desks: Any,
) -> int:  # fmt: skip
    """Run some replications.

    Parameters
    ----------
    rows : (n_rows,) numbers of the replications
    hours, counts : (n_columns, n_replications) what comes out, columns as in HOURS and COUNTS
    losses : (n_room,) of LOSS; the shards that go back
    keeps : whether losses are kept, or summed only
    slots, desks : (n_slots,) of SLOT and (1,) of DESK, of nobody else: what they hold from other
        calls does not matter, so that no call has to fill a table of all nodes

    Returns
    -------
    how many losses there are

    Notes
    -----
    Arrays stay up here, and in what a failure under partial recovery does: each call that takes
    one counts a reference, which costs more than the step itself.
    """
    desk = desks[0]
    desk.keeps, desk.n_losses = keeps, 0
    scratch = np.zeros(1, JOB)
    job = scratch[0]
    under_way = np.zeros(1 + min(MOST_UNDER_WAY, plan.n_slots), RECOVERY)
    first, at_h = strikes.first, strikes.at_h
    border_h = strikes.until_h
    if plan.on_progress and border_h >= plan.useful_h:
        border_h = inf
    for row in rows:
        begin(plan, job)
        desk.course += 1
        desk.n_under_way = 0
        n_losses = desk.n_losses
        chunk, failure = 0, first[0, row]
        status = GOING
        while status == GOING:
            while chunk < len(first) and failure == first[chunk, row + 1]:
                chunk += 1
                failure = first[chunk, row] if chunk < len(first) else -1
            status = live_until(plan, job, border_h if failure < 0 else at_h[failure])
            while status == AT_SAVE:
                status = price_save(plan, drawn, row, job)
                if status == GOING:
                    status = live_on(plan, job)
            if failure < 0:
                status = WANTS_FAILURES if status in (GOING, LEFT) else status
                break
            if status == GOING:
                status = suffer(plan, job)
            if status == GOING and plan.recovery_varies:
                status = price_recovery(plan, drawn, row, job)
            if status == GOING and plan.reloads:
                status = reload(plan, strikes, failure, row, job, losses, slots, under_way, desk)
            elif status == GOING:
                go_back(plan, job)
            job.n_failures += status == GOING
            failure += 1
        if status > STOPPED:
            desk.n_losses = n_losses
        hours[0, row] = job.wall_h
        hours[1, row] = job.frontier_h
        hours[2, row] = max(0.0, job.worked_h - job.frontier_h)
        hours[3, row] = job.save_h
        hours[4, row] = job.detect_h
        hours[5, row] = job.reschedule_h
        hours[6, row] = job.load_h
        hours[7, row] = job.stale_h
        hours[8, row] = job.stale_net_h
        counts[0, row] = status
        counts[1, row] = job.n_failures
        counts[2, row] = job.n_attempts if status == WANTS_COSTS else job.n_saves
    return int(desks[0].n_losses) + 0 * len(scratch)  # records do not keep their array alive


@inlined
def begin(plan: Plan, job: Any) -> None:
    """Stand at the start of the job."""
    job.wall_h = job.worked_h = job.frontier_h = job.save_h = 0.0
    job.detect_h = job.reschedule_h = job.load_h = 0.0
    job.stale_h = job.stale_net_h = 0.0
    job.n_failures = job.n_saves = job.n_attempts = job.n_fruitless = 0
    job.uptime_h = job.whole_h = 0.0
    job.detected_at_h = job.staffed_at_h = job.resumes_at_h = 0.0
    job.frontier_at_failure_h = -1.0
    job.writing = job.stalled = job.priced = False
    job.stall_h = plan.stall_h
    job.behind_h = plan.behind_h
    job.detection_h, job.staffing_h, job.loading_h = plan.detect_h, plan.reschedule_h, plan.load_h
    job.n_saved = 0
    stand_at_save(plan, job, 0.0, 0)


@inlined
def suffer(plan: Plan, job: Any) -> int:
    """Give up where failure follows failure without any first-time work between."""
    job.n_fruitless += 1
    if job.frontier_h > job.frontier_at_failure_h:
        job.frontier_at_failure_h = job.frontier_h
        job.n_fruitless = 1
    return STOPPED if job.n_fruitless > HOPELESS_AFTER else GOING


# --------------------------------------------------------------------------- until the next failure


@inlined
def live_until(plan: Plan, job: Any, at_h: float) -> int:
    """Recover, work and save until the failures' clock shows `at_h`."""
    if plan.on_wall and at_h < job.resumes_at_h:
        return recover_until(plan, job, at_h)
    if recover_until(plan, job, job.resumes_at_h) == STOPPED:
        return STOPPED
    set_out(plan, job, at_h)
    return live_on(plan, job)


@inlined
def live_on(plan: Plan, job: Any) -> int:
    """Work and save for what is left of a stretch."""
    status = advance(plan, job)
    if status == AT_SAVE:
        return status
    job.wall_h += job.passed_h
    job.uptime_h += job.passed_h
    if status == GOING and job.limited and job.progress_h < job.until_h:
        return STOPPED
    return LEFT if job.doubtful else status


@inlined
def set_out(plan: Plan, job: Any, at_h: float) -> None:
    """What is to come before the failures' clock shows `at_h`."""
    job.left_h, job.until_h, job.limited = ahead(plan, job.wall_h, job.uptime_h, at_h)
    job.passed_h = 0.0
    job.since_h = inf
    job.doubtful = False


@inlined
def ahead(plan: Plan, wall_h: float, uptime_h: float, at_h: float) -> tuple[float, float, bool]:
    """Hours and progress before the failures' clock shows `at_h`; whether the deadline limits."""
    left_h, until_h = at_h, inf
    if plan.on_progress:
        left_h, until_h = inf, at_h
    elif plan.on_wall:
        left_h = at_h - wall_h
    else:
        left_h = at_h - uptime_h
    spare_h = plan.deadline_h - wall_h
    if spare_h < left_h:
        return spare_h, until_h, True
    return max(left_h, 0.0), until_h, False


@inlined
def recover_until(plan: Plan, job: Any, at_h: float) -> int:
    """Book the recovery in hand up to an instant of wall time, or up to the deadline."""
    until_h = min(at_h, plan.deadline_h)
    detected_h = min(until_h, job.detected_at_h)
    staffed_h = min(until_h, job.staffed_at_h)
    loaded_h = min(until_h, job.resumes_at_h)
    job.detect_h += detected_h - job.wall_h
    job.reschedule_h += staffed_h - detected_h
    job.load_h += loaded_h - staffed_h
    job.wall_h = loaded_h
    return STOPPED if at_h > plan.deadline_h else GOING


@inlined
def advance(plan: Plan, job: Any) -> int:
    """Work and save until the failure, GOING, or until all is done, FINISHED."""
    if plan.steady:
        return stride(plan, job)
    while True:
        if job.progress_h >= job.due_h:
            if job.writing and not await_commit(plan, job):
                return GOING
            if plan.saves_vary and not job.priced:
                return AT_SAVE
            if not save(plan, job):
                return GOING
        if job.progress_h >= plan.useful_h:
            if job.writing and job.saving_h == plan.useful_h and not await_commit(plan, job):
                return GOING
            job.doubtful = min(job.left_h, job.until_h - plan.useful_h) < plan.near_h
            return FINISHED
        if not work(plan, job):
            return GOING


@inlined
def stride(plan: Plan, job: Any) -> int:
    """`advance` at once, where every save stalls the job for the same time and then is valid."""
    by = stretch(plan, job.progress_h, job.n_saved, job.left_h, job.until_h)
    job.doubtful = by.doubtful
    job.worked_h += by.worked_h
    job.save_h += by.save_h
    job.passed_h = by.passed_h
    n_saved = job.n_saved + int(by.n)
    n_whole, whole_before = whole_of(plan, n_saved), whole_of(plan, job.n_saved)
    if n_whole > whole_before:
        job.n_saves += n_whole - whole_before
        job.whole_h = whole_h_of(plan, n_whole)
    job.n_saved = n_saved
    job.progress_h = job.until_h if by.reached else n_saved * plan.interval_h + by.done_h
    job.frontier_h = max(job.frontier_h, job.progress_h)
    return FINISHED if by.finished else GOING


@inlined
def stretch(plan: Plan, progress_h: float, n_saved: int, left_h: float, until_h: float) -> Stretch:
    """What comes next, for so many hours or until so much progress, whichever is first."""
    saved_h = n_saved * plan.interval_h
    beyond_h = progress_h - saved_h
    n_left = float(plan.n_saves - n_saved)
    n = min(np.floor((beyond_h + left_h) / plan.period_h), n_left)
    if plan.on_progress:
        n = min(n, np.floor((until_h - saved_h) / plan.interval_h))
    room_h, stall_h = plan.interval_h, plan.stall_h  # of work until the save after these, and it
    if n == n_left:
        room_h, stall_h = plan.tail_h, 0.0
    rest_h = beyond_h + left_h - n * plan.period_h
    edge_h = room_h + stall_h
    reached = False
    if plan.on_progress:
        edge_h = room_h
        reach_h = until_h - saved_h - n * plan.interval_h
        reached = reach_h <= rest_h and (n < n_left or reach_h < room_h)
        rest_h = min(reach_h, room_h) if reached else rest_h
    finished = n == n_left and rest_h >= room_h and not reached
    near_h = min(rest_h, abs(rest_h - edge_h))
    done_h = min(rest_h, room_h)
    stalled_h = 0.0 if finished else rest_h - done_h
    return Stretch(
        n=n,
        done_h=done_h,
        worked_h=n * plan.interval_h + done_h - beyond_h,
        save_h=n * plan.stall_h + stalled_h,
        passed_h=n * plan.period_h + done_h + stalled_h - beyond_h,
        reached=reached,
        finished=finished,
        doubtful=near_h < plan.near_h and left_h > plan.near_h,
    )


@inlined
def whole_of(plan: Plan, n_saved: int) -> int:
    """How many whole saves there are in the first ones of the grid."""
    return n_saved if plan.n_per_whole == 1 else n_saved // plan.n_per_whole


@inlined
def whole_h_of(plan: Plan, n_whole: int) -> float:
    """Progress that the nth whole save holds."""
    return n_whole * plan.n_per_whole * plan.interval_h


@inlined
def spend(job: Any, hours: float) -> None:
    """Let some hours pass."""
    job.left_h -= hours
    job.passed_h += hours


@inlined
def work(plan: Plan, job: Any) -> bool:
    """Work until the next save or the end; False where a failure comes before."""
    next_h = min(job.due_h, plan.useful_h)
    stop_h = min(next_h, job.until_h)
    work_h = stop_h - job.progress_h
    struck = job.left_h < work_h or stop_h < next_h
    done_h = min(work_h, job.left_h)
    job.progress_h = stop_h if done_h == work_h else job.progress_h + done_h
    job.frontier_h = max(job.frontier_h, job.progress_h)
    job.worked_h += done_h
    spend(job, done_h)
    job.since_h += done_h
    if job.writing and job.writing_h <= done_h:
        job.since_h = done_h - job.writing_h
        commit(job)
    elif job.writing:
        job.writing_h -= done_h
    to_come_h = next_h - job.progress_h
    if job.writing:
        to_come_h = min(to_come_h, job.writing_h)
    job.doubtful = min(job.since_h, to_come_h) < plan.near_h
    if not struck:
        job.since_h = 0.0
    return not struck


# --------------------------------------------------------------------------- saves


@inlined
def due_h(plan: Plan, number: int) -> float:
    """Progress at which the nth save of the grid is due; the state at 0 is a free one."""
    if number == 0:
        return 0.0
    return min(number * plan.interval_h, plan.useful_h) if number <= plan.n_saves else inf


@inlined
def stand_at_save(plan: Plan, job: Any, progress_h: float, n_saved: int) -> None:
    """Stand at some progress, with the save after the nth due next."""
    job.progress_h = progress_h
    job.n_due = n_saved + 1
    job.due_h = due_h(plan, job.n_due)
    job.due_whole = job.n_due % plan.n_per_whole == 0


@inlined
def save(plan: Plan, job: Any) -> bool:
    """Stall for a save; False where a failure comes before its end."""
    job.n_attempts += 1
    job.priced = False
    job.saving_h, job.saving_whole = job.progress_h, job.due_whole
    n_due = job.n_due
    while due_h(plan, n_due) <= job.progress_h * (1.0 + ROUNDING):
        n_due += 1
    stand_at_save(plan, job, job.progress_h, n_due - 1)
    stall_h = job.stall_h
    job.save_h += min(stall_h, job.left_h)
    job.stalled = job.left_h < stall_h
    if job.stalled:
        job.doubtful = min(job.since_h + job.left_h, stall_h - job.left_h) < plan.near_h
        spend(job, job.left_h)
        return False
    spend(job, stall_h)
    job.since_h = 0.0
    if plan.in_background:
        job.writing, job.writing_h = True, job.behind_h
    else:
        commit(job)
    return True


@inlined
def await_commit(plan: Plan, job: Any) -> bool:
    """Stall until the save in the background commits; False where a failure comes before."""
    wait_h = min(job.writing_h, job.left_h)
    job.save_h += wait_h
    spend(job, wait_h)
    job.since_h += wait_h
    if wait_h < job.writing_h:
        job.doubtful = min(job.since_h, job.writing_h - wait_h) < plan.near_h
        return False
    job.since_h = 0.0
    commit(job)
    return True


@inlined
def commit(job: Any) -> None:
    """The save in hand is valid from here on."""
    job.writing = False
    job.n_saved = job.n_due - 1
    if job.saving_whole:
        job.whole_h = job.saving_h
        job.n_saves += 1


# --------------------------------------------------------------------------- costs that vary


@inlined
def price_save(plan: Plan, drawn: Drawn, row: int, job: Any) -> int:
    """Look up what the next save takes."""
    number = job.n_attempts
    if isnan(plan.stall_h):
        if number >= len(drawn.stall_h):
            return WANTS_COSTS
        job.stall_h = plan.fraction * drawn.stall_h[number, row] + plan.extra_h
    if isnan(plan.behind_h):
        if number >= len(drawn.behind_h):
            return WANTS_COSTS
        job.behind_h = plan.fraction * drawn.behind_h[number, row]
    job.priced = True
    return GOING


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


# --------------------------------------------------------------------------- failures


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
