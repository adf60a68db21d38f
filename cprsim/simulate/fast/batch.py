"""The common case, many abreast: each save stalls for the same time, no recovery varies.

Replications stand side by side in columns and take their nth step together: a step has no branch
that depends on them, so that the machine takes several at once. What is out of the ordinary is
`INTRICATE` and left to `replications.run`.
"""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple

import numpy as np

from cprsim.compiling import compiled, compiled_slowly, inlined, part
from cprsim.records import Floats, Ints
from cprsim.recovery.giving_up import HOPELESS_AFTER
from cprsim.simulate.fast.params import Params
from cprsim.simulate.numbers import FINISHED, GOING, INTRICATE, LEFT, NONE, WANTS_FAILURES
from cprsim.simulate.strikes import ScopedStrikes

VECTOR = 8  # replications that the machine may take at once
BATCH = 25 * VECTOR  # whose columns stay in a near cache

# Where the columns begin. Of the job, as in JOB;
(
    STATUS, WALL_H, UPTIME_H, WORKED_H, FRONTIER_H, SAVE_H, DETECT_H, RESCHEDULE_H, LOAD_H,
    PROGRESS_H, WHOLE_H, N_SAVED, N_SAVES, N_FAILURES,
    DETECTED_AT_H, STAFFED_AT_H, RESUMES_AT_H,
    N_DOWN,  # replicas struck since it went on last
    AT_H, LOADING_H, N_REPLICAS, SHARD,  # the next failure: when, what follows, who is struck
    STALE_H, NET_H, LAST_H, LAST_SHARD, N_SINCE, UNSURE,  # shards that went back: see `tally`
    END,
) = range(0, 29 * BATCH, BATCH)  # fmt: skip


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
def line_up(strikes: ScopedStrikes, rows: Ints, lined_up: Ints, n_strikes: Ints) -> None:
    """Put replications beside those with as many failures, `BATCH` by `BATCH`; most first.

    Parameters
    ----------
    rows : (n_rows,) their numbers
    lined_up, n_strikes : (n_rows,) their numbers and those of their failures; filled
    """
    n_of = np.zeros(len(rows), np.int64)
    most = 0
    for chunk in range(len(strikes.first)):
        for i in range(len(rows)):
            n_of[i] += strikes.first[chunk, rows[i] + 1] - strikes.first[chunk, rows[i]]
            most = max(most, n_of[i])
    place = np.empty(most + 2, np.int64)
    for begin in range(0, len(rows), BATCH):
        end = min(begin + BATCH, len(rows))
        for i in range(len(place)):
            place[i] = 0
        for i in range(begin, end):
            place[most - n_of[i] + 1] += 1
        for i in range(most):
            place[i + 1] += place[i]
        for i in range(begin, end):
            bucket = most - n_of[i]
            to = begin + place[bucket]
            lined_up[to], n_strikes[to] = rows[i], n_of[i]
            place[bucket] += 1


