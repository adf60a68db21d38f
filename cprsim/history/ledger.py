"""Where the hours of a job went: the same parts as in simulation, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil, isfinite, isnan, nan

import numpy as np

from cprsim.failures.streams import stream
from cprsim.history.course import Incident, JobCourse, LoggedSave, WorkRun, course_of
from cprsim.history.filling import DrawnIncidents, Filled, Usual, filled
from cprsim.history.reading import Events
from cprsim.history.save_interval import SaveInterval, save_interval_of
from cprsim.history.stretches import (
    Account,
    account_of,
    held_by_save_s,
    pace_of,
    points_of,
    silences_s,
)
from cprsim.records import PARTS, Estimate, Floats

N_DRAWS = 400
ON_GRID = 1e-6  # of an interval: a step that is a multiple of it
S_PER_H = 3600.0
MORE_PARTS = ("regroup", "replay", "rebuild", "degraded", "start")
LEDGER_PARTS = (*PARTS, *MORE_PARTS)
FEW_INCIDENTS = 5  # of which all is known, below which those of other jobs help


@dataclass(frozen=True, slots=True)
class Charged:
    """One incident and what it cost."""

    job: str
    at_h: float  # of the job's wall time
    hours: Estimate
    parts_h: dict[str, float]  # what it stood still for, and the work done again after it
    node: str
    cause: str
    n_failures: int
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
    useful_h: Estimate
    parts: dict[str, Estimate]
    n_failures: int
    n_saves: int
    n_steps: float  # the furthest that the job came
    step_s: float
    save_every: SaveInterval
    save_stalls_h: Floats  # of saves whose start and end the log gives
    reloads: bool
    incidents: tuple[Charged, ...]
    took_h: dict[str, Floats]  # stages of the incidents, NaN where the log does not say
    useful_at_h: tuple[tuple[float, float], ...]  # begin, end: of the likeliest course
    inferred: dict[str, int]
    draws: dict[str, Floats]  # hours of `useful` and of each part, (n_draws,)

    @property
    def ettr(self) -> Estimate:
        """Useful hours over wall hours."""
        if self.wall_h <= 0:
            return Estimate(nan)
        return Estimate.of_draws(self.draws["useful"] / self.wall_h)


def ledgers(events: Events, *, n_draws: int = N_DRAWS, seed: int = 0) -> tuple[JobLedger, ...]:
    """The ledger of each job of the logs."""
    courses = [course_of(*one) for one in events.each()]
    of_all = Usual.of([one for course in courses for one in course.incidents])
    found = []
    for number, course in enumerate(courses):
        own = Usual.of(course.incidents)
        usual = own if len(own.took_s) >= FEW_INCIDENTS else of_all
        rng = stream(seed, number, "ledger")
        found.append(_Booking(course, usual, own, n_draws, rng).ledger())
    return tuple(found)


def total_hours(jobs: Sequence[JobLedger]) -> dict[str, Estimate]:
    """Useful hours and those of the parts, over jobs; what one log leaves open is independent."""
    return {
        name: Estimate.of_draws(np.sum([job.draws[name] for job in jobs], axis=0))
        for name in ("useful", *LEDGER_PARTS)
    }


INFERRED = {
    "instants": "instants of incidents that the log does not give",
    "deaths": "failures without their instant",
    "unseen_failures": "failures that nothing but a step back shows",
    "unseen_saves": "saves that nothing but a delay shows",
    "half_saves": "saves without their start or end",
    "intervals": "save intervals that nothing but the saved steps shows",
    "ends": "job without an end: cut at its last event",
}
"""What a ledger counts as inferred."""


class _Booking:
    """Books one job, run after run."""

    def __init__(
        self, course: JobCourse, usual: Usual, own: Usual, n_draws: int, rng: np.random.Generator
    ) -> None:
        self._course, self._own, self._n, self._rng = course, own, n_draws, rng
        for number, run in enumerate(course.runs):
            run.end_step = self._end_step(number, run)
        self._points = [points_of(run, course) for run in course.runs]
        self._pace = pace_of(course, self._points)
        self._usual = DrawnIncidents(usual, n_draws, silences_s(self._points, self._pace), rng)
        self._draws = {part: np.zeros(n_draws) for part in ("useful", *LEDGER_PARTS)}
        self._frontier = np.zeros(n_draws)
        self._useful_at_h: list[tuple[float, float]] = []
        self._charged: list[Charged] = []
        self._inferred = dict.fromkeys(INFERRED, 0)
        self._filled: dict[int, Filled] = {}
        self._content = 0.0  # of the last save that is known to have committed

    def ledger(self) -> JobLedger:
        """Book all, in order of time."""
        course = self._course
        end_step = np.zeros(self._n)
        for number, incident in enumerate(course.incidents):
            all_of = self._fill(number)
            self._inferred["instants"] += all_of.n_inferred
            self._inferred["deaths"] += not incident.is_start and isnan(incident.failed_s)
            self._inferred["unseen_failures"] += not incident.shown
            account = None
            if number < len(course.runs):
                begin_step = self._begin_step(number, end_step)
                account = self._account(number, all_of.resumed_s, begin_step)
                end_step = account.end_step
            self._book(incident, all_of, account)
            if account is not None:
                self._book_run(all_of.resumed_s, account)
        return self._closed()

    # ------------------------------------------------------------------ instants

    def _run(self, number: int) -> WorkRun | None:
        runs = self._course.runs
        return runs[number] if number < len(runs) else None

    def _fill(self, number: int) -> Filled:
        """All instants of an incident, drawn once."""
        if number not in self._filled:
            incident = self._course.incidents[number]
            died_s = self._died_s(number)
            if died_s is not None:
                incident = replace(incident, failed_s=died_s)
            begin = partial(self._begin, number)
            self._filled[number] = filled(incident, begin, self._usual, self._rng)
        return self._filled[number]

    def _died_s(self, number: int) -> float | None:
        """When a run ended whose steps the next one goes on from: by the steps made."""
        incident, run = self._course.incidents[number], self._run(number - 1) if number else None
        if run is None or isfinite(incident.failed_s) or not isfinite(self._pace.step_s):
            return None
        points = self._points[number - 1]
        if not isfinite(run.end_step) or len(points.at_s) == 0:
            return None
        open_ = bool(run.saves) and not isfinite(run.saves[-1].stalled_until_s)
        last_s = float(points.at_s[-1])
        died_s = last_s + (run.end_step - float(points.step[-1])) * self._pace.step_s
        first_s = incident.first_s
        if open_ or not isfinite(first_s):
            return None
        return min(max(died_s, last_s), first_s)

    def _begin(self, number: int, failed_s: Floats) -> Floats:
        """When the run after an incident began, by when the one before ended."""
        run, incident = self._run(number), self._course.incidents[number]
        if run is None:
            return np.full(self._n, self._course.wall_s)
        if isfinite(run.begin_s):
            return np.full(self._n, run.begin_s)
        step = self._begin_step(number, self._reached(number, failed_s))
        points = self._points[number]
        first_s = points.at_s[0] if len(points.at_s) else run.last_s
        made = points.step[0] - step if len(points.at_s) else np.zeros(self._n)
        begin_s = first_s - np.maximum(made, 0.0) * self._step_s
        low_s = incident.first_s if isfinite(incident.first_s) else incident.after_s
        return np.clip(begin_s, max(low_s, 0.0) if isfinite(low_s) else 0.0, first_s)

    @property
    def _step_s(self) -> float:
        return self._pace.step_s if isfinite(self._pace.step_s) else 0.0

    def _reached(self, number: int, failed_s: Floats) -> Floats:
        """Steps in the state as the run before an incident ended."""
        before = self._run(number - 1) if number else None
        if before is None:
            return np.zeros(self._n)
        points, end_step = self._points[number - 1], before.end_step
        if isfinite(end_step) or len(points.at_s) == 0 or self._step_s == 0.0:
            return np.full(self._n, end_step if isfinite(end_step) else before.last_step)
        tail_s = np.maximum(failed_s - points.at_s[-1], 0.0)
        held_s = held_by_save_s(before, points, tail_s, self._pace)
        return np.asarray(points.step[-1] + (tail_s - held_s) / self._step_s)

    def _begin_step(self, number: int, end_step: Floats) -> Floats:
        """Steps in the state as a run began."""
        run, incident = self._course.runs[number], self._course.incidents[number]
        if isfinite(run.begin_step):
            return np.full(self._n, run.begin_step)
        if isfinite(incident.to_step):
            return np.full(self._n, incident.to_step)
        points = self._points[number]
        first = float(points.step[0]) if len(points.step) else np.inf
        if incident.is_start:
            return np.full(self._n, min(first, 0.0))
        before = self._run(number - 1) if number else None
        if self._course.reloads and before is not None and first >= before.last_step:
            return np.minimum(end_step, first)
        return np.full(self._n, min(self._content, first))

    def _end_step(self, number: int, run: WorkRun) -> float:
        """Steps in the state as a run ended; where the state outlived it, the next run tells."""
        following = self._run(number + 1)
        if isfinite(run.end_step) or following is None:
            return run.end_step
        after = self._course.incidents[number + 1]
        goes_on = following.begin_step >= run.last_step and not isfinite(after.to_step)
        return following.begin_step if goes_on and self._course.reloads else nan

    # ------------------------------------------------------------------ accounts

    def _account(self, number: int, begin_s: Floats, begin_step: Floats) -> Account:
        run = self._course.runs[number]
        committed = [one.step for one in run.saves if one.committed and isfinite(one.step)]
        self._content = max([self._content, *committed, self._saved_by_rule(run)])
        last = number + 1 >= len(self._course.incidents)
        wall_s = run.end_s if isfinite(run.end_s) else self._course.wall_s
        end_s = np.full(self._n, wall_s) if last else self._fill(number + 1).failed_s
        account = account_of(
            self._points[number], run, self._pace, begin_s, begin_step, end_s, self._frontier
        )
        if isfinite(run.end_step):
            account = replace(account, end_step=np.full(self._n, run.end_step))
        self._inferred["unseen_saves"] += account.n_unseen
        self._inferred["half_saves"] += sum(map(_is_half, run.saves))
        self._frontier = np.maximum(self._frontier, account.end_step)
        return account

    def _saved_by_rule(self, run: WorkRun) -> float:
        """What a save that the log does not tell of must have held: the job went on after it."""
        every, last = self._pace.every_steps, run.last_step
        if not isfinite(every) or not isfinite(last) or self._course.background:
            return 0.0
        number = ceil(last / every - ON_GRID) - 1
        given_up = {one.step for one in run.saves if not one.open and not one.committed}
        return max(number, 0) * every if number * every not in given_up else 0.0

    def _book(self, incident: Incident, all_of: Filled, account: Account | None) -> None:
        stages = tuple((name, took_s / S_PER_H) for name, took_s in all_of.stages)
        stood: dict[str, Floats] = {}
        for name, took_h in stages:
            stood[name] = stood.get(name, np.zeros(self._n)) + took_h
        for name, took_h in stood.items():
            self._draws[name] += took_h
        if incident.is_start:
            return
        hours = dict(stood)
        if account is not None:
            hours["lost"] = account.lost_s / S_PER_H
        total = sum(hours.values(), np.zeros(self._n))
        self._charged.append(
            Charged(
                self._course.job,
                float(all_of.failed_s.mean()) / S_PER_H,
                Estimate.of_draws(total),
                {name: float(one.mean()) for name, one in hours.items() if one.any()},
                incident.node,
                incident.cause,
                incident.n_failures,
                all_of.failed_s / S_PER_H,
                stages,
            )
        )

    def _book_run(self, begin_s: Floats, account: Account) -> None:
        useful_s = account.work_s - account.lost_s
        before = {"lost": account.lost_s, "save": account.save_s, "degraded": account.degraded_s}
        at_h = float(begin_s.mean()) / S_PER_H
        for part, took_s in before.items():
            self._draws[part] += took_s / S_PER_H
            at_h += float(took_s.mean()) / S_PER_H
        self._draws["useful"] += useful_s / S_PER_H
        self._useful_at_h.append((at_h, at_h + float(useful_s.mean()) / S_PER_H))

    def _closed(self) -> JobLedger:
        course, pace = self._course, self._pace
        self._inferred["ends"] += not course.ended
        save_every, own = save_interval_of(course, pace.every_steps), self._own
        self._inferred["intervals"] += save_every.is_inferred
        return JobLedger(
            job=course.job,
            begins_ns=course.begins_ns,
            finished=course.finished,
            ended=course.ended,
            wall_h=course.wall_s / S_PER_H,
            useful_h=Estimate.of_draws(self._draws["useful"]),
            parts={name: Estimate.of_draws(self._draws[name]) for name in LEDGER_PARTS},
            n_failures=course.n_failures,
            n_saves=course.n_saves,
            n_steps=float(self._frontier.mean()),
            step_s=pace.step_s,
            save_every=save_every,
            save_stalls_h=_stalls_h(course),
            reloads=course.reloads,
            incidents=tuple(self._charged),
            took_h={name: own.took_s[:, place] / S_PER_H for place, name in enumerate(own.stages)},
            useful_at_h=tuple(self._useful_at_h),
            inferred=self._inferred,
            draws=self._draws,
        )


def _stalls_h(course: JobCourse) -> Floats:
    """Hours that saves stalled the job, in order of time, of those that the log says all of."""
    stalls = [
        save.stalled_until_s - save.start_s
        for run in course.runs
        for save in run.saves
        if save.committed
    ]
    known = np.array(stalls, dtype=np.float64)
    return np.asarray(known[np.isfinite(known)]) / S_PER_H


def _is_half(save: LoggedSave) -> bool:
    """Whether the log gives only one end of a save that ended."""
    if not isfinite(save.start_s):
        return True
    return not isfinite(save.stalled_until_s) and not save.open
