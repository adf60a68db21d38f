"""Many replications of a job under a recovery system, compiled.

A replication goes from one instant at which something happens to the next. What is not known yet
(failures, costs) is asked for, and the replication is run again from its start when it is there.
"""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from cprsim.compiling import announced, inlined, part
from cprsim.records import Floats, Ints
from cprsim.simulate.fast.plain import is_plain, leap
from cprsim.simulate.fast.plain import known_from as known_from
from cprsim.simulate.fast.recoveries import next_stage, refresh, return_nodes, strike, takes_in
from cprsim.simulate.fast.saves import (
    begin_saves,
    commit_all_due,
    end_stall,
    next_due,
    next_flight,
    stand_on_grid,
    wait_for_last,
)
from cprsim.simulate.fast.skipping import are_in_rhythm, book, cycles_until, may_skip, skip
from cprsim.simulate.fast.state import Drawn
from cprsim.simulate.numbers import (
    FINISHED,
    GOING,
    LEFT,
    NEAR,
    NONE,
    OF_JOB,
    PROGRESS,
    STOPPED,
    UPTIME,
    WALL,
    WANTS_FAILURES,
    Numbers,
)
from cprsim.simulate.strikes import ScopedStrikes
from cprsim.simulate.transitions import begin, is_due, rate


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
    job.n_repairs = job.n_queued = 0
    job.next_return_h = inf
    job.n_free = num.n_spares
    job.frontier_at_failure_h = -1.0
    job.status = GOING
    for capture in range(num.n_captures):
        stand_on_grid(num, job, capture, 0.0)
        job.saves[capture].n_begun = job.saves[capture].n_in_flight = 0


@part
def fastest_of(num: Numbers) -> int:
    """The capture whose cycles are worth to be taken at once; NONE where there is none."""
    fastest: Any = np.int64(NONE)
    for capture in range(num.n_captures):
        if num.captures[capture].n_due > 1 and (
            fastest == NONE or num.captures[capture].every_h < num.captures[fastest].every_h
        ):
            fastest = capture
    return int(fastest)


@inlined
def plan(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, fails_at_h: float, fastest: int
) -> None:
    """Plan what the job does from here on, and until when; of no meaning once it is over.

    Parameters
    ----------
    fails_at_h : on the failures' clock
    fastest : as `fastest_of`; NONE: no cycles are taken at once
    """
    near_h = NEAR * num.useful_h
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
                    return
                works = job.stalled_by == NONE and job.waits_for == NONE
                due_h = next_due(num, job) if works else inf
            if works and job.progress_h >= num.useful_h:
                wait_for_last(num, job)
                if job.waits_for == NONE:
                    commit_all_due(num, job, slots, drawn, row, job.now_h + near_h)
                    job.status = FINISHED
                    return
                works = False
        if job.now_h >= num.end_h:
            job.status = FINISHED if num.end_is_planned and job.progress_h > 0.0 else STOPPED
            return
        behind = job.progress_h < job.frontier_h
        per_h = rate(num, job.speed, job.replay_speed, behind) if works else 0.0
        if works and per_h == 0.0 and takes_in(num, job, slots, drawn, row):
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
        next_h = num.end_h
        for n in range(job.n_recoveries):
            recovery = job.recoveries[n]
            if recovery.rule != NONE and recovery.ends_at_h < next_h:
                next_h = recovery.ends_at_h
        if job.n_queued and job.next_return_h < next_h:
            next_h = job.next_return_h
        reaches_h, target_h = inf, num.useful_h
        if per_h > 0.0:
            if behind and job.frontier_h < target_h:
                target_h = job.frontier_h
            if fastest != NONE:
                ends_h = fails_h if fails_h < next_h and not ages_by_work else next_h
                within_h = (job.saves[fastest].due_h - job.progress_h) / per_h
                if (
                    job.error_h == inf
                    and may_skip(num, job, fastest, within_h, per_h, target_h, ends_h)
                    and are_in_rhythm(num, job, fastest, within_h, per_h)
                ):
                    n = cycles_until(
                        num, job, fastest, within_h, per_h,
                        min(target_h, fails_at_h) if ages_by_work else target_h, ends_h,
                    )  # fmt: skip
                    if n > 0:
                        skip(num, job, fastest, n, per_h)
                        commit_all_due(num, job, slots, drawn, row, job.now_h)
                        continue
            if due_h < target_h:
                target_h = due_h
            reaches_h = job.now_h + (target_h - job.progress_h) / per_h
            if reaches_h < next_h:
                next_h = reaches_h
        elif job.stalled_by != NONE and job.stall_ends_at_h < next_h:
            next_h = job.stall_ends_at_h
        flight_h = next_flight(num, job)
        next_h = min(next_h, flight_h, job.noticed_at_h)
        job.next_h, job.fails_h, job.flight_h = next_h, fails_h, flight_h
        job.per_h, job.reaches_h, job.target_h = per_h, reaches_h, target_h
        return


