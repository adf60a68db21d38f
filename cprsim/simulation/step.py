"""The behaviour of a job: the model at a glance (`docs/model.md`).

A driver takes a job from instant to instant; `replications` is compiled, `cluster` is SimPy::

    event = next_event(sim, fails_at_h)  # the job's next event; its activity is constant until then
    advance(sim, to_h, event)            # book the hours up to an instant
    complete(sim, event, no_slots)         # end the saves, repairs and stages due at this instant
    fail(sim, failure)                   # apply a failure

`copies`, `saves` and `recoveries` have the details. Each function takes numpy records where it is
compiled, and objects in Python.
"""

from __future__ import annotations

from math import floor, inf
from typing import NamedTuple

from cprsim.compiling import inlined
from cprsim.job.intervals import ROUNDING
from cprsim.job.records import EventKind, Floats, Ints
from cprsim.simulation import copies, recoveries, saves
from cprsim.simulation.job import (
    HARDLY_AFTER,
    MAX_FAILURES_WITHOUT_PROGRESS,
    MAX_SLOWDOWN,
    NO_WORK_H,
    NOTICE,
)
from cprsim.simulation.log import note
from cprsim.simulation.spec import (
    ALL,
    COLUMNS,
    DEGRADED,
    FINISHED,
    LOST,
    NONE,
    PLANNED,
    RUNNING,
    SAME_INSTANT,
    SAVE,
    SHARDS,
    STOPPED,
    STOPPING,
    STRUCK,
    TAX,
    UPTIME,
    WAIT,
    WALL,
    Spec,
)
from cprsim.simulation.state import Sim


class Next(NamedTuple):
    """Next events of a job whose activity is constant until then; instants on its clock [h]."""

    fails_h: float  # the failure
    at_h: float  # anything else
    commits_h: float  # the first save in flight
    per_h: float  # progress per hour
    reaches_h: float  # instant at which it reaches ...
    target_h: float  # ... this progress


class FailedSlots(NamedTuple):
    """A failure; without slots a warning, or, of all slots, a stop or noticed silent errors."""

    scope: int  # number among the job's, or NOTICE: it is announced
    slots: Ints
    repair_h: Floats  # of each slot's node


NOTHING_NEXT = Next(inf, inf, inf, 0.0, inf, inf)

# --------------------------------------------------------------------------- from start to end


