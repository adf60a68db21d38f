"""Saves: due, under way, committed or abandoned.

Section 2 of `docs/recovery.md`.
"""

from __future__ import annotations

from math import floor, inf, isnan

from cprsim.compiling import inlined
from cprsim.job.intervals import ROUNDING
from cprsim.job.policy import MOST_IN_FLIGHT
from cprsim.job.records import EventKind
from cprsim.simulation.copies import keep, survives
from cprsim.simulation.draws import uniform
from cprsim.simulation.log import note
from cprsim.simulation.spec import NONE, CostSpec, Spec
from cprsim.simulation.state import Sim

SAVES_AHEAD = 2 * (MOST_IN_FLIGHT + 1)  # of a capture that one step begins, at most

# --------------------------------------------------------------------------- the grid of saves


def due_after(spec: Spec, capture: int, progress_h: float) -> float:
    """Progress at which the next save beyond `progress_h` is due; infinite if none is."""
    saves = spec.captures[capture]
    if saves.n_due == 0:
        return inf
    number = floor(progress_h / saves.every_h * (1.0 + ROUNDING)) + 1
    if number > saves.n_due:
        return inf
    due_h = number * saves.every_h
    return float(due_h if due_h < (1.0 - ROUNDING) * spec.useful_h else spec.useful_h)


def is_due(spec: Spec, due_h: float, progress_h: float) -> bool:
    """Whether a save is due: the same progress may differ by rounding on the grids of two tiers."""
    is_near = due_h < spec.useful_h and due_h <= progress_h * (1.0 + ROUNDING)
    return bool(due_h <= progress_h or is_near)


def number_of(spec: Spec, capture: int, content_h: float) -> int:
    """The number of the save with this content, counted from the start of the job."""
    number: int = round(content_h / spec.captures[capture].every_h)
    return number


def completes(spec: Spec, capture: int, due_h: float) -> bool:
    """Whether the save that the grid has at this progress completes a content."""
    parts = spec.captures[capture].parts
    return bool(parts == 1 or (due_h < inf and number_of(spec, capture, due_h) % parts == 0))


def is_flushed(spec: Spec, flush: int, content_h: float) -> bool:
    """Whether a flush copies this content of the capture that it follows."""
    number = number_of(spec, spec.captures[flush].after, content_h)
    return bool(number % spec.captures[flush].nth == 0)


def stand_on_grid(sim: Sim, capture: int, progress_h: float) -> None:
    """The next save of a capture is that which the grid has beyond some progress."""
    spec, job = sim.spec, sim.job
    saves = job.saves[capture]
    saves.due_h = due_after(spec, capture, progress_h)
    saves.completes_h = saves.due_h if completes(spec, capture, saves.due_h) else inf


def make_due(sim: Sim, capture: int, due_h: float, completes_h: float) -> None:
    """Make a save due when the job continues; several due saves of a capture become one."""
    job = sim.job
    saves = job.saves[capture]
    saves.due_h = min(saves.due_h, due_h)
    saves.completes_h = min(saves.completes_h, completes_h)


def next_due(sim: Sim) -> float:
    """Progress at which the next save is due; infinite if none is."""
    spec, job = sim.spec, sim.job
    due_h = inf
    for capture in range(spec.n_captures):
        other_h = job.saves[capture].due_h
        if other_h < due_h:
            due_h = other_h
    return due_h


# --------------------------------------------------------------------------- under way


@inlined
def save_h(sim: Sim, cost: CostSpec, n: int) -> float:
    """Hours of a cost of the nth save of its capture."""
    varies = isnan(cost.hours)
    return float(sim.drawn.of_saves[cost.table, n, sim.row]) if varies else cost.hours


@inlined
def failure_h(sim: Sim, cost: CostSpec, n: int) -> float:
    """Hours of a cost of the nth failure."""
    varies = isnan(cost.hours)
    return float(sim.drawn.of_failures[cost.table, n, sim.row]) if varies else cost.hours


def next_commit_h(sim: Sim) -> float:
    """When the next save in flight commits; infinite if none is in flight."""
    spec, job = sim.spec, sim.job
    at_h = inf
    for capture in range(spec.n_captures):
        for n in range(job.saves[capture].n_in_flight):
            at_h = min(at_h, job.flights[capture][n].at_h)
    return float(at_h)