@compiled_slowly(5.0)
def run_batch(
    params: Params, strikes: ScopedStrikes, rows: Ints, n_strikes: Ints,
    hours: Floats, counts: Ints, unsure: Ints, progress_h: Floats, whole_h: Floats,
    columns: Any, chunk: Any, failure: Any,
) -> tuple[int, int]:  # fmt: skip
    """Run some replications.

    Parameters
    ----------
    rows, n_strikes : (n_rows,) numbers of the replications, and of their failures; from `line_up`
    hours, counts : (n_columns, n_replications) what comes out, as of `replications.run`
    unsure : (n_rows,) where what the shards lose is to be summed, and each failure strikes one
        node; filled with the replications that need `lose` for it. Else (0,)
    progress_h, whole_h : (n_failures,) under partial recovery where it is not, what comes out for
        each failure: where it strikes, and the content of the last whole save; for `lose`
    columns, chunk, failure : (END,), (BATCH,) and (BATCH,) room to work in

    Returns
    -------
    how many did not finish, and how many are unsure
    """
    tallies = params.reloads and len(unsure) > 0
    border_h = strikes.until_h
    if params.on_progress and border_h >= params.useful_h:
        border_h = inf
    n_unfinished = n_unsure = 0
    for begin in range(0, len(rows), BATCH):
        some = rows[begin : begin + BATCH]
        n = len(some)
        stand(params, strikes, some, chunk, failure, columns)
        n_going, n_steps = n, 0
        while n_going > 0 and n_steps <= HOPELESS_AFTER:
            n_struck = n_going
            while n_struck > 0 and n_strikes[begin + n_struck - 1] == n_steps:
                n_struck -= 1
            look_ahead(params, strikes, some, n_struck, chunk, failure, columns)
            for i in range(n_struck, n_going):
                columns[AT_H + i] = border_h
            take_step(params, columns, n_going)
            for i in range(n_struck, n_going):
                came_here = columns[N_FAILURES + i] >= n_steps
                if columns[STATUS + i] != FINISHED and came_here and border_h < inf:
                    columns[STATUS + i] = WANTS_FAILURES
            if tallies:
                tally(columns, n_struck, float(n_steps))
            elif params.reloads:
                for i in range(n_struck):
                    progress_h[failure[i]] = columns[PROGRESS_H + i]
                    whole_h[failure[i]] = columns[WHOLE_H + i]
            n_going = n_struck
            n_steps += 1
        n_unfinished += write(params, some, columns, hours, counts)
        for i in range(n):
            if columns[UNSURE + i] > 0.0:
                unsure[n_unsure] = some[i]
                n_unsure += 1
    return n_unfinished, n_unsure


@part
def stand(
    params: Params, strikes: ScopedStrikes, rows: Ints, chunk: Ints, failure: Ints, columns: Floats
) -> None:
    """Stand at the start of the job."""
    for i in range(END):
        columns[i] = 0.0
    everybody_h = hours_to_load(params, params.load_h, params.n_shards if params.rolls_back else 0)
    for i in range(len(rows)):
        columns[LOADING_H + i] = everybody_h
        chunk[i], failure[i] = 0, strikes.first[0, rows[i]] - 1


@part
def look_ahead(
    params: Params,
    strikes: ScopedStrikes,
    rows: Ints,
    n: int,
    chunk: Ints,
    failure: Ints,
    columns: Floats,
) -> None:
    """Look up the next failure of the first replications."""
    first, at_h = strikes.first, strikes.at_h
    first_slot, slot_of = strikes.first_slot, strikes.slot
    if len(first) > 1:
        for i in range(n):
            while failure[i] + 1 == first[chunk[i], rows[i] + 1]:
                chunk[i] += 1
                failure[i] = first[chunk[i], rows[i]] - 1
    for i in range(n):
        failure[i] += 1
        columns[AT_H + i] = at_h[failure[i]]
    if not params.reloads:
        return
    if len(slot_of) == len(at_h):  # each strikes one node
        one_h = hours_to_load(params, params.load_h, 1)
        for i in range(n):
            slot = slot_of[failure[i]]
            strikes_shard = is_shard(params, slot)
            columns[LOADING_H + i] = one_h if strikes_shard else 0.0
            columns[SHARD + i] = float(slot) if strikes_shard else -1.0
            columns[N_REPLICAS + i] = 1.0 if is_replica(params, slot) else 0.0
        return
    for i in range(n):
        n_shards = n_replicas = 0
        for j in range(first_slot[failure[i]], first_slot[failure[i] + 1]):
            n_shards += is_shard(params, slot_of[j])
            n_replicas += is_replica(params, slot_of[j])
        columns[LOADING_H + i] = hours_to_load(params, params.load_h, n_shards)
        columns[N_REPLICAS + i] = n_replicas