def start(sim: Sim) -> None:
    """Reset the job to its start."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    for n in range(job.n_recent):
        slot = slots[n].recent
        slots[slot].recovery = NONE
        slots[slot].vacant = slots[slot].requested = False
    copies.begin(sim)
    job.now_h = job.progress_h = job.frontier_h = job.blocked_h = 0.0
    job.stale_h = job.stale_since_reload_h = 0.0
    job.course += 1
    job.speed = job.replay_speed = 1.0
    job.stalled_by = job.waits_for = job.blocked_by = NONE
    job.n_failures = job.n_met = job.n_saves = job.n_recoveries = (
        job.n_failures_without_progress
    ) = 0
    job.n_repairs = job.n_queued = job.n_moving = 0
    job.next_return_h = job.stage_ends_at_h = job.link_ends_at_h = inf
    job.n_stops, job.stops_at_h = 0, spec.stop_every_h
    job.link_bytes = job.link_read_at_h = 0.0
    job.n_free = spec.n_spares
    job.frontier_at_failure_h = -1.0
    job.status = RUNNING
    for capture in range(spec.n_captures):
        saves.stand_on_grid(sim, capture, 0.0)
        job.saves[capture].n_begun = job.saves[capture].n_in_flight = 0
    for column in range(len(COLUMNS)):
        job.hours[column] = 0.0
    note(sim, EventKind.STARTED, NONE)


@inlined
def next_event(sim: Sim, fails_at_h: float) -> Next:
    """Begin the activities that are due, and return the job's next events; none after its end.

    Parameters
    ----------
    fails_at_h : the next failure, on the failures' clock
    """
    spec, job = sim.spec, sim.job
    while True:
        blocked = job.blocked_by != NONE
        works = not blocked and begin_work(sim)
        if job.status != RUNNING:
            return NOTHING_NEXT
        if job.now_h >= spec.end_h:
            job.status = FINISHED if spec.end_is_planned and job.progress_h > 0.0 else STOPPED
            return NOTHING_NEXT
        behind = job.progress_h < job.frontier_h
        per_h = rate(spec, job.speed, job.replay_speed, behind) if works else 0.0
        if not works or per_h > 0.0 or not recoveries.takes_in(sim):
            break

    # when the failure comes
    if spec.clock == WALL:
        fails_h = fails_at_h
    elif spec.clock == UPTIME:
        fails_h = inf if blocked else fails_at_h + job.blocked_h
    elif per_h > 0.0 and not behind:
        fails_h = job.now_h + (fails_at_h - job.frontier_h) / per_h
    else:
        fails_h = inf

    # what else comes next
    at_h, reaches_h, target_h = others_at_h(sim), inf, spec.useful_h
    if per_h > 0.0:
        target_h = min(target_h, saves.next_due(sim))
        if behind:
            target_h = min(target_h, job.frontier_h)
        reaches_h = job.now_h + hours_of(target_h - job.progress_h, per_h)
        at_h = min(at_h, reaches_h)
    elif job.stalled_by != NONE:
        at_h = min(at_h, job.stall_ends_at_h)
    commits_h = saves.next_commit_h(sim)
    return Next(fails_h, min(at_h, commits_h), commits_h, per_h, reaches_h, target_h)


@inlined
def begin_work(sim: Sim) -> bool:
    """Begin the saves that are due; return whether the job works from here on; end it if done."""
    spec, job = sim.spec, sim.job
    if job.stalled_by != NONE or job.waits_for != NONE:
        return False
    # an event that is still due now may block the job before it saves
    if others_at_h(sim) <= job.now_h + SAME_INSTANT * spec.useful_h:
        return False
    if saves.is_due(spec, saves.next_due(sim), job.progress_h):
        saves.begin_saves(sim)
        if job.stalled_by != NONE or job.waits_for != NONE:
            return False
    if job.progress_h < spec.useful_h:
        return True
    saves.wait_for_last(sim)
    if job.waits_for == NONE:
        saves.commit_all_due(sim, job.now_h + SAME_INSTANT * spec.useful_h)
        job.status = FINISHED
    return False


@inlined
def others_at_h(sim: Sim) -> float:
    """Instant of the next event of recoveries, stops or the horizon."""
    spec, job = sim.spec, sim.job
    at_h = min(spec.end_h, job.stage_ends_at_h, job.link_ends_at_h)
    at_h = min(at_h, job.noticed_at_h, job.stops_at_h)
    return min(at_h, job.next_return_h) if job.n_queued else at_h


def rate(spec: Spec, speed: float, replay_speed: float, behind: bool) -> float:
    """Hours of progress per wall hour; `behind`: work is done again."""
    per_h = speed * replay_speed if behind else speed
    return float(per_h / (1.0 + spec.tax) if spec.tax else per_h)


def hours_of(work_h: float, per_h: float) -> float:
    """Return the wall hours of `work_h` hours of progress."""
    return float(work_h if per_h == 1.0 else work_h / per_h)  # divisions are what takes time


@inlined
def advance(sim: Sim, to_h: float, event: Next) -> None:
    """Advance to an instant, at most the next event's, and book the hours up to then."""
    job = sim.job
    passed_h = to_h - job.now_h
    job.now_h = to_h
    if job.blocked_by != NONE:
        job.hours[job.blocked_by] += passed_h
        job.blocked_h += passed_h
    elif job.stalled_by != NONE or job.waits_for != NONE:
        job.hours[SAVE] += passed_h
    elif job.speed == 0.0:
        job.hours[WAIT] += passed_h
    else:
        before_h = job.progress_h
        reached = event.reaches_h == to_h
        job.progress_h = event.target_h if reached else before_h + passed_h * event.per_h
        book_work(sim, before_h, passed_h)


def book_work(sim: Sim, before_h: float, passed_h: float) -> None:
    """Book hours of work that took progress from `before_h` to where it is."""
    spec, job = sim.spec, sim.job
    gained_h = job.progress_h - before_h
    if before_h < job.frontier_h:
        gained_h /= job.replay_speed
        job.hours[LOST] += gained_h
        if job.progress_h == job.frontier_h:
            note(sim, EventKind.CAUGHT_UP, NONE)
    else:
        job.frontier_h = job.progress_h
    if spec.tax:
        job.hours[TAX] += spec.tax * gained_h
    if job.speed < 1.0:
        job.hours[DEGRADED] += passed_h * (1.0 - job.speed)


