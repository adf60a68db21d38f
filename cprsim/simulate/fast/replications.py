"""Many replications of a job under a recovery system, compiled.

A replication goes from one instant at which something happens to the next. What is not known yet
(failures, costs) is asked for, and the replication is run again from its start when it is there.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import compiled_slowly, uncounted_inlined, uncounted_part
from cprsim.records import Floats, Ints
from cprsim.simulate.fast.recoveries import next_stage, refresh, return_nodes, strike
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
from cprsim.simulate.transitions import begin, rate


@uncounted_part
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


@uncounted_part
def fastest_of(num: Numbers) -> int:
    """The capture whose cycles are worth to be taken at once; NONE where there is none."""
    fastest: Any = np.int64(NONE)
    for capture in range(num.n_captures):
        if num.captures[capture].n_due > 1 and (
            fastest == NONE or num.captures[capture].every_h < num.captures[fastest].every_h
        ):
            fastest = capture
    return int(fastest)


class Ahead(NamedTuple):
    """What a job does from here on.

    Parameters
    ----------
    next_h : instant at which something comes next, besides ...
    fails_h : ... the failure
    per_h : progress in each hour up to then
    reaches_h, target_h : instant at which it stands at a progress
    flight_h : instant at which the next save in flight commits
    """

    next_h: float
    fails_h: float
    per_h: float
    reaches_h: float
    target_h: float
    flight_h: float


OVER = Ahead(inf, inf, 0.0, inf, inf, inf)


@uncounted_inlined
def plan(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, fails_at_h: float, fastest: int
) -> Ahead:
    """What the job does from here on, and until when; of no meaning once it is over.

    Parameters
    ----------
    fails_at_h : on the failures' clock
    fastest : as `fastest_of`; NONE: no cycles are taken at once
    """
    near_h = NEAR * num.useful_h
    while job.status == GOING:
        # where the job stands
        blocked = job.blocked_by != NONE
        due_h = inf
        if not blocked and job.stalled_by == NONE and job.waits_for == NONE:
            due_h = next_due(num, job)
            if due_h <= job.progress_h:
                begin_saves(num, job, slots, drawn, row)
                if job.status != GOING:
                    return OVER
                due_h = next_due(num, job)
            done = job.progress_h >= num.useful_h and job.stalled_by == NONE
            if done and job.waits_for == NONE:  # else a save that is due waits for a commit
                wait_for_last(num, job)
                if job.waits_for == NONE:
                    commit_all_due(num, job, slots, drawn, row, job.now_h + near_h)
                    job.status = FINISHED
                    return OVER
        if job.now_h >= num.end_h:
            job.status = FINISHED if num.end_is_planned else STOPPED
            return OVER
        behind = job.progress_h < job.frontier_h
        per_h = 0.0
        if not blocked and job.stalled_by == NONE and job.waits_for == NONE:
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
                if may_skip(num, job, fastest, within_h, per_h, target_h, ends_h) and are_in_rhythm(
                    num, job, fastest, within_h, per_h
                ):
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
        return Ahead(min(next_h, flight_h), fails_h, per_h, reaches_h, target_h, flight_h)
    return OVER


@uncounted_inlined
def pass_to(num: Numbers, job: Any, to_h: float, ahead: Ahead) -> None:
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
        if ahead.reaches_h == to_h:
            job.progress_h = ahead.target_h
        else:
            job.progress_h += passed_h * ahead.per_h
        book(num, job, before_h, passed_h)
    job.now_h = to_h


@uncounted_inlined
def settle(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, flight_h: float = -inf
) -> None:
    """End whatever ends at this instant; no save commits before `flight_h`."""
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


@compiled_slowly(10.0, _nrt=False)
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

            ahead = plan(num, job, slots, drawn, row, fails_at_h, fastest)
            if job.status != GOING:
                break
            if abs(ahead.fails_h - ahead.next_h) < near_h and failure != NONE:
                job.status = LEFT
                break
            struck = ahead.fails_h < ahead.next_h
            pass_to(num, job, min(ahead.fails_h, ahead.next_h), ahead)
            if num.n_spares != NONE:
                return_nodes(num, job, slots, drawn, row)
            if not struck:
                settle(num, job, slots, drawn, row, ahead.flight_h)
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
                failure += 1
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
