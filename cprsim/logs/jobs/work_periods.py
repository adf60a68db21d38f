"""A stretch of work: which of its hours were saves, and which steps were done again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from typing import NamedTuple

import numpy as np

from cprsim.job.records import Bools, Floats
from cprsim.logs.jobs.attempts import TOO_FAST
from cprsim.logs.jobs.timeline import NOWHERE, JobTimeline, LoggedAttempt, LoggedSave, Points

CLEAR = 5.0  # times the spread of steps, beyond which a delay is none of them
LEAST_SAVE_SHARE = 0.2  # of a usual save: less delay is no save
LOG_ROUNDING = 1e-6  # s, of a save's number, and of steps
MOST_PACES = 200_000  # stretches that the pace is told by; of more every n-th
TOO_SLOW = 3.0  # times slower than a step is said to be: it is another
FASTEST = 0.05  # of all steps
MAD = 1.4826
P_UNSEEN = 0.1  # that the last save before an end left no event, where a log loses such events


@dataclass(frozen=True, slots=True)
class JobPace:
    """Durations in a job [s]: of a step, of a save, of silences of its log."""

    step_s: float
    spread_s: float  # of the time between two points, beyond that of the steps
    save_s: float  # stall of a usual save; NaN where there is none
    every_steps: float  # between saves; infinite without a regular interval
    is_said: bool  # the log itself says what a step takes
    tells_saves: bool  # with their steps
    loses_saves: bool  # some without start, end or step: others may have left no event
    silences_s: Floats  # between signs of work: how long a log may be without one

    @property
    def is_known(self) -> bool:
        """Whether the duration of a step is known."""
        return isfinite(self.step_s) and self.step_s > 0

    def steps_in(self, work_s: Floats) -> Floats:
        """Steps made in `work_s` seconds of work; 0 if the pace is unknown."""
        return np.asarray(work_s / self.step_s if self.is_known else 0.0 * work_s)


def points_of(run: LoggedAttempt, course: JobTimeline) -> Points:
    """Return all logged points of one run: instants and steps."""
    at_s, step = course.reached
    begin = int(np.searchsorted(at_s, run.marks[0][0], "right") if run.marks else len(at_s))
    end = int(np.searchsorted(at_s, run.last_s))  # the one before may have ended at its first mark
    end = max(begin, end + (end < len(at_s) and at_s[end] == run.last_s))
    points = [*run.marks, (run.end_s, run.end_step)]
    for save in run.saves:
        points += [(save.start_s, save.step), (save.stalled_until_s, save.step)]
    extra = np.array(points, dtype=np.float64)
    latest_s = run.end_s if isfinite(run.end_s) else inf
    extra = extra[np.isfinite(extra).all(axis=1) & (extra[:, 0] <= latest_s)]
    all_s = np.concatenate([at_s[begin:end], extra[:, 0]])
    all_step = np.concatenate([step[begin:end], extra[:, 1]])
    order = np.lexsort((all_step, all_s))
    all_s, all_step = all_s[order], np.maximum.accumulate(all_step[order])
    new = np.append(True, (np.diff(all_s) > 0) | (np.diff(all_step) > 0))[: len(all_s)]
    all_s, all_step = all_s[new], all_step[new]
    stalled, open_ = _stalls(all_s, run.saves)
    return Points(all_s, all_step, stalled, open_)


def _stalls(at_s: Floats, saves: Sequence[LoggedSave]) -> tuple[Bools, Bools]:
    n = max(len(at_s) - 1, 0)
    stalled, open_ = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)
    for save in saves:
        begin, until = save.start_s, save.stalled_until_s
        if isfinite(begin) and isfinite(until):
            first, last = np.searchsorted(at_s, [begin, until])
            stalled[first:last] = True
        elif isfinite(begin):
            place = int(np.searchsorted(at_s, begin))
            open_[place : place + 1] = True
        elif isfinite(until):
            place = int(np.searchsorted(at_s, until)) - 1
            open_[max(place, 0) : place + 1] = True
    return stalled, open_


def pace_of(course: JobTimeline, *, after_starts: bool = True) -> JobPace:
    """Return the durations of a step and a save, from the whole log of a job.

    Or without the stretches from a logged start of work to the next point.
    """
    at_s, step, stalled, open_ = zip(NOWHERE, *(run.points for run in course.runs), strict=True)
    took_s, steps = (np.concatenate([np.diff(one) for one in of]) for of in (at_s, step))
    is_first = [np.arange(len(run.points.stalled)) == 0 for run in course.runs]
    is_unsure = [
        first & (run.infers_begin or not (after_starts or isnan(run.begin_s)))
        for first, run in zip(is_first, course.runs, strict=True)
    ]
    idle = ~np.concatenate(stalled) & ~np.concatenate([NOWHERE.stalled, *is_unsure])
    plain = idle & ~np.concatenate(open_) & (steps > 0)
    if not plain.any():  # half-told saves between all points
        plain = idle & (steps > 0)
    every_nth = max(1, len(took_s) // MOST_PACES)
    later = ~np.concatenate([NOWHERE.stalled, *is_first])[plain][::every_nth]
    idle_s, idle_steps = took_s[idle][::every_nth], steps[idle][::every_nth]
    took_s, steps = took_s[plain][::every_nth], steps[plain][::every_nth]
    seen_s = nearly_all_s = nan  # of a step: half of all steps were faster, nearly all slower
    if len(steps):
        rate, of = took_s / steps, [FASTEST, 0.5]
        nearly_all_s, seen_s = np.quantile(rate, of, weights=steps, method="inverted_cdf").tolist()
    slow_s = seen_s
    if not later.any() and len(steps) > 1 and np.ptp(steps) > 0.0:
        slow_s = float(np.polyfit(steps, took_s, 1)[0])  # warm-ups may lie in all of them
    saves = [save for run in course.runs for save in run.saves]
    tells_saves = any(isfinite(save.step) for save in saves)
    has_half = any(
        save.is_half or (isnan(save.stalled_until_s) and save.open and save is not run.saves[-1])
        for run in course.runs
        for save in run.saves
    )
    loses_saves = has_half or (len(saves) > 0 and not tells_saves)
    off, least_off = seen_s / course.step_s, nearly_all_s / course.step_s
    too_slow = slow_s / course.step_s > TOO_SLOW or (
        tells_saves and not loses_saves and least_off > TOO_FAST
    )  # else it may be saves
    course.contradicts_pace |= off < 1 / TOO_FAST or too_slow
    is_said = isfinite(course.step_s) and (isnan(seen_s) or not course.contradicts_pace)
    step_s = course.step_s if is_said else seen_s
    off_s = took_s - step_s * steps
    spread_s = MAD * float(np.median(np.abs(off_s - np.median(off_s)))) if len(off_s) else 0.0
    known_s = stalls_s(course)
    delays_s = idle_s - step_s * idle_steps
    delays_s = delays_s[delays_s > max(CLEAR * spread_s, LOG_ROUNDING)]
    usual_s = known_s if len(known_s) else delays_s
    tells_all = tells_saves and not loses_saves and isfinite(step_s)
    return JobPace(
        step_s,
        spread_s,
        float(np.median(usual_s)) if len(usual_s) else nan,
        _every(saves),
        is_said,
        tells_saves,
        loses_saves,
        idle_steps * step_s if tells_all else idle_s,
    )


def stalls_s(course: JobTimeline) -> Floats:
    """Seconds that saves stalled the job, in order of time, but for those given up."""
    saves = (save for run in course.runs for save in run.saves)
    stalls = [save.stall_s for save in saves if save.open or save.committed]
    stall_s = np.array(stalls, dtype=np.float64)
    return np.asarray(stall_s[np.isfinite(stall_s)])


def _every(saves: Sequence[LoggedSave]) -> float:
    """Steps between saves, where the saves lie on whole multiples of it."""
    at = np.unique([save.step for save in saves if isfinite(save.step) and save.step > 0])
    if len(at) < 2:
        return inf
    every = float(np.median(np.diff(at)))
    number = at / every
    on_grid = np.abs(number - np.round(number)) < 0.01
    return every if on_grid.mean() > 0.8 else inf


class Account(NamedTuple):
    """Where the seconds of one run went; (n_draws,) each."""

    begin_step: Floats
    end_step: Floats
    save_s: Floats
    degraded_s: Floats
    work_s: Floats  # whatever is not save and not degraded
    before_s: Floats  # of the work: until the first point
    first_step: Floats  # there
    steps: Floats  # at each point, and the work since the first: (n_points,)
    done_s: Floats
    n_unseen: int = 0  # saves that nothing but a delay shows

    def until_s(self, step: Floats) -> Floats:
        """Seconds of the work until there were `step` steps in the state, by the run's own pace."""
        into = (step - self.begin_step) / np.maximum(self.first_step - self.begin_step, 1e-12)
        after = (step - self.steps[-1]) / np.maximum(self.end_step - self.steps[-1], 1e-12)
        after_s = self.work_s - self.before_s - self.done_s[-1]
        in_middle_s = np.interp(step, self.steps, self.done_s)
        until_s = self.before_s * np.clip(into, 0, 1) + in_middle_s + after_s * np.clip(after, 0, 1)
        return np.where(step >= self.end_step - LOG_ROUNDING, self.work_s, until_s)