def first_to_commit(sim: Sim, until_h: float) -> tuple[int, int]:
    """Capture and place of the save in flight that began first of those due by an instant."""
    spec, job = sim.spec, sim.job
    order, first, place = job.latest + 1, NONE, NONE
    for capture in range(spec.n_captures):
        for n in range(job.saves[capture].n_in_flight):
            flight = job.flights[capture][n]
            if flight.at_h <= until_h and flight.order < order:
                order, first, place = flight.order, capture, n
    return first, place


def begin_saves(sim: Sim) -> None:
    """Begin the saves that are due, until one stalls the job or has to wait."""
    spec, job = sim.spec, sim.job
    for capture in range(spec.n_captures):
        state = job.saves[capture]
        if not is_due(spec, state.due_h, job.progress_h):
            continue
        saves = spec.captures[capture]
        if state.n_in_flight >= saves.in_flight:
            if not saves.skips:
                job.waits_for = capture
                return
            stand_on_grid(sim, capture, job.progress_h)
            continue
        number = state.n_begun
        stall_h = save_h(sim, saves.stall, number)
        state.n_begun += 1
        completing = saves.parts == 1 or is_due(spec, state.completes_h, job.progress_h)
        save = job.flights[capture][state.n_in_flight]
        save.number, save.content_h, save.due_h = number, job.progress_h, state.due_h
        save.completes_h = state.completes_h if completing else inf
        job.stalled_by, job.stall_ends_at_h = capture, job.now_h + stall_h
        note(sim, EventKind.SAVE_STARTED if completing else EventKind.SUB_SAVE_STARTED, NONE)
        stand_on_grid(sim, capture, job.progress_h)
        if stall_h > 0.0:
            return
        end_stall(sim)


def end_stall(sim: Sim) -> None:
    """End the stall of a save, which then continues in the background or commits."""
    spec, job = sim.spec, sim.job
    capture = job.stalled_by
    job.stalled_by = NONE
    saves, save = spec.captures[capture], job.flights[capture][job.saves[capture].n_in_flight]
    behind_h = save_h(sim, saves.background, save.number)
    if behind_h > 0.0:
        go_behind(sim, capture, behind_h)
        note(sim, EventKind.SAVE_RESUMED, NONE)
    else:
        completing = save.completes_h < inf
        commit(sim, capture, save.content_h, save.number, completing)


def commit(sim: Sim, capture: int, content_h: float, number: int, completing: bool) -> None:
    """A save comes to its end; the flushes that follow it begin."""
    spec, job = sim.spec, sim.job
    if spec.captures[capture].checks and job.error_h < inf:
        job.noticed_at_h = job.now_h
    if not completing:
        note(sim, EventKind.SUB_SAVE_COMMITTED, NONE)
    elif store(sim, capture, content_h, number) and spec.captures[capture].is_followed:
        for flush in range(spec.n_captures):
            if (
                spec.captures[flush].after == capture
                and is_flushed(spec, flush, content_h)
                and job.saves[flush].n_in_flight < spec.captures[flush].in_flight
            ):
                begin_flush(sim, flush, content_h)


def store(sim: Sim, capture: int, content_h: float, number: int) -> bool:
    """Keep what a save holds on its tier, unless the save fails; return whether it is kept."""
    spec, job, drawn, row = sim.spec, sim.job, sim.drawn, sim.row
    saves = spec.captures[capture]
    p_corrupt = spec.tiers[saves.tier].p_corrupt
    corrupt = False
    if saves.p_fail > 0.0 or p_corrupt > 0.0:
        u = uniform(drawn.keys[capture, row], number)
        if u < saves.p_fail:
            note(sim, EventKind.SAVE_ABANDONED, NONE)
            return False
        corrupt = u < saves.p_fail + (1.0 - saves.p_fail) * p_corrupt
    job.n_saves += 1
    keep(sim, saves.tier, content_h, corrupt)
    note(sim, EventKind.SAVE_COMMITTED, NONE)
    return True


