"""Skip identical cycles of work and save, and plain failures, in closed form, for speed only.

`tests/recovery/test_random.py` compares it with an interpreter that takes each save by itself.
"""

from __future__ import annotations

from math import ceil, floor, inf
from typing import NamedTuple

from cprsim.compiling import inlined
from cprsim.job.intervals import ROUNDING
from cprsim.simulation.copies import is_of
from cprsim.simulation.job import HARDLY_AFTER, MAX_FAILURES_WITHOUT_PROGRESS, NO_WORK_H
from cprsim.simulation.recoveries import rate_of_each
from cprsim.simulation.saves import commit_all_due, completes, number_of, stand_on_grid
from cprsim.simulation.spec import (
    ALL,
    DETECT,
    FINISHED,
    LOAD,
    LOST,
    MOST_SOURCES,
    NONE,
    PROGRESS,
    RUNNING,
    SAME_INSTANT,
    SAVE,
    UPTIME,
    WALL,
    Spec,
)
from cprsim.simulation.state import Flight, Sim
from cprsim.simulation.step import Next, book_work, hours_of, others_at_h, record_stale_shard
from cprsim.simulation.strikes import ScopedStrikes, next_failure

# --------------------------------------------------------------------------- cycles


@inlined
def skip_cycles(sim: Sim, event: Next, fails_at_h: float) -> bool:
    """Take the whole cycles of work and save that come before anything else; whether there are any.

    Parameters
    ----------
    event, fails_at_h : those of `next_event`
    """
    spec, job = sim.spec, sim.job
    if event.per_h == 0.0 or spec.most_frequent_capture == NONE or job.error_h < inf:
        return False
    behind = job.progress_h < job.frontier_h
    ends_h, steady_h = others_at_h(sim), spec.useful_h
    stall_h = spec.captures[spec.most_frequent_capture].stall.hours
    ends_h -= max(0.0, 2.0 * SAME_INSTANT * spec.useful_h - stall_h)  # saves begin before it
    if behind:
        steady_h = min(steady_h, job.frontier_h)
    if spec.clock == PROGRESS and not behind:
        steady_h = min(steady_h, fails_at_h)
    else:
        ends_h = min(ends_h, event.fails_h)
    n = n_identical_cycles(sim, spec.most_frequent_capture, event.per_h, steady_h, ends_h)
    if n > 0:
        jump_cycles(sim, spec.most_frequent_capture, n, event.per_h)
        commit_all_due(sim, job.now_h)
    return n > 0


class Steady(NamedTuple):
    """Up to where nothing happens but the saves of one capture."""

    until_h: float  # progress at which another save begins that does not hold the job
    progress_h: float  # progress at which something else happens
    hours: float  # and wall hours from now