@inlined
def complete(sim: Sim, event: Next, no_slots: FailedSlots) -> None:
    """End what ends at this instant, but for rounding: saves, then repairs, then stages.

    Then come planned stops and notices of silent errors, which strike all slots.
    """
    spec, job = sim.spec, sim.job
    until_h = job.now_h + SAME_INSTANT * spec.useful_h
    if event.commits_h <= until_h:
        saves.commit_all_due(sim, until_h)
    if job.stalled_by != NONE and job.stall_ends_at_h <= until_h:
        saves.end_stall(sim)
    if job.next_return_h <= until_h:
        recoveries.return_nodes(sim, until_h)
    changed = False
    while job.link_ends_at_h <= until_h:
        job.link_bytes, job.link_read_at_h = job.link_ends_bytes, job.now_h
        recoveries.end_loads(sim, NONE)
        recoveries.plan_link(sim)
        changed = True
    if job.stage_ends_at_h <= until_h:
        recoveries.end_stages(sim, until_h)
        changed = True
    if changed:
        recoveries.refresh(sim)
    if job.stops_at_h <= until_h:
        fail(sim, FailedSlots(spec.stop, no_slots.slots, no_slots.repair_h))
    if job.noticed_at_h <= until_h:
        fail(sim, FailedSlots(spec.silent, no_slots.slots, no_slots.repair_h))


def end(sim: Sim) -> None:
    """End the job, and book as lost the work that was not redone."""
    job = sim.job
    if job.status == FINISHED and job.progress_h < job.frontier_h:
        job.hours[LOST] += job.frontier_h - job.progress_h
        job.frontier_h = job.progress_h


# --------------------------------------------------------------------------- planned stops


def stop(sim: Sim, no_slots: FailedSlots) -> None:
    """Begin a planned stop, after a save if it has one and no recovery blocks the job."""
    spec, job = sim.spec, sim.job
    saved = job.waits_for == STOPPING
    number = floor(job.now_h / spec.stop_every_h * (1.0 + ROUNDING)) + 1
    if job.blocked_by == PLANNED or job.progress_h >= spec.useful_h:
        job.stops_at_h = number * spec.stop_every_h
        return
    if spec.stop_saves != NONE and job.blocked_by == NONE and not saved:
        job.waits_for = STOPPING
        job.stops_at_h = job.now_h + whole_save_h(sim, spec.stop_saves)
        note(sim, EventKind.SAVE_STARTED, NONE)
        if job.stops_at_h > job.now_h:
            return
        saved = True
    if saved:
        copies.keep(sim, spec.captures[spec.stop_saves].tier, job.progress_h, False)
        job.n_saves += 1
        note(sim, EventKind.SAVE_COMMITTED, NONE)
    job.stops_at_h = number * spec.stop_every_h
    job.n_stops += 1
    strike(sim, no_slots)
    recover(sim, no_slots, job.n_stops - 1)
    for capture in range(spec.n_captures):
        if saved:  # the save replaces all that are due
            saves.stand_on_grid(sim, capture, job.progress_h)


def whole_save_h(sim: Sim, capture: int) -> float:
    """Hours until a whole save is valid, with the save of the tier that it is copied from."""
    spec, job, total_h = sim.spec, sim.job, 0.0
    while capture != NONE:
        of, number = spec.captures[capture], job.saves[capture].n_begun
        job.saves[capture].n_begun += 1
        hours = saves.save_h(sim, of.stall, number) + saves.save_h(sim, of.background, number)
        total_h += of.parts * hours
        capture = of.after
    return total_h


# --------------------------------------------------------------------------- failures


