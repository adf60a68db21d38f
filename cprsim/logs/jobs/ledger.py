"""Where the hours of a job went: the same parts as in simulation, with intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import inf, isfinite, isnan, nan

import numpy as np
import pandas as pd

from cprsim.errors import counted, one_line
from cprsim.failures.outages import Note
from cprsim.failures.sources import stream
from cprsim.job.records import PARTS, S_PER_H, Estimate, Floats
from cprsim.logs.jobs.attempts import ANEW, TOO_FAST
from cprsim.logs.jobs.imputing import ImputedFailure, Imputer, stage_times_of
from cprsim.logs.jobs.reading import Events
from cprsim.logs.jobs.timeline import STEP_BACK, JobTimeline, LoggedAttempt, LoggedSave, course_of
from cprsim.logs.jobs.warm_ups import find_warm_ups, leave_open
from cprsim.logs.jobs.work_periods import (
    P_UNSEEN,
    Account,
    JobPace,
    account_of,
    at_end,
    pace_of,
    points_of,
    stalls_s,
    unseen_save_s,
)

N_DRAWS = 400
PACE_SPREAD = 0.015  # of the steps that an attempt made, by the pace of others
CAUSES_SHOWN = 8
NEARLY_ALL = 0.9  # of the steps so far, beyond which an attempt that loses them began anew
MOST_OFF = 1e-12  # h, for each second of wall time, by which the parts of a job may miss it
SAY_STEPS = "write `step` in train.resume, progress, failure and job.end"
LEDGER_PARTS = (*PARTS, "warm-up", "regroup", "replay", "rebuild", "degraded", "start", "planned")
LOST_STEPS = f"attempt(s) lost nearly all steps, though saved: {ANEW}"
INFERRED = {
    "leaps": "attempts that begin beyond every step that the log shows",
    "untold_saves": "job whose log times no save: their hours count as work or as degraded",
    "instants": "instants of incidents that the log does not give",
    "deaths": "failures without their instant",
    "unseen_failures": "failures that nothing but a step back or a rollback shows",
    "unseen_saves": "saves that nothing but a delay shows",
    "delays": "delays that no event explains, where a save was due: they count as work or degraded",
    "half_saves": "saves without their start or end",
    "begins": "steps at which attempts began, by the last save, the pace, or unknown",
    "warm_ups": "restarts whose warm-up is not in the log (it is in the load, slow work or saves)",
    "paces": "job whose step_seconds contradicts its steps, or changes: their own time was taken",
    "ends": "job without an end: cut at its last event",
}
EVEN = 0.5  # the chance that a save without its end committed
FEW_INCIDENTS = 5  # of which all is known, below which those of other jobs help


@dataclass(frozen=True, slots=True)
class Charged:
    """One incident and its cost."""

    job: str
    at_h: float  # of the job's wall time
    hours: Estimate
    parts_h: dict[str, float]  # what it stood still for, and the work done again after it
    node: str
    cause: str
    n_failures: int
    step: float  # at which it struck
    n_made: float  # steps since the work began that it ended
    since_h: float  # how long ago that was; infinite where something was saved since
    failed_h: Floats  # (n_draws,)
    stages: tuple[tuple[str, Floats], ...]  # in order, and the hours that each took, (n_draws,)


@dataclass(frozen=True, slots=True)
class JobLedger:
    """One job's hours."""

    job: str
    begins_ns: int
    finished: bool
    ended: bool
    wall_h: float
    n_failures: int
    n_saves: int
    n_steps: float  # the furthest that the job came
    step_s: float
    save_every: float  # steps between saves: infinite if it never saved, NaN if that is not told
    save_stalls_h: Floats  # of saves whose start and end the log gives
    incidents: tuple[Charged, ...]
    useful_at_h: tuple[tuple[float, float], ...]  # begin, end: of the likeliest course
    inferred: dict[str, int]
    planned: dict[str, int]  # ends of attempts that are no failures, by their causes
    draws: dict[str, Floats]  # hours of `useful` and of each part, (n_draws,)
    unknown: tuple[str, ...]  # parts of which the log tells nothing

    @property
    def useful_h(self) -> Estimate:
        """Hours that made the state at the end."""
        return Estimate.of_draws(self.draws["useful"])

    @property
    def parts(self) -> dict[str, Estimate]:
        """Hours of each of `LEDGER_PARTS`; NaN if unknown."""
        told = {name: Estimate.of_draws(self.draws[name]) for name in LEDGER_PARTS}
        return told | dict.fromkeys(self.unknown, Estimate(nan))

    @property
    def ettr(self) -> Estimate:
        """Useful hours over wall hours."""
        if self.wall_h <= 0:
            return Estimate(nan)
        return Estimate.of_draws(self.draws["useful"] / self.wall_h)