def n_identical_cycles(sim: Sim, capture: int, per_h: float, steady_h: float, ends_h: float) -> int:
    """How many cycles of a capture come before anything else happens; mostly none, soon seen.

    Parameters
    ----------
    per_h : progress in each wall hour
    steady_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    spec, job = sim.spec, sim.job
    saves, due_h = spec.captures[capture], job.saves[capture].due_h
    cycle_h = hours_of(saves.every_h, per_h) + saves.stall.hours
    if due_h + saves.every_h >= steady_h or job.now_h + cycle_h > ends_h:
        return 0
    until_h = inf
    for other in range(spec.n_captures):
        if other == capture:
            continue
        of, state = spec.captures[other], job.saves[other]
        if state.due_h < due_h + saves.every_h:
            return 0
        if of.stall.hours != 0.0 or (not of.skips and state.n_in_flight >= of.in_flight):
            steady_h = min(steady_h, state.due_h)  # it holds the job
        else:
            until_h = min(until_h, state.due_h)
        if of.is_followed:  # commits of others may wait until the cycles are over
            for n in range(state.n_in_flight):
                ends_h = min(ends_h, job.flights[other][n].at_h)
    within_h = hours_of(due_h - job.progress_h, per_h)
    if not are_in_rhythm(sim, capture, within_h, per_h):
        return 0
    steady = Steady(until_h, steady_h, ends_h - job.now_h)
    return cycles_to_skip(sim, capture, within_h, per_h, steady)


def are_in_rhythm(sim: Sim, capture: int, within_h: float, per_h: float) -> bool:
    """Whether all saves of a capture in flight are as in a steady rhythm."""
    spec, job = sim.spec, sim.job
    n_in_flight = job.saves[capture].n_in_flight
    for n in range(n_in_flight):
        flight = job.flights[capture][n]
        if not is_in_rhythm(sim, capture, flight, within_h, per_h, n_in_flight - n):
            return False
    if not flushes_go_along(spec, capture, per_h):
        return True
    commits_in_h = (
        within_h + spec.captures[capture].stall.hours + spec.captures[capture].background.hours
    )
    if n_in_flight:
        commits_in_h = job.flights[capture][0].at_h - job.now_h
    for flush in range(spec.n_captures):
        if spec.captures[flush].after == capture:
            for n in range(job.saves[flush].n_in_flight):
                if job.flights[flush][n].at_h - job.now_h > commits_in_h:
                    return False
    return True


def is_in_rhythm(
    sim: Sim, capture: int, flight: Flight, within_h: float, per_h: float, nth: int
) -> bool:
    """Whether the nth latest save in flight is as in a steady rhythm.

    One that was begun at another speed, or tried again late, may be in the way of the next, and
    be taken for another by flushes.
    """
    spec, job, saves = sim.spec, sim.job, sim.spec.captures[capture]
    cycle_h = saves.every_h / per_h + saves.stall.hours
    steady_h = within_h + saves.stall.hours + saves.background.hours - nth * cycle_h
    number = number_of(spec, capture, job.saves[capture].due_h) - nth
    return bool(
        abs(flight.at_h - job.now_h - steady_h) <= ROUNDING * cycle_h
        and abs(flight.content_h - number * saves.every_h) <= ROUNDING * saves.every_h
        and (flight.completes_h < inf) == completes(spec, capture, flight.content_h)
    )


def cycles_to_skip(sim: Sim, capture: int, within_h: float, per_h: float, steady: Steady) -> int:
    """Return the number of whole cycles of work and save to skip, for one capture.

    Parameters
    ----------
    within_h : wall hours until its next save is due

    Notes
    -----
    Cycles are identical if no other event occurs, their saves have constant costs, and none has to
    wait for an earlier one. The last cycles are not skipped: saves in flight at the end, and those
    that `keep_latest` can't commit, are simulated one by one. Flushes are included if each ends
    before the next begins.
    """
    spec, saves, due_h = sim.spec, sim.spec.captures[capture], sim.job.saves[capture].due_h
    stall_h, behind_h = saves.stall.hours, saves.background.hours
    if not stall_h + behind_h >= 0.0 or saves.p_fail > 0.0:
        return 0
    cycle_h = hours_of(saves.every_h, per_h) + stall_h
    n_behind = n_steady = 0
    if behind_h > 0.0:
        if stall_h + behind_h > (1.0 - ROUNDING) * saves.in_flight * cycle_h:
            return 0
        n_behind = ceil((stall_h + behind_h) / cycle_h)
        # in flight at this point of a cycle: those begun in so many cycles before
        n_steady = ceil((within_h + stall_h + behind_h) / cycle_h) - 1
    is_steady = sim.job.saves[capture].n_in_flight == n_steady
    step, left_over = saves.parts, 0 if is_steady else n_behind
    if spec.tiers[saves.tier].p_corrupt > 0.0:
        left_over += spec.tiers[saves.tier].generations * saves.parts
    along = flushes_go_along(spec, capture, per_h)
    n_flushed = 2**62  # cycles before the next flush begins that does not go along
    number = number_of(spec, capture, due_h)
    for flush in range(spec.n_captures):
        of = spec.captures[flush]
        if of.after != capture:
            continue
        if along:
            step *= of.nth
            left_over += of.nth * (spec.tiers[of.tier].generations + 1)
        else:
            first = number - n_behind - 1  # perhaps on its way
            n_flushed = min(n_flushed, -(-first // of.nth) * of.nth - number)
    n = floor(
        min(
            (steady.until_h - due_h) / saves.every_h,
            (steady.progress_h - due_h) / saves.every_h - left_over,
            steady.hours / cycle_h - left_over,  # the saves of whole cycles end within them
        )
    )
    n = min(n, n_flushed)
    return int(max(0, n if step == 1 else n - n % step))


def flushes_go_along(spec: Spec, capture: int, progress_per_h: float) -> bool:
    """Whether each flush of a capture's saves ends before the next of its kind begins."""
    if not spec.captures[capture].is_followed:
        return False
    cycle_h = spec.captures[capture].every_h / progress_per_h + spec.captures[capture].stall.hours
    for flush in range(spec.n_captures):
        of = spec.captures[flush]
        if of.after == capture:
            steady = 0.0 <= of.background.hours <= (1.0 - ROUNDING) * of.nth * cycle_h
            if not steady or of.p_fail > 0.0:
                return False
    return True