@part
def take_step(params: Params, columns: Floats, n: int) -> None:
    """Take the first ones of the columns through their next failure, or to the end of their job."""
    n += -n % VECTOR  # those beyond are over, or want more failures, and stay as they are
    on_progress = params.on_progress
    if on_progress:  # so that either loop is without the other's case
        for i in range(n):
            step(params, columns, i, on_progress)
    else:
        for i in range(n):
            step(params, columns, i, on_progress)


@inlined
def step(params: Params, columns: Any, i: int, on_progress: bool) -> None:
    """Recover, live until the next failure, and suffer it.

    Who is over recovers until the instant at which it stands, so that nothing changes.
    """
    at_h, wall_h, resumes_at_h = columns[AT_H + i], columns[WALL_H + i], columns[RESUMES_AT_H + i]
    going = columns[STATUS + i] == GOING
    # the recovery in hand, which the failure may strike
    until_h = min(at_h, resumes_at_h) if params.on_wall else resumes_at_h
    struck = until_h < resumes_at_h
    detected_h = min(until_h, columns[DETECTED_AT_H + i])
    staffed_h = min(until_h, columns[STAFFED_AT_H + i])
    columns[DETECT_H + i] += detected_h - wall_h
    columns[RESCHEDULE_H + i] += staffed_h - detected_h
    columns[LOAD_H + i] += until_h - staffed_h
    wall_h = until_h
    # work and saves
    lives = going and not struck
    uptime_h, progress_h = columns[UPTIME_H + i], columns[PROGRESS_H + i]
    n_saved, whole_h = columns[N_SAVED + i], columns[WHOLE_H + i]
    left_h, reach_h = max(0.0, at_h - (wall_h if params.on_wall else uptime_h)), inf
    if on_progress:
        left_h, reach_h = inf, at_h
    by = stretch(params, progress_h, n_saved, left_h, reach_h, on_progress)
    n_whole = whole_of(params, n_saved + by.n)
    n_more = n_whole - whole_of(params, n_saved)
    to_h = reach_h if by.reached else (n_saved + by.n) * params.interval_h + by.done_h
    finished = lives and by.finished
    wall_h += by.passed_h if lives else 0.0
    columns[UPTIME_H + i] = uptime_h + (by.passed_h if lives else 0.0)
    columns[WORKED_H + i] += by.worked_h if lives else 0.0
    columns[SAVE_H + i] += by.save_h if lives else 0.0
    columns[N_SAVES + i] += n_more if lives else 0.0
    n_saved += by.n if lives else 0.0
    progress_h = to_h if lives else progress_h
    columns[FRONTIER_H + i] = max(columns[FRONTIER_H + i], progress_h)
    columns[WHOLE_H + i] = whole_h_of(params, n_whole) if lives and n_more > 0 else whole_h
    # the failure
    fails = going and not finished
    back = fails and not params.reloads
    n_saved = 0.0 if back and not params.rolls_back else n_saved
    columns[PROGRESS_H + i] = n_saved * params.interval_h if back else progress_h
    columns[N_SAVED + i] = n_saved
    detected_at_h = wall_h + params.detect_h
    staffed_at_h = detected_at_h + params.reschedule_h
    loaded_at_h = staffed_at_h + columns[LOADING_H + i]
    # of recoveries side by side the last one ends last, unless it has nothing to load
    columns[DETECTED_AT_H + i] = detected_at_h if fails else wall_h
    columns[STAFFED_AT_H + i] = staffed_at_h if fails else wall_h
    columns[RESUMES_AT_H + i] = max(resumes_at_h, loaded_at_h) if fails else wall_h
    columns[WALL_H + i] = wall_h
    n_down = (columns[N_DOWN + i] if struck else 0.0) + columns[N_REPLICAS + i]
    columns[N_DOWN + i] = n_down
    all_down = fails & (n_down > 0.0) & (n_down >= params.n_replicas)
    shares_storage = struck & params.reloads & (params.shard_bytes > 0.0)
    intricate = going & (all_down | shares_storage | (wall_h > params.deadline_h))
    doubtful = lives & by.doubtful
    status = float(FINISHED) if finished else columns[STATUS + i]
    status = float(INTRICATE) if intricate else status
    columns[STATUS + i] = float(LEFT) if doubtful else status
    columns[N_FAILURES + i] += 1.0 if fails & (not intricate) & (not doubtful) else 0.0


