"""Warm-ups: by how much the first steps after a start come later than the pace says."""

from __future__ import annotations

from math import isfinite, isnan, nan

import numpy as np

from cprsim.job.records import Floats
from cprsim.logs.jobs.course import NOWHERE, JobCourse, LoggedAttempt, Points
from cprsim.logs.jobs.stretches import CLEAR, LOG_ROUNDING, JobPace, pace_of, saves_within

IN_PLACE = {"detect", "regroup", "replay", "rebuild"}  # stages of processes that did not end


def find_warm_ups(course: JobCourse) -> None:
    """Let runs begin where their pace does, after a stage `warm-up`; note how long it took.

    The warm-up of the job's first start is a part of its start.
    """
    pace = pace_of(course, after_starts=False)
    for run in course.runs:
        if run.n_starts == 0 and run.stages and {name for name, _ in run.stages} <= IN_PLACE:
            continue
        took_s = _delay_s(run, course, pace) if pace.is_known else nan
        if run.is_start:
            run.stages = [("start" if s == "warm-up" else s, at_s) for s, at_s in run.stages]
            continue
        if took_s > 0.0 and run.stage != "warm-up":
            run.stages.append(("warm-up", run.begin_s - took_s))
        if run.stage == "warm-up" and run.begin_s == run.end_s:
            continue  # a failure cut it off
        if run.stage == "warm-up" and isfinite(run.begin_s):
            course.warm_ups_s.append(run.begin_s - run.stages[-1][1])
        elif isnan(took_s):
            course.unknown_warm_ups.append(run)
        else:
            course.warm_ups_s.append(0.0)


def leave_open(course: JobCourse) -> None:
    """Leave open when runs began to work of which the log has no sign but their start."""
    for run in course.unknown_warm_ups:
        is_alone = run.points.at_s.tolist() in ([], [run.begin_s])
        if isfinite(run.begin_s) and is_alone:
            run.stages.append(("warm-up", run.begin_s))
            run.begin_s, run.last_s, run.points = nan, nan, NOWHERE


def _delay_s(run: LoggedAttempt, course: JobCourse, pace: JobPace) -> float:
    """Delay of the first steps of a run [s], which begins so much later; NaN if unknown.

    It lasts until a stretch that keeps the pace, the run's own if it is always slow, or a save.
    """
    _find_begin(run, course, pace)
    points = run.points
    if not isfinite(run.begin_s) or len(points.at_s) < 2 or points.at_s[0] != run.begin_s:
        return nan
    took_s, steps = np.diff(points.at_s), np.diff(points.step)
    saves = points.open_ | (saves_within(points, pace) & pace.loses_saves)  # told by half, or not
    is_work, stall_s = ~points.stalled, np.where(saves, pace.save_s, 0.0)
    if not is_work[0] or isnan(stall_s[0]):
        return nan
    later = (is_work & ~saves & (steps > 0))[1:]
    own_s = float((took_s[1:][later] / steps[1:][later]).min()) if later.any() else 0.0
    step_s = max(pace.step_s, np.nan_to_num(pace.seen_s), own_s)
    late_s = took_s - step_s * steps - stall_s
    least_s = np.maximum(stall_s, max(CLEAR * pace.spread_s, LOG_ROUNDING))
    if points.at_s[-1] == run.end_s:  # within a step, which most logs do not count
        least_s[-1] = max(least_s[-1], step_s)
    late = is_work & (late_s > least_s)
    n = len(late) if late.all() else int(late.argmin())
    delay_s = float(late_s[:n].sum())
    if n:
        run.begin_s, run.infers_begin = run.begin_s + delay_s, True
        run.points = Points(
            np.append(run.begin_s, points.at_s[n:]), np.append(points.step[0], points.step[n:]),
            np.append(points.stalled[n - 1], points.stalled[n:]),
            np.append(points.open_[n - 1], points.open_[n:]),
        )  # fmt: skip
    return delay_s


def _find_begin(run: LoggedAttempt, course: JobCourse, pace: JobPace) -> None:
    """Let a run begin at a logged warm-up if nothing else tells; and at the only step possible."""
    points, step = run.points, run.said_step
    if isnan(run.begin_s) and run.stage == "warm-up":
        if isnan(step) or not len(points.at_s):
            return
        run.begin_s = run.stages[-1][1]
    if isnan(run.begin_s) or not len(points.at_s) or isfinite(run.begin_step):
        return
    run.infers_step = isnan(step)
    if isnan(step) and pace.tells_saves and not pace.loses_saves:
        step = _only_step(run, course, pace)
    if isfinite(step) and step <= points.step[0]:
        run.begin_step = step
        run.points = Points(
            np.append(run.begin_s, points.at_s), np.append(step, points.step),
            np.append(False, points.stalled), np.append(False, points.open_),
        )  # fmt: skip


def _only_step(run: LoggedAttempt, course: JobCourse, pace: JobPace) -> float:
    """The saved step that a run began with, if the time lets it come from no other; else NaN."""
    before = course.runs[: course.runs.index(run)]
    saved: Floats = np.unique([0.0, *(step for one in before for step in one.saved_steps)])
    most = (run.points.at_s[0] - run.begin_s) / pace.step_s
    possible = saved[(saved <= run.points.step[0]) & (run.points.step[0] - saved <= most + 1.0)]
    return float(possible[0]) if len(possible) == 1 else nan