def begin_flush(sim: Sim, capture: int, content_h: float) -> None:
    """A flush begins; one without a duration ends at once."""
    spec, job = sim.spec, sim.job
    saves, number = spec.captures[capture], job.saves[capture].n_begun
    job.saves[capture].n_begun += 1
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.content_h, flight.number, flight.due_h, flight.completes_h = content_h, number, 0.0, 0.0
    note(sim, EventKind.SAVE_STARTED, NONE)
    behind_h = save_h(sim, saves.background, number)
    if behind_h > 0.0:
        go_behind(sim, capture, behind_h)
    else:
        store(sim, capture, content_h, number)


def go_behind(sim: Sim, capture: int, behind_h: float) -> None:
    """Move the stalling save to the background, for `behind_h` hours."""
    job = sim.job
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    job.latest += 1
    flight.at_h, flight.order = job.now_h + behind_h, job.latest
    job.saves[capture].n_in_flight += 1


def remove_flight(sim: Sim, capture: int, place: int) -> None:
    """A save is no longer in flight; those behind it move up, and one that stalls the job."""
    job = sim.job
    job.saves[capture].n_in_flight -= 1
    for n in range(place, job.saves[capture].n_in_flight + (job.stalled_by == capture)):
        job.flights[capture][n] = job.flights[capture][n + 1]


def commit_all_due(sim: Sim, until_h: float) -> None:
    """Commit whatever is in flight and due by an instant, in the order in which it began."""
    job = sim.job
    while True:
        capture, place = first_to_commit(sim, until_h)
        if capture == NONE:
            return
        flight = job.flights[capture][place]
        content_h, number, completing = flight.content_h, flight.number, flight.completes_h < inf
        remove_flight(sim, capture, place)
        commit(sim, capture, content_h, number, completing)
        if job.waits_for == capture:
            job.waits_for = NONE


def wait_for_last(sim: Sim) -> None:
    """All work is done: a save of the final state in the background has to commit."""
    spec, job = sim.spec, sim.job
    for capture in range(spec.n_captures):
        if spec.captures[capture].after == NONE:
            for n in range(job.saves[capture].n_in_flight):
                if job.flights[capture][n].content_h == spec.useful_h:
                    job.waits_for = capture


def abandon_saves(sim: Sim, back_to_h: float, silent: bool) -> None:
    """Abort saves in progress after a failure, except flushes of copies that survive intact.

    Their due dates return unless the rollback removed them.
    """
    spec, job = sim.spec, sim.job
    for capture in range(spec.n_captures):
        if not is_due(spec, job.saves[capture].due_h, back_to_h):
            stand_on_grid(sim, capture, back_to_h)
    if job.stalled_by != NONE:
        save = job.flights[job.stalled_by][job.saves[job.stalled_by].n_in_flight]
        if is_due(spec, save.due_h, back_to_h):
            make_due(sim, job.stalled_by, save.due_h, save.completes_h)
        job.stalled_by = NONE
        note(sim, EventKind.SAVE_ABANDONED, NONE)
    job.waits_for = NONE
    for capture in range(spec.n_captures):
        after = spec.captures[capture].after
        for n in range(job.saves[capture].n_in_flight - 1, -1, -1):
            flight = job.flights[capture][n]
            if (
                after != NONE
                and not silent
                and flight.content_h <= back_to_h
                and survives(sim, spec.captures[after].tier, flight.order, False)
            ):
                continue
            if after == NONE and is_due(spec, flight.due_h, back_to_h):
                make_due(sim, capture, flight.due_h, flight.completes_h)
            remove_flight(sim, capture, n)
            note(sim, EventKind.SAVE_ABANDONED, NONE)


def needed_by_step(sim: Sim) -> tuple[int, int, int]:
    """Return the most that a step needs: draws of saves and of failures, places for recoveries."""
    job, n_begun = sim.job, 0
    for capture in range(sim.spec.n_captures):
        n_begun = max(n_begun, job.saves[capture].n_begun)
    n_failures = max(job.n_failures, job.n_errors, job.n_stops)
    return n_begun + SAVES_AHEAD, n_failures + 2, 2 * job.n_recoveries + 2


def oldest_flush(sim: Sim) -> int:
    """Return the order of the oldest flush in flight; without flushes, the latest order."""
    spec, job = sim.spec, sim.job
    oldest: int = job.latest
    for capture in range(spec.n_captures):
        if spec.captures[capture].after != NONE:
            for n in range(job.saves[capture].n_in_flight):
                oldest = min(oldest, job.flights[capture][n].order)
    return oldest
