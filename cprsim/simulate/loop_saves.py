"""The saves of a replication in the compiled loop: due, under way, committed or abandoned."""

from __future__ import annotations

from math import inf, isnan
from typing import Any

from cprsim.compiling import inlined, part
from cprsim.records import Floats
from cprsim.simulate.loop_state import Drawn
from cprsim.simulate.numbers import (
    NONE,
    WANTS_SAVES,
    Numbers,
)
from cprsim.simulate.transitions import (
    completes,
    due_after,
    is_due,
    is_flushed,
    keep,
    survives,
    uniform,
)


@part
def stand_on_grid(num: Numbers, job: Any, capture: int, progress_h: float) -> None:
    """The next save of a capture is that which the grid has beyond some progress."""
    saves = job.saves[capture]
    saves.due_h = due_after(num, capture, progress_h)
    saves.completes_h = saves.due_h if completes(num, capture, saves.due_h) else inf


@part
def make_due(job: Any, capture: int, due_h: float, completes_h: float) -> None:
    """A save is due as the job goes on: one, also if others of its capture are by then."""
    saves = job.saves[capture]
    saves.due_h = min(saves.due_h, due_h)
    saves.completes_h = min(saves.completes_h, completes_h)


@part
def next_due(num: Numbers, job: Any) -> float:
    """Progress at which the next save is due; infinite if none is."""
    due_h = inf
    for capture in range(num.n_captures):
        other_h = job.saves[capture].due_h
        if other_h < due_h:
            due_h = other_h
    return due_h


@part
def next_flight(num: Numbers, job: Any) -> tuple[float, int, int]:
    """When the next save in flight commits, its capture and place; of one instant the first."""
    at_h, begun_h, first, place = inf, inf, NONE, NONE
    for capture in range(num.n_captures):
        for n in range(job.saves[capture].n_in_flight):
            flight = job.flights[capture][n]
            if flight.at_h < at_h or (flight.at_h == at_h and flight.begun_h < begun_h):
                at_h, begun_h, first, place = flight.at_h, flight.begun_h, capture, n
    return at_h, first, place


@inlined
def cost_h(fixed_h: float, drawn_h: Floats, table: int, n: int, row: int) -> float:
    """Hours that something takes the nth time in a replication: NaN varies, and is drawn."""
    return float(drawn_h[table, n, row]) if isnan(fixed_h) else fixed_h


