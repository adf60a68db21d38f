"""The course of one job as its log tells it: stretches of work, and what stood between them.

Nothing is estimated here. What the log does not say stays NaN.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import isfinite, nan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.events import STAGES
from cprsim.history.reading import NS_PER_S
from cprsim.records import Floats, Ints

START, WORK, STANDS, OVER = range(4)  # what the job does
NOTICED = "noticed"  # a stage of which the next event tells what it was
BACK = 1e-6  # steps: less is no step back
WORKS = ("work", "useful", "lost")
RECOVERING = ("detect", "degraded", *STAGES.values())
SAVING = ("save.wait", "save.start", "save.resume", "save.commit", "save.abandon")


@dataclass(slots=True)
class LoggedSave:
    """A save as far as the log tells it; instants in seconds since the job began."""

    start_s: float = nan  # of the stall, the wait for the save before included
    step: float = nan
    stalled_until_s: float = nan
    committed: bool = False
    counts: bool = True  # no part of a save
    open: bool = True
    waits: bool = False  # for the save before; it has no name yet
    name: str = ""


@dataclass(slots=True)
class WorkRun:
    """A stretch of work, saves included."""

    after_s: float  # the last event before it
    begin_s: float = nan  # where the log says it
    begin_step: float = nan
    end_s: float = nan
    end_step: float = nan
    last_s: float = nan  # the last event that shows it at work
    last_step: float = nan
    saves: list[LoggedSave] = field(default_factory=list)
    seen: list[tuple[float, float]] = field(default_factory=list)  # instant, step


@dataclass(slots=True)
class Incident:
    """What stood between two stretches of work: the job's start, or failures and recovery."""

    is_start: bool = False
    after_s: float = nan  # the last event that shows the job at work, or somebody alive
    failed_s: float = nan
    stages: list[tuple[str, float]] = field(default_factory=list)  # and when each began
    to_step: float = nan  # where a rollback led
    resumed_s: float = nan
    n_failures: int = 1
    node: str = ""
    cause: str = ""
    shown: bool = True  # False: nothing but a step back shows that it was

    @property
    def first_s(self) -> float:
        """The first instant that the log gives of it; NaN where there is none."""
        known = [self.failed_s, *(at_s for _, at_s in self.stages), self.resumed_s]
        return next((at_s for at_s in known if isfinite(at_s)), nan)


@dataclass(slots=True)
class JobCourse:
    """A job from its first event to its last: incidents and runs in turn, an incident first."""

    job: str
    begins_ns: int
    incidents: list[Incident] = field(default_factory=list)
    runs: list[WorkRun] = field(default_factory=list)
    wall_s: float = nan
    ended: bool = False
    finished: bool = False
    n_failures: int = 0
    n_saves: int = 0
    step_s: float = nan  # as the log itself says
    background: bool = False  # saves go on beside the training
    reloads: bool = False  # some shards went back while the others kept their state
    reached: tuple[np.ndarray, np.ndarray] = (np.empty(0), np.empty(0))  # `progress`: s, step


def course_of(job: str, steps: pd.DataFrame, others: pd.DataFrame) -> JobCourse:
    """Read the events of one job, in order of time."""
    time_ns = [table["time_ns"].to_numpy() for table in (steps, others)]
    begins_ns = min(int(one[0]) for one in time_ns if len(one))
    ends_ns = max(int(one[-1]) for one in time_ns if len(one))
    reached_s, others_s = ((one - begins_ns) / NS_PER_S for one in time_ns)
    step = steps["step"].to_numpy()
    reader = _CourseReader(JobCourse(job, begins_ns, reached=(reached_s, step)))
    rows = _telling(reached_s, step, steps["attempt"].to_numpy(), others_s)
    told = zip(reached_s[rows].tolist(), step[rows].tolist(), strict=True)
    events = zip(others_s.tolist(), others.itertuples(), strict=True)
    for at_s, what in heapq.merge(told, events, key=lambda one: one[0]):
        if isinstance(what, float):
            reader.progress(at_s, what)
        else:
            reader.take(at_s, what)
    return reader.finish((ends_ns - begins_ns) / NS_PER_S)


