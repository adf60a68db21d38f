"""One replication of a job under a recovery system, event by event, by SimPy.

`docs/recovery.md` says in words what happens, `transitions` decides it, and here time passes:

    works     --a save is due-->          stalled by it, or waiting for one before to commit
    any       --a failure strikes-->      blocked by recoveries, unless none of their stages blocks
    any       --the last of those ends--> works
    works     --all useful work is done, and what holds it has been committed--> finished

Saves, recoveries and repairs have alarms of their own. At each, the job's hours up to then are
booked, and its next step is planned when all else that ends at that instant has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache, partial
from math import inf, isnan
from typing import Any, NamedTuple, Protocol

import simpy

from cprsim.budget import require_room
from cprsim.recovery.giving_up import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H
from cprsim.recovery.policy import STAGE_ORDER
from cprsim.simulate import transitions
from cprsim.simulate.events.alarms import END, FAILURES, JOB, NOTICES, SAVES, STAGES, Alarm
from cprsim.simulate.events.sharing import SharedLink
from cprsim.simulate.events.spares import Spares
from cprsim.simulate.job import (
    NOTICE,
    ReplicationDraws,
    ReplicationOutcome,
    ScopedFailure,
    SimulatedJob,
    StaleShard,
)
from cprsim.simulate.numbers import (
    ALL,
    DETECT,
    LOAD,
    NEAR,
    NONE,
    PROGRESS,
    REGROUP,
    REPLAY,
    SHARDS,
    STRUCK,
    WAIT,
    WALL,
    Numbers,
    as_objects,
    link_of,
    numbers_of,
)

ENTRY_BYTES = 400  # of a line of the log, until its timeline is drawn
ENTRIES_SHARE = 0.2  # of the budget, for all lines of one replication
STALE_BYTES, MANY_STALE = 200.0, 2**16  # shards that went back
SOME_ENTRIES = 2**12  # after which they are counted

WORKS, BOOKED = -2, -3  # what the job does, besides standing still for a part of its hours

# --------------------------------------------------------------------------- what comes out


class What(StrEnum):
    """What happens in the life of a job."""

    STARTED = "started"
    SAVE_STARTED = "save started"
    SAVE_RESUMED = "save resumed"  # it has stalled the job, and goes on in the background
    SAVE_AWAITED = "save awaited"  # the job stands still until one in the background commits
    SAVE_COMMITTED = "save committed"
    PART_STARTED = "part started"  # a save that does not complete a content
    PART_COMMITTED = "part committed"
    SAVE_FAILED = "save failed"
    SAVE_LEFT_OUT = "save left out"
    SAVE_ABANDONED = "save abandoned"
    CYCLES_SKIPPED = "cycles skipped"  # of work and save, all alike, in one step from here on
    ANNOUNCED = "announced"  # a failure to come
    FAILED = "failed"
    MISSED = "missed"
    REVERTED = "reverted"
    ROLLED_BACK = "rolled back"
    STAGE = "stage"
    BACK = "back"
    REPLACED = "replaced"  # back, and nobody waited for it
    RESUMED = "resumed"
    CAUGHT_UP = "caught up"
    FINISHED = "finished"
    STOPPED = "stopped"


class LogEntry(NamedTuple):
    """One line of the log, in wall hours."""

    at_h: float
    what: What
    part: str  # what the job's hours go into from this instant on: "useful" or a policy's part
    progress_h: float
    detail: int | str = ""  # slot, tier, kind of stage, or how many cycles


@dataclass(frozen=True, slots=True)
class Played:
    """One replication: what became of it, and how, in the order of time."""

    outcome: ReplicationOutcome
    log: tuple[LogEntry, ...]  # empty where it was not asked for


def run(
    job: SimulatedJob,
    failures: Iterator[ScopedFailure],
    draws: ReplicationDraws,
    *,
    logged: bool = True,
    skips: bool = True,
) -> Played:
    """Run one replication from its start to its end."""
    return Replication(job, failures, draws, logged, skips).run()


# --------------------------------------------------------------------------- what goes on


class Pending(Protocol):
    """Something that ends at an instant, unless it is cancelled (`alarms.Alarm`)."""

    @property
    def at_h(self) -> float: ...

    def cancel(self) -> None: ...


@dataclass(slots=True, eq=False)
class Save:
    """A save under way."""

    capture: int
    number: int  # of those of its capture that began
    content_h: float
    due_h: float  # progress from which what it stands for is due ...
    completes_h: float  # ... and what of that completes a content; infinite: it is a part of one
    copied: int = NONE  # of a flush: the order in which what it copies was written
    alarm: Pending = field(init=False)  # the end of the stall, then the commit


@dataclass(slots=True, eq=False)
class Recovery:
    """The recovery of some slots, on its way through its stages."""

    number: int
    of_all: bool  # its rule reverts all
    speed: float  # of the job, in stages that do not block it
    slots: set[int]
    ahead: deque[tuple[Any, float]]  # stages, with their hours
    stage: Any = None  # the one that it is in
    alarm: Alarm | None = None  # of the end of that; None while it waits, or shares a link
    loading: set[int] | None = None  # shards to load, where later failures may take them over
    sharing: Collection[int] = ()  # shards to load over a link that loads share

    @property
    def is_held(self) -> bool:
        """Whether it waits for the job to take its slots in."""
        return self.stage.kind == WAIT and not isnan(self.stage.grows_h)

    @property
    def has_load(self) -> bool:
        """Whether a load is before it or under way; one that takes no time is none."""
        takes_time = bool(self.sharing)
        ahead = any(s.kind == LOAD and (hours > 0.0 or takes_time) for s, hours in self.ahead)
        return ahead or self.stage.kind == LOAD


class NodeSource(Protocol):
    """Where the slots of a job that have lost their nodes get others (`spares.Spares`)."""

    @property
    def queued(self) -> Container[int]: ...

    @property
    def next_at_h(self) -> float: ...

    def lose(self, slot: int, repair_h: float) -> None: ...

    def ask(self, slots: Iterable[int]) -> None: ...

    def lacks(self, slots: set[int]) -> bool: ...


class Link(Protocol):
    """The link that the loads of a job share (`sharing.SharedLink`)."""

    @property
    def next_at_h(self) -> float: ...

    def start(self, load: Any, n_by_bytes: Mapping[float, int]) -> None: ...

    def drop(self, load: Any, n_by_bytes: Mapping[float, int]) -> None: ...

    def stop(self, load: Any) -> None: ...


class Surroundings(Protocol):
    """What a job shares with others: the clock of the simulation, spare nodes, the storage."""

    @property
    def env(self) -> simpy.Environment: ...

    @property
    def num(self) -> Numbers: ...

    def nodes_for(self, on_node: Callable[[], None]) -> NodeSource: ...

    def link_for(self, num: Numbers, on_end: Callable[[Any], None]) -> Link: ...


@lru_cache(maxsize=256)
def _tiers_of(job: SimulatedJob) -> tuple[str, ...]:
    """The tier that each capture writes to."""
    return tuple(capture.tier for capture in job.policy.captures)


@lru_cache(maxsize=256)
def _numbers(job: SimulatedJob) -> Numbers:
    return numbers_as_objects(job)


def numbers_as_objects(job: SimulatedJob) -> Numbers:
    """A job's numbers as objects, and the names of its parts."""
    num = as_objects(numbers_of(job)[0][0])
    num.parts = job.policy.parts
    n_stages = sum(rule.n_stages for rule in num.rules[: num.n_rules])
    for name, n in {  # a fleet has thousands of jobs: no room for what they do not have
        "tiers": num.n_tiers,
        "captures": num.n_captures,
        "rules": num.n_rules,
        "scopes": len(job.scopes),
        "stages": n_stages,
    }.items():
        setattr(num, name, getattr(num, name)[:n])
    return num