@inlined
def pass_to(num: Numbers, job: Any, to_h: float) -> None:
    """On to an instant, not after the one that was planned: book the hours up to then."""
    passed_h = to_h - job.now_h
    if job.blocked_by != NONE:
        job.hours[job.recoveries[job.blocked_by].part] += passed_h
        job.blocked_h += passed_h
    elif job.stalled_by != NONE or job.waits_for != NONE:
        job.hours[num.save] += passed_h
    elif job.speed == 0.0:
        job.hours[num.wait] += passed_h
    else:
        before_h = job.progress_h
        if job.reaches_h == to_h:
            job.progress_h = job.target_h
        else:
            job.progress_h += passed_h * job.per_h
        book(num, job, before_h, passed_h)
    job.now_h = to_h


@inlined
def settle(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, flight_h: float = -inf
) -> None:
    """End whatever ends at this instant, but for rounding; no save commits before `flight_h`."""
    now_h = job.now_h + NEAR * num.useful_h
    if flight_h <= now_h:
        commit_all_due(num, job, slots, drawn, row, now_h)
    changed = False
    for n in range(job.n_recoveries):
        if job.recoveries[n].rule != NONE and job.recoveries[n].ends_at_h <= now_h:
            next_stage(num, job, slots, drawn, row, n)
            changed = True
    if changed:
        refresh(num, job, slots)
    if job.stalled_by != NONE and job.stall_ends_at_h <= now_h:
        end_stall(num, job, slots, drawn, row)


@part
def lose_for_good(num: Numbers, job: Any) -> None:
    """First-time work that a job has not done again by its horizon is lost."""
    if job.status == FINISHED and job.progress_h < job.frontier_h:
        job.hours[num.lost] += job.frontier_h - job.progress_h
        job.frontier_h = job.progress_h


@inlined
def works_alone(job: Any) -> bool:
    """Whether a job works, and no recovery goes on beside it."""
    return bool(job.n_recoveries == 0 and job.stalled_by == NONE and job.waits_for == NONE)


@announced
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
    fastest = fastest_of(num)
    plain = drawn.of_saves.shape[0] == drawn.of_failures.shape[0] == 0 and is_plain(num)
    for row in rows:
        start(num, job, slots)
        n_losses = job.n_losses
        for column in range(num.n_parts):
            job.hours[column] = 0.0
        chunk, failure = known_from(strikes, row, 0, strikes.first[0, row])
        while job.status == GOING:
            struck = False
            if plain and works_alone(job):
                chunk, failure, struck = leap(
                    num, job, slots, strikes, row, chunk, failure, losses, keeps
                )
            if not struck:
                fails_at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]
                plan(num, job, slots, drawn, row, fails_at_h, fastest)
                if job.status != GOING:
                    break
                if abs(job.fails_h - job.next_h) < near_h and failure != NONE:
                    job.status = LEFT
                    break
                struck = job.fails_h < job.next_h
                pass_to(num, job, job.fails_h if struck else job.next_h)
                if job.next_return_h <= job.now_h:
                    return_nodes(num, job, slots, drawn, row)
            if not struck:
                settle(num, job, slots, drawn, row, job.flight_h)
                if job.noticed_at_h <= job.now_h + near_h:
                    strike(
                        num, job, slots, drawn, row,
                        num.silent, strikes.slot[:0], strikes.repair_h[:0], losses, keeps,
                    )  # fmt: skip
                    refresh(num, job, slots)
            elif failure == NONE:
                job.status = WANTS_FAILURES
            else:
                of = slice(strikes.first_slot[failure], strikes.first_slot[failure + 1])
                strike(
                    num, job, slots, drawn, row,
                    strikes.scope[failure], strikes.slot[of], strikes.repair_h[of],
                    losses, keeps,
                )  # fmt: skip
                refresh(num, job, slots)
                chunk, failure = known_from(strikes, row, chunk, failure + 1)
        lose_for_good(num, job)
        for column in range(num.n_parts):
            hours[OF_JOB + column, row] = job.hours[column]
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