def jump_cycles(sim: Sim, capture: int, n: int, per_h: float) -> None:
    """Skip n cycles of work and save: advance the job to their end and book their hours."""
    spec, job = sim.spec, sim.job
    every_h = spec.captures[capture].every_h
    stall_h = spec.captures[capture].stall.hours
    worked_h = hours_of(n * every_h, per_h)
    passed_h = worked_h + n * stall_h
    before_h = job.progress_h
    due_h = job.saves[capture].due_h
    stand_on_grid(sim, capture, due_h + (n - 1) * every_h)
    job.progress_h += job.saves[capture].due_h - due_h
    job.now_h += passed_h
    book_work(sim, before_h, worked_h)
    job.hours[SAVE] += n * stall_h
    next_number = number_of(spec, capture, due_h) - job.saves[capture].n_in_flight
    keep_latest(sim, capture, next_number, next_number + n - 1)
    along = flushes_go_along(spec, capture, per_h)
    for number in range(spec.n_captures):
        if number != capture and not (along and spec.captures[number].after == capture):
            continue
        n_begun = n if number == capture else n // spec.captures[number].nth
        parts = spec.captures[number].parts
        job.saves[number].n_begun += n_begun
        job.n_saves += n_begun if parts == 1 else n_begun // parts
        for k in range(job.saves[number].n_in_flight):
            flight = job.flights[number][k]
            flight.content_h += n * every_h
            flight.due_h += n * every_h
            flight.completes_h += n * every_h
            flight.at_h += passed_h
            flight.number += n_begun