def ledgers(events: Events, *, n_draws: int = N_DRAWS, seed: int = 0) -> tuple[JobLedger, ...]:
    """The ledger of each job of the logs."""
    courses = [course_of(*tables) for tables in events.by_job()]
    for course in courses:
        for run in course.runs:
            run.points = points_of(run, course)
        find_warm_ups(course)
    of_all_s = [took_s for course in courses for took_s in course.warm_ups_s]
    if any(of_all_s):
        for course in courses:
            leave_open(course)
    usual_of_all = stage_times_of([attempt for course in courses for attempt in course.attempts])
    booked = []
    for number, course in enumerate(counted("booking jobs", courses)):
        usual = stage_times_of(course.attempts)
        usual = usual if len(usual) >= FEW_INCIDENTS else usual_of_all
        known_s = course.warm_ups_s if len(course.warm_ups_s) >= FEW_INCIDENTS else of_all_s
        booking = _Booking(course, usual, known_s, n_draws, stream(seed, number, "ledger"))
        booked.append(booking.ledger())
    return tuple(booked)


def total_hours(jobs: Sequence[JobLedger]) -> dict[str, Estimate]:
    """Sum useful hours and the parts over jobs; the uncertainties of logs are independent."""
    totals = {
        name: Estimate.of_draws(np.sum([job.draws[name] for job in jobs], axis=0))
        for name in ("useful", *LEDGER_PARTS)
    }
    unknown = (name for job in jobs for name in job.unknown)
    return totals | dict.fromkeys(unknown, Estimate(nan))  # of one job: of all


def notes_on_ends(jobs: Sequence[JobLedger]) -> list[str]:
    """Which ends of attempts are planned, count as failures, or were not followed by a load."""
    failed = [one for job in jobs for one in job.incidents if one.n_failures and one.cause]
    idle = sum("lost" not in one.parts_h for one in failed)
    ask = f"; {idle} of these lost no work: if planned, write the cause 'planned stop'" * (idle > 0)
    stood_h = sum(one.parts_h.get("planned", 0.0) for job in jobs for one in job.incidents)
    out = f"; calibrate and backtest leave out their {stood_h:.3g} h" * (stood_h > 0.0)
    planned = sum((Counter(job.planned) for job in jobs), Counter[str]())
    anew = sum(  # what was saved, or made by the attempts before, was of no use
        one.parts_h.get("lost", 0.0) * S_PER_H > NEARLY_ALL * one.step * job.step_s
        and (one.since_h == inf or one.n_made < NEARLY_ALL * one.step)
        for job in jobs for one in job.incidents
    )  # fmt: skip
    failures = "that count as failures", Counter(one.cause for one in failed), ask
    return [
        f"ends of attempts {what}: "
        + ", ".join(f"{one_line(cause)} ({n})" for cause, n in causes.most_common(CAUSES_SHOWN))
        + more
        for what, causes, more in (("planned, no failures", planned, out), failures) if causes
    ] + [str(Note("assumed", anew, LOST_STEPS))] * bool(anew)  # fmt: skip