def fail(sim: Sim, failure: FailedSlots) -> None:
    """Apply a failure, or its warning, to the job."""
    spec, job = sim.spec, sim.job
    if spec.stop != NONE and failure.scope == spec.stop:
        stop(sim, failure)
        recoveries.refresh(sim)
        return
    if job.blocked_by == PLANNED and failure.scope != NOTICE:
        if failure.scope == spec.silent and len(failure.slots) == 0:
            job.noticed_at_h = job.stage_ends_at_h
        note_failed(sim, failure)
        return
    if job.next_return_h <= job.now_h + SAME_INSTANT * spec.useful_h:
        recoveries.return_nodes(sim, job.now_h + SAME_INSTANT * spec.useful_h)
    if failure.scope == NOTICE:
        for capture in range(spec.n_captures):
            if spec.captures[capture].on_notice:
                saves.make_due(sim, capture, job.progress_h, job.progress_h)
    elif failure.scope == spec.silent and len(failure.slots):
        latency_h = saves.failure_h(sim, spec.scopes[failure.scope].latency, job.n_errors)
        copies.corrupt_state(sim, job.progress_h, job.now_h + latency_h)
    else:
        meet(sim, failure)
    recoveries.refresh(sim)


def meet(sim: Sim, failure: FailedSlots) -> None:
    """Apply a failure, or give up a job that hardly advances."""
    spec, job = sim.spec, sim.job
    if failure.scope == spec.silent:
        copies.drop_beyond(sim, job.error_h)
    job.n_met += 1
    if job.n_met > HARDLY_AFTER and job.now_h > MAX_SLOWDOWN * job.frontier_h:
        job.status = STOPPED
        return
    strike(sim, failure)
    if job.n_struck == 0:
        note_failed(sim, failure)
        return
    job.n_failures_without_progress += 1
    if job.frontier_h > job.frontier_at_failure_h + NO_WORK_H:
        job.frontier_at_failure_h = job.frontier_h
        job.n_failures_without_progress = 1
    if job.n_failures_without_progress > MAX_FAILURES_WITHOUT_PROGRESS:
        job.status = STOPPED
        return
    job.n_failures += 1
    recover(sim, failure, job.n_failures - 1)


def strike(sim: Sim, failure: FailedSlots) -> None:
    """List the struck slots; their memory is wiped, and lost nodes go to repair."""
    spec, job, slots = sim.spec, sim.job, sim.slots
    of, all_slots = spec.scopes[failure.scope], failure.scope in (spec.silent, spec.stop)
    job.n_struck = 0
    for n in range(spec.n_slots if all_slots else len(failure.slots)):
        slot = n if all_slots else failure.slots[n]
        if slots[slot].requested:  # it waits for a node
            continue
        slots[job.n_struck].struck = slot
        job.n_struck += 1
        copies.wipe(sim, slot, of.wipes)
        if spec.n_spares != NONE and of.needs_node and not slots[slot].vacant:
            slots[slot].vacant = True
            returns_at_h = job.now_h + failure.repair_h[n]
            slots[job.n_repairs].returns_at_h = returns_at_h
            job.n_repairs += 1
            job.next_return_h = min(job.next_return_h, returns_at_h)


def note_failed(sim: Sim, failure: FailedSlots) -> None:
    """Log each struck slot as failed, the others as missed."""
    stopped = sim.job.blocked_by == PLANNED
    all_slots = failure.scope == sim.spec.silent and not stopped
    for n in range(sim.spec.n_slots if all_slots else len(failure.slots)):
        slot = n if all_slots else failure.slots[n]
        missed = stopped or sim.slots[slot].requested
        note(sim, EventKind.MISSED if missed else EventKind.FAILED, slot)