def keep_latest(sim: Sim, capture: int, first: int, last: int) -> None:
    """Commit the saves numbered `first` to `last` that the tier still retains at the end."""
    spec, job = sim.spec, sim.job
    tier, parts = spec.captures[capture].tier, spec.captures[capture].parts
    if spec.tiers[tier].p_corrupt > 0.0:
        return  # some of them are left over
    generations = spec.tiers[tier].generations
    begin = max(first, last - generations * parts + 1)
    n_new = last // parts - (begin - 1) // parts
    if n_new <= 0:
        return
    n_left = min(job.n_kept[tier], generations - n_new)
    for n in range(n_left - 1, -1, -1):
        job.kept[tier][n + n_new] = job.kept[tier][n]
    job.latest += n_new
    for n in range(n_new):
        number = (last // parts - n) * parts
        content = job.kept[tier][n]
        content.progress_h = min(number * spec.captures[capture].every_h, spec.useful_h)
        content.order, content.corrupt = job.latest - n, False
    job.n_kept[tier] = n_left + n_new


# --------------------------------------------------------------------------- plain failures


class Stretch(NamedTuple):
    """Work and saves up to a failure, or to the end of the job."""

    n: int  # saves that commit within it; NONE: something else may come before
    progress_h: float  # at its end
    to_h: float  # the instant of its end
    stalled_h: float  # of which in saves
    ends: bool  # the job


def closed_form_steps(
    sim: Sim, strikes: ScopedStrikes, chunk: int, failure: int
) -> tuple[int, int, bool]:
    """Take a plain job that works from failure to failure, as long as they are ordinary.

    A failure is ordinary if it strikes at no instant of something else, and the job works again
    before the next.

    Returns
    -------
    the chunk and the number of the next failure, NONE where no more is drawn; whether the job
    stands at its instant, and not where it works
    """
    spec, job = sim.spec, sim.job
    saves, number, content_h = spec.captures[0], 1, 0.0  # of the next save; of the last whole
    if spec.n_captures:
        number = saves.n_due + 1
        if job.saves[0].due_h < inf:
            number = number_of(spec, 0, job.saves[0].due_h)
        content_h = job.kept[saves.tier][0].progress_h
    first_number = number
    now_h, progress_h, frontier_h = job.now_h, job.progress_h, job.frontier_h
    lost_h = saved_h = 0.0
    struck = False
    while job.n_met < HARDLY_AFTER:
        at_h = strikes.until_h if failure == NONE else strikes.at_h[failure]
        work = stretch(sim, number, now_h, progress_h, at_h)
        if work.n == NONE:
            break
        before_h, progress_h, now_h = progress_h, work.progress_h, work.to_h
        if before_h < frontier_h:
            lost_h += min(frontier_h, progress_h) - before_h
        frontier_h = max(frontier_h, progress_h)
        saved_h += work.stalled_h
        n_new, last_whole = work.n, number + work.n - 1
        if saves.parts > 1:
            last_whole = last_whole // saves.parts * saves.parts
            n_new = last_whole // saves.parts - (number - 1) // saves.parts
        number += work.n
        if n_new:
            job.n_saves += n_new
            content_h = min(last_whole * saves.every_h, spec.useful_h)
        if work.ends:
            job.status = FINISHED
            break
        # the failure
        struck = True
        rule, n_loads = rule_of(sim, strikes, failure)
        if rule == NONE:
            break
        blocked_h = recovery_of(sim, rule, strikes.scope[failure], n_loads, False)
        next_chunk, following = next_failure(strikes, sim.row, chunk, failure + 1)
        next_h = strikes.until_h if following == NONE else strikes.at_h[following]
        near_h = 2.0 * SAME_INSTANT * spec.useful_h
        strikes_it = spec.clock == WALL and next_h < now_h + blocked_h + near_h
        if strikes_it or now_h + blocked_h > spec.end_h - near_h:
            break
        struck = False
        now_h += recovery_of(sim, rule, strikes.scope[failure], n_loads, True)
        job.blocked_h += blocked_h
        job.n_met += 1
        job.n_failures += 1
        job.n_failures_without_progress += 1
        if frontier_h > job.frontier_at_failure_h + NO_WORK_H:
            job.frontier_at_failure_h = frontier_h
            job.n_failures_without_progress = 1
        if spec.rules[rule].reverts == ALL:
            progress_h = content_h
            job.course += 1
        elif n_loads:
            job.progress_h = progress_h
            record_stale_shard(sim, strikes.slot[strikes.first_slot[failure]], content_h)
        chunk, failure = next_chunk, following
    job.now_h, job.progress_h, job.frontier_h = now_h, progress_h, frontier_h
    job.hours[LOST] += lost_h
    job.hours[SAVE] += saved_h
    if number > first_number and job.status == RUNNING:
        keep_latest(sim, 0, 1, number - 1)
        stand_on_grid(sim, 0, (number - 1) * saves.every_h)
    return chunk, failure, struck


@inlined
def stretch(sim: Sim, number: int, now_h: float, progress_h: float, at_h: float) -> Stretch:
    """Work and saves of a plain job up to a failure at `at_h` of the failures' clock.

    Parameters
    ----------
    number : of the save that is due next
    """
    spec, job, by_work = sim.spec, sim.job, sim.spec.clock == PROGRESS
    every_h, stall_h = spec.captures[0].every_h, spec.captures[0].stall.hours
    near_h = 2.0 * SAME_INSTANT * spec.useful_h
    left_h, held_h = at_h - now_h, stall_h  # hours of work and saves, or of progress
    if spec.clock == UPTIME:
        left_h += job.blocked_h
    elif by_work:
        left_h, held_h = at_h - progress_h, 0.0
    # saves that commit by then, and what comes after them
    base_h, n, n_left = progress_h, 0, spec.captures[0].n_due + 1 - number
    room_h = spec.useful_h - progress_h
    if n_left > 0:
        room_h = max(0.0, min(number * every_h, spec.useful_h) - progress_h)
        if left_h > room_h + held_h:
            n_more = (left_h - room_h - held_h) / (every_h + held_h)
            n = min(n_left, floor(min(n_more, float(n_left))) + 1)
            base_h = min((number + n - 1) * every_h, spec.useful_h)
            room_h = min((number + n) * every_h, spec.useful_h) - base_h
        if n == n_left:
            held_h, room_h = 0.0, spec.useful_h - base_h
    rest_h = left_h - (base_h - progress_h) - n * (0.0 if by_work else stall_h)
    edge_h = min(abs(rest_h - room_h), abs(rest_h - room_h - held_h))
    ends = n == n_left and rest_h > room_h
    work_h = min(rest_h, room_h)
    stalled_h = 0.0 if ends or by_work else rest_h - work_h
    to_h = now_h + (base_h - progress_h + work_h) + (n * stall_h + stalled_h)
    if min(rest_h, edge_h) < near_h or to_h > spec.end_h - near_h:
        n = NONE
    reaches_h = base_h + work_h
    if ends:
        reaches_h = spec.useful_h
    elif by_work:
        reaches_h = at_h
    return Stretch(n, reaches_h, to_h, n * stall_h + stalled_h, ends)


@inlined
def rule_of(sim: Sim, strikes: ScopedStrikes, failure: int) -> tuple[int, int]:
    """The rule of an ordinary failure, and how many shards it loads; NONE for any other."""
    spec, job, losses = sim.spec, sim.job, sim.losses
    if failure == NONE or job.n_failures_without_progress >= MAX_FAILURES_WITHOUT_PROGRESS:
        return NONE, 0
    first, scope = strikes.first_slot[failure], strikes.scope[failure]
    if spec.rules[0].reverts == ALL:
        source = spec.rules[0].sources[0]
        n_loads = 1 if source == NONE else spec.tiers[source].size
        return (0 if spec.rules[0].scopes >> scope & 1 else NONE), n_loads
    if strikes.first_slot[failure + 1] - first != 1:
        return NONE, 0
    slot, role = strikes.slot[first], 0
    while slot >= spec.role_ends[role]:
        role += 1
    for rule in range(spec.n_rules - 1):
        roles = spec.rules[rule].roles
        if spec.rules[rule].scopes >> scope & 1 and (roles == 0 or roles >> role & 1):
            n_loads = int(is_of(spec, spec.rules[rule].sources[0], slot))
            has_no_room = len(losses) > 0 and n_loads and job.n_losses == len(losses)
            if has_no_room or takes_live_copies(sim, rule, slot):
                return NONE, 0
            return rule, n_loads
    return NONE, 0


@inlined
def takes_live_copies(sim: Sim, rule: int, slot: int) -> bool:
    """Whether the loss of one slot removes copies that a rule needs."""
    spec = sim.spec
    for place in range(MOST_SOURCES):
        tier = spec.rules[rule].needs[place]
        if tier != NONE and is_of(spec, tier, slot):
            of = spec.tiers[tier]
            if of.copies or of.tolerates <= 0 or of.size <= 1:
                return True
    return False


@inlined
def recovery_of(sim: Sim, rule: int, scope: int, n_loads: int, books: bool) -> float:
    """Return the hours of an ordinary recovery, and book them if `books`; `n_loads` 0: no loads."""
    spec, job = sim.spec, sim.job
    total_h = 0.0
    first, source = spec.rules[rule].first_stage, spec.rules[rule].sources[0]
    for place in range(first, first + spec.rules[rule].n_stages):
        stage = spec.stages[place]
        hours = stage.cost.hours
        if stage.kind == DETECT and not stage.has_cost:
            hours = spec.scopes[scope].detect.hours
        elif stage.kind == LOAD and n_loads == 0:
            hours = 0.0
        elif stage.kind == LOAD and source != NONE:
            if spec.tiers[source].shares:
                hours = spec.shard_bytes / rate_of_each(spec, n_loads)
            else:
                hours += spec.tiers[source].load.hours
        total_h += hours
        if books:
            job.hours[stage.kind] += hours
    return total_h