@inlined
def stretch(
    params: Params,
    progress_h: float,
    n_saved: float,
    left_h: float,
    until_h: float,
    on_progress: bool,
) -> Stretch:
    """What comes next: for some hours or, `on_progress`, until some progress if that is less.

    `on_progress` is that of `params`; a caller that writes a constant spares the other case.
    """
    saved_h = n_saved * params.interval_h
    beyond_h = progress_h - saved_h
    n_left = float(params.n_saves - n_saved)
    n = min(whole((beyond_h + left_h) / params.period_h), n_left)
    if on_progress:
        n = min(n, whole((until_h - saved_h) / params.interval_h))
    room_h, stall_h = params.interval_h, params.stall_h  # until the save after these, and it
    if n == n_left:
        room_h, stall_h = params.tail_h, 0.0
    rest_h = beyond_h + left_h - n * params.period_h
    edge_h = room_h + stall_h
    reached = False
    if on_progress:
        edge_h = room_h
        reach_h = until_h - saved_h - n * params.interval_h
        reached = reach_h <= rest_h and (n < n_left or reach_h < room_h)
        rest_h = min(reach_h, room_h) if reached else rest_h
    finished = n == n_left and rest_h >= room_h and not reached
    near_h = min(rest_h, abs(rest_h - edge_h))
    done_h = min(rest_h, room_h)
    stalled_h = 0.0 if finished else rest_h - done_h
    return Stretch(
        n=n,
        done_h=done_h,
        worked_h=n * params.interval_h + done_h - beyond_h,
        save_h=n * params.stall_h + stalled_h,
        passed_h=n * params.period_h + done_h + stalled_h - beyond_h,
        reached=reached,
        finished=finished,
        doubtful=near_h < params.near_h and left_h > params.near_h,
    )


@inlined
def whole(number: float) -> float:
    """The next whole number below, of an infinite one too."""
    return float(np.floor(number))


@inlined
def whole_of(params: Params, n_saved: float) -> float:
    """How many whole saves there are in the first ones of the grid."""
    return n_saved if params.n_per_whole == 1 else whole(n_saved / params.n_per_whole)


@inlined
def whole_h_of(params: Params, n_whole: float) -> float:
    """Progress that the nth whole save holds."""
    return n_whole * params.n_per_whole * params.interval_h


@part
def tally(columns: Floats, n: int, n_steps: float) -> None:
    """Sum what the shards lost that failures have struck in this step, the one after so many.

    A shard loses the work since the last whole save; net, since its own last loss, if that is later
    (`lose` keeps that of every shard). It is if the last loss of all is later and was this shard's,
    and is not if there is no later one; between the two it is not known here.
    """
    for i in range(n):
        at_h, whole_h, last_h = columns[PROGRESS_H + i], columns[WHOLE_H + i], columns[LAST_H + i]
        shard, last_shard = columns[SHARD + i], columns[LAST_SHARD + i]
        n_before, n_since = columns[N_FAILURES + i] - 1.0, columns[N_SINCE + i]
        loses = (n_before == n_steps) & (shard >= 0.0)
        later, same = last_h > whole_h, shard == last_shard
        unsure = loses & later & (not same) & (n_since > 1.0)
        columns[UNSURE + i] += 1.0 if unsure else 0.0
        columns[STALE_H + i] += at_h - whole_h if loses else 0.0
        columns[NET_H + i] += at_h - (last_h if later & same else whole_h) if loses else 0.0
        n_now = (n_since if later else 0.0) + 1.0
        columns[N_SINCE + i] = n_now if loses else n_since
        columns[LAST_H + i] = at_h if loses else last_h
        columns[LAST_SHARD + i] = shard if loses else last_shard