def recover(sim: Sim, failure: FailedSlots, nth: int) -> None:
    """Start a recovery: the first rule that applies sets the rollback and the slots' stages.

    Parameters
    ----------
    nth : number of the failure, or of the stop, which selects its draws
    """
    spec, job, slots = sim.spec, sim.job, sim.slots
    chosen, source, content_h = copies.choose(sim, failure.scope)
    applied = chosen if chosen != NONE else spec.n_rules - 1
    rule, reverts = spec.rules[applied], copies.reverts_of(spec, chosen)
    load_h = loads_h(sim, source, nth)
    back_to_h, n_lost = job.progress_h, 0
    if reverts == ALL:
        back_to_h = copies.goes_back_to(spec, chosen, job.progress_h, content_h)
    elif reverts == STRUCK:
        for n in range(job.n_struck):
            n_lost += copies.is_of(spec, source, slots[n].struck)
    elif reverts == SHARDS:
        n_lost = spec.tiers[source].size
    if reverts == ALL or not rule.is_transparent:
        saves.abandon_saves(sim, back_to_h, failure.scope == spec.silent)
    note_failed(sim, failure)
    replay_h = 0.0
    if reverts == ALL:
        job.progress_h, job.replay_speed = back_to_h, rule.replay_speed
        copies.drop_beyond(sim, back_to_h)
        job.course += 1
        note(sim, EventKind.ROLLED_BACK, NONE)
    elif rule.replays and n_lost:
        replay_h = (job.progress_h - content_h) / rule.replay_speed

    place = recoveries.free_place(sim)
    job.serial += 1
    if spec.shares:
        recoveries.read_link(sim)
    if n_lost:
        take_shards(sim, source, reverts == SHARDS, content_h, not rule.replays)
    recoveries.take_over(sim, place, reverts == ALL)
    job.n_begun += 1
    recovery = sim.recoveries[place]
    recovery.rule, recovery.stage, recovery.number = applied, -1, nth
    recovery.serial, recovery.begun, recovery.kind = job.serial, job.n_begun, NONE
    recovery.of_all = reverts == ALL
    recovery.hands_over = n_lost > 0
    recovery.n_loads = spec.tiers[source].size if reverts == ALL and source != NONE else n_lost
    recovery.source = source
    recovery.shares = source != NONE and spec.tiers[source].shares
    recovery.speed = rule.speed
    recovery.load_h, recovery.replay_h = load_h, replay_h
    recovery.detect_h = saves.failure_h(sim, spec.scopes[failure.scope].detect, nth)
    takes_time = load_h > 0.0 or recovery.shares or not rule.load_h <= 0.0
    recovery.loads = rule.loads and (reverts != STRUCK or n_lost > 0) and takes_time
    for n in range(job.n_recoveries):
        if n != place and recoveries.is_held(spec, sim.recoveries[n]):
            recoveries.end_recovery(sim, n)
    if spec.shares:
        recoveries.end_loads(sim, place)
    recoveries.next_stage(sim, place)
    copies.forget_wipes(sim, saves.oldest_flush(sim))


def loads_h(sim: Sim, source: int, nth: int) -> float:
    """Hours to load from a source, with the corrupt contents that are tried before."""
    spec, job, total_h = sim.spec, sim.job, 0.0
    for n in range(spec.n_tiers):
        n_loads = job.tries[n] + (n == source)
        if n_loads:
            total_h += n_loads * saves.failure_h(sim, spec.tiers[n].load, nth)
    return total_h


def take_shards(sim: Sim, source: int, whole: bool, content_h: float, loses: bool) -> None:
    """Revert the shards of a tier's struck slots, or of all its slots.

    Parameters
    ----------
    loses : whether the work after `content_h` is not redone
    """
    spec, job, slots = sim.spec, sim.job, sim.slots
    for n in range(spec.tiers[source].size if whole else job.n_struck):
        slot = spec.tiers[source].first + n if whole else slots[n].struck
        if copies.is_of(spec, source, slot):
            recoveries.take_load(sim, slot)
            note(sim, EventKind.REVERTED, slot)
            if loses:
                record_stale_shard(sim, slot, content_h)


def record_stale_shard(sim: Sim, slot: int, content_h: float) -> None:
    """Count the lost work of a shard that goes back to a content without the job."""
    job, slots, losses = sim.job, sim.slots, sim.losses
    fresh_h = content_h
    if slots[slot].course == job.course:
        fresh_h = max(fresh_h, slots[slot].reloaded_at_h)
    slots[slot].course, slots[slot].reloaded_at_h = job.course, job.progress_h
    job.stale_h += job.progress_h - content_h
    job.stale_since_reload_h += job.progress_h - fresh_h
    if len(losses):
        losses[job.n_losses, 0], losses[job.n_losses, 1] = sim.row, slot
        losses[job.n_losses, 2] = job.progress_h
        losses[job.n_losses, 3] = job.progress_h - content_h
        losses[job.n_losses, 4] = job.progress_h - fresh_h
        job.n_losses += 1
