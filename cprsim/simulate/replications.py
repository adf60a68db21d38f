"""Many replications of a job: from instant to instant, or from failure to failure.

`leap` is there for its speed alone: where nothing varies and saves only stall the job, it takes
work, saves and ordinary failures at once, with the same hours as `loop`.
"""

from __future__ import annotations

from math import floor, inf
from typing import Any

from cprsim.compiling import inlined, part, slow_to_compile
from cprsim.records import Floats, Ints
from cprsim.simulate.job import HARDLY_AFTER, HOPELESS_AFTER, NO_WORK_H
from cprsim.simulate.loop import lose, pass_to, plan, settle, start, strike
from cprsim.simulate.loop_recoveries import refresh, return_nodes
from cprsim.simulate.loop_saves import stand_on_grid
from cprsim.simulate.loop_state import Drawn
from cprsim.simulate.numbers import (
    ALL,
    DETECT,
    FINISHED,
    GOING,
    LOAD,
    MOST_SOURCES,
    NEAR,
    NONE,
    OF_JOB,
    PROGRESS,
    STOPPED,
    UPTIME,
    WALL,
    WANTS_FAILURES,
    Numbers,
)  # fmt: skip
from cprsim.simulate.strikes import ScopedStrikes
from cprsim.simulate.transitions import is_of, keep_latest, number_of, rate_of_each


@inlined
def known_from(strikes: ScopedStrikes, row: int, chunk: int, failure: int) -> tuple[int, int]:
    """The chunk and number of a replication's next failure; NONE where no more is drawn.

    Parameters
    ----------
    chunk, failure : where the next would be, if the chunk has one more
    """
    while failure == strikes.first[chunk, row + 1]:
        chunk += 1
        if chunk == len(strikes.first):
            return chunk, NONE
        failure = strikes.first[chunk, row]
    return chunk, failure


@inlined
def rule_of(num: Numbers, strikes: ScopedStrikes, failure: int) -> int:
    """The rule that an ordinary failure takes; NONE for one that is none."""
    first, scope = strikes.first_slot[failure], strikes.scope[failure]
    slot, role = strikes.slot[first], 0
    if num.rules[0].reverts == ALL:
        return 0 if num.rules[0].scopes >> scope & 1 else NONE
    if strikes.first_slot[failure + 1] - first != 1:
        return NONE
    while slot >= num.role_ends[role]:
        role += 1
    for rule in range(num.n_rules - 1):
        roles = num.rules[rule].roles
        if num.rules[rule].scopes >> scope & 1 and (roles == 0 or roles >> role & 1):
            for place in range(MOST_SOURCES):
                tier = num.needs[rule][place]
                if tier != NONE and is_of(num, tier, slot):
                    of = num.tiers[tier]
                    if of.copies or of.tolerates <= 0 or of.size <= 1:
                        return NONE  # what is kept live is gone with this slot
            return rule
    return NONE


@inlined
def recovery_of(
    num: Numbers, job: Any, rule: int, source: int, scope: int, n_loads: int, books: bool
) -> float:
    """Hours of an ordinary recovery, booked if asked for; `n_loads` 0: nobody loads."""
    total_h = 0.0
    first = num.rules[rule].first_stage
    for place in range(first, first + num.rules[rule].n_stages):
        stage = num.stages[place]
        hours = stage.cost_h
        if stage.kind == DETECT and not stage.has_cost:
            hours = num.scopes[scope].detect_h
        elif stage.kind == LOAD and n_loads == 0:
            hours = 0.0
        elif stage.kind == LOAD and source != NONE:
            if num.tiers[source].shares:
                hours = num.shard_bytes / rate_of_each(num, n_loads)
            else:
                hours += num.tiers[source].load_h
        total_h += hours
        if books:
            job.hours[stage.part] += hours
    return total_h