def _telling(reached_s: Floats, step: Floats, attempt: Ints, others_s: Floats) -> np.ndarray:
    """Rows of the `progress` that says anything new."""
    after = np.searchsorted(reached_s, others_s, side="left")
    breaks = np.flatnonzero((np.diff(step) < -BACK) | (np.diff(attempt) > 0))
    rows = np.unique(np.concatenate([[0], after, after - 1, breaks, breaks + 1]))
    return rows[(rows >= 0) & (rows < len(step))].astype(np.int64)


class _CourseReader:
    """Takes one event after the other."""

    def __init__(self, course: JobCourse) -> None:
        self.course = course
        self._state = START
        self._attempt = 0
        self._incident = Incident(is_start=True, stages=[("start", 0.0)], failed_s=0.0)
        self._run = WorkRun(0.0)
        self._at_s = 0.0  # of the event before
        self._last_failure_s = nan
        self._has_failed_beside = False
        course.incidents.append(self._incident)

    def take(self, at_s: float, event: Any) -> None:
        """An event that is no plain `progress`."""
        name, step, part = event.event, event.step, event.part
        if part in WORKS and self._state in (STANDS, START) and name == "progress":
            self._go_on(at_s, step)
            self._see(at_s, step)
        elif name == "job.start":
            self._start(at_s, event)
        elif name == "failure":
            self._failure(at_s, event)
        elif name == "failure.detected":
            self._halt(at_s, event)
            self._unseen_again()
            self._stage(NOTICED, at_s)
        elif name in STAGES:
            if name == "regroup.start" and self._state is WORK:  # nodes come back: no failure
                self._stop(at_s)
                self.course.n_failures -= 1
                self._incident.n_failures = 0
            self._halt(at_s, event)
            self._stage(STAGES[name], at_s)
        elif name == "rollback":
            self._halt(at_s, event)
            self._incident.to_step = step
        elif name == "revert":
            self._revert(at_s, step)
        elif name == "train.resume":
            self._resume(at_s, step)
        elif name in SAVING:
            self._saving(at_s, event)
        elif name == "progress" and isfinite(step):
            self.progress(at_s, step)
        elif name == "job.end":
            self._end(at_s, event)
        if part and self._state in (WORK, STANDS):
            self._set_part(part, at_s, step)
        self._at_s = at_s

    # ------------------------------------------------------------------ what work shows

    def progress(self, at_s: float, step: float) -> None:
        """So many steps are in the state: the job is at work, or was."""
        if self._state is OVER:
            return
        if self._state is not WORK:
            self._go_on(nan, nan)
        elif step < self._run.last_step - BACK:
            self._unseen(at_s)
        for save in self._run.saves:  # work goes on: the end of its stall is missing
            if not isfinite(save.stalled_until_s) and step > save.step + BACK:
                save.open = False
        self._see(at_s, step)
        self._at_s = at_s

    def _see(self, at_s: float, step: float) -> None:
        run = self._run
        run.last_s = at_s
        if isfinite(step):
            run.last_step = step
            run.seen.append((at_s, step))

    def _unseen(self, at_s: float) -> None:
        """The job went back without any event that says so."""
        self._stop(nan)
        self._incident.shown = False
        self._go_on(nan, nan)

    def _resume(self, at_s: float, step: float) -> None:
        if self._state is WORK:
            if self._is_told_again(step):
                self._see(at_s, step)
                return
            self._stop(nan)
            self._incident.shown = False
        if self._state is not OVER:
            self._go_on(at_s, step)
            self._see(at_s, step)

    def _is_told_again(self, step: float) -> bool:
        """Whether a further process says what one has said already: that this run began."""
        run = self._run
        is_new = not isfinite(run.last_step) or run.last_step <= run.begin_step + BACK
        return is_new and not step > run.begin_step + BACK

    def _go_on(self, at_s: float, step: float) -> None:
        self._incident.resumed_s = at_s
        self._run = WorkRun(self._at_s, at_s, step)
        self.course.runs.append(self._run)
        self._state = WORK

    # ------------------------------------------------------------------ what stands still

    def _stop(self, failed_s: float) -> None:
        """Work ends; an incident begins, at an instant that is known or not."""
        run = self._run
        run.end_s = failed_s
        last_s = run.last_s if isfinite(run.last_s) else run.after_s
        self._incident = Incident(after_s=last_s, failed_s=failed_s)
        self.course.incidents.append(self._incident)
        self.course.n_failures += 1
        self._state = STANDS

    def _halt(self, at_s: float, event: Any) -> None:
        """Something of a recovery: if the job was at work, it failed before."""
        if self._state is WORK:
            self._stop(nan)
        seen_ns = event.last_seen_unix_nano
        if seen_ns and self._state is STANDS:
            seen_s = (seen_ns - self.course.begins_ns) / NS_PER_S
            if seen_s <= at_s:
                self._incident.after_s = max(self._incident.after_s, seen_s)

    def _stage(self, name: str, at_s: float) -> None:
        if self._state not in (STANDS, START):
            return
        stages = self._incident.stages
        if stages and stages[-1][0] == NOTICED:
            before = "wait" if name in ("wait", "reschedule") else "reschedule"
            stages[-1] = (before, stages[-1][1])
        if stages and stages[-1][1] == at_s:
            stages.pop()  # it took no time
        if not stages or stages[-1][0] != name:
            stages.append((name, at_s))

    def _unseen_again(self) -> None:
        """Something is noticed in the middle of a recovery: a further failure, not logged."""
        stages = self._incident.stages
        if self._state is STANDS and stages and stages[-1][0] not in ("detect", NOTICED):
            stages.append(("detect", nan))
            self._incident.n_failures += 1
            self.course.n_failures += 1

    def _failure(self, at_s: float, event: Any) -> None:
        if self._state is OVER or event.outcome == "missed":
            return
        if event.part in WORKS and self._state is WORK:  # nobody waits for it
            self._count_beside(at_s, event.step)
            return
        if self._state in (WORK, STANDS):
            self._fail(at_s, event.step)
        self._last_failure_s = at_s
        incident = self._incident
        incident.node = incident.node or event.node
        incident.cause = incident.cause or event.cause

    def _revert(self, at_s: float, step: float) -> None:
        """A shard went back: if nobody has said so, it failed, and the job waits for it."""
        self.course.reloads = True
        waits = self._state in (WORK, STANDS) and not self._has_failed_beside
        if waits and not self._again(at_s):
            self._fail(at_s, step)
        if self._state is STANDS and self._incident.failed_s == at_s:
            self._run.end_step = step

    def _fail(self, at_s: float, step: float) -> None:
        """A failure that the job waits for: the first of an incident, or a further one."""
        if self._state is STANDS and self._worked_since(step):
            self._go_on(nan, nan)
        is_further = False
        if self._state is WORK:
            self._stop(at_s)
            self._run.end_step = step
        elif self._incident.failed_s != at_s:
            is_further = not self._again(at_s)
            self._incident.n_failures += is_further
            self.course.n_failures += is_further
        if is_further and self._is_detecting:
            self._incident.stages.append(("detect", at_s))
        else:
            self._stage("detect", at_s)
        self._last_failure_s = at_s

    def _worked_since(self, step: float) -> bool:
        """Whether there are more steps in the state than as the job last stood still."""
        incident, before = self._incident, self._run.end_step if self.course.reloads else nan
        stood_at = incident.to_step if isfinite(incident.to_step) else before
        return step > stood_at + BACK

    def _again(self, at_s: float) -> bool:
        """One of several nodes that fail together."""
        return self._last_failure_s == at_s

    def _count_beside(self, at_s: float, step: float) -> None:
        self._has_failed_beside = True
        if not self._again(at_s):
            self.course.n_failures += 1
        self._last_failure_s = at_s
        self._see(at_s, step)

    def _start(self, at_s: float, event: Any) -> None:
        if isfinite(event.step_seconds):
            self.course.step_s = event.step_seconds
        if event.attempt <= self._attempt:
            return  # the first start, or another process of the same
        self._attempt = event.attempt
        if self._state is WORK:
            self._stop(nan)
        if self._state is STANDS and not self._is_loading:
            self._stage("load", at_s)

    @property
    def _is_detecting(self) -> bool:
        return bool(self._incident.stages) and self._incident.stages[-1][0] == "detect"

    @property
    def _is_loading(self) -> bool:
        return bool(self._incident.stages) and self._incident.stages[-1][0] == "load"

    # ------------------------------------------------------------------ saves, parts, the end

    def _saving(self, at_s: float, event: Any) -> None:
        name, step = event.event, event.step
        ends = name in ("save.commit", "save.abandon")
        shows_work = not ends or (name == "save.commit" and step > self._run.last_step + BACK)
        if self._state is not WORK and shows_work:
            if self._state is OVER:
                return
            self._go_on(nan, nan)
        save = self._find(event.save_id)
        if name in ("save.wait", "save.start"):
            self._begin_save(at_s, event)
            return
        if save is None:
            if name != "save.resume":
                self._end_unbegun(at_s, step, committed=name == "save.commit")
            return
        if name == "save.resume":
            self.course.background = True
        if self._state is WORK and not isfinite(save.stalled_until_s):
            save.stalled_until_s = at_s
            self._see(at_s, nan)
        if name == "save.abandon":
            save.open = False
        if name == "save.commit":
            save.open, save.committed = False, True
            self.course.n_saves += save.counts

    def _end_unbegun(self, at_s: float, step: float, *, committed: bool) -> None:
        """The end of a save whose start is missing."""
        self.course.n_saves += committed
        until_s = at_s if self._state is WORK else nan
        self._run.saves.append(
            LoggedSave(step=step, stalled_until_s=until_s, committed=committed, open=False)
        )
        if self._state is WORK:
            self._see(at_s, nan)

    def _find(self, name: str) -> LoggedSave | None:
        """The save that an event is about: by its name, else the oldest that goes on."""
        for save in self._run.saves:
            if save.open and (not name or not save.name or save.name == name):
                return save
        return None

    def _begin_save(self, at_s: float, event: Any) -> None:
        saves = self._run.saves
        for save in saves:  # stalls do not overlap: the end of one before is missing
            if not isfinite(save.stalled_until_s) and not save.waits:
                save.open = False
        if event.event == "save.start" and saves and saves[-1].open and saves[-1].waits:
            saves[-1].waits, saves[-1].name, saves[-1].step = False, event.save_id, event.step
        else:
            waits = event.event == "save.wait"
            name = "" if waits else event.save_id
            saves.append(LoggedSave(at_s, event.step, waits=waits, name=name))
            self._see(at_s, event.step)
        saves[-1].counts = event.mode != "part"

    def _set_part(self, part: str, at_s: float, step: float) -> None:
        """The log itself says what the job does from here on."""
        if part in WORKS:
            if self._state is STANDS:
                self._go_on(at_s, step)
                self._see(at_s, step)
        elif part == "save" and self._state is WORK:
            self._stall(at_s, step)
        elif part in RECOVERING and self._state is STANDS:
            self._stage(part, at_s)

    def _stall(self, at_s: float, step: float) -> None:
        """The job waits for a save from here on, whose start may be told at the same instant."""
        saves = self._run.saves
        if not saves or isfinite(saves[-1].stalled_until_s) or not saves[-1].open:
            saves.append(LoggedSave(at_s, step, waits=True))

    def _end(self, at_s: float, event: Any) -> None:
        course = self.course
        course.ended = True
        course.finished = event.outcome in ("", "finished")
        course.wall_s = at_s
        if self._state is WORK:
            self._run.end_s, self._run.end_step = at_s, event.step
            self._see(at_s, event.step)
        self._state = OVER

    def finish(self, last_s: float) -> JobCourse:
        """The course, cut at its last event where no end is there."""
        course = self.course
        for incident in course.incidents:
            incident.stages = [
                ("reschedule" if name == NOTICED else name, at_s) for name, at_s in incident.stages
            ]
        if not course.ended:
            course.wall_s = last_s
            if self._state is WORK:
                reached = course.reached
                self._run.end_s = last_s
                if len(reached[0]) and reached[0][-1] >= last_s:
                    self._run.end_step = float(reached[1][-1])
        return course