def without_stops(job: JobLedger) -> JobLedger:
    """A job on a clock that stands still in its planned stops, which no failure explains."""
    at_h = np.array([one.at_h for one in job.incidents])
    stood_h = np.array([one.parts_h.get("planned", 0.0) for one in job.incidents])
    earlier = ((one, float(stood_h[at_h < one.at_h].sum())) for one in job.incidents)
    useful = ((a, b, float(stood_h[at_h < a].sum())) for a, b in job.useful_at_h)
    return replace(
        job,
        wall_h=job.wall_h - float(stood_h.sum()),
        incidents=tuple(replace(o, at_h=o.at_h - h, failed_h=o.failed_h - h) for o, h in earlier),
        useful_at_h=tuple((a - h, b - h) for a, b, h in useful),
    )


def _as_relaunch(stages: Iterable[tuple[str, Floats]]) -> Iterator[tuple[str, Floats]]:
    """Stages of a log that tells no detection: from a failure to the next start is relaunch."""
    stages = tuple(stages)
    for place, (name, took_s) in enumerate(stages, 1):
        is_relaunch = name == "detect" and place < len(stages)
        yield name, took_s * (not is_relaunch)
        if is_relaunch:
            yield "reschedule", took_s


def _steps_between_saves(course: JobTimeline, every_steps: float) -> float:
    """By the rule that the saves follow, else their median; by where the job went back to.

    Infinite where it always began again where it had begun.
    """
    steps = (np.diff(np.unique(run.saved_steps)) for run in course.runs)
    apart = np.concatenate([np.empty(0), *steps])
    if isfinite(every_steps) or len(apart):
        return every_steps if isfinite(every_steps) else float(np.median(apart))
    began = [max(run.said_step, 0.0) for run in course.runs]
    return inf if all(step <= began[0] for step in began[1:]) else nan


def check_told(course: JobTimeline, pace: JobPace) -> None:
    """Raise ParameterError if no interval can cover the values missing from a log."""
    if len(course.attempts) > 1 and not pace.is_known:
        way_out = "write `step` in progress and save.start, or step_seconds in job.start"
        raise course.contradiction(0.0, "work begins whose steps tell no pace", way_out)
    lost = any(isnan(run.begin_s) for run in course.runs)
    told = any(isfinite(attempt.failed_s) for attempt in course.attempts[1:])
    for run, after in pairwise(course.attempts):
        silent = isnan(run.begin_s) and isnan(after.failed_s) and not len(run.points.at_s)
        unnoticed = any(name == "detect" and isnan(at_s) for name, at_s in after.stages)
        ended = after.n_starts > 1 or (unnoticed and not after.works)
        silent |= ended and isnan(after.to_step) and (lost or (told and unnoticed))
        if silent:
            message = "an attempt ends of which no event tells whether it worked"
            raise course.contradiction(after.first_s, message, "write train.resume and failure")
    for run in course.runs:  # where the steps' own time is the pace, saves are part of it
        first = run.saves[0] if run.saves else LoggedSave()
        if not pace.is_said or isfinite(run.begin_s) or isfinite(first.start_s):
            continue
        if len(run.points.at_s) and run.points.at_s[0] == first.stalled_until_s:
            message = f"step {first.step:g} is saved, and when work or the save began is missing"
            way_out = "write save.start, or train.resume"
            raise course.contradiction(first.stalled_until_s, message, way_out)