@part
def leap(
    num: Numbers, job: Any, slots: Any, strikes: ScopedStrikes, row: int, chunk: int, failure: int,
    losses: Any, keeps: bool,
) -> tuple[int, int, bool]:  # fmt: skip
    """Take a plain job that works from failure to failure, as long as they are ordinary.

    A failure is ordinary if it strikes at no instant of something else, and the job works again
    before the next.

    Returns
    -------
    the chunk and the number of the next failure, NONE where no more is drawn; whether the job
    stands at its instant, and not where it works
    """
    near_h = 2.0 * NEAR * num.useful_h
    every_h, stall_h, parts, n_due, tier = inf, 0.0, 1, 0, NONE
    number, content_h = 1, 0.0  # of the save that is due next; of the last whole one
    if num.n_captures:
        saves = num.captures[0]
        every_h, stall_h, parts = saves.every_h, saves.stall_h, saves.parts
        n_due, tier = saves.n_due, saves.tier
        number = n_due + 1
        if job.saves[0].due_h < inf:
            number = number_of(num, 0, job.saves[0].due_h)
        content_h = job.content_h[tier][0]
    first_number = number
    now_h, progress_h, frontier_h = job.now_h, job.progress_h, job.frontier_h
    lost_h = saved_h = 0.0
    struck = False
    while job.n_met < HARDLY_AFTER:
        # until when, in hours of work and saves, or in progress
        at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]
        left_h, held_h = at_h - now_h, stall_h
        if num.clock == UPTIME:
            left_h += job.blocked_h
        elif num.clock == PROGRESS:
            left_h, held_h = at_h - progress_h, 0.0
        # saves that commit by then, and what comes after them
        base_h, n, n_left = progress_h, 0, n_due + 1 - number
        room_h = num.useful_h - progress_h
        if n_left > 0:
            room_h = max(0.0, min(number * every_h, num.useful_h) - progress_h)
            if left_h > room_h + held_h:
                n_more = (left_h - room_h - held_h) / (every_h + held_h)
                n = min(n_left, floor(min(n_more, float(n_left))) + 1)
                base_h = min((number + n - 1) * every_h, num.useful_h)
                room_h = min((number + n) * every_h, num.useful_h) - base_h
            if n == n_left:
                held_h, room_h = 0.0, num.useful_h - base_h
        rest_h = left_h - (base_h - progress_h) - n * (0.0 if num.clock == PROGRESS else stall_h)
        edge_h = min(abs(rest_h - room_h), abs(rest_h - room_h - held_h))
        if min(rest_h, edge_h) < near_h:
            break
        ends = n == n_left and rest_h > room_h
        work_h = min(rest_h, room_h)
        stalled_h = 0.0 if ends or num.clock == PROGRESS else rest_h - work_h
        to_h = now_h + (base_h - progress_h + work_h) + (n * stall_h + stalled_h)
        if to_h > num.end_h - near_h:
            break
        before_h, progress_h, now_h = progress_h, base_h + work_h, to_h
        if ends:
            progress_h = num.useful_h
        elif num.clock == PROGRESS:
            progress_h = at_h
        if before_h < frontier_h:
            lost_h += min(frontier_h, progress_h) - before_h
        frontier_h = max(frontier_h, progress_h)
        saved_h += n * stall_h + stalled_h
        n_new, last_whole = n, number + n - 1
        if parts > 1:
            last_whole = last_whole // parts * parts
            n_new = last_whole // parts - (number - 1) // parts
        number += n
        if n_new:
            job.n_saves += n_new
            content_h = min(last_whole * every_h, num.useful_h)
        if ends:
            job.status = FINISHED
            break
        # the failure
        struck = True
        rule = NONE if failure == NONE else rule_of(num, strikes, failure)
        if rule == NONE or job.n_fruitless >= HOPELESS_AFTER:
            break
        all_go_back = num.rules[rule].reverts == ALL
        scope, source = strikes.scope[failure], num.sources[rule][0]
        slot, n_loads = strikes.slot[strikes.first_slot[failure]], 1
        if not all_go_back:
            n_loads = int(is_of(num, source, slot))
            if keeps and n_loads and job.n_losses == len(losses):
                break
        elif source != NONE:
            n_loads = num.tiers[source].size
        blocked_h = recovery_of(num, job, rule, source, scope, n_loads, False)
        next_chunk, next_failure = known_from(strikes, row, chunk, failure + 1)
        next_h = strikes.until_h if next_failure == NONE else strikes.at_h[next_failure]
        strikes_it = num.clock == WALL and next_h < now_h + blocked_h + near_h
        if strikes_it or now_h + blocked_h > num.end_h - near_h:
            break
        struck = False
        chunk, failure = next_chunk, next_failure
        now_h += recovery_of(num, job, rule, source, scope, n_loads, True)
        job.blocked_h += blocked_h
        job.n_met += 1
        job.n_failures += 1
        job.n_fruitless += 1
        if frontier_h > job.frontier_at_failure_h + NO_WORK_H:
            job.frontier_at_failure_h = frontier_h
            job.n_fruitless = 1
        if all_go_back:
            progress_h = content_h
            job.course += 1
        elif n_loads:
            job.progress_h = progress_h
            lose(job, slots, slot, content_h, row, losses, keeps)
    job.now_h, job.progress_h, job.frontier_h = now_h, progress_h, frontier_h
    if lost_h > 0.0:
        job.hours[num.lost] += lost_h
    if saved_h > 0.0:
        job.hours[num.save] += saved_h
    if number > first_number and job.status == GOING:
        keep_latest(num, job, 0, 1, number - 1)
        stand_on_grid(num, job, 0, (number - 1) * every_h)
    return chunk, failure, struck


