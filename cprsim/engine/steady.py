"""The common case in registers: each save stalls the job for the same time, no recovery varies.

A job is a few local numbers here and not a record in memory. What is out of the ordinary is
`INTRICATE` and left to `loops.run`; rows are the same to the last bit.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

from cprsim.compiling import compiled, inlined
from cprsim.engine.failing import hours_to_load, is_replica, is_shard
from cprsim.engine.standing import FINISHED, GOING, INTRICATE, WANTS_FAILURES
from cprsim.engine.stretches import ahead, stretch, whole_h_of, whole_of
from cprsim.engine.terms import Plan
from cprsim.failures.block import Strikes
from cprsim.records import Floats, Ints
from cprsim.setting import HOPELESS_AFTER

MOST_LOSSES = 64  # of a replication: each is compared with those before it


class Way(NamedTuple):
    """How far a job has come; wall time stands beside it."""

    uptime_h: float
    worked_h: float
    frontier_h: float
    save_h: float
    progress_h: float
    whole_h: float  # content of the last whole save
    n_saved: int
    n_saves: int


class Recoveries(NamedTuple):
    """Hours in recoveries so far, and when the stages of the one in hand end."""

    detect_h: float
    reschedule_h: float
    load_h: float
    detected_at_h: float
    staffed_at_h: float
    resumes_at_h: float


@compiled
def hurry(
    plan: Plan, strikes: Strikes, rows: Ints,
    hours: Floats, counts: Ints, progress_h: Floats, whole_h: Floats,
) -> int:  # fmt: skip
    """Run some replications.

    Parameters
    ----------
    rows : (n_rows,) numbers of the replications
    hours, counts : (n_columns, n_replications) what comes out, columns as in HOURS and COUNTS
    progress_h, whole_h : (n_failures,) what comes out for each failure under partial recovery:
        where it strikes, and the content of the last whole save; for `lose`

    Returns
    -------
    how many did not finish
    """
    first, at_h = strikes.first, strikes.at_h
    first_slot, slot_of = strikes.first_slot, strikes.slot
    border_h = strikes.until_h
    if plan.on_progress and border_h >= plan.useful_h:
        border_h = inf
    n_unfinished = 0
    for row in rows:
        wall_h = 0.0
        way = Way(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0, 0)
        recoveries = Recoveries(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        chunk, failure, n_failures = 0, first[0, row], 0
        status = GOING
        while status == GOING:
            while chunk < len(first) and failure == first[chunk, row + 1]:
                chunk += 1
                failure = first[chunk, row] if chunk < len(first) else -1
            until_h = border_h if failure < 0 else at_h[failure]
            recoveries, wall_h, status = recover(plan, recoveries, wall_h, until_h)
            if status == GOING and wall_h >= recoveries.resumes_at_h:
                way, wall_h, status = live(plan, way, wall_h, until_h)
            if failure < 0:
                status = WANTS_FAILURES if status == GOING else status
            if status != GOING:
                break
            n_shards = plan.n_shards if plan.rolls_back else 0
            if plan.reloads:
                progress_h[failure], whole_h[failure] = way.progress_h, way.whole_h
                n_replicas = 0
                for i in range(first_slot[failure], first_slot[failure + 1]):
                    n_shards += is_shard(plan, slot_of[i])
                    n_replicas += is_replica(plan, slot_of[i])
                if n_replicas > 0 and n_replicas == plan.n_replicas:
                    status = INTRICATE
            else:
                way = go_back(plan, way)
            recoveries = schedule(plan, recoveries, wall_h, n_shards)
            n_failures += 1
            failure += 1
            if n_failures > HOPELESS_AFTER:
                status = INTRICATE
        hours[0, row], hours[1, row] = wall_h, way.frontier_h
        hours[2, row] = max(0.0, way.worked_h - way.frontier_h)
        hours[3, row], hours[4, row] = way.save_h, recoveries.detect_h
        hours[5, row], hours[6, row] = recoveries.reschedule_h, recoveries.load_h
        hours[7, row] = hours[8, row] = 0.0
        counts[0, row], counts[1, row], counts[2, row] = status, n_failures, way.n_saves
        n_unfinished += status != FINISHED
    return n_unfinished


@inlined
def recover(
    plan: Plan, so_far: Recoveries, wall_h: float, at_h: float
) -> tuple[Recoveries, float, int]:
    """Book the recovery in hand; where all go back, the next failure may cut it short."""
    until_h, status = so_far.resumes_at_h, GOING
    if plan.on_wall and at_h < until_h:
        until_h = at_h
        status = INTRICATE if plan.reloads else GOING
    if until_h > plan.deadline_h:
        status = INTRICATE
    detected_h = min(until_h, so_far.detected_at_h)
    staffed_h = min(until_h, so_far.staffed_at_h)
    booked = Recoveries(
        so_far.detect_h + (detected_h - wall_h),
        so_far.reschedule_h + (staffed_h - detected_h),
        so_far.load_h + (until_h - staffed_h),
        so_far.detected_at_h,
        so_far.staffed_at_h,
        so_far.resumes_at_h,
    )
    return booked, until_h, status


@inlined
def live(plan: Plan, way: Way, wall_h: float, at_h: float) -> tuple[Way, float, int]:
    """Work and save until the failures' clock shows `at_h`."""
    left_h, until_h, limited = ahead(plan, wall_h, way.uptime_h, at_h)
    by = stretch(plan, way.progress_h, way.n_saved, left_h, until_h)
    n_saved = way.n_saved + int(by.n)
    n_whole, whole_before = whole_of(plan, n_saved), whole_of(plan, way.n_saved)
    progress_h = until_h if by.reached else n_saved * plan.interval_h + by.done_h
    beyond = Way(
        way.uptime_h + by.passed_h,
        way.worked_h + by.worked_h,
        max(way.frontier_h, progress_h),
        way.save_h + by.save_h,
        progress_h,
        whole_h_of(plan, n_whole) if n_whole > whole_before else way.whole_h,
        n_saved,
        way.n_saves + (n_whole - whole_before),
    )
    status = FINISHED if by.finished else GOING
    if by.doubtful or (limited and not by.finished and progress_h < until_h):
        status = INTRICATE
    return beyond, wall_h + by.passed_h, status


