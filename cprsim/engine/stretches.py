"""From one failure to the next: recovering, working and saving; compiled into the loops.

`stretch` takes in one step what lies between, where every save stalls the job for the same time;
`advance` goes from save to save.
"""

from __future__ import annotations

from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import inlined
from cprsim.engine.standing import (
    AT_SAVE,
    FINISHED,
    GOING,
    LEFT,
    STOPPED,
    WANTS_COSTS,
    due_h,
    stand_at_save,
)
from cprsim.engine.terms import Drawn, Plan
from cprsim.setting import ROUNDING


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
    by = stretch(plan, job.progress_h, job.n_saved, job.left_h, job.until_h, plan.on_progress)
    job.doubtful = by.doubtful
    job.worked_h += by.worked_h
    job.save_h += by.save_h
    job.passed_h = by.passed_h
    n_saved = job.n_saved + by.n
    n_whole, whole_before = whole_of(plan, n_saved), whole_of(plan, job.n_saved)
    if n_whole > whole_before:
        job.n_saves += int(n_whole - whole_before)
        job.whole_h = whole_h_of(plan, n_whole)
    job.n_saved = int(n_saved)
    job.progress_h = job.until_h if by.reached else n_saved * plan.interval_h + by.done_h
    job.frontier_h = max(job.frontier_h, job.progress_h)
    return FINISHED if by.finished else GOING


@inlined
def stretch(
    plan: Plan, progress_h: float, n_saved: float, left_h: float, until_h: float, on_progress: bool
) -> Stretch:
    """What comes next, for so many hours or, `on_progress`, until so much progress if that is less.

    `on_progress` is that of the plan; a caller that writes it as a constant spares the other case.
    """
    saved_h = n_saved * plan.interval_h
    beyond_h = progress_h - saved_h
    n_left = float(plan.n_saves - n_saved)
    n = min(np.floor((beyond_h + left_h) / plan.period_h), n_left)
    if on_progress:
        n = min(n, np.floor((until_h - saved_h) / plan.interval_h))
    room_h, stall_h = plan.interval_h, plan.stall_h  # of work until the save after these, and it
    if n == n_left:
        room_h, stall_h = plan.tail_h, 0.0
    rest_h = beyond_h + left_h - n * plan.period_h
    edge_h = room_h + stall_h
    reached = False
    if on_progress:
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
def whole_of(plan: Plan, n_saved: float) -> float:
    """How many whole saves there are in the first ones of the grid."""
    return n_saved if plan.n_per_whole == 1 else np.floor(n_saved / plan.n_per_whole)


@inlined
def whole_h_of(plan: Plan, n_whole: float) -> float:
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