def account_of(
    run: LoggedAttempt, pace: JobPace, begin_s: Floats, begin_step: Floats, end_s: Floats
) -> Account:
    """Split a run's hours by its begin and its end, (n_draws,) each."""
    none, points = np.zeros(len(begin_s)), run.points
    if len(points.at_s) == 0:  # all of it is work, at the usual pace
        took_s = np.maximum(end_s - begin_s, 0.0)
        made = pace.steps_in(took_s)
        end_step = none + run.end_step if isfinite(run.end_step) else begin_step + made
        return Account(begin_step, end_step, none, none, took_s, took_s, end_step, none, none)
    stall_s, slow_s, n_unseen = _delays(points, pace, is_begun=points.at_s[0] == run.begin_s)
    work_s = np.diff(points.at_s) - stall_s - slow_s
    first_s, last_s, first_step = points.at_s[0], points.at_s[-1], points.step[0]
    before_s = np.maximum(first_s - begin_s, 0.0)
    early_s = unseen_save_s(pace, before_s) * isnan(run.begin_s)
    before_s = before_s - early_s
    held_s, end_step = at_end(run, pace, end_s)
    after_s = np.maximum(end_s - last_s, 0.0) - held_s
    done_s = np.concatenate([[0.0], np.cumsum(work_s)])
    return Account(
        begin_step, end_step, stall_s.sum() + early_s + held_s, slow_s.sum() + none,
        before_s + done_s[-1] + after_s, before_s, first_step + none, points.step, done_s, n_unseen,
    )  # fmt: skip