@slow_to_compile
def run(
    numbers: Any, drawn: Drawn, strikes: ScopedStrikes, rows: Ints,
    scratch: Any, slots: Any, recoveries: Any, hours: Floats, counts: Ints,
    losses: Any, keeps: bool,
) -> int:  # fmt: skip
    """Run some replications; how many losses of them there are.

    Parameters
    ----------
    rows : (n_rows,) numbers of the replications
    scratch : (1,) of JOB
    recoveries : (n_places,) of RECOVERY
    hours : (4 + n_parts, n_replications) wall hours, useful hours, staleness summed over shards
        (since the content, and since the later of that and the shard's own last reload); the parts
    counts : (3, n_replications) status, failures, saves
    losses : (n_room, N_OF_LOSS), which are kept if `keeps`
    """
    num, job = numbers[0], scratch[0]
    near_h = NEAR * num.useful_h
    job.n_losses = 0
    for row in rows:
        start(num, job, slots)
        n_losses = job.n_losses
        chunk, failure = known_from(strikes, row, 0, strikes.first[0, row])
        while job.status == GOING:
            struck = False
            if num.is_plain and job.n_recoveries == 0 and job.stalled_by == NONE:
                chunk, failure, struck = leap(
                    num, job, slots, strikes, row, chunk, failure, losses, keeps
                )
            if not struck:
                fails_at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]
                fails_h, next_h, flight_h, per_h, reaches_h, target_h = plan(
                    num, job, slots, recoveries, drawn, row, fails_at_h
                )
                if job.status != GOING:
                    break
                struck = fails_h < next_h - near_h  # of one instant a failure comes last
                to_h = max(job.now_h, fails_h) if struck else next_h
                if not struck or failure != NONE:
                    pass_to(num, job, to_h, per_h, reaches_h, target_h)
            if not struck:
                settle(num, job, slots, recoveries, drawn, row, flight_h)
                if job.noticed_at_h <= job.now_h + near_h:
                    strike(
                        num, job, slots, recoveries, drawn, row,
                        num.silent, strikes.slot[:0], strikes.repair_h[:0], losses, keeps,
                    )  # fmt: skip
                    refresh(num, job, slots, recoveries)
            elif failure == NONE:
                job.status = WANTS_FAILURES
            else:
                if job.next_return_h <= job.now_h + near_h:
                    return_nodes(num, job, slots, recoveries, drawn, row, job.now_h + near_h)
                of = slice(strikes.first_slot[failure], strikes.first_slot[failure + 1])
                strike(
                    num, job, slots, recoveries, drawn, row,
                    strikes.scope[failure], strikes.slot[of], strikes.repair_h[of],
                    losses, keeps,
                )  # fmt: skip
                refresh(num, job, slots, recoveries)
                chunk, failure = known_from(strikes, row, chunk, failure + 1)
        if job.status == FINISHED and job.progress_h < job.frontier_h:  # lost for good
            job.hours[num.lost] += job.frontier_h - job.progress_h
            job.frontier_h = job.progress_h
        hours[0, row], hours[1, row] = job.now_h, job.frontier_h
        hours[2, row], hours[3, row] = job.stale_h, job.stale_net_h
        for column in range(num.n_parts):
            hours[OF_JOB + column, row] = job.hours[column]
        counts[0, row], counts[1, row], counts[2, row] = job.status, job.n_failures, job.n_saves
        if job.status > STOPPED:
            job.n_losses = n_losses
    return int(job.n_losses)
