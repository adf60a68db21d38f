"""The timeline of one job from its log: attempts to work, one after the other.

Nothing is estimated here. Values missing from the log stay NaN.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from math import inf, isfinite, isnan, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.events import STAGES
from cprsim.job.records import Bools, Floats, Ints
from cprsim.logs.jobs.causes import DONE, is_planned, word_of
from cprsim.logs.jobs.reading import DATED_NS, NOT_READ, NS_PER_S

START, WORK, STANDS, OVER = range(4)  # what the job does
NOTICED = "noticed"  # a stage of which the next event tells what it was
STEP_BACK = 1e-6  # steps: less is no step back
NEAR_S = 1.0  # between reports of one death
LATE_EVENT_S = 60.0  # after the start or end of an attempt, events of its other processes come
SAVE_ENDS = ("save.commit", "save.abandon")
SAVES = ("save.start", "save.resume", *SAVE_ENDS)
EVENT_ORDER = (
    "save.resume", *SAVE_ENDS, "failure", "failure.detected", *list(STAGES)[:2], "rollback",
    "job.start", *list(STAGES)[2:], "train.resume", "job.end",
)  # fmt: skip
TOLD = ("time_ns", "event", "attempt", "step", "node", "save_id", "outcome")  # by an event
FEWEST_BACK = 3  # steps below both beside them, without an incident: of two jobs
LIFE, FAILS = ("job.start", "job.end"), ("failure", "failure.detected")
FULL_ONLY = "write the events of full recovery: save.start, save.commit, failure and train.resume"
TWO_JOBS = (
    "if these are two jobs, name each in `job`; number attempts in `attempt`; one rank writes"
)
SHOWS_WORK = ("train.resume", "progress", "save.start", "save.resume", "save.commit")


@dataclass(slots=True)
class LoggedSave:
    """A save as logged, NaN where values are missing; instants in seconds since the job began."""

    start_s: float = nan  # of the stall
    step: float = nan
    stalled_until_s: float = nan
    committed: bool = False
    open: bool = True
    name: str = ""

    @property
    def stall_s(self) -> float:
        return self.stalled_until_s - self.start_s

    @property
    def is_half(self) -> bool:
        """Whether the log gives only one end, although it ended."""
        return not isfinite(self.stall_s) and not (isfinite(self.start_s) and self.open)


class Points(NamedTuple):
    """Instants of a run at which it is known how many steps are in the state."""

    at_s: Floats
    step: Floats
    stalled: Bools  # (n - 1,) whether a save that the log tells fills the time to the next
    open_: Bools  # (n - 1,) whether a save lies in it whose start or end is not told


NOWHERE = Points(np.empty(0), np.empty(0), np.empty(0, bool), np.empty(0, bool))


@dataclass(slots=True, eq=False)
class LoggedAttempt:
    """What stood before a stretch of work (the job's start, or failures and recovery), and it."""

    before: LoggedAttempt | None = None
    alive_s: float = nan  # the last event before that shows the job at work, or somebody alive
    failed_s: float = nan
    stages: list[tuple[str, float]] = field(default_factory=list)  # and when each began
    to_step: float = nan  # where a rollback led
    n_failures: int = 1
    n_starts: int = 0  # of processes, until one works
    node: str = ""
    cause: str = ""
    # the work, saves included
    works: bool = False
    after_s: float = 0.0  # the last event before it
    begin_s: float = nan
    begin_step: float = nan
    infers_begin: bool = False  # `begin_s` is by the pace
    end_s: float = nan
    end_step: float = nan
    last_s: float = nan  # the last event that shows it at work
    last_step: float = nan
    saves: list[LoggedSave] = field(default_factory=list)
    marks: list[tuple[float, float]] = field(default_factory=list)  # instant, step
    points: Points = NOWHERE  # these, and all others

    @property
    def first_s(self) -> float:
        """The first instant that the log has of it; NaN if the log has none."""
        instants_s = [self.failed_s, *(at_s for _, at_s in self.stages), self.begin_s]
        return next((at_s for at_s in instants_s if isfinite(at_s)), nan)

    @property
    def said_step(self) -> float:
        """The step at which it begins, as the log says; else NaN."""
        return self.begin_step if isfinite(self.begin_step) else self.to_step

    @property
    def saved_steps(self) -> list[float]:
        """The steps of its saves, if logged."""
        return [save.step for save in self.saves if isfinite(save.step)]

    @property
    def final_step(self) -> float:
        """The last step that the log tells."""
        return self.end_step if isfinite(self.end_step) else self.last_step

    @property
    def stage(self) -> str:
        """The last one so far."""
        return self.stages[-1][0] if self.stages else ""

    def see(self, at_s: float, step: float = nan) -> None:
        """Note that it works at an instant, with `step` steps in the state."""
        self.last_s = at_s
        if isfinite(step):
            self.last_step = step if not step < self.last_step else self.last_step
            self.marks.append((at_s, step))

    def enter(self, stage: str, at_s: float) -> None:
        """A stage of the recovery begins."""
        stages = self.stages
        if self.stage == NOTICED:
            before = "wait" if stage in ("wait", "reschedule") else "reschedule"
            stages[-1] = (before, stages[-1][1])
        if stages and stages[-1][1] == at_s:
            stages.pop()  # it took no time
        if self.stage != stage:
            stages.append((stage, at_s))


def course_of(job: str, steps: pd.DataFrame, other_events: pd.DataFrame) -> JobTimeline:
    """Read the events of one job, in order of time. Raises ParameterError for contradictions."""
    other_events = _in_order(other_events)
    time_ns = [table["time_ns"].to_numpy() for table in (steps, other_events)]
    begins_ns = min(int(column_ns[0]) for column_ns in time_ns if len(column_ns))
    ends_ns = max(int(column_ns[-1]) for column_ns in time_ns if len(column_ns))
    reached_s, others_s = ((column_ns - begins_ns) / NS_PER_S for column_ns in time_ns)
    step = steps["step"].to_numpy()
    course = JobTimeline(job, begins_ns, (reached_s, step))
    if begins_ns < DATED_NS[0]:
        n, is_dated = len(np.unique(np.concatenate(time_ns))), ends_ns >= DATED_NS[0]
        if is_dated or ends_ns - begins_ns < NS_PER_S * (n - 1):
            message = f"a log of {'today' if is_dated else 'several instants a second'} begins"
            raise course.contradiction(0.0, message, "write all in ns since 1970")
    rows = _telling(reached_s, step, steps["attempt"].to_numpy(), others_s)
    progress = zip(reached_s[rows].tolist(), step[rows].tolist(), strict=True)
    events = zip(others_s.tolist(), other_events.itertuples(), strict=True)
    _check_order(course, steps, other_events)
    is_incident = ~other_events["event"].str.startswith("save.").to_numpy(dtype=bool)
    attempt = steps["attempt"].to_numpy()
    _check_steps(course, reached_s, step, attempt, others_s[is_incident])
    course.background = bool((other_events["event"] == "save.resume").any())
    course.tells_starts = (other_events["event"] == "job.start").sum() > 1
    for at_s, event in heapq.merge(progress, events, key=lambda pair: pair[0]):
        if isinstance(event, float):
            course.progress(at_s, event)
        else:
            course.take(at_s, event)
    course.finish((ends_ns - begins_ns) / NS_PER_S)
    return course


def _in_order(events: pd.DataFrame) -> pd.DataFrame:
    """Each event once; a recovery and the end in their order where they are of one instant."""
    events = events.drop_duplicates([*TOLD])
    attempt, time_ns = events["attempt"].to_numpy(), events["time_ns"].to_numpy()
    if (attempt < 0).any():
        attempt = 0 * attempt
    order = np.lexsort((attempt, time_ns))
    rank = pd.Index(EVENT_ORDER).get_indexer(pd.Index(events["event"]))[order]
    places = np.flatnonzero(rank >= 0)
    chosen = order[places]
    order[places] = chosen[np.lexsort((rank[places], attempt[chosen], time_ns[chosen]))]
    return events.iloc[order]


def _check_order(course: JobTimeline, steps: pd.DataFrame, events: pd.DataFrame) -> None:
    """Raise ParameterError where an attempt works on after a later one began, or ends first."""
    columns = ["time_ns", "event", "attempt"]
    told = pd.concat([events[columns], steps.assign(event="progress")[columns]])
    told = told.sort_values("time_ns", kind="stable")
    if len(told) and told["event"].iloc[0] == "job.end" and told["time_ns"].nunique() > 1:
        raise course.contradiction(0.0, "job.end lies before all else")
    told = told[(told["attempt"] >= 0) & told["event"].isin((*SHOWS_WORK[:4], *LIFE, "failure"))]
    late_ns = told["time_ns"] - told.groupby("attempt")["time_ns"].transform("min").shift()
    works_on = (told["attempt"].diff() < 0) & ~told["event"].isin(LIFE)
    wrong = told[works_on & (late_ns > LATE_EVENT_S * NS_PER_S)]
    for attempt, at_ns in wrong[["attempt", "time_ns"]].to_numpy(np.int64)[:1].tolist():
        message = f"attempt {attempt} works or fails after a later one began"
        raise course.contradiction((at_ns - course.begins_ns) / NS_PER_S, message)


def _check_steps(
    course: JobTimeline, at_s: Floats, step: Floats, attempt: Ints, incidents_s: Floats
) -> None:
    """Raise ParameterError if the steps of two jobs alternate: they go back without an incident.

    Within one attempt once is enough; else it may be a restart that left no event.
    """
    is_quiet = np.diff(np.searchsorted(incidents_s, at_s)) == 0
    goes_back = (np.diff(step) < -STEP_BACK) & is_quiet
    is_sure = goes_back & (np.diff(attempt) == 0) & (attempt[1:] >= 0)
    is_low = goes_back[:-1] & (step[2:] > step[:-2])
    if is_sure.any() or is_low.sum() >= FEWEST_BACK:
        first_s = float(at_s[1:][goes_back][0])
        raise course.contradiction(first_s, "the steps go back, as where two jobs alternate")


def _telling(reached_s: Floats, step: Floats, attempt: Ints, others_s: Floats) -> np.ndarray:
    """Rows of the `progress` that says anything new."""
    after = np.searchsorted(reached_s, others_s, side="left")
    breaks = np.flatnonzero((np.diff(step) < -STEP_BACK) | (np.diff(attempt) > 0))
    rows = np.unique(np.concatenate([[0, len(step) - 1], after, after - 1, breaks, breaks + 1]))
    return rows[(rows >= 0) & (rows < len(step))].astype(np.int64)


class JobTimeline:
    """A job from its first event to its last; takes one event after the other."""

    def __init__(self, job: str, begins_ns: int, reached: tuple[Floats, Floats]) -> None:
        self.job, self.begins_ns = job, begins_ns
        self.reached = reached  # `progress`: s, step
        self.attempts = [LoggedAttempt(stages=[("start", 0.0)], failed_s=0.0, n_failures=0)]
        self.wall_s = nan
        self.ended = self.finished = False
        self.step_s = nan  # as the log itself says
        self.contradicts_pace = False  # steps take another time than the log says
        self.tells_detection = False  # else the time from failures to restarts is relaunch
        self.background = False  # saves go on beside the training
        self.tells_starts = False  # of attempts, each of which fails once
        self.warm_ups_s: list[float] = []  # of restarts
        self.unknown_warm_ups: list[LoggedAttempt] = []  # of other restarts
        self.open_starts: list[LoggedAttempt] = []  # of these, where work may begin later
        self._state, self._number = START, 0  # of the attempt, as the log counts
        self._run = LoggedAttempt()  # the last that worked
        self._at_s = 0.0  # of the event before
        self._last_failure_s = nan
        self._failed_step, self._ranks = nan, list[str]()  # at which these ranks said so
        self._saved = nan  # steps of the last save that committed
        self._done = nan  # the step at which it had finished
        self._started_s = nan  # the first attempt

    @property
    def runs(self) -> list[LoggedAttempt]:
        """The attempts that worked."""
        return self.attempts if self.attempts[-1].works else self.attempts[:-1]

    @property
    def _now(self) -> LoggedAttempt:
        return self.attempts[-1]

    def take(self, at_s: float, event: Any) -> None:
        """An event that is no plain `progress`."""
        name, step = event.event, event.step
        if name in NOT_READ or event.part or event.mode == "part":
            message = f"{name} is of partial recovery, or says `part`: such logs are not read"
            raise self.contradiction(at_s, message, FULL_ONLY)
        if name in FAILS and (0 <= event.attempt < self._number or event.outcome == "missed"):
            return  # another attempt has followed, which counted it; or it struck nobody
        if name == "failure":
            if event.rank and step == self._failed_step and event.rank not in self._ranks:
                self._ranks.append(event.rank)
                return  # another rank says the same
            self._failed_step, self._ranks = step, [event.rank]
        if self._state is OVER:
            if name == "job.end" and (word_of(event.outcome) in DONE) != self.finished:
                raise self.contradiction(at_s, f"a second job.end differs: {event.outcome!r}")
            if name in ("job.start", "train.resume") or name in STAGES:
                self._reopen(at_s, event)
            elif self._too_late(at_s, name) not in SAVE_ENDS:
                if name == "failure" and not self._now.works and isnan(self._now.failed_s):
                    self._now.failed_s = self._run.end_s = self.wall_s  # by the first report
                    self._run.end_step = event.step
                return
        if self._state is START and name in FAILS:
            none = name == "failure" and step <= 0  # else how much it had worked is not known
            self._go_on(at_s if none else nan)
        takes = {
            "job.start": self._start, "failure": self._failure, "train.resume": self._resume,
            "job.end": self._end, **dict.fromkeys(SAVES, self._saving),
            **dict.fromkeys(("failure.detected", "rollback", *STAGES), self._halt),
        }  # fmt: skip
        if name in takes:
            takes[name](at_s, event)
        self._at_s = at_s

    # ------------------------------------------------------------------ what work shows

    def progress(self, at_s: float, step: float) -> None:
        """Note that the state has `step` steps: the job works, or did."""
        if self._state is OVER:
            if step > self._run.last_step + STEP_BACK:
                self._too_late(at_s, "progress")
            return
        if self._state is WORK and step < self._run.last_step - STEP_BACK:
            self._stop()  # the job went back without any event that says so
        if self._state is not WORK:
            self._go_on()
        self._end_stalls(step)
        self._run.see(at_s, step)
        self._at_s = at_s

    def _resume(self, at_s: float, event: Any) -> None:
        if self._state is WORK:
            run = self._run
            known = {0.0, run.to_step, *(s for of in self.attempts[:-1] for s in of.saved_steps)}
            begins = event.step in known if event.attempt < 0 else event.attempt <= self._number
            if isnan(run.begin_s) and begins and {step for _, step in run.marks} == {event.step}:
                run.begin_s, run.begin_step = run.marks[0]  # something was told before any step
                return
            has_worked = max(run.last_step, event.step) > run.begin_step + STEP_BACK
            if isfinite(run.begin_s) and (not has_worked or 0 <= event.attempt <= self._number):
                self._no_second(at_s, run.begin_s, "train.resume")
                return
            self._stop()
        if self._state is not OVER:
            self._go_on(at_s, event.step)

    def _go_on(self, at_s: float = nan, step: float = nan) -> None:
        """Work begins, at an instant that is known or not."""
        if step <= 0.0 < self._done:
            message = f"the job begins at step 0, after it had finished at step {self._done:g}"
            raise self.contradiction(at_s, message)
        self._done = nan
        self._run, self._state = self._now, WORK
        began_s = [start_s for _, start_s in self._now.stages if isfinite(start_s)]
        self._run.works, self._run.after_s = True, max(self._at_s, *began_s[-1:], 0.0)
        self._run.begin_s, self._run.begin_step = at_s, step
        if isfinite(at_s):
            self._run.see(at_s, step)

    # ------------------------------------------------------------------ what stands still

    def _stop(self, failed_s: float = nan) -> None:
        """Work ends, at an instant that is known or not."""
        run = self._run
        run.end_s = failed_s
        alive_s = run.last_s if isfinite(run.last_s) else run.after_s
        self.attempts.append(LoggedAttempt(run, alive_s, failed_s))
        self._state = STANDS

    def _halt(self, at_s: float, event: Any) -> None:
        """Something of a recovery: if the job was at work, it failed before."""
        if self._state is WORK and event.event == "regroup.start":  # nodes come back: no failure
            self._stop(at_s)
            self._now.n_failures = 0
        elif self._state is WORK:
            self._stop()
        seen_s = (event.last_seen_unix_nano - self.begins_ns) / NS_PER_S
        if event.last_seen_unix_nano and self._state is STANDS and seen_s <= at_s:
            self._now.alive_s = max(self._now.alive_s, seen_s)
        if event.event == "failure.detected":
            self._notice(at_s)
        elif event.event == "rollback":
            self._now.to_step = event.step
        else:
            self._enter(STAGES[event.event], at_s)

    def _enter(self, stage: str, at_s: float) -> None:
        if self._state in (STANDS, START):
            self._now.enter(stage, at_s)

    def _notice(self, at_s: float) -> None:
        """A failure is noticed; in the middle of a recovery a further one, not logged."""
        if self._state is STANDS and self._now.stage not in ("", "detect", NOTICED):
            is_same = self.tells_starts and self._now.stage in ("wait", "reschedule")
            if is_same or at_s - self._last_failure_s <= NEAR_S:  # noticed by another process
                return
            self._now.stages.append(("detect", nan))
            self._now.n_failures += 1
        self._last_failure_s = at_s
        self._enter(NOTICED, at_s)

    def _failure(self, at_s: float, event: Any) -> None:
        self._fail(at_s, event.step, event.attempt)
        self._planned(event.cause)
        self._now.node = self._now.node or event.node
        self._now.cause = self._now.cause or event.cause

    def _planned(self, cause: str) -> None:
        """An attempt that ended by plan did not fail."""
        if is_planned(cause) and self._now.n_failures == 1:
            self._now.n_failures = 0

    def _fail(self, at_s: float, step: float, attempt: int = -1) -> None:
        """A failure that the job waits for: the first of an attempt, or a further one."""
        if self._state is STANDS and self._worked_since(step):
            self._go_on()
        is_same = self.tells_starts or attempt >= 0
        is_same &= self._now.stage in ("detect", NOTICED, "wait", "reschedule")
        if self._state is WORK:
            self._stop(at_s)
            self._run.end_step = nan if step < self._run.last_step - STEP_BACK else step
            self._enter("detect", at_s)
        elif not (is_same or at_s - self._last_failure_s <= NEAR_S or at_s == self._now.failed_s):
            self._now.n_failures += 1
            if self._now.stage == "detect":
                self._now.stages.append(("detect", at_s))
            else:
                self._enter("detect", at_s)
        self._last_failure_s = at_s

    def _worked_since(self, step: float) -> bool:
        """Whether there are more steps in the state than an attempt can have begun with."""
        began = self._now.to_step
        if isnan(began) and self._now.stage in ("load", "warm-up"):
            began = 0.0 if isnan(self._saved) else self._saved
            if isnan(self._saved) and abs(step - self._run.final_step) <= STEP_BACK < step:
                message = f"step {step:g} comes again: no event tells whether it was made again"
                raise self.contradiction(self._at_s, message, "write train.resume with its step")
            known = [one for run in self.attempts for one in (run.begin_step, *run.saved_steps)]
            if (
                step < began - STEP_BACK
                and not (np.abs(np.subtract(known, step)) <= STEP_BACK).any()
            ):
                return True  # it went on from an older save than the last
        return step > began + STEP_BACK

    def _start(self, at_s: float, event: Any) -> None:
        if isfinite(event.step_seconds):
            self.contradicts_pace |= event.step_seconds != self.step_s and isfinite(self.step_s)
            self.step_s = event.step_seconds
        if self._state is START and event.attempt > self._number and at_s > 0:
            self._go_on()  # an attempt ended of which the log tells nothing else
        if not (event.attempt > self._number or self._state is STANDS):
            self._no_second(at_s, self._started_s, "job.start")
            self._started_s = at_s
            return
        self._number = event.attempt
        if self._state is WORK:
            self._stop()
        self._now.n_starts += 1
        if self._state is STANDS and self._now.stage != "load":
            if self._now.stage == "detect":  # when it was noticed is not told
                self._now.stages.append(("reschedule", nan))
            self._enter("load", at_s)

    def _no_second(self, at_s: float, said_s: float, name: str) -> None:
        """Raise ParameterError if an attempt repeats a unique event at another instant."""
        if at_s > said_s + NEAR_S:
            raise self.contradiction(at_s, f"a second {name} of an attempt that works on")

    # ------------------------------------------------------------------ saves, the end

    def _saving(self, at_s: float, event: Any) -> None:
        name, step = event.event, event.step
        if self._state in (STANDS, START) and name != "save.abandon":
            new = name != "save.commit" or self._state is START  # else it may be of work before
            if new or step > self._run.final_step + STEP_BACK or self._worked_since(step):
                self._go_on()
        run = self._run
        if name == "save.start":
            self._begin_save(at_s, event)
            return
        under_way = [save for save in run.saves if save.open and event.save_id in ("", save.name)]
        if name == "save.resume":
            under_way = [save for save in under_way if isnan(save.stalled_until_s)]
        save = min(under_way, key=lambda save: save.step != step, default=None)  # else the oldest
        if save is None and event.rank and step in run.saved_steps:
            return  # another rank has said it
        if save is None:  # its start is missing
            save = LoggedSave(step=step, name=event.save_id)
            run.saves.append(save)
        if self._state is WORK and not isfinite(save.stalled_until_s):
            if not (name in SAVE_ENDS and self.background):  # else the end of the stall is missing
                save.stalled_until_s = at_s
            run.see(at_s)
        if name in SAVE_ENDS:
            save.open, save.committed = False, name == "save.commit"
            self._saved = save.step if save.committed else self._saved

    def _begin_save(self, at_s: float, event: Any) -> None:
        if isnan(event.step):
            way_out = "write `step` (PyTorch: the end of `checkpoint_id`)"
            raise self.contradiction(at_s, "save.start says no step", way_out)
        last = self._run.saves[-1] if self._run.saves else LoggedSave()
        since_s = last.stalled_until_s if isfinite(last.stalled_until_s) else last.start_s
        is_again = (last.open or last.committed) and last.step == event.step
        if is_again:
            self._no_second(at_s, since_s, f"save of step {event.step:g}")
        if is_again and event.rank:
            return  # another rank has said it
        self._end_stalls()
        self._run.saves.append(LoggedSave(at_s, event.step, name=event.save_id))
        self._run.see(at_s, event.step)

    def _end_stalls(self, step: float = inf) -> None:
        """End earlier stalls without a logged end, as work continues or the next save starts."""
        for save in self._run.saves:
            if save.open and not isfinite(save.stalled_until_s) and step > save.step + STEP_BACK:
                save.open, save.committed = self.background, not self.background

    def _end(self, at_s: float, event: Any) -> None:
        self.ended, self.wall_s, self.finished = True, at_s, word_of(event.outcome) in DONE
        unsaid = self.finished or self._state is START or self._worked_since(event.step)
        if self._state is not WORK and unsaid:
            self._go_on()  # the work is not told
        if self._state is WORK and not self.finished:
            if isfinite(event.step) or is_planned(event.outcome):
                self._fail(at_s, event.step)
            else:  # it may be long since that it failed
                self._stop()
            self._now.cause = event.cause or event.outcome
            self._planned(event.outcome)
        elif self._state is WORK:
            self._run.end_s = at_s
            self._run.end_step = nan if event.step < self._run.last_step - STEP_BACK else event.step
            self._run.see(at_s, self._run.end_step)
        if self._state is STANDS:
            self._enter(NOTICED, at_s)
        self._state = OVER

    def _reopen(self, at_s: float, event: Any) -> None:
        """Another attempt follows the end of one."""
        if event.event != "job.start" and 0 <= event.attempt <= self._number and self.finished:
            raise self.contradiction(at_s, f"{event.event} follows job.end of the same attempt")
        self._done = self._run.last_step if self.finished else nan
        if self._now.works:
            self.attempts.append(LoggedAttempt(self._run, self.wall_s, self.wall_s, n_failures=0))
            self._now.cause = "finished"
            self._now.enter(NOTICED, self.wall_s)
        self._state, self.ended, self.finished = STANDS, False, False

    def _too_late(self, at_s: float, name: str) -> str:
        """Accept late events of other processes; raise ParameterError for work after the end."""
        if name in (*SHOWS_WORK, "job.end") and at_s > self.wall_s + LATE_EVENT_S:
            message = f"{name} follows job.end without a job.start between them"
            raise self.contradiction(at_s, message)
        return name

    def contradiction(self, at_s: float, message: str, way_out: str = TWO_JOBS) -> ParameterError:
        """Return the error of the log: the instant, the contradiction, and the remedy."""
        at_s = at_s if isfinite(at_s) else self._at_s
        at = f"{pd.Timestamp(self.begins_ns + round(at_s * NS_PER_S)):%Y-%m-%d %H:%M:%S}"
        return ParameterError(f"job {self.job!r}: at {at} UTC {message}; {way_out}")

    def finish(self, last_s: float) -> None:
        """End the timeline at its last event if the log has no end."""
        for attempt in self.attempts:
            stages = attempt.stages
            attempt.stages = [("reschedule" if s == NOTICED else s, at_s) for s, at_s in stages]
            noticed_s = [at_s for s, at_s in attempt.stages if s in ("wait", "reschedule")]
            unsaid_s = nan, attempt.failed_s, self.wall_s if self.ended else inf
            is_told = any(isfinite(at_s) and at_s not in unsaid_s for at_s in noticed_s)
            self.tells_detection |= is_told and attempt.n_failures > 0
        if not self.tells_detection:
            for attempt in self.attempts:
                told = ((s, at_s) for s, at_s in attempt.stages if s != "reschedule" or at_s >= 0.0)
                attempt.stages = [*told]
        if self.ended:
            return
        self.wall_s = last_s
        if self._state is WORK:
            reached_s, step = self.reached
            self._run.end_s = last_s
            if len(reached_s) and reached_s[-1] >= last_s:
                self._run.end_step = float(step[-1])