def at_end(run: LoggedAttempt, pace: JobPace, end_s: Floats) -> tuple[Floats, Floats]:
    """How long a save stalled a run before it ended, and the steps that were in the state then."""
    tail_s = np.maximum(end_s - run.points.at_s[-1], 0.0)
    held_s = _held_by_save_s(run, tail_s, pace)
    if isfinite(run.end_step):
        return held_s, np.full(len(end_s), run.end_step)
    return held_s, run.points.step[-1] + pace.steps_in(tail_s - held_s)


def _held_by_save_s(run: LoggedAttempt, tail_s: Floats, pace: JobPace) -> Floats:
    """Stall by a save in a run that ended `tail_s` after its last point [s], (n_draws,).

    A save without a logged end took as long as usual, or the run ended in it. If saves leave no
    event, one may have begun.
    """
    last_s, last_step = float(run.points.at_s[-1]), float(run.points.step[-1])
    under_way = [save for save in run.saves if save.start_s >= last_s - LOG_ROUNDING]
    is_told = np.ptp(tail_s) == 0.0  # else the run may have ended anywhere in a save
    if under_way and isfinite(under_way[-1].stalled_until_s):
        return np.zeros(len(tail_s))
    if (under_way or pace.loses_saves) and isfinite(run.end_step) and pace.is_known:
        return np.clip(tail_s - (run.end_step - last_step) * pace.step_s, 0.0, tail_s)
    if not under_way:
        return unseen_save_s(pace, tail_s, is_death_told=is_told)
    if isfinite(pace.save_s):
        longest_s = pace.save_s * (1.0 if is_told else np.linspace(0.0, 1.0, len(tail_s)))
        return np.where(tail_s > pace.save_s, longest_s, tail_s)
    return tail_s * np.linspace(0.0, 1.0, len(tail_s))


def unseen_save_s(pace: JobPace, most_s: Floats, *, is_death_told: bool = True) -> Floats:
    """How long a save took of which no event tells, if there was one, at most: (n_draws,).

    None where the log tells of all saves, or of none. One that did not tell a death may have lost
    what came just before.
    """
    if not pace.loses_saves and (is_death_told or not pace.tells_saves):
        return 0.0 * most_s
    longest_s = pace.save_s if isfinite(pace.save_s) else 0.0 if is_death_told else inf
    share = np.linspace(1.0 - 1.0 / P_UNSEEN, 1.0, len(most_s))
    return np.minimum(most_s, longest_s) * np.maximum(share, 0.0)


def saves_within(points: Points, pace: JobPace) -> Bools:
    """Between which points a save is due, and not at one of them."""
    at = points.step / pace.every_steps
    return np.asarray(np.floor(at[1:] - LOG_ROUNDING) > np.floor(at[:-1] + LOG_ROUNDING))


def _delays(points: Points, pace: JobPace, *, is_begun: bool) -> tuple[Floats, Floats, int]:
    """Seconds between points that were saves, those that were slow work, and saves unseen."""
    took_s, steps = np.diff(points.at_s), np.diff(points.step)
    stall_s = np.where(points.stalled, took_s, 0.0)
    slow_s = np.zeros(len(took_s))
    if not isfinite(pace.step_s):
        return stall_s, slow_s, 0
    excess_s = np.where(points.stalled, 0.0, took_s - pace.step_s * steps)
    usual_s = pace.save_s if isfinite(pace.save_s) else 0.0
    clear = excess_s > max(CLEAR * pace.spread_s, LEAST_SAVE_SHARE * usual_s, LOG_ROUNDING)
    due = np.zeros(len(took_s), dtype=bool)
    if isfinite(pace.every_steps):
        at = points.step / pace.every_steps
        due = np.floor(at[1:] + LOG_ROUNDING) >= np.ceil(at[:-1] - LOG_ROUNDING)
        due[:1] &= not is_begun or saves_within(points, pace)[:1]  # its state was saved before
    opens = points.open_ & ~points.stalled
    unseen = clear & due & ~opens
    is_save = opens | (unseen & pace.loses_saves)
    stall_s = stall_s + np.where(is_save, np.clip(excess_s, 0.0, took_s), 0.0)
    if pace.is_said:
        slow_s = np.where(~is_save & (excess_s > LOG_ROUNDING), np.minimum(excess_s, took_s), 0.0)
    return stall_s, slow_s, int(unseen.sum())