@part
def begin_saves(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """Begin the saves that are due, until one stalls the job or has to wait."""
    for capture in range(num.n_captures):
        state = job.saves[capture]
        if not is_due(num, state.due_h, job.progress_h):
            continue
        saves = num.captures[capture]
        if state.n_in_flight >= saves.in_flight:
            if not saves.skips:
                job.waits_for = capture
                return
            stand_on_grid(num, job, capture, job.progress_h)
            continue
        number = state.n_begun
        stall_h = saves.stall_h
        if isnan(stall_h) or isnan(saves.background_h):
            if number >= drawn.of_saves.shape[1]:
                job.status = WANTS_SAVES
                return
            if isnan(stall_h):
                stall_h = drawn.of_saves[saves.stall_table, number, row]
        state.n_begun += 1
        completing = saves.parts == 1 or is_due(num, state.completes_h, job.progress_h)
        save = job.flights[capture][state.n_in_flight]
        save.number, save.content_h, save.due_h = number, job.progress_h, state.due_h
        save.completes_h = state.completes_h if completing else inf
        job.stalled_by, job.stall_ends_at_h = capture, job.now_h + stall_h
        stand_on_grid(num, job, capture, job.progress_h)
        if stall_h > 0.0:
            return
        end_stall(num, job, slots, drawn, row)


@part
def end_stall(num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int) -> None:
    """A save has stalled the job long enough: it goes on in the background, or commits."""
    capture = job.stalled_by
    job.stalled_by = NONE
    saves, save = num.captures[capture], job.flights[capture][job.saves[capture].n_in_flight]
    number = save.number
    behind_h = cost_h(saves.background_h, drawn.of_saves, saves.background_table, number, row)
    if behind_h > 0.0:
        go_behind(job, capture, behind_h)
    else:
        completing = save.completes_h < inf
        commit(num, job, slots, drawn, row, capture, save.content_h, number, completing)


@part
def commit(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int,
    capture: int, content_h: float, number: int, completing: bool,
) -> None:  # fmt: skip
    """A save comes to its end; the flushes that follow it begin."""
    if num.captures[capture].checks and job.error_h < inf:
        job.noticed_at_h = job.now_h
    if not completing:
        return
    saves = num.captures[capture]
    p_corrupt = num.tiers[saves.tier].p_corrupt
    corrupt = False
    if saves.p_fail > 0.0 or p_corrupt > 0.0:
        u = uniform(drawn.keys[capture, row], number)
        if u < saves.p_fail:
            return
        corrupt = u < saves.p_fail + (1.0 - saves.p_fail) * p_corrupt
    job.n_saves += 1
    keep(num, job, saves.tier, content_h, corrupt)
    if not saves.is_followed:
        return
    for flush in range(num.n_captures):
        if (
            num.captures[flush].after == capture
            and is_flushed(num, flush, content_h)
            and job.saves[flush].n_in_flight < num.captures[flush].in_flight
        ):
            begin_flush(num, job, drawn, row, flush, content_h)


@part
def begin_flush(
    num: Numbers, job: Any, drawn: Drawn, row: int, capture: int, content_h: float
) -> None:
    """A flush begins."""
    saves, number = num.captures[capture], job.saves[capture].n_begun
    if isnan(saves.background_h) and number >= drawn.of_saves.shape[1]:
        job.status = WANTS_SAVES
        return
    job.saves[capture].n_begun += 1
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.content_h, flight.number, flight.due_h, flight.completes_h = content_h, number, 0.0, 0.0
    behind_h = cost_h(saves.background_h, drawn.of_saves, saves.background_table, number, row)
    go_behind(job, capture, behind_h)


@part
def go_behind(job: Any, capture: int, behind_h: float) -> None:
    """The save at the first free place goes on in the background for so long."""
    flight = job.flights[capture][job.saves[capture].n_in_flight]
    flight.begun_h, flight.at_h, flight.order = job.now_h, job.now_h + behind_h, job.latest
    job.saves[capture].n_in_flight += 1


@part
def remove_flight(job: Any, capture: int, place: int) -> None:
    """A save is no longer in flight; those behind it move up, and one that stalls the job."""
    job.saves[capture].n_in_flight -= 1
    for n in range(place, job.saves[capture].n_in_flight + (job.stalled_by == capture)):
        flight, after = job.flights[capture][n], job.flights[capture][n + 1]
        flight.content_h, flight.begun_h, flight.at_h = after.content_h, after.begun_h, after.at_h
        flight.number, flight.order = after.number, after.order
        flight.due_h, flight.completes_h = after.due_h, after.completes_h


@part
def commit_all_due(
    num: Numbers, job: Any, slots: Any, drawn: Drawn, row: int, until_h: float
) -> None:
    """Commit whatever is in flight and due by an instant, in the order of the instants."""
    while True:
        at_h, capture, place = next_flight(num, job)
        if at_h > until_h:
            return
        flight = job.flights[capture][place]
        content_h, number, completing = flight.content_h, flight.number, flight.completes_h < inf
        remove_flight(job, capture, place)
        commit(num, job, slots, drawn, row, capture, content_h, number, completing)
        if job.waits_for == capture:
            job.waits_for = NONE


@part
def wait_for_last(num: Numbers, job: Any) -> None:
    """All work is done: a save of the final state in the background has to commit."""
    for capture in range(num.n_captures):
        if num.captures[capture].after == NONE:
            for n in range(job.saves[capture].n_in_flight):
                if job.flights[capture][n].content_h == num.useful_h:
                    job.waits_for = capture


@part
def abandon_saves(num: Numbers, job: Any, slots: Any, all_go_back: bool, silent: bool) -> None:
    """A failure takes the saves under way, except flushes of what survives without an error."""
    if all_go_back:
        for capture in range(num.n_captures):
            if not is_due(num, job.saves[capture].due_h, job.progress_h):
                stand_on_grid(num, job, capture, job.progress_h)
    if job.stalled_by != NONE:
        save = job.flights[job.stalled_by][job.saves[job.stalled_by].n_in_flight]
        if is_due(num, save.due_h, job.progress_h):
            make_due(job, job.stalled_by, save.due_h, save.completes_h)
        job.stalled_by = NONE
    job.waits_for = NONE
    for capture in range(num.n_captures):
        after = num.captures[capture].after
        for n in range(job.saves[capture].n_in_flight - 1, -1, -1):
            flight = job.flights[capture][n]
            if (
                after != NONE
                and not silent
                and flight.content_h <= job.progress_h
                and survives(num, job, slots, num.captures[after].tier, flight.order, False)
            ):
                continue
            if after == NONE and is_due(num, flight.due_h, job.progress_h):
                make_due(job, capture, flight.due_h, flight.completes_h)
            remove_flight(job, capture, n)