@inlined
def go_back(plan: Plan, way: Way) -> Way:
    """Everybody goes back to the last save, or to the start."""
    n_saved = way.n_saved if plan.rolls_back else 0
    progress_h = n_saved * plan.interval_h
    return Way(
        way.uptime_h, way.worked_h, way.frontier_h, way.save_h,
        progress_h, way.whole_h, n_saved, way.n_saves,
    )  # fmt: skip


@inlined
def schedule(plan: Plan, so_far: Recoveries, wall_h: float, n_loading: int) -> Recoveries:
    """When the stages of a recovery end that begins now."""
    detected_at_h = wall_h + plan.detect_h
    staffed_at_h = detected_at_h + plan.reschedule_h
    resumes_at_h = staffed_at_h + hours_to_load(plan, plan.load_h, n_loading)
    return Recoveries(
        so_far.detect_h, so_far.reschedule_h, so_far.load_h,
        detected_at_h, staffed_at_h, resumes_at_h,
    )  # fmt: skip


@compiled
def lose(
    plan: Plan, strikes: Strikes, rows: Ints, progress_h: Floats, whole_h: Floats,
    hours: Floats, counts: Ints, losses: Any, keeps: bool,
) -> tuple[int, int]:  # fmt: skip
    """The shards that went back in what `hurry` finished, under partial recovery.

    Parameters
    ----------
    progress_h, whole_h, hours, counts : from `hurry`; the sums over losses go into `hours`
    losses : (n_room,) of LOSS, where they go: a row per struck node, or as many as one replication
        may have where they are not kept
    keeps : whether they are

    Returns
    -------
    how many losses there are, and how many replications have too many to go on with here
    """
    first, first_slot, slot_of = strikes.first, strikes.first_slot, strikes.slot
    n_losses = n_intricate = 0
    for row in rows:
        if counts[0, row] != FINISHED:
            continue
        begin, stale_h, net_h = n_losses, 0.0, 0.0
        chunk, failure = 0, first[0, row]
        for _ in range(counts[1, row]):
            while failure == first[chunk, row + 1]:
                chunk += 1
                failure = first[chunk, row]
            at_h, since_save_h = progress_h[failure], progress_h[failure] - whole_h[failure]
            for i in range(first_slot[failure], first_slot[failure + 1]):
                if not is_shard(plan, slot_of[i]):
                    continue
                if n_losses - begin == MOST_LOSSES:
                    counts[0, row] = INTRICATE
                    break
                fresh_h = whole_h[failure]
                for j in range(begin, n_losses):
                    if losses[j].slot == slot_of[i]:
                        fresh_h = max(fresh_h, losses[j].progress_h)
                stale_h += since_save_h
                net_h += at_h - fresh_h
                loss = losses[n_losses]
                loss.replication, loss.slot, loss.progress_h = row, slot_of[i], at_h
                loss.since_save_h, loss.since_reload_h = since_save_h, at_h - fresh_h
                n_losses += 1
            failure += 1
        hours[7, row], hours[8, row] = stale_h, net_h
        n_intricate += counts[0, row] != FINISHED
        if not keeps or counts[0, row] != FINISHED:
            n_losses = begin
    return n_losses, n_intricate