# --------------------------------------------------------------------------- the job


class Replication:
    """One replication: a job, what it saves, what it recovers from, and where its hours go."""

    def __init__(
        self,
        job: SimulatedJob,
        failures: Iterator[ScopedFailure],
        draws: ReplicationDraws,
        logged: bool,
        skips: bool,
        within: Surroundings | None = None,
    ) -> None:
        num = self._num = _numbers(job) if within is None else within.num
        self._job, self._draws, self._near_h = job, draws, NEAR * num.useful_h
        self._tiers = _tiers_of(job)
        self._env = simpy.Environment() if within is None else within.env
        self._began_at_h = float(self._env.now)
        self._copies = transitions.copies_as_object()
        self._slots = transitions.SlotsAsObjects()
        transitions.begin(num, self._copies, self._slots)
        self._spares: NodeSource
        self._link: Link
        if within is None:
            self._spares = Spares(self._env, num.n_spares, self._on_node)
            self._link = SharedLink(self._env, num, self._on_stage_over)
        else:
            self._spares = within.nodes_for(self._on_node)
            self._link = within.link_for(num, self._on_stage_over)

        # Work
        self._progress_h = self._frontier_h = 0.0
        self._replay_speed = 1.0
        self._doing = BOOKED  # WORKS, or the column of the part that its hours go into
        self._since_h = self._began_at_h  # what it does is booked up to here
        self._speed = self._rate = self._target_h = 0.0  # of the work in hand
        self._blocked = False
        self._hours = [0.0] * num.n_parts
        self._step = Alarm(self._env, 0.0, JOB, self._take_step)  # of the job's next step

        # Saves, by capture
        captures = range(num.n_captures)
        self._due_h = [inf for _ in captures]
        self._completes_h = [inf for _ in captures]  # of what is due, as of a save
        self._stand_on_grid(captures)
        self._n_begun = [0 for _ in captures]
        self._in_flight: list[list[Save]] = [[] for _ in captures]
        self._stalling: Save | None = None
        self._n_saves = 0
        on_grid = [capture for capture in captures if num.captures[capture].n_due]
        self._fastest = min(on_grid, key=lambda n: float(num.captures[n].every_h), default=NONE)

        # Failures
        self._failures = failures
        self._failure = next(failures, None)
        self._failure_alarm: Alarm | None = None
        self._clock_per_h = 0.0  # how fast failures age
        self._age_h = 0.0
        self._n_met = self._n_failures = self._n_fruitless = 0
        self._frontier_at_failure_h = -1.0
        self._stale: list[StaleShard] = []
        self._reloaded_at_h: dict[int, float] = {}  # progress, by shards that went back alone
        self._recoveries: list[Recovery] = []

        self._entries: list[LogEntry] | None = [] if logged else None
        self._skips = skips
        self._n_named = 0  # entries whose part has been noted
        self._outcome: ReplicationOutcome | None = None
        end = partial(self._end, bool(num.end_is_planned))
        self._last = Alarm(self._env, num.end_h, END, end, self._near_h)

    def run(self) -> Played:
        self._log(What.STARTED)
        while self._outcome is None:
            self._env.step()
        return Played(self._outcome, tuple(self._entries or ()))

    @property
    def _now_h(self) -> float:
        """Wall time since the start of the job."""
        return float(self._env.now) - self._began_at_h

    def _is_now(self, at_h: float) -> bool:
        """Whether an instant to come is this one, but for rounding."""
        return bool(0.0 < at_h - self._env.now < self._near_h)

    # ----------------------------------------------------------------- what the job does

    def _take_step(self) -> None:
        """What the job does from here on, as all that ends at this instant has ended."""
        self._settle()
        num = self._num
        some = self._recoveries
        if some and (later_h := [h for h in self._stages_end_at_h() if self._is_now(h)]):
            self._step = Alarm(self._env, max(later_h) - self._env.now, JOB, self._take_step)
            return
        if some and (blocking := [one.stage for one in some if one.stage.blocks]):
            self._blocked = True
            self._stand_still(min(blocking, key=lambda stage: int(stage.kind)).part)
            return
        if self._blocked:
            self._blocked = False
            self._log(What.RESUMED)
        if self._stalling is not None or self._has_to_save() or self._has_to_await_last_save():
            self._stand_still(num.save)
        elif self._progress_h >= num.useful_h:
            self._end(True)
        else:
            self._work()

    def _stand_still(self, column: int) -> None:
        """The job stands still until something happens; its hours go into a part."""
        assert column != NONE, "the policy's parts lack what its hours go into"
        self._doing = column
        runs = transitions.ages(self._num, self._blocked, True)
        self._run_clock(1.0 if runs else 0.0)
        self._name_part(self._num.parts[column])

    def _work(self) -> None:
        """Work up to where a save is due, the frontier is reached, or the job ends."""
        num, behind = self._num, self._progress_h < self._frontier_h
        self._speed = self._speed_now()
        self._rate = transitions.rate(num, self._speed, self._replay_speed, behind)
        if self._rate == 0.0:
            if held := [one for one in self._recoveries if one.is_held]:
                for one in held:
                    if one.alarm is not None:
                        one.alarm.cancel()
                    self._enter_next_stage(one)
                self._plan_next_step()
            else:
                self._stand_still(num.wait)
            return
        if self._skip_cycles(behind):
            return
        self._target_h = min(num.useful_h, *self._due_h, self._frontier_h if behind else inf)
        self._doing = WORKS
        delay_h = (self._target_h - self._progress_h) / self._rate
        self._step = Alarm(self._env, delay_h, JOB, self._take_step)
        runs = transitions.ages(num, False, behind)
        self._run_clock((self._rate if num.clock == PROGRESS else 1.0) if runs else 0.0)
        self._name_part("lost" if behind else "useful")

    def _speed_now(self) -> float:
        speed = 1.0
        if self._recoveries:
            slowed = [one.speed for one in self._recoveries if not one.stage.blocks]
            speed = min(slowed, default=1.0)
        if self._num.is_elastic:
            speed *= transitions.speed_of(self._num, self._copies, self._slots)
        return speed

    def _plan_next_step(self) -> None:
        """Take the job's next step as soon as all else that ends at this instant has ended."""
        self._step.cancel()
        self._step = Alarm(self._env, 0.0, JOB, self._take_step)

    def _go_on(self) -> None:
        """The same as the last that an alarm does: at once, if nothing else is at this instant."""
        self._step.cancel()
        if self._env.peek() > self._env.now:
            self._take_step()
        else:
            self._step = Alarm(self._env, 0.0, JOB, self._take_step)

    def _settle(self) -> None:
        """Book the hours up to now, by which failures age. A next step has to be planned."""
        now_h = self._env.now
        if self._doing == BOOKED and now_h == self._since_h:
            return
        hours = now_h - self._since_h
        self._since_h = now_h
        self._age_h += hours * self._clock_per_h
        if self._doing == WORKS:
            progress_h = self._progress_h + hours * self._rate
            is_there = now_h >= self._step.at_h or progress_h > self._target_h
            self._book_work(self._target_h if is_there else progress_h, hours)
        elif self._doing != BOOKED:
            self._hours[self._doing] += hours
        self._doing = BOOKED

    def _book_work(self, progress_h: float, hours: float) -> None:
        """Work has taken so many wall hours, and the job to this progress."""
        num = self._num
        worked_h = progress_h - self._progress_h
        behind = self._progress_h < self._frontier_h
        self._progress_h = progress_h
        if behind:
            worked_h /= self._replay_speed
            assert num.lost != NONE, "the policy's parts lack lost work"
            self._hours[num.lost] += worked_h
            if progress_h == self._frontier_h:
                self._log(What.CAUGHT_UP)
        else:
            self._frontier_h = progress_h
        if num.tax:
            self._hours[num.taxed] += num.tax * worked_h
        if self._speed < 1.0:
            self._hours[num.degraded] += (1.0 - self._speed) * hours

    def _skip_cycles(self, behind: bool) -> bool:
        """Take cycles of work and save at once, of the capture that saves most often."""
        capture = self._fastest
        may = self._skips and capture != NONE and self._copies.error_h == inf
        n = self._n_to_skip(capture, behind) if may else 0
        if n == 0:
            return False
        num, saves, due_h = self._num, self._num.captures[capture], self._due_h[capture]
        work_h = n * saves.every_h / self._rate
        hours = work_h + n * saves.stall_h
        self._due_h[capture] = transitions.due_after(num, capture, due_h + (n - 1) * saves.every_h)
        if self._completes_h[capture] < inf:
            self._completes_h[capture] = self._due_h[capture]
        self._log(What.CYCLES_SKIPPED, n)
        self._book_work(self._due_h[capture] - (due_h - self._progress_h), work_h)
        self._hours[num.save] += n * saves.stall_h
        first = transitions.number_of(num, capture, due_h) - len(self._in_flight[capture])
        transitions.keep_latest(num, self._copies, capture, first, first + n - 1)
        along = transitions.flushes_go_along(num, capture, self._rate)
        for other, of in enumerate(num.captures[: num.n_captures]):
            if other != capture and not (along and of.after == capture):
                continue
            nth = 1 if other == capture else of.nth
            self._n_begun[other] += n // nth
            self._n_saves += n // nth // of.parts
            for save in self._in_flight[other]:
                save.alarm.cancel()
                save.number += n // nth
                save.content_h += n * saves.every_h
                save.due_h += n * saves.every_h
                save.completes_h += n * saves.every_h
                self._set_alarm(save, save.alarm.at_h + hours - self._env.now, self._on_commit)
        self._step = Alarm(self._env, hours, JOB, self._take_step)
        self._run_clock(0.0 if num.clock == PROGRESS else 1.0)  # that of work has been moved on
        self._name_part("lost" if behind else "useful")
        return True

    def _n_to_skip(self, capture: int, behind: bool) -> int:
        """How many cycles of a capture come before anything else happens."""
        num, due_h, failure = self._num, self._due_h[capture], self._failure
        until_progress_h = self._frontier_h if behind else num.useful_h
        if failure is not None and num.clock == PROGRESS and not behind:
            until_progress_h = min(until_progress_h, failure.at_h)
        for other, other_due_h in enumerate(self._due_h):
            if other != capture:
                until_progress_h = min(until_progress_h, other_due_h)
        if until_progress_h < due_h + 2.0 * num.captures[capture].every_h:
            return 0
        along = transitions.flushes_go_along(num, capture, self._rate)
        ends = [self._began_at_h + num.end_h, *self._stages_end_at_h()]
        for other, in_flight in enumerate(self._in_flight):
            if other != capture and not (along and num.captures[other].after == capture):
                ends += [save.alarm.at_h for save in in_flight]
        if failure is not None and num.clock != PROGRESS:
            ends.append(self._env.now + failure.at_h - self._age_h)
        within_h, until_h = (due_h - self._progress_h) / self._rate, min(ends) - self._env.now
        for nth, save in enumerate(reversed(self._in_flight[capture]), 1):
            commits_in_h = save.alarm.at_h - self._env.now
            if not transitions.is_in_rhythm(
                num, capture, due_h, within_h, self._rate, nth,
                save.content_h, save.completes_h < inf, commits_in_h,
            ):  # fmt: skip
                return 0
        saves = num.captures[capture]
        commits_in_h = within_h + saves.stall_h + saves.background_h
        if self._in_flight[capture]:
            commits_in_h = self._in_flight[capture][0].alarm.at_h - self._env.now
        for other, in_flight in enumerate(self._in_flight):
            follows = num.captures[other].after == capture
            if (
                along
                and follows
                and any(s.alarm.at_h - self._env.now > commits_in_h for s in in_flight)
            ):
                return 0
        return transitions.cycles_to_skip(
            num, capture, len(self._in_flight[capture]), due_h, within_h, self._rate,
            until_progress_h, until_progress_h, until_h,
        )  # fmt: skip

    # ----------------------------------------------------------------- saves

    def _has_to_save(self) -> bool:
        """Begin the saves that are due; whether one stalls the job or has to wait."""
        for capture, due_h in enumerate(self._due_h):
            if not transitions.is_due(self._num, due_h, self._progress_h):
                continue
            saves = self._num.captures[capture]
            in_flight = self._in_flight[capture]
            is_full = len(in_flight) >= saves.in_flight
            if is_full and (
                not saves.skips or any(self._is_now(one.alarm.at_h) for one in in_flight)
            ):
                return True
            completes_h = self._completes_h[capture]
            self._stand_on_grid([capture])
            if is_full:
                self._log(What.SAVE_LEFT_OUT, self._tier_of(capture))
                continue
            save = self._begin_save(capture, self._progress_h, due_h, completes_h)
            stall_h = self._cost_h(saves.stall_h, f"stall/{self._tier_of(capture)}", save.number)
            if stall_h > 0.0:
                self._stalling = save
                self._set_alarm(save, stall_h, self._on_stalled)
                return True
            self._go_on_behind(save)
        return False

    def _has_to_await_last_save(self) -> bool:
        """Whether a save of the final state is in the background."""
        if self._progress_h < self._num.useful_h:
            return False
        return any(
            save.content_h >= self._num.useful_h and save.copied == NONE
            for in_flight in self._in_flight
            for save in in_flight
        )

    def _stand_on_grid(self, captures: Iterable[int]) -> None:
        """The next saves of some captures are those that the grid has from here on."""
        num = self._num
        for capture in captures:
            due_h = transitions.due_after(num, capture, self._progress_h)
            self._due_h[capture] = due_h
            self._completes_h[capture] = (
                due_h if transitions.completes(num, capture, due_h) else inf
            )

    def _begin_save(
        self, capture: int, content_h: float, due_h: float = 0.0, completes_h: float = 0.0
    ) -> Save:
        completing = transitions.is_due(self._num, completes_h, content_h)
        completes_h = completes_h if completing else inf
        save = Save(capture, self._n_begun[capture], content_h, due_h, completes_h)
        self._n_begun[capture] += 1
        what = What.SAVE_STARTED if completing else What.PART_STARTED
        self._log(what, self._tier_of(capture))
        return save

    def _on_stalled(self, save: Save) -> None:
        self._settle()
        self._stalling = None
        self._go_on_behind(save)
        self._go_on()

    def _go_on_behind(self, save: Save) -> None:
        """Write in the background, or commit where nothing is left to do there."""
        saves, tier = self._num.captures[save.capture], self._tier_of(save.capture)
        hours = self._cost_h(saves.background_h, f"background/{tier}", save.number)
        if hours > 0.0:
            self._in_flight[save.capture].append(save)
            self._set_alarm(save, hours, self._on_commit)
            if save.copied == NONE:
                self._log(What.SAVE_RESUMED, tier)
        else:
            self._commit(save)

    def _on_commit(self, save: Save) -> None:
        self._settle()
        self._in_flight[save.capture].remove(save)
        self._commit(save)
        self._go_on()

    def _commit(self, save: Save) -> None:
        num, saves, name = self._num, self._num.captures[save.capture], self._tier_of(save.capture)
        if saves.checks and self._copies.error_h < inf:
            self._copies.noticed_at_h = self._now_h
            Alarm(self._env, 0.0, NOTICES, self._notice)
        if save.completes_h == inf:
            self._log(What.PART_COMMITTED, name)
            return
        p_corrupt, corrupt = num.tiers[saves.tier].p_corrupt, False
        if saves.p_fail > 0.0 or p_corrupt > 0.0:
            u = self._draws.uniform(name, save.number)
            if u < saves.p_fail:
                self._log(What.SAVE_FAILED, name)
                return
            corrupt = u < saves.p_fail + (1.0 - saves.p_fail) * p_corrupt
        transitions.keep(num, self._copies, saves.tier, save.content_h, corrupt)
        self._n_saves += 1
        self._log(What.SAVE_COMMITTED, name)
        order = self._copies.latest
        for flush in range(num.n_captures):
            follows = num.captures[flush].after == save.capture
            if follows and transitions.is_flushed(num, flush, save.content_h):
                if len(self._in_flight[flush]) < num.captures[flush].in_flight:
                    copy = self._begin_save(flush, save.content_h)
                    copy.copied = order
                    self._go_on_behind(copy)
                else:
                    self._log(What.SAVE_LEFT_OUT, self._tier_of(flush))

    def _abandon_saves(self, scope: int) -> None:
        """Abandon what is under way; what it stands for is due again, unless that is undone."""
        under_way = [save for in_flight in self._in_flight for save in in_flight]
        if self._stalling is not None:
            under_way.append(self._stalling)
        self._stalling = None
        for save in under_way:
            if self._outlives(save) and scope != self._num.silent:
                continue
            save.alarm.cancel()
            if save in self._in_flight[save.capture]:
                self._in_flight[save.capture].remove(save)
            self._log(What.SAVE_ABANDONED, self._tier_of(save.capture))
            is_due = transitions.is_due(self._num, save.due_h, self._progress_h)
            if is_due and save.copied == NONE:
                self._make_due(save.capture, save.due_h, save.completes_h)

    def _make_due(self, capture: int, due_h: float, completes_h: float) -> None:
        """A save is due as the job goes on: one, also if others of its capture are by then."""
        self._due_h[capture] = min(self._due_h[capture], due_h)
        self._completes_h[capture] = min(self._completes_h[capture], completes_h)

    def _outlives(self, save: Save) -> bool:
        """Whether a save is a flush of something that is still there."""
        if save.copied == NONE or save.content_h > self._progress_h:
            return False
        copied = self._num.captures[self._num.captures[save.capture].after]
        return transitions.survives(
            self._num, self._copies, self._slots, copied.tier, save.copied, False
        )

    def _set_alarm(self, save: Save, delay_h: float, call: Callable[[Save], None]) -> None:
        save.alarm = Alarm(self._env, delay_h, SAVES, lambda: call(save))

    def _tier_of(self, capture: int) -> str:
        return self._tiers[capture]

    def _cost_h(self, fixed_h: float, name: str, n: int) -> float:
        """Hours that a thing takes the nth time."""
        return self._draws.hours(name, n) if isnan(fixed_h) else fixed_h

    # ----------------------------------------------------------------- failures

    def _run_clock(self, per_h: float) -> None:
        """Failures age by so much per wall hour from now on; the next is due at its age."""
        if self._num.clock == PROGRESS:
            self._age_h = self._frontier_h
        elif self._num.clock == WALL:
            self._age_h = self._now_h
        if per_h == self._clock_per_h and self._failure_alarm is not None:
            return
        if self._failure_alarm is not None:
            self._failure_alarm.cancel()
            self._failure_alarm = None
        self._clock_per_h = per_h
        if self._failure is not None and per_h > 0.0:
            delay_h = max(0.0, self._failure.at_h - self._age_h) / per_h
            self._failure_alarm = Alarm(self._env, delay_h, FAILURES, self._fail, self._near_h)

    def _fail(self) -> None:
        """A failure strikes."""
        self._settle()
        failure, self._failure = self._failure, next(self._failures, None)
        assert failure is not None
        self._failure_alarm = None
        self._age_h = failure.at_h
        if failure.scope == NOTICE:
            self._be_told()
            return
        if failure.scope == self._num.silent:
            self._err()
            return
        self._meet(failure)

    def _meet(self, failure: ScopedFailure) -> None:
        """A failure, or an error as it is noticed, strikes all its slots that have a node."""
        self._n_met += 1
        struck = [slot for slot in failure.slots if slot not in self._spares.queued]
        if self._hardly_gets_further() or (struck and self._is_hopeless()):
            self._end(False)
            return
        for slot in failure.slots:
            self._log(What.MISSED if slot in self._spares.queued else What.FAILED, slot)
        if struck:
            self._strike(failure, struck)
            self._n_failures += 1
        self._go_on()

    def _be_told(self) -> None:
        """A failure is announced: saves on notice are due."""
        self._log(What.ANNOUNCED)
        for capture, saves in enumerate(self._num.captures[: len(self._due_h)]):
            if saves.on_notice:
                self._make_due(capture, self._progress_h, self._progress_h)
        self._plan_next_step()

    def _err(self) -> None:
        """A silent error strikes the state."""
        fixed_h = self._num.scopes[self._num.silent].latency_h
        latency_h = self._cost_h(fixed_h, "latency", self._copies.n_errors)
        transitions.err(self._copies, self._progress_h, self._now_h + latency_h)
        if latency_h < inf:
            Alarm(self._env, latency_h, NOTICES, self._notice, self._near_h)
        self._plan_next_step()

    def _notice(self) -> None:
        """An error that the state still holds is noticed: all slots fail, bad contents are gone."""
        if self._copies.noticed_at_h > self._now_h + self._near_h:
            return
        self._settle()
        transitions.drop_beyond(self._num, self._copies, self._copies.error_h)
        slots = tuple(range(self._num.n_slots))
        self._meet(ScopedFailure(self._now_h, slots, self._num.silent, ()))

    def _strike(self, failure: ScopedFailure, struck: list[int]) -> None:
        """What a failure does to the slots that it strikes, to the job, and to its saves."""
        num, copies, slots = self._num, self._copies, self._slots
        scope = num.scopes[failure.scope]
        copied = [save.copied for of in self._in_flight for save in of if save.copied != NONE]
        transitions.forget_wipes(num, copies, slots, min(copied, default=copies.latest + 1))
        copies.n_struck = len(struck)
        for n, slot in enumerate(struck):
            slots[n].struck = slot
            transitions.wipe(copies, slots, slot, scope.wipes)
            if scope.needs_node and num.n_spares != NONE:
                self._spares.lose(slot, failure.repair_h[failure.slots.index(slot)])
        chosen, source, content_h = transitions.choose(num, copies, slots, failure.scope)
        reverts = transitions.reverts_of(num, chosen)
        rule = chosen if chosen != NONE else num.n_rules - 1
        before_h = self._progress_h
        if reverts == ALL:
            content_h = self._roll_back(transitions.goes_back_to(num, chosen, before_h, content_h))
            self._replay_speed = num.rules[rule].replay_speed
            self._reloaded_at_h.clear()
        reverted = self._reverted(reverts, source, struck)
        for slot in reverted:
            self._log(What.REVERTED, slot)
            if not (num.rules[rule].replays and slot in struck):
                fresh_h = max(content_h, self._reloaded_at_h.get(slot, content_h))
                self._stale.append(StaleShard(before_h, slot, content_h, fresh_h))
                self._reloaded_at_h[slot] = before_h
        if len(self._stale) > MANY_STALE:
            require_room(
                STALE_BYTES * float(len(self._stale)),
                f"the shards that go back in one replication, in {self._n_met} failures,",
                "an MTBF {} times as long would fit",
            )
        if reverts == ALL or not num.rules[rule].stops_nothing:
            self._abandon_saves(failure.scope)
        goes_back = reverts == ALL or bool(reverted)
        lost_h = before_h - content_h
        stages = self._stages(rule, failure.scope, source, goes_back, lost_h, reverts)
        speed = num.rules[rule].speed
        recovery = Recovery(self._n_failures, reverts == ALL, speed, set(struck), stages)
        if reverted:
            recovery.loading = set(reverted)
        if source != NONE and num.tiers[source].shares:
            first, size = num.tiers[source].first, num.tiers[source].size
            recovery.sharing = range(first, first + size) if reverts == ALL else reverted
        self._recover(recovery)

    def _roll_back(self, progress_h: float) -> float:
        """All go back to a progress."""
        self._progress_h = progress_h
        transitions.drop_beyond(self._num, self._copies, progress_h)
        captures = range(self._num.n_captures)
        due_h = self._due_h
        undone = [n for n in captures if not transitions.is_due(self._num, due_h[n], progress_h)]
        self._stand_on_grid(undone)
        self._log(What.ROLLED_BACK)
        return progress_h

    def _reverted(self, reverts: int, source: int, struck: list[int]) -> list[int]:
        """Shards that go back while the job's progress stays."""
        num = self._num
        if reverts == STRUCK:
            return [slot for slot in struck if transitions.is_of(num, source, slot)]
        if reverts == SHARDS:
            first = num.tiers[source].first
            return list(range(first, first + num.tiers[source].size))
        return []

    def _hardly_gets_further(self) -> bool:
        """Whether very many failures have left the job with little first-time work."""
        if self._n_met <= HARDLY_AFTER:
            return False
        return bool(self._now_h > HARDLY_TIMES * self._frontier_h)

    def _is_hopeless(self) -> bool:
        """Whether failure has followed failure without any first-time work between them."""
        if self._frontier_h > self._frontier_at_failure_h + NO_WORK_H:
            self._frontier_at_failure_h = self._frontier_h
            self._n_fruitless = 0
        self._n_fruitless += 1
        return self._n_fruitless > HOPELESS_AFTER

    # ----------------------------------------------------------------- recoveries

    def _stages(
        self, rule: int, scope: int, source: int, goes_back: bool, lost_h: float, reverts: int
    ) -> deque[tuple[Any, float]]:
        """The stages of a rule with their hours; those of a wait are not known beforehand."""
        num, of_rule, n = self._num, self._num.rules[rule], self._n_failures
        stages: deque[tuple[Any, float]] = deque()
        for place in range(of_rule.n_stages):
            stage = num.stages[of_rule.first_stage + place]
            hours = self._cost_h(stage.cost_h, f"stage/{rule}/{place}", n)
            if stage.kind == DETECT and not stage.has_cost:
                name = f"detect/{self._job.scopes[scope].name}"
                hours = self._cost_h(num.scopes[scope].detect_h, name, n)
            elif stage.kind == REPLAY and not stage.has_cost:
                hours = lost_h / of_rule.replay_speed if goes_back else 0.0
            elif stage.kind == LOAD:
                nobody_loads = reverts == STRUCK and not goes_back
                hours = 0.0 if nobody_loads else hours + self._loads_h(source)
            stages.append((stage, hours))
        return stages

    def _loads_h(self, source: int) -> float:
        """Hours to load from a source, and what was tried before it and is corrupt."""
        hours = 0.0
        for tier, of_tier in enumerate(self._job.policy.tiers):
            n_loads = self._copies.tries[tier] + (tier == source)
            if n_loads:
                load_h, name = self._num.tiers[tier].load_h, f"load/{of_tier.name}"
                hours += n_loads * self._cost_h(load_h, name, self._n_failures)
        return hours

    def _n_by_bytes(self, shards: Collection[int]) -> dict[float, int]:
        """How many of some shards are of each size, as the link that loads share takes them."""
        return link_of(self._job.policy).n_by_bytes(shards, self._job.cluster.shard_slots.start)

    def _recover(self, recovery: Recovery) -> None:
        """A recovery begins, and takes slots and loads over from those under way."""
        struck = frozenset(recovery.slots)
        for other in list(self._recoveries):
            if recovery.of_all and other.stage.blocks:
                recovery.slots |= other.slots
                self._stop_recovery(other)
            elif other.slots & struck:
                other.slots -= struck
                if not other.slots and not (other.of_all and other.has_load):
                    self._stop_recovery(other)
        for other in list(self._recoveries):
            if other.is_held:
                self._stop_recovery(other)
                self._come_back(other)
        for other in list(self._recoveries):
            if recovery.loading and other.loading:
                taken = other.loading & recovery.loading
                other.loading -= taken
                if other.sharing:
                    self._link.drop(other, self._n_by_bytes(taken))
        self._recoveries.append(recovery)
        for slot in recovery.slots:
            self._slots[slot].recovery = recovery.number
        self._enter_next_stage(recovery)

    def _stop_recovery(self, recovery: Recovery) -> None:
        self._recoveries.remove(recovery)
        self._link.stop(recovery)
        if recovery.alarm is not None:
            recovery.alarm.cancel()

    def _enter_next_stage(self, recovery: Recovery) -> None:
        """Go on to the next stage that takes time, or end."""
        recovery.alarm = None
        while recovery.ahead:
            if recovery.stage is not None and recovery.stage.copies_again:
                for slot in recovery.slots:
                    self._slots[slot].left = True
            recovery.stage, hours = recovery.ahead.popleft()
            if recovery.stage.kind == WAIT and not isnan(every_h := recovery.stage.grows_h):
                hours = transitions.grows_in_h(every_h, self._now_h)
                if hours == 0.0:
                    continue
                if hours < inf:
                    self._end_stage_in(recovery, hours)
            elif recovery.stage.kind == WAIT:
                self._spares.ask(recovery.slots)
                if self._goes_on(recovery):
                    continue
            elif recovery.stage.kind == REGROUP and not recovery.stage.has_cost:
                hours = transitions.regroup_h_of(self._num, self._copies, self._slots)
                if hours == 0.0:
                    continue
                self._end_stage_in(recovery, hours)
            elif recovery.stage.kind == LOAD and recovery.loading == set():
                continue
            elif recovery.stage.kind == LOAD and recovery.sharing:
                shards = recovery.loading or recovery.sharing
                self._link.start(recovery, self._n_by_bytes(shards))
            elif hours > 0.0:
                self._end_stage_in(recovery, hours)
            else:
                continue
            self._log(What.STAGE, STAGE_ORDER[recovery.stage.kind].value)
            return
        self._recoveries.remove(recovery)
        self._come_back(recovery)

    def _come_back(self, recovery: Recovery) -> None:
        """The slots of a recovery that has ended are up."""
        was_waited_for = recovery.stage is None or recovery.stage.blocks
        for slot in sorted(recovery.slots):
            self._slots[slot].recovery = NONE
            transitions.come_back(self._copies, self._slots, slot)
            self._log(What.BACK if was_waited_for else What.REPLACED, slot)

    def _stages_end_at_h(self) -> list[float]:
        """When stages of recoveries end, or when the first one may that others decide of."""
        ends = [one.alarm.at_h for one in self._recoveries if one.alarm is not None]
        return [self._spares.next_at_h, self._link.next_at_h, *ends]

    def _end_stage_in(self, recovery: Recovery, hours: float) -> None:
        def over() -> None:
            self._settle()
            self._enter_next_stage(recovery)
            self._go_on()

        recovery.alarm = Alarm(self._env, hours, STAGES, over, self._near_h)

    def _on_stage_over(self, recovery: Recovery) -> None:
        self._settle()
        self._enter_next_stage(recovery)
        self._plan_next_step()

    def _on_node(self) -> None:
        """A slot has got its node: recoveries that waited for it alone go on."""
        self._settle()
        for recovery in list(self._recoveries):
            waits = recovery.stage.kind == WAIT and not recovery.is_held
            if waits and self._goes_on(recovery):
                self._enter_next_stage(recovery)
        self._plan_next_step()

    def _goes_on(self, recovery: Recovery) -> bool:
        """Whether a wait is over; from one for each slot those that still wait stay behind."""
        waiting = {slot for slot in recovery.slots if self._spares.lacks({slot})}
        if not waiting:
            return True
        if not recovery.stage.each or waiting == recovery.slots:
            return False
        recovery.slots -= waiting
        self._recoveries.append(replace(recovery, slots=waiting, ahead=recovery.ahead.copy()))
        return True

    # ----------------------------------------------------------------- the end, and the log

    def _end(self, finished: bool) -> None:
        self._settle()
        for save in [one for in_flight in self._in_flight for one in in_flight]:
            if finished and self._is_now(save.alarm.at_h):
                self._commit(save)
        finished = finished and self._progress_h > 0.0
        if finished and self._progress_h < self._frontier_h:
            self._hours[self._num.lost] += self._frontier_h - self._progress_h  # for good
            self._frontier_h = self._progress_h
        self._outcome = ReplicationOutcome(
            finished,
            self._now_h,
            self._frontier_h,
            tuple(self._hours),
            self._n_failures,
            self._n_saves,
            tuple(self._stale),
        )
        self._log(What.FINISHED if finished else What.STOPPED)
        self._name_part("over")

    def _log(self, what: What, detail: int | str = "") -> None:
        if self._entries is not None:
            if len(self._entries) % SOME_ENTRIES == SOME_ENTRIES - 1:
                require_room(
                    ENTRY_BYTES * len(self._entries),
                    f"the events of one replication, {self._n_met} failures among them,",
                    "an MTBF {} times as long would fit",
                    share=ENTRIES_SHARE,
                )
            self._entries.append(LogEntry(self._now_h, what, "", self._progress_h, detail))

    def _name_part(self, part: str) -> None:
        """Note in the log what the hours go into after all that happened at this instant."""
        if self._entries is None:
            return
        if self._n_named == len(self._entries) and part != self._entries[-1].part:
            if part == "save":
                self._log(What.SAVE_AWAITED)
            else:  # the stage of a recovery that goes on after another has ended
                self._log(What.STAGE, part)
        for n in range(self._n_named, len(self._entries)):
            self._entries[n] = self._entries[n]._replace(part=part)
        self._n_named = len(self._entries)