class _Booking:
    """Completes the course of one job, attempt after attempt, and books its hours."""

    def __init__(
        self, course: JobTimeline, usual: pd.DataFrame, warm_ups_s: list[float], n_draws: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._course, self._n = course, n_draws
        self._pace = pace = pace_of(course)
        check_told(course, pace)
        self._filling = Imputer(usual, n_draws, pace.silences_s, rng)
        self._shared, self._even = rng.random(n_draws), rng.random(n_draws)
        self._normal = rng.standard_normal(n_draws)
        unlike = 2.0 / (len(warm_ups_s) + 1)  # the chance that one more is unlike all others
        self._delays_s = {
            run: np.where(rng.random(n_draws) < unlike, nan, rng.choice(warm_ups_s, n_draws))
            for run in course.open_starts
        }
        self._warm_ups_s = warm_ups_s
        restarts = [one for one in course.attempts[1:] if one.works or one.n_starts]
        self._shows_warm_ups = bool(warm_ups_s) or not restarts
        self._after = dict(pairwise(course.attempts))
        self._filled: dict[LoggedAttempt, ImputedFailure] = {}
        self._draws = {part: np.zeros(n_draws) for part in ("useful", *LEDGER_PARTS)}
        self._frontier = np.zeros(n_draws)
        self._begins: dict[LoggedAttempt, Floats] = {}  # steps
        self._ends: dict[LoggedAttempt, Floats] = {}
        self._kept: list[tuple[Account, Floats]] = []  # of each run, the seconds that were not lost
        self._first_s: list[tuple[float, float]] = []  # from when to when it did first-time work
        self._again_s = 0.0  # of work that was lost and is not made again yet, on average
        self._planned = Counter[str]()
        self._charged: list[Charged] = []
        self._inferred = dict.fromkeys(INFERRED, 0)

    def ledger(self) -> JobLedger:
        """Book all, in order of time."""
        course, pace = self._course, self._pace
        for attempt in course.attempts:
            filled = self._fill(attempt)
            self._see_begin(attempt)
            lost_h = self._discard(self._begins[attempt])
            self._again_s += S_PER_H * float(lost_h.mean())
            if attempt.works:
                self._book_run(attempt, filled.resumed_s)
            self._book(attempt, filled, lost_h)
        useful_at_h = self._close()
        shows_warm_ups = self._shows_warm_ups or self._draws["warm-up"].any()
        self._inferred["ends"] += not course.ended
        self._inferred["paces"] += course.contradicts_pace
        self._inferred["warm_ups"] += len(course.unknown_warm_ups)
        every = _steps_between_saves(course, pace.every_steps)
        saves = [save for run in course.runs for save in run.saves]
        within = not pace.is_said and all(run.points.open_.all() for run in course.runs)
        tells_saves = not within if saves else not isnan(every)
        if not tells_saves:  # the pace of the steps contains them
            self._draws["useful"] += self._draws["save"]
            self._draws["save"] = np.zeros(self._n)
        self._inferred["untold_saves"] += not tells_saves
        return JobLedger(
            job=course.job,
            begins_ns=course.begins_ns,
            finished=course.finished,
            ended=course.ended,
            wall_h=course.wall_s / S_PER_H,
            n_failures=sum(attempt.n_failures for attempt in course.attempts),
            n_saves=sum(save.committed for save in saves)
            or sum(save.open and save.stall_s >= 0.0 for save in saves),
            n_steps=float(self._frontier.mean()) if pace.is_known else nan,
            step_s=pace.step_s,
            save_every=every,
            save_stalls_h=stalls_s(course) / S_PER_H,
            incidents=tuple(self._charged),
            useful_at_h=useful_at_h,
            inferred=self._inferred,
            planned=dict(self._planned),
            draws=self._draws,
            unknown=("warm-up",) * (not shows_warm_ups) + ("save",) * (not tells_saves),
        )

    # ------------------------------------------------------------------ instants

    def _fill(self, attempt: LoggedAttempt) -> ImputedFailure:
        """All instants of an attempt until it works, drawn once."""
        if attempt not in self._filled:
            run, silent_s = attempt.before, np.zeros(self._n)
            if run in self._delays_s and not attempt.alive_s > run.begin_s:
                silent_s = self._delays_s[run]  # its warm-up, of which nothing is told
            save = run.saves[-1] if run is not None and run.saves else LoggedSave()
            if save.start_s >= attempt.alive_s and isnan(save.stalled_until_s):
                silent_s = silent_s + self._pace.save_s  # it logs nothing while it saves
            filled = self._filling.fill(attempt, partial(self._begin, attempt), silent_s)
            if filled.stages and attempt in self._delays_s:
                *before, (name, took_s) = filled.stages
                late_s = filled.resumed_s - attempt.begin_s
                last = (name, took_s - late_s), ("warm-up", late_s)
                filled = filled._replace(stages=(*before, *last))
            if not self._course.tells_detection:
                filled = filled._replace(stages=tuple(_as_relaunch(filled.stages)))
            self._filled[attempt] = filled
        return self._filled[attempt]

    def _begin(self, attempt: LoggedAttempt, failed_s: Floats) -> Floats:
        """When the work of an attempt began, by when the one before ended; and at which step."""
        points, course = attempt.points, self._course
        step = self._begins[attempt] = self._begin_step(attempt, self._reached(attempt, failed_s))
        begin_s = attempt.begin_s if attempt.works else course.wall_s
        if isfinite(begin_s):
            until_s = self._ends_s(attempt) if attempt in self._delays_s else nan
            return np.asarray(begin_s + self._late_s(attempt, until_s))
        low_s = attempt.first_s if isfinite(attempt.first_s) else attempt.alive_s
        low_s = max(low_s, 0.0) if isfinite(low_s) else 0.0
        if len(points.at_s) == 0:  # of its work the log tells a last sign at most
            last_s = attempt.last_s if isfinite(attempt.last_s) else self._ends_s(attempt)
            return np.asarray(low_s + self._even * np.maximum(last_s - low_s, 0.0))
        step_s = self._pace.step_s if self._pace.is_known else 0.0
        made_s = np.maximum(points.step[0] - step, 0.0) * step_s
        until_s = points.at_s[0] - unseen_save_s(self._pace, np.full(self._n, points.at_s[0]))
        return np.asarray(np.clip(until_s - made_s, low_s, points.at_s[0]))

    def _late_s(self, run: LoggedAttempt, until_s: Floats | float) -> Floats:
        """Delay of a run's first steps, if the log leaves it open: as of others, at most all."""
        took_s = self._delays_s.get(run, np.zeros(self._n))
        room_s = np.full(self._n, until_s) - run.begin_s
        if len(run.points.at_s):
            made_s = (run.points.step[0] - self._begins[run]) * self._pace.step_s
            room_s = run.points.at_s[0] - made_s - run.begin_s
        room_s = np.maximum(room_s, 0.0)
        return np.asarray(np.fmin(np.where(np.isnan(took_s), self._even * room_s, took_s), room_s))

    def _ends_s(self, run: LoggedAttempt) -> Floats:
        """When a run ended."""
        if (after := self._after.get(run)) is not None:
            return self._fill(after).failed_s
        return np.full(self._n, run.end_s if isfinite(run.end_s) else self._course.wall_s)

    # ------------------------------------------------------------------ steps

    def _reached(self, attempt: LoggedAttempt, failed_s: Floats) -> Floats:
        """Steps in the state as the run before an attempt ended."""
        run = attempt.before
        if run is None:
            return np.zeros(self._n)
        if len(run.points.at_s) == 0:
            is_known = isfinite(run.begin_s)
            late_s = self._late_s(run, failed_s)
            began_s = run.begin_s + late_s if is_known else np.fmax(run.first_s, 0.0)
            made = self._pace.steps_in(np.maximum(failed_s - began_s, 0.0))
            at_step = self._begins[run] + made * (1.0 if is_known else 1.0 - self._even)
            return np.full(self._n, run.final_step) if isfinite(run.final_step) else at_step
        return at_end(run, self._pace, failed_s)[1]

    def _begin_step(self, attempt: LoggedAttempt, end_step: Floats) -> Floats:
        """Steps in the state as a run began: as the log says, of the last save, or by the pace.

        The first attempt of a job begins at step 0 if the pace allows that. Another whose begin no
        event tells may be from an older save than the last.
        """
        points, before, none = attempt.points, attempt.before, np.zeros(self._n)
        if isfinite(attempt.said_step):
            return none + attempt.said_step
        is_told = len(points.step) > 0
        first, steps = float(points.step[0]) if is_told else inf, self._most_untold(attempt)
        is_sure = isfinite(attempt.begin_s) and isfinite(steps)
        made = steps * np.maximum(1.0 + PACE_SPREAD * self._normal, 0.0) if steps else none
        by_pace = np.maximum(first - made, 0.0) if is_told else none
        if before is None:
            if not (is_told and (TOO_FAST * made < first).all()):
                return none
            return np.asarray(by_pace + self._even * (first - by_pace) * (not is_sure))
        most = np.minimum(end_step, first)
        saved = self._last_save(before, most)
        off = np.abs(first - saved - steps) if is_sure else none
        if (saved <= first).all() and (off <= 1.0 + steps / 10).all():
            oldest = saved
            if not is_told:
                oldest = np.minimum(self._begins[before], saved)
            elif isnan(attempt.begin_s):
                oldest = by_pace
            is_older = (self._even > 1 - P_UNSEEN) & (oldest < saved)
            return np.where(is_older, oldest + self._shared * (saved - oldest), saved)
        if is_told and (first - TOO_FAST * made).min() > end_step.max() + 1.0:
            message = f"work goes on at step {first:g}, beyond every step before"
            raise self._course.contradiction(attempt.first_s, message, SAY_STEPS)
        begun = self._begins[before]  # beyond that, an older save was taken than the one before
        least = np.clip(by_pace, np.where(begun <= most, begun, 0.0), most)
        is_loaded = bool(attempt.stages) and attempt.stages[-1][1] < attempt.begin_s
        if is_sure and is_loaded and not self._warm_ups_s:
            message = "work begins with an older save than the last, or late: no event tells"
            raise self._course.contradiction(attempt.begin_s, message, SAY_STEPS)
        if is_sure:
            p_late = sum(s > 0.0 for s in self._warm_ups_s) / max(len(self._warm_ups_s), 1)
            return np.where((self._even < p_late) & (saved <= most), saved, least)
        return np.asarray(least + self._shared * (most - least))

    def _most_untold(self, attempt: LoggedAttempt) -> float:
        """Steps that an attempt can have made before the first that the log tells."""
        points = attempt.points
        if not (len(points.step) and self._pace.is_known):
            return inf
        instants_s = (attempt.begin_s, attempt.first_s, attempt.alive_s, points.at_s[0])
        began_s = next(at_s for at_s in instants_s if isfinite(at_s))
        return float(points.at_s[0] - began_s) / self._pace.step_s

    def _last_save(self, run: LoggedAttempt, most: Floats) -> Floats:
        """Step of the last save of a run, at most `most`; NaN if the log has no saves.

        A save without a logged end may have committed or not; a save may be missing as a whole.
        """
        if not self._pace.tells_saves:
            return np.full(self._n, nan)
        open_ = [save.step for save in run.saves if save.open and isfinite(save.step)]
        known = [save.step for save in run.saves if save.committed and isfinite(save.step)]
        saved = np.maximum(self._begins[run], max(known + open_[:-1], default=0.0))
        for step in open_[-1:]:
            saved = np.where((self._shared < EVEN) & (saved < step) & (step <= most), step, saved)
        is_unseen = (self._even < P_UNSEEN * self._pace.loses_saves) & (saved < most)
        return np.where(is_unseen, saved + self._shared * (most - saved), saved)

    def _see_begin(self, attempt: LoggedAttempt) -> None:
        """Count the inferred values of a begin. A preemption that lost steps is a failure.

        Raises ParameterError if the log does not show whether it lost steps.
        """
        step, cause, is_said = self._begins[attempt], attempt.cause, isfinite(attempt.said_step)
        run = attempt.before
        is_leap = float(step.min()) > float(self._frontier.max()) + 1.0
        self._inferred["leaps"] += is_leap and not (is_said and run is None)
        self._inferred["begins"] += not is_said and (
            is_leap if run is None else attempt.works or bool(np.ptp(step) > STEP_BACK)
        )
        if attempt.n_failures or not cause or run is None:
            return
        lost = self._ends[run] - step
        if "preempt" not in cause.casefold() or lost.max() <= STEP_BACK:
            self._planned[cause] += 1
            return
        knows = self._pace.tells_saves and not self._pace.loses_saves
        if lost.min() <= STEP_BACK or not (knows or is_said):
            message = "a preemption lost steps, or none: no event tells"
            raise self._course.contradiction(attempt.failed_s, message, SAY_STEPS)
        attempt.n_failures = 1

    # ------------------------------------------------------------------ accounts

    def _book_run(self, run: LoggedAttempt, begin_s: Floats) -> None:
        """Book the hours of a run."""
        account = account_of(run, self._pace, begin_s, self._begins[run], self._ends_s(run))
        self._inferred["unseen_saves" if self._pace.loses_saves else "delays"] += account.n_unseen
        self._inferred["half_saves"] += sum(save.is_half for save in run.saves)
        self._ends[run] = account.end_step
        self._frontier = np.maximum(self._frontier, account.end_step)
        for part, took_s in (("save", account.save_s), ("degraded", account.degraded_s)):
            self._draws[part] += took_s / S_PER_H
        self._kept.append((account, account.work_s))
        until_s = float((begin_s + account.save_s + account.degraded_s + account.work_s).mean())
        first_s = max(float(account.work_s.mean()) - self._again_s, 0.0)
        self._again_s = max(self._again_s - float(account.work_s.mean()), 0.0)
        self._first_s.append((until_s - first_s, until_s))

    def _discard(self, begin_step: Floats) -> Floats:
        """Book the work beyond the step at which an attempt begins as lost; its hours."""
        lost_s = np.zeros(self._n)
        for place, (account, kept_s) in reversed([*enumerate(self._kept)]):
            until_s = np.minimum(kept_s, account.until_s(begin_step))
            self._kept[place] = account, until_s
            lost_s += kept_s - until_s
            if (begin_step >= account.begin_step).all():  # what came before was not beyond this
                break
        self._draws["lost"] += lost_s / S_PER_H
        return lost_s / S_PER_H

    def _book(self, attempt: LoggedAttempt, filled: ImputedFailure, lost_h: Floats) -> None:
        """What stood before a run, and the work that was lost by it."""
        hours: dict[str, Floats] = {"lost": lost_h}
        is_planned = attempt.n_failures == 0 and attempt.cause != ""
        for stage, took_s in filled.stages:
            name = "planned" if is_planned and stage in ("detect", "wait", "reschedule") else stage
            self._draws[name] += took_s / S_PER_H
            hours[name] = hours.get(name, 0.0) + took_s / S_PER_H
        self._inferred["instants"] += filled.n_inferred
        self._inferred["unseen_failures"] += not (attempt.stages or isfinite(attempt.failed_s))
        if (run := attempt.before) is None:
            return
        self._inferred["deaths"] += isnan(attempt.failed_s)
        end_step, failed_h = float(self._ends[run].mean()), filled.failed_s / S_PER_H
        since_h = float((failed_h - self._filled[run].resumed_s / S_PER_H).mean())
        self._charged.append(Charged(
            job=self._course.job,
            at_h=float(failed_h.mean()),
            hours=Estimate.of_draws(np.sum(list(hours.values()), axis=0)),
            parts_h={name: float(of_h.mean()) for name, of_h in hours.items() if of_h.any()},
            node=attempt.node,
            cause=attempt.cause,
            n_failures=attempt.n_failures,
            step=end_step,
            n_made=end_step - float(self._begins[run].mean()),
            since_h=inf if any(save.committed for save in run.saves) else since_h,
            failed_h=failed_h,
            stages=tuple((name, took_s / S_PER_H) for name, took_s in filled.stages),
        ))  # fmt: skip

    def _close(self) -> tuple[tuple[float, float], ...]:
        """Book the work in the final state as useful; return the periods of first-time work.

        These are cut off where the job has done as much as is useful.
        """
        useful_h = sum((kept_s for _, kept_s in self._kept), np.zeros(self._n)) / S_PER_H
        self._draws["useful"], left_h, useful_at_h = useful_h, float(useful_h.mean()), []
        for begin_h, end_h in np.divide(self._first_s, S_PER_H).tolist():
            useful_at_h.append((begin_h, min(end_h, begin_h + left_h)))
            left_h -= useful_at_h[-1][1] - begin_h
        course = self._course
        off_h = np.abs(sum(self._draws.values()) - course.wall_s / S_PER_H).max()
        if off_h > MOST_OFF * (1 + course.wall_s):
            raise RuntimeError(f"the ledger of {self._course.job!r} does not close: {off_h} h")
        return tuple(useful_at_h)
