"""Warm-ups: by how much the first steps after a start come later than the pace says."""

from __future__ import annotations

from math import isfinite, isnan, nan

import numpy as np

from cprsim.logs.jobs.timeline import JobTimeline, LoggedAttempt, Points
from cprsim.logs.jobs.work_periods import CLEAR, LOG_ROUNDING, JobPace, pace_of, saves_within

IN_PLACE = {"detect", "regroup", "replay", "rebuild"}  # stages of processes that did not end


def find_warm_ups(course: JobTimeline) -> None:
    """Let runs begin where their pace does, after a stage `warm-up`; note how long it took.

    The warm-up of the job's first start is a part of its start.
    """
    pace = pace_of(course, after_starts=False)
    for run in course.runs:
        if run.n_starts == 0 and run.stages and {name for name, _ in run.stages} <= IN_PLACE:
            continue
        took_s = _delay_s(run, pace) if pace.is_known else nan
        if run.before is None:
            run.stages = [("start" if s == "warm-up" else s, at_s) for s, at_s in run.stages]
            continue
        if took_s > 0.0 and run.stage != "warm-up":
            run.stages.append(("warm-up", run.begin_s - took_s))
        if isnan(took_s) and (run.stage != "warm-up" or isnan(run.begin_s)):
            course.unknown_warm_ups.append(run)
        elif run.begin_s != run.end_s:  # else a failure cut it off
            is_staged = run.stage == "warm-up"
            course.warm_ups_s.append(run.begin_s - run.stages[-1][1] if is_staged else 0.0)


def leave_open(course: JobTimeline) -> None:
    """Mark the delay of runs with unknown warm-ups as open; the others keep theirs."""
    for run in course.runs:
        if isfinite(run.begin_s) and run.stage not in ("warm-up", "start"):
            run.stages.append(("warm-up", run.begin_s))
    for run in course.unknown_warm_ups:
        points = run.points
        if isfinite(run.begin_s) and not (points.stalled | points.open_)[:1].any():
            course.open_starts.append(run)
            if (points.at_s[:1] == run.begin_s).any():
                at_s, step, stalled, open_ = points
                run.points = Points(at_s[1:], step[1:], stalled[1:], open_[1:])


def _delay_s(run: LoggedAttempt, pace: JobPace) -> float:
    """Delay of the first steps of a run [s], by which its begin moves; NaN if unknown.

    It lasts until a stretch that keeps the pace, the run's own if it is always slow, or a save.
    """
    if isnan(run.begin_s) and run.stage == "warm-up":  # logged: work begins by the pace
        if not (run.points.step[:1] >= run.to_step).any():  # else it began at some other step
            return nan
        run.begin_s, run.begin_step = run.stages[-1][1], run.to_step
        begin = run.begin_s, run.begin_step, False, False
        run.points = Points(*map(np.append, begin, run.points))
    points, saves = run.points, run.points.open_ | run.points.stalled
    saves = saves | (saves_within(points, pace) & pace.loses_saves)
    took_s, steps = np.diff(points.at_s), np.diff(points.step)
    if len(steps) == 0 or points.at_s[0] != run.begin_s or points.stalled[0]:
        return nan
    if saves[0]:  # told in half; assumed as long as a usual save: what is clearly more is warm-up
        late_s = took_s[0] - pace.step_s * steps[0] - pace.save_s
        if not late_s > max(CLEAR * pace.spread_s, pace.save_s / 2, LOG_ROUNDING):
            return nan
        run.begin_s, run.infers_begin = run.begin_s + float(late_s), True
        run.points = points._replace(at_s=np.append(run.begin_s, points.at_s[1:]))
        return float(late_s)
    if points.at_s[1] == run.end_s and (pace.loses_saves or not pace.tells_saves):
        return nan  # a save may lie in it
    later = (~saves & (steps > 0))[1:]
    own_s = float((took_s[1:][later] / steps[1:][later]).min()) if later.any() else 0.0
    late_s = took_s - max(pace.step_s, own_s) * steps
    least_s = np.full(len(steps), max(CLEAR * pace.spread_s, LOG_ROUNDING))
    if points.at_s[-1] == run.end_s:  # within a step, which most logs do not count
        least_s[-1] = max(least_s[-1], pace.step_s)
    n = int(np.append(saves | (late_s <= least_s), True).argmax())
    if n == 0:
        return 0.0 if steps[0] > 0 else nan
    run.begin_s, run.infers_begin = run.begin_s + float(late_s[:n].sum()), True
    run.points = Points(
        np.append(run.begin_s, points.at_s[n:]), np.append(points.step[0], points.step[n:]),
        points.stalled[n - 1 :], points.open_[n - 1 :],
    )  # fmt: skip
    return float(late_s[:n].sum())
