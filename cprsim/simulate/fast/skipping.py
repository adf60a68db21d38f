"""Cycles of work and save that are all alike, taken in one step."""

from __future__ import annotations

from math import inf
from typing import Any

from cprsim.compiling import part
from cprsim.simulate.fast.saves import stand_on_grid
from cprsim.simulate.numbers import NONE, Numbers
from cprsim.simulate.transitions import (
    cycles_to_skip,
    flushes_go_along,
    is_in_rhythm,
    keep_latest,
    number_of,
)


@part
def may_skip(
    num: Numbers, job: Any, capture: int,
    within_h: float, per_h: float, target_h: float, ends_h: float,
) -> bool:  # fmt: skip
    """Whether there is room for a cycle of a capture at all: soon seen, and mostly there is none.

    Parameters
    ----------
    within_h, per_h : wall hours until its next save is due, and progress in each
    target_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    saves = num.captures[capture]
    next_but_one_h = job.saves[capture].due_h + saves.every_h
    if next_but_one_h >= target_h:
        return False
    for other in range(num.n_captures):
        if other != capture and job.saves[other].due_h < next_but_one_h:
            return False
    cycle_h = saves.every_h / per_h + saves.stall_h
    return bool(job.now_h + within_h + cycle_h <= ends_h)


@part
def cycles_until(
    num: Numbers, job: Any, capture: int,
    within_h: float, per_h: float, steady_h: float, ends_h: float,
) -> int:  # fmt: skip
    """How many cycles of a capture come before anything else happens.

    Parameters
    ----------
    steady_h, ends_h : progress, and instant, up to which nothing else happens but saves
    """
    due_h = job.saves[capture].due_h
    until_h = inf
    for other in range(num.n_captures):
        if other == capture:
            continue
        saves = num.captures[other]
        holds = saves.stall_h != 0.0 or (
            not saves.skips and job.saves[other].n_in_flight >= saves.in_flight
        )
        if holds:
            steady_h = min(steady_h, job.saves[other].due_h)
        else:
            until_h = min(until_h, job.saves[other].due_h)
        if saves.is_followed:  # commits of others may wait until the cycles are over
            for n in range(job.saves[other].n_in_flight):
                ends_h = min(ends_h, job.flights[other][n].at_h)
    return cycles_to_skip(
        num, capture, job.saves[capture].n_in_flight, due_h, within_h, per_h,
        until_h, steady_h, ends_h - job.now_h,
    )  # fmt: skip


@part
def are_in_rhythm(num: Numbers, job: Any, capture: int, within_h: float, per_h: float) -> bool:
    """Whether all saves of a capture in flight are what they are in a steady rhythm."""
    n_in_flight = job.saves[capture].n_in_flight
    for n in range(n_in_flight):
        flight = job.flights[capture][n]
        if not is_in_rhythm(
            num, capture, job.saves[capture].due_h, within_h, per_h, n_in_flight - n,
            flight.content_h, flight.completes_h < inf, flight.at_h - job.now_h,
        ):  # fmt: skip
            return False
    if not flushes_go_along(num, capture, per_h):
        return True
    commits_in_h = within_h + num.captures[capture].stall_h + num.captures[capture].background_h
    if n_in_flight:
        commits_in_h = job.flights[capture][0].at_h - job.now_h
    for flush in range(num.n_captures):
        if num.captures[flush].after == capture:
            for n in range(job.saves[flush].n_in_flight):
                if job.flights[flush][n].at_h - job.now_h > commits_in_h:
                    return False
    return True


@part
def skip(num: Numbers, job: Any, capture: int, n: int, per_h: float) -> None:
    """Take n cycles of work and save at once."""
    every_h = num.captures[capture].every_h
    stall_h = num.captures[capture].stall_h
    worked_h = n * every_h / per_h
    passed_h = worked_h + n * stall_h
    before_h = job.progress_h
    due_h = job.saves[capture].due_h
    stand_on_grid(num, job, capture, due_h + (n - 1) * every_h)
    job.progress_h += job.saves[capture].due_h - due_h
    job.now_h += passed_h
    book(num, job, before_h, worked_h)
    job.hours[num.save] += n * stall_h
    next_number = number_of(num, capture, due_h) - job.saves[capture].n_in_flight
    keep_latest(num, job, capture, next_number, next_number + n - 1)
    along = flushes_go_along(num, capture, per_h)
    for other in range(num.n_captures):
        if other != capture and not (along and num.captures[other].after == capture):
            continue
        nth = 1 if other == capture else num.captures[other].nth
        job.saves[other].n_begun += n // nth
        job.n_saves += n // nth // num.captures[other].parts
        for k in range(job.saves[other].n_in_flight):
            flight = job.flights[other][k]
            flight.content_h += n * every_h
            flight.due_h += n * every_h
            flight.completes_h += n * every_h
            flight.begun_h += passed_h
            flight.at_h += passed_h
            flight.number += n // nth


@part
def book(num: Numbers, job: Any, before_h: float, passed_h: float) -> None:
    """Book hours of work that took progress from `before_h` to where it is."""
    gained_h = job.progress_h - before_h
    if before_h < job.frontier_h:
        gained_h /= job.replay_speed
        job.hours[num.lost] += gained_h
    else:
        job.frontier_h = job.progress_h
    if num.taxed != NONE:
        job.hours[num.taxed] += num.tax * gained_h
    if num.degraded != NONE:
        job.hours[num.degraded] += passed_h * (1.0 - job.speed)
