"""Whole cycles of work and save at once: nothing but speed, for jobs with thousands of saves."""

from __future__ import annotations

from math import inf

from cprsim.records import Activity
from cprsim.simulate import transitions
from cprsim.simulate.numbers import NONE, PROGRESS
from cprsim.simulate.running import Running


def skip_cycles(job: Running, behind: bool) -> float:
    """Take some cycles of the capture that saves most often; the hours of these cycles; 0: none."""
    num, capture, rate = job.num, job.num.fastest, job.rate
    if capture == NONE or job.queued or job.link.is_used:  # others may end these at any instant
        return 0.0
    saves, due_h = num.captures[capture], job.saves.due_h[capture]
    along = transitions.flushes_go_along(num, capture, rate)
    alike = [n for n, of in enumerate(num.captures) if along and of.after == capture]
    n = _n_to_skip(job, capture, alike, behind)
    if n == 0:
        return 0.0
    hours: float = n * saves.every_h / rate + n * saves.stall_h
    next_due_h = transitions.due_after(num, capture, due_h + (n - 1) * saves.every_h)
    job.saves.due_h[capture] = next_due_h
    if job.saves.completes_h[capture] < inf:
        job.saves.completes_h[capture] = next_due_h
    job.book_work(next_due_h - (due_h - job.progress_h), n * saves.every_h / rate)
    job.hours[num.save] += n * saves.stall_h
    first = transitions.number_of(num, capture, due_h) - len(job.saves.in_flight[capture])
    transitions.keep_latest(num, job.copies, capture, first, first + n - 1)
    for number in (capture, *alike):
        n_saved = n if number == capture else n // num.captures[number].nth
        job.saves.n_begun[number] += n_saved
        job.saves.n_committed += n_saved // num.captures[number].parts
        for save in job.saves.in_flight[number]:
            save.end = save.end.moved(save.end.at_h + hours - job.env.now)
            save.number += n_saved
            save.content_h += n * saves.every_h
            save.due_h += n * saves.every_h
            save.completes_h += n * saves.every_h
    job.run_clock(0.0 if num.clock == PROGRESS else 1.0)  # that of work has been moved on
    job.name_activity(Activity.LOST if behind else Activity.USEFUL)
    return hours


def _n_to_skip(job: Running, capture: int, alike: list[int], behind: bool) -> int:
    """How many cycles of a capture come before anything else happens."""
    num, saves, due_h, rate = job.num, job.num.captures[capture], job.saves.due_h[capture], job.rate
    until_progress_h = [job.frontier_h if behind else num.useful_h]
    until_progress_h += [at_h for n, at_h in enumerate(job.saves.due_h) if n != capture]
    if job.failure is not None and num.clock == PROGRESS and not behind:
        until_progress_h.append(job.failure.at_h)
    steady_progress_h = min(until_progress_h)
    if steady_progress_h < due_h + 2.0 * saves.every_h:
        return 0
    moved = {save.end for n in (capture, *alike) for save in job.saves.in_flight[n]}
    moved |= {job.failure_alarm}
    until_h = [alarm.at_h - job.env.now for alarm in job.alarms if alarm not in moved]
    if job.failure is not None and num.clock != PROGRESS:
        until_h.append(job.failure.at_h - job.age_h)
    commits_in_h = [[save.end.at_h - job.env.now for save in of] for of in job.saves.in_flight]
    within_h, mine = (due_h - job.progress_h) / rate, commits_in_h[capture]
    for nth, save in enumerate(reversed(job.saves.in_flight[capture]), 1):
        if not transitions.is_in_rhythm(
            num, capture, due_h, within_h, rate, nth,
            save.content_h, save.completes_h < inf, mine[-nth],
        ):  # fmt: skip
            return 0
    first_h = mine[0] if mine else within_h + saves.stall_h + saves.background_h
    if any(in_h > first_h for n in alike for in_h in commits_in_h[n]):
        return 0
    return transitions.cycles_to_skip(
        num, capture, len(mine), due_h, within_h, rate, steady_progress_h, steady_progress_h,
        min(until_h),
    )  # fmt: skip