@part
def write(params: Params, rows: Ints, columns: Floats, hours: Floats, counts: Ints) -> int:
    """What has become of some replications; how many did not finish."""
    n_unfinished = 0
    for i in range(len(rows)):
        row, status = rows[i], int(columns[STATUS + i])
        if status == GOING:  # after very many failures, or where it can't end
            status = INTRICATE
        hours[0, row], hours[1, row] = columns[WALL_H + i], columns[FRONTIER_H + i]
        hours[2, row], hours[3, row] = columns[STALE_H + i], columns[NET_H + i]
        hours[params.lost, row] = max(0.0, columns[WORKED_H + i] - columns[FRONTIER_H + i])
        hours[params.detect, row] = columns[DETECT_H + i]
        hours[params.reschedule, row] = columns[RESCHEDULE_H + i]
        if params.save != NONE:
            hours[params.save, row] = columns[SAVE_H + i]
        if params.load != NONE:
            hours[params.load, row] = columns[LOAD_H + i]
        counts[0, row] = status
        counts[1, row] = int(columns[N_FAILURES + i])
        counts[2, row] = int(columns[N_SAVES + i])
        n_unfinished += status != FINISHED
    return n_unfinished


@compiled
def lose(
    params: Params, strikes: ScopedStrikes, rows: Ints, progress_h: Floats, whole_h: Floats,
    hours: Floats, counts: Ints, losses: Any, keeps: bool, slots: Any, scratch: Any,
) -> int:  # fmt: skip
    """The shards that went back in what `run_batch` finished, under partial recovery.

    Parameters
    ----------
    progress_h, whole_h, hours, counts : from `run_batch`; the sums over losses go into `hours`
    losses : (n_room,) of LOSS, where they go: a row per struck node
    keeps : whether they are kept
    slots, scratch : as in `replications.run`

    Returns
    -------
    how many losses there are
    """
    first, first_slot, slot_of = strikes.first, strikes.first_slot, strikes.slot
    course = scratch[0].course
    n_losses = 0
    for row in rows:
        if counts[0, row] != FINISHED:
            continue
        course += 1
        stale_h = net_h = 0.0
        chunk, failure = 0, first[0, row]
        for _ in range(counts[1, row]):
            while failure == first[chunk, row + 1]:
                chunk += 1
                failure = first[chunk, row]
            at_h, since_save_h = progress_h[failure], progress_h[failure] - whole_h[failure]
            for i in range(first_slot[failure], first_slot[failure + 1]):
                if not is_shard(params, slot_of[i]):
                    continue
                of_slot, fresh_h = slots[slot_of[i]], whole_h[failure]
                if of_slot.course == course:
                    fresh_h = max(fresh_h, of_slot.reloaded_at_h)
                of_slot.course, of_slot.reloaded_at_h = course, at_h
                stale_h += since_save_h
                net_h += at_h - fresh_h
                if keeps:
                    loss = losses[n_losses]
                    loss.replication, loss.slot, loss.progress_h = row, slot_of[i], at_h
                    loss.since_save_h, loss.since_reload_h = since_save_h, at_h - fresh_h
                    n_losses += 1
            failure += 1
        hours[2, row], hours[3, row] = stale_h, net_h
    scratch[0].course = course
    return n_losses


@inlined
def hours_to_load(params: Params, drawn_h: float, n_loading: int) -> float:
    """Hours in which so many servers load, with the storage to themselves."""
    if n_loading == 0:
        return 0.0
    if params.shard_bytes > 0.0:
        rate = min(params.server_rate_bytes_per_h, params.rate_bytes_per_h / n_loading)
        return params.shard_bytes / rate
    return drawn_h


@inlined
def is_shard(params: Params, slot: int) -> bool:
    """Whether a slot holds a shard."""
    return params.first_shard <= slot < params.first_shard + params.n_shards


@inlined
def is_replica(params: Params, slot: int) -> bool:
    """Whether a slot holds a replica."""
    return params.first_replica <= slot < params.first_replica + params.n_replicas
