"""The SimPy cluster: jobs on shared nodes, spares and storage, event by event.

Here one reads what a failure costs. The life of a job::

    works     --a save is due-->               stalled by it, or waiting for an earlier one
    any       --a failure strikes-->           blocked by its recovery, if a stage of that blocks
    any       --the last blocking stage ends-> works
    works     --all useful work is done, and saved if a save of it is under way--> finished

`transitions` decides each step, for the compiled loop too; here time passes. `docs/model.md` and
`docs/recovery.md` say the rules in words. A single job is a fleet of one (`run`).

Nodes, Bandwidth, Cluster   what jobs share
Save, Recovery              what goes on in a job besides its work
Job                         work, save, strike, recover, end
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np
import simpy
from simpy.events import EventPriority

from cprsim.budget import require_room
from cprsim.records import Activity, EventKind, EventLog
from cprsim.recovery.giving_up import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, NO_WORK_H
from cprsim.simulate import transitions
from cprsim.simulate.alarms import END, FAILURES, JOB, NODES, NOTICES, SAVES, STAGES, Alarm
from cprsim.simulate.bandwidth import Bandwidth, Flows
from cprsim.simulate.cycles import skip_cycles
from cprsim.simulate.job import (
    NOTICE,
    ReplicationDraws,
    ReplicationOutcome,
    ScopedFailure,
    SimulatedJob,
    StaleShard,
)  # fmt: skip
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
)  # fmt: skip

LINE = [("at_h", "f8"), ("kind", "i8"), ("activity", "i8"), ("progress_h", "f8"), ("slot", "i8")]
LINE_BYTES, LINES_SHARE, SOME_LINES = 400, 0.2, 2**12  # of a log, of the budget, between checks
WORKS, BOOKED = -2, -3  # what a job does, besides standing still for one of its parts

# --------------------------------------------------------------------------- the cluster


class Nodes:
    """One pool: free nodes go to slots that lost theirs, then to jobs in order of arrival.

        free --(a job starts)--> in a job --(it fails)--> in repair --> free
                in a job --(the job ends)--> free

    A slot takes any free node; it is vacant from its failure until then, and queued since it asked.

    Parameters
    ----------
    n_nodes : for jobs, which queue for them at arrival; None: without limit
    n_spares : more nodes, for failures; None: one is always free
    """

    def __init__(self, n_nodes: int | None = None, n_spares: int | None = None) -> None:
        self._n_nodes, self._replaces = n_nodes, n_spares is not None
        self.n_free = (n_spares or 0) + (n_nodes or 0)
        self._n_slots = 0  # of the running jobs; at most `n_nodes`
        self._n_owed = 0  # to be scrapped: without limit, jobs that end leave no nodes behind
        self._slots: deque[tuple[Job, int]] = deque()  # that wait
        self._jobs: deque[tuple[int, Callable[[], object]]] = deque()  # that wait to start

    def arrive(self, n_nodes: int, start: Callable[[], object]) -> None:
        """A job arrives; `start` is called as soon as it has its nodes."""
        if self._n_nodes is None:
            start()
        else:
            self._jobs.append((n_nodes, start))
            self._start_jobs()

    def leave(self, job: Job, n_nodes: int) -> None:
        """A job ends, and its nodes are free."""
        if job.queued:
            self._slots = deque(one for one in self._slots if one[0] is not job)
        if self._n_nodes is None:
            self._n_owed += len(job.vacant)
        else:
            self.n_free += n_nodes - len(job.vacant)
            self._n_slots -= n_nodes
        self._give()

    def lose(self, job: Job, slot: int, repair_h: float) -> None:
        """The node of a slot goes to repair; a slot without one loses none."""
        if self._replaces and slot not in job.vacant:
            job.vacant.add(slot)
            job.alarm(repair_h, NODES, self._repaired)

    def ask(self, job: Job, slots: Iterable[int]) -> None:
        """Queue those of the slots that are vacant and have not asked before."""
        for slot in sorted(job.vacant.intersection(slots) - job.queued):
            job.queued.add(slot)
            self._slots.append((job, slot))
        self._give(job)

    def _repaired(self) -> None:
        if self._n_owed:
            self._n_owed -= 1
            return
        self.n_free += 1
        self._give()

    def _give(self, asks: Job | None = None) -> None:
        """Free nodes to slots, then to jobs; a job that asks just now is not called."""
        served: dict[Job, None] = {}
        while self.n_free and self._slots:
            job, slot = self._slots.popleft()
            job.queued.remove(slot)
            job.vacant.remove(slot)
            self.n_free -= 1
            served[job] = None
        for job in served:
            if job is not asks:
                job.happens(job.on_node)
        self._start_jobs()

    def _start_jobs(self) -> None:
        while self._jobs and not self._slots:
            n_nodes, start = self._jobs[0]
            if n_nodes > min(self.n_free, (self._n_nodes or 0) - self._n_slots):
                return
            self._jobs.popleft()
            self.n_free -= n_nodes
            self._n_slots += n_nodes
            start()


class Cluster:
    """Nodes and storage of jobs on one clock. Without arguments all jobs have enough of both."""

    def __init__(
        self,
        n_nodes: int | None = None,
        n_spares: int | None = None,
        storage_bytes_per_h: float = inf,
        *,
        of_many: bool = True,
    ) -> None:
        self.env = simpy.Environment()
        self.nodes = Nodes(n_nodes, n_spares)
        self.storage = Bandwidth(self.env, storage_bytes_per_h)
        self.of_many = of_many  # jobs, each of which may take from the others at any instant


# --------------------------------------------------------------------------- what goes on in a job


@dataclass(slots=True, eq=False)
class Save:
    """A save under way."""

    capture: int
    number: int  # of those of its capture that began
    content_h: float
    due_h: float  # progress from which what it stands for is due ...
    completes_h: float  # ... and what of that completes a content; infinite: it is a part of one
    copied: int = NONE  # of a flush: the order in which what it copies was written
    course: Iterator[float] = field(init=False)  # the hours of its parts, one after the other
    end: Any = None  # of the part that it is in: an alarm, or that of flows


@dataclass(slots=True, eq=False)
class Recovery:
    """The recovery of some slots, on its way through its stages."""

    number: int
    of_all: bool  # its rule reverts all
    speed: float  # of the job, in stages that do not block it
    slots: set[int]
    ahead: deque[tuple[Any, float]]  # stages, with their hours
    loading: set[int] | None = None  # shards to load, where later failures may take them over
    sharing: Collection[int] = ()  # shards to load over a link that loads share
    stage: Any = None  # the one that it is in
    course: Iterator[float] = field(init=False)  # the hours of its stages; infinite: others end it
    end: Alarm | None = None  # of its stage; None: others end it
    flows: dict[float, Flows] = field(default_factory=dict)  # of its load, by bytes of a shard

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


class SharedSaves(NamedTuple):
    """Saves of a job that go over the cluster's storage.

    One of so many hours for the job alone has moved hours x `bytes_per_h` bytes in each flow.
    """

    captures: frozenset[int] = frozenset()
    n_flows: int = 1
    bytes_per_h: float = 1.0


ALL_ALONE = SharedSaves()


@lru_cache(maxsize=2048)  # kinds of jobs of a fleet
def numbers_as_objects(job: SimulatedJob) -> Numbers:
    """A job's numbers as objects, with the names of its parts, tiers and activities."""
    num, policy = as_objects(numbers_of(job)[0][0]), job.policy
    num.activities = [Activity.__members__.get(part.upper()) for part in policy.parts]
    num.names = [capture.tier for capture in policy.captures]
    on_grid = [n for n in range(num.n_captures) if num.captures[n].n_due]
    num.fastest = min(on_grid, key=lambda n: float(num.captures[n].every_h), default=NONE)
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


class Job:
    """A job on a cluster, from its start on: its work, saves and recoveries, and its hours."""

    outcome: ReplicationOutcome | None = None  # when it has ended

    def __init__(
        self,
        cluster: Cluster,
        job: SimulatedJob,
        failures: Iterator[ScopedFailure],
        draws: ReplicationDraws,
        *,
        shared_saves: SharedSaves = ALL_ALONE,
        logged: bool = False,
        skips: bool = True,
        on_end: Callable[[Job], object] | None = None,
    ) -> None:
        num = self.num = numbers_as_objects(job)
        self.job, self.draws = job, draws
        self.cluster, self.env = cluster, cluster.env
        self.alarms: dict[Alarm, None] = {}
        self.shared_saves, self.skips, self.on_end = shared_saves, skips, on_end
        self.began_at_h = float(self.env.now)
        self.copies = transitions.copies_as_object()
        self.slots = transitions.SlotsAsObjects()
        transitions.begin(num, self.copies, self.slots)
        self.vacant: set[int] = set()  # slots without a node
        self.queued: set[int] = set()  # those of them that wait for one

        # Work
        self.progress_h = self.frontier_h = 0.0
        self.replay_speed = 1.0
        self.doing = BOOKED  # WORKS, or the column of the part that its hours go into
        self.since_h = self.began_at_h  # what it does is booked up to here
        self.speed = self.rate = self.target_h = 0.0  # of the work in hand
        self.blocked = False
        self.hours = [0.0] * num.n_parts
        self.step = self.alarm(0.0, JOB, self._take_step)  # of the job's next step

        # Saves, by capture
        captures = range(num.n_captures)
        self.due_h = [inf for _ in captures]
        self.completes_h = [inf for _ in captures]  # of what is due, as of a save
        self._stand_on_grid(captures)
        self.n_begun = [0 for _ in captures]
        self.in_flight: list[list[Save]] = [[] for _ in captures]
        self.stalling: Save | None = None
        self.n_saves = 0

        # Failures
        self.failures = failures
        self.failure = next(failures, None)
        self.failure_alarm: Alarm | None = None
        self.clock_per_h = 0.0  # how fast failures age
        self.age_h = 0.0
        self.n_met = self.n_failures = self.n_fruitless = 0
        self.frontier_at_failure_h = -1.0
        self.stale: list[StaleShard] = []
        self.reloaded_at_h: dict[int, float] = {}  # progress, by shards that went back alone
        self.recoveries: list[Recovery] = []

        self.lines: list[list[Any]] | None = [] if logged else None  # fields of an EventLog
        self.n_named = 0  # lines whose activity has been noted
        self.last = self.alarm(num.end_h, END, partial(self._end, bool(num.end_is_planned)))
        self._note(EventKind.STARTED)

    @property
    def now_h(self) -> float:
        """Wall time since the start of the job."""
        return float(self.env.now) - self.began_at_h

    def alarm(self, delay_h: float, order: EventPriority, call: Callable[[], object]) -> Alarm:
        """An alarm at one of the job's instants."""
        near_h = NEAR * self.num.useful_h
        return Alarm(self.env, delay_h, order, call, self.alarms, near_h)

    def happens(self, call: Callable[[], object]) -> None:
        """Book the hours so far, call, and have the next step come after all of this instant."""
        self._settle()
        call()
        if self.outcome is None:
            self.plan_next_step()

    # ----------------------------------------------------------------- what the job does

    def _take_step(self) -> None:
        """Decide what the job does from here on: all that ends at this instant has ended."""
        self._settle()
        num = self.num
        if blocking := [one.stage for one in self.recoveries if one.stage.blocks]:
            self.blocked = True
            self._stand_still(min(blocking, key=lambda stage: int(stage.kind)).part)
            return
        if self.blocked:
            self.blocked = False
            self._note(EventKind.RESUMED)
        if self.stalling is not None or self._has_to_save() or self._has_to_await_last_save():
            self._stand_still(num.save)
        elif self.progress_h >= num.useful_h:
            self._end(True)
        else:
            self._work()

    def _stand_still(self, column: int) -> None:
        """The job stands still until something happens; its hours go into a part."""
        assert column != NONE, "the policy's parts lack what its hours go into"
        self.doing = column
        self.run_clock(1.0 if transitions.ages(self.num, self.blocked, True) else 0.0)
        self.name_activity(self.num.activities[column])

    def _work(self) -> None:
        """Work up to where a save is due, the frontier is reached, or the job ends."""
        num, behind = self.num, self.progress_h < self.frontier_h
        self.speed = self._speed_now()
        self.rate = transitions.rate(num, self.speed, self.replay_speed, behind)
        if self.rate == 0.0:
            if held := [one for one in self.recoveries if one.is_held]:
                for one in held:
                    if one.end is not None:
                        one.end.cancel()
                    self.go_on(one)
                self.plan_next_step()
            else:
                self._stand_still(num.wait)
            return
        if self.skips and self.copies.error_h == inf and skip_cycles(self, behind):
            return
        self.target_h = min(num.useful_h, *self.due_h, self.frontier_h if behind else inf)
        self.doing = WORKS
        self.plan_next_step((self.target_h - self.progress_h) / self.rate)
        runs = transitions.ages(num, False, behind)
        self.run_clock((self.rate if num.clock == PROGRESS else 1.0) if runs else 0.0)
        self.name_activity(Activity.LOST if behind else Activity.USEFUL)

    def _speed_now(self) -> float:
        speed = 1.0
        if self.recoveries:
            slowed = [one.speed for one in self.recoveries if not one.stage.blocks]
            speed = min(slowed, default=1.0)
        if self.num.is_elastic:
            speed *= transitions.speed_of(self.num, self.copies, self.slots)
        return speed

    def plan_next_step(self, delay_h: float = 0.0) -> None:
        """Take the next step then: by default when all else that ends at this instant has ended."""
        self.step.cancel()
        self.step = self.alarm(delay_h, JOB, self._take_step)

    def _settle(self) -> None:
        """Book the hours up to now, by which failures age. A next step has to be planned."""
        now_h = self.env.now
        if self.doing == BOOKED and now_h == self.since_h:
            return
        hours = now_h - self.since_h
        self.since_h = now_h
        self.age_h += hours * self.clock_per_h
        if self.doing == WORKS:
            progress_h = self.progress_h + hours * self.rate
            is_there = now_h >= self.step.at_h or progress_h > self.target_h
            self.book_work(self.target_h if is_there else progress_h, hours)
        elif self.doing != BOOKED:
            self.hours[self.doing] += hours
        self.doing = BOOKED

    def book_work(self, progress_h: float, hours: float) -> None:
        """Work has taken so many wall hours, and the job to this progress."""
        num = self.num
        worked_h = progress_h - self.progress_h
        behind = self.progress_h < self.frontier_h
        self.progress_h = progress_h
        if behind:
            worked_h /= self.replay_speed
            assert num.lost != NONE, "the policy's parts lack lost work"
            self.hours[num.lost] += worked_h
            if progress_h == self.frontier_h:
                self._note(EventKind.CAUGHT_UP)
        else:
            self.frontier_h = progress_h
        if num.tax:
            self.hours[num.taxed] += num.tax * worked_h
        if self.speed < 1.0:
            self.hours[num.degraded] += (1.0 - self.speed) * hours

    # ----------------------------------------------------------------- saves and recoveries go on

    def go_on(self, one: Save | Recovery) -> None:
        """A save or a recovery goes on to what takes time next, if anything does."""
        hours = next(one.course, inf)
        one.end = None if hours == inf else self.end_in(one, hours)

    def end_in(self, one: Save | Recovery, hours: float) -> Any:
        """An alarm that ends a part of a save, or a stage of a recovery."""
        over = partial(self.happens, partial(self.go_on, one))
        captures, n_flows, cap = self.shared_saves
        if isinstance(one, Recovery):
            return self.alarm(hours, STAGES, over)
        if one.capture not in captures:
            return self.alarm(hours, SAVES, over)
        return self.cluster.storage.start(self.alarm, n_flows, hours * cap, cap, SAVES, over)

    def _cost_h(self, fixed_h: float, name: str, n: int) -> float:
        """Hours that a thing takes the nth time."""
        return self.draws.hours(name, n) if isnan(fixed_h) else fixed_h

    # ----------------------------------------------------------------- saves

    def _has_to_save(self) -> bool:
        """Begin the saves that are due; whether one stalls the job or has to wait."""
        for capture, due_h in enumerate(self.due_h):
            if not transitions.is_due(self.num, due_h, self.progress_h):
                continue
            saves, in_flight = self.num.captures[capture], self.in_flight[capture]
            is_full = len(in_flight) >= saves.in_flight
            if is_full and not saves.skips:
                return True
            completes_h = self.completes_h[capture]
            self._stand_on_grid([capture])
            if not is_full:
                save = self._begin_save(capture, self.progress_h, due_h, completes_h)
                self.go_on(save)
                if self.stalling is save:
                    return True
        return False

    def _has_to_await_last_save(self) -> bool:
        """Whether a save of the final state is under way."""
        useful_h = self.num.useful_h
        return self.progress_h >= useful_h and any(
            save.content_h >= useful_h and save.copied == NONE for save in self._saves_under_way()
        )

    def _stand_on_grid(self, captures: Iterable[int]) -> None:
        """The next saves of some captures are those that the grid has from here on."""
        num = self.num
        for capture in captures:
            due_h = self.due_h[capture] = transitions.due_after(num, capture, self.progress_h)
            completes = transitions.completes(num, capture, due_h)
            self.completes_h[capture] = due_h if completes else inf

    def _begin_save(
        self, capture: int, content_h: float, due_h: float = 0.0, completes_h: float = 0.0,
        copied: int = NONE,
    ) -> Save:  # fmt: skip
        completing = transitions.is_due(self.num, completes_h, content_h)
        completes_h = completes_h if completing else inf
        save = Save(capture, self.n_begun[capture], content_h, due_h, completes_h, copied)
        save.course = self._write(save)
        self.n_begun[capture] += 1
        self._note(EventKind.SAVE_STARTED if completing else EventKind.SUB_SAVE_STARTED)
        return save

    def _write(self, save: Save) -> Iterator[float]:
        """A save: it stalls the job, goes on in the background, and commits."""
        capture, saves, tier = save.capture, self.num.captures[save.capture], self._tier_of(save)
        if save.copied == NONE:
            stall_h = self._cost_h(saves.stall_h, f"stall/{tier}", save.number)
            if stall_h > 0.0:
                self.stalling = save
                yield stall_h
                self.stalling = None
        background_h = self._cost_h(saves.background_h, f"background/{tier}", save.number)
        if background_h > 0.0:
            self.in_flight[capture].append(save)
            if save.copied == NONE:
                self._note(EventKind.SAVE_RESUMED)
            yield background_h
            self.in_flight[capture].remove(save)
        self._commit(save)

    def _commit(self, save: Save) -> None:
        """A save is valid from here on, or comes to nothing; flushes of it begin."""
        num, saves, corrupt = self.num, self.num.captures[save.capture], False
        if saves.checks and self.copies.error_h < inf:
            self.copies.noticed_at_h = self.now_h
            self.alarm(0.0, NOTICES, self._notice)
        if save.completes_h == inf:
            self._note(EventKind.SUB_SAVE_COMMITTED)
            return
        p_fail, p_corrupt = saves.p_fail, num.tiers[saves.tier].p_corrupt
        if p_fail > 0.0 or p_corrupt > 0.0:
            u = self.draws.uniform(self._tier_of(save), save.number)
            if u < p_fail:
                self._note(EventKind.SAVE_ABANDONED)
                return
            corrupt = u < p_fail + (1.0 - p_fail) * p_corrupt
        transitions.keep(num, self.copies, saves.tier, save.content_h, corrupt)
        self.n_saves += 1
        self._note(EventKind.SAVE_COMMITTED)
        order = self.copies.latest
        for number, flush in enumerate(num.captures):
            if (
                flush.after == save.capture
                and transitions.is_flushed(num, number, save.content_h)
                and len(self.in_flight[number]) < flush.in_flight
            ):
                self.go_on(self._begin_save(number, save.content_h, copied=order))

    def _saves_under_way(self) -> list[Save]:
        stalling = [] if self.stalling is None else [self.stalling]
        return [save for in_flight in self.in_flight for save in in_flight] + stalling

    def _abandon_saves(self, line: int, before_h: float, silent: bool) -> None:
        """Abandon what is under way; what it stands for is due again, unless that is undone.

        The log has it before the failure, at its line and at the progress of then.
        """
        for save in self._saves_under_way():
            if self._outlives(save) and not silent:
                continue
            save.end.cancel()
            if save is self.stalling:
                self.stalling = None
            else:
                self.in_flight[save.capture].remove(save)
            if self.lines is not None:
                self._note(EventKind.SAVE_ABANDONED)
                self.lines.insert(line, self.lines.pop())
                self.lines[line][3] = before_h
                line += 1
            is_due = transitions.is_due(self.num, save.due_h, self.progress_h)
            if is_due and save.copied == NONE:
                self._make_due(save.capture, save.due_h, save.completes_h)

    def _make_due(self, capture: int, due_h: float, completes_h: float) -> None:
        """A save is due as the job goes on: one, also if others of its capture are by then."""
        self.due_h[capture] = min(self.due_h[capture], due_h)
        self.completes_h[capture] = min(self.completes_h[capture], completes_h)

    def _outlives(self, save: Save) -> bool:
        """Whether a save is a flush of something that is still there."""
        if save.copied == NONE or save.content_h > self.progress_h:
            return False
        copied = self.num.captures[self.num.captures[save.capture].after]
        return transitions.survives(
            self.num, self.copies, self.slots, copied.tier, save.copied, False
        )

    def _tier_of(self, save: Save) -> str:
        return str(self.num.names[save.capture])

    # ----------------------------------------------------------------- failures

    def run_clock(self, per_h: float) -> None:
        """Failures age by so much per wall hour from now on; the next is due at its age."""
        if self.num.clock == PROGRESS:
            self.age_h = self.frontier_h
        elif self.num.clock == WALL:
            self.age_h = self.now_h
        if per_h == self.clock_per_h and self.failure_alarm is not None:
            return
        if self.failure_alarm is not None:
            self.failure_alarm.cancel()
            self.failure_alarm = None
        self.clock_per_h = per_h
        if self.failure is not None and per_h > 0.0:
            delay_h = max(0.0, self.failure.at_h - self.age_h) / per_h
            self.failure_alarm = self.alarm(delay_h, FAILURES, partial(self.happens, self._fail))

    def _fail(self) -> None:
        """A failure or a silent error strikes, or a failure is announced."""
        failure, self.failure = self.failure, next(self.failures, None)
        assert failure is not None
        self.failure_alarm = None
        self.age_h = failure.at_h
        if failure.scope == NOTICE:
            for capture, saves in enumerate(self.num.captures):
                if saves.on_notice:
                    self._make_due(capture, self.progress_h, self.progress_h)
        elif failure.scope == self.num.silent:
            self._err()
        else:
            self._meet(failure)

    def _err(self) -> None:
        """A silent error strikes the state."""
        fixed_h = self.num.scopes[self.num.silent].latency_h
        latency_h = self._cost_h(fixed_h, "latency", self.copies.n_errors)
        transitions.err(self.copies, self.progress_h, self.now_h + latency_h)
        if latency_h < inf:
            self.alarm(latency_h, NOTICES, self._notice)

    def _notice(self) -> None:
        """An error that the state still has is noticed: its contents are gone, all slots fail."""
        num, copies = self.num, self.copies
        if copies.noticed_at_h <= self.now_h + NEAR * num.useful_h:
            transitions.drop_beyond(num, copies, copies.error_h)
            slots = tuple(range(num.n_slots))
            failure = ScopedFailure(self.now_h, slots, num.silent, ())
            self.happens(partial(self._meet, failure))

    def _meet(self, failure: ScopedFailure) -> None:
        """A failure strikes the slots that have nodes."""
        self.n_met += 1
        struck = [slot for slot in failure.slots if slot not in self.queued]
        if self._is_given_up(struck):
            self._end(False)
            return
        line = 0 if self.lines is None else len(self.lines)
        for slot in failure.slots:
            self._note(EventKind.MISSED if slot in self.queued else EventKind.FAILED, slot)
        if struck:
            self._strike(failure, struck, line)
            self.n_failures += 1

    def _strike(self, failure: ScopedFailure, struck: list[int], line: int) -> None:
        """What a failure does to the slots that it strikes, to the job, and to its saves."""
        num, copies, slots = self.num, self.copies, self.slots
        scope = num.scopes[failure.scope]
        copied = [save.copied for of in self.in_flight for save in of if save.copied != NONE]
        transitions.forget_wipes(num, copies, slots, min(copied, default=copies.latest + 1))
        copies.n_struck = len(struck)
        for n, slot in enumerate(struck):
            slots[n].struck = slot
            transitions.wipe(copies, slots, slot, scope.wipes)
            if scope.needs_node:
                repair_h = failure.repair_h[failure.slots.index(slot)]
                self.cluster.nodes.lose(self, slot, repair_h)
        chosen, source, content_h = transitions.choose(num, copies, slots, failure.scope)
        reverts = transitions.reverts_of(num, chosen)
        number = chosen if chosen != NONE else num.n_rules - 1
        rule, before_h = num.rules[number], self.progress_h
        if reverts == ALL:
            content_h = transitions.goes_back_to(num, chosen, before_h, content_h)
            self._roll_back(content_h)
            self.replay_speed = rule.replay_speed
        reverted = self._reverted(reverts, source, struck)
        for slot in reverted:
            self._note(EventKind.REVERTED, slot)
            if not (rule.replays and slot in struck):
                fresh_h = max(content_h, self.reloaded_at_h.get(slot, content_h))
                self.stale.append(StaleShard(before_h, slot, content_h, fresh_h))
                self.reloaded_at_h[slot] = before_h
        if reverts == ALL or not rule.stops_nothing:
            self._abandon_saves(line, before_h, failure.scope == num.silent)
        stages = self._stages(
            number, failure.scope, source, reverts, reverted, before_h - content_h
        )
        recovery = Recovery(self.n_failures, reverts == ALL, rule.speed, set(struck), stages)
        if reverted:
            recovery.loading = set(reverted)
        if source != NONE and num.tiers[source].shares:
            first, size = num.tiers[source].first, num.tiers[source].size
            recovery.sharing = range(first, first + size) if reverts == ALL else reverted
        self._recover(recovery)

    def _roll_back(self, progress_h: float) -> None:
        """All go back to a progress."""
        num = self.num
        self.progress_h = progress_h
        transitions.drop_beyond(num, self.copies, progress_h)
        due_h = enumerate(self.due_h)
        self._stand_on_grid(
            [n for n, at_h in due_h if not transitions.is_due(num, at_h, progress_h)]
        )
        self.reloaded_at_h.clear()
        self._note(EventKind.ROLLED_BACK)

    def _reverted(self, reverts: int, source: int, struck: list[int]) -> list[int]:
        """Shards that go back while the job's progress stays."""
        num = self.num
        if reverts == STRUCK:
            return [slot for slot in struck if transitions.is_of(num, source, slot)]
        if reverts == SHARDS:
            first = num.tiers[source].first
            return list(range(first, first + num.tiers[source].size))
        return []

    def _is_given_up(self, struck: list[int]) -> bool:
        """Whether failures leave the job hardly any first-time work (docs/model.md, section 12)."""
        if self.n_met > HARDLY_AFTER and self.now_h > HARDLY_TIMES * self.frontier_h:
            return True
        if not struck:
            return False
        if self.frontier_h > self.frontier_at_failure_h + NO_WORK_H:
            self.frontier_at_failure_h = self.frontier_h
            self.n_fruitless = 0
        self.n_fruitless += 1
        return self.n_fruitless > HOPELESS_AFTER

    # ----------------------------------------------------------------- recoveries

    def _stages(
        self, rule: int, scope: int, source: int, reverts: int, reverted: list[int], lost_h: float
    ) -> deque[tuple[Any, float]]:
        """The stages of a rule with their hours; those of a wait are not known beforehand."""
        num, of_rule, n = self.num, self.num.rules[rule], self.n_failures
        stages: deque[tuple[Any, float]] = deque()
        for place in range(of_rule.n_stages):
            stage = num.stages[of_rule.first_stage + place]
            hours = self._cost_h(stage.cost_h, f"stage/{rule}/{place}", n)
            if stage.kind == DETECT and not stage.has_cost:
                name = f"detect/{self.job.scopes[scope].name}"
                hours = self._cost_h(num.scopes[scope].detect_h, name, n)
            elif stage.kind == REPLAY and not stage.has_cost:
                hours = lost_h / of_rule.replay_speed if reverts == ALL or reverted else 0.0
            elif stage.kind == LOAD:
                nobody_loads = reverts == STRUCK and not reverted
                hours = 0.0 if nobody_loads else hours + self._loads_h(source)
            stages.append((stage, hours))
        return stages

    def _loads_h(self, source: int) -> float:
        """Hours to load from a source, and what was tried before it and is corrupt."""
        hours = 0.0
        for tier, of_tier in enumerate(self.job.policy.tiers):
            n_loads = self.copies.tries[tier] + (tier == source)
            if n_loads:
                load_h, name = self.num.tiers[tier].load_h, f"load/{of_tier.name}"
                hours += n_loads * self._cost_h(load_h, name, self.n_failures)
        return hours

    def _recover(self, recovery: Recovery) -> None:
        """A recovery begins, and takes slots and loads over from those under way."""
        struck = frozenset(recovery.slots)
        for other in list(self.recoveries):
            if recovery.of_all and other.stage.blocks:
                recovery.slots |= other.slots
                self._stop_recovery(other)
            elif other.slots & struck:
                other.slots -= struck
                if not other.slots and not (other.of_all and other.has_load):
                    self._stop_recovery(other)
        for other in list(self.recoveries):
            if other.is_held:
                self._stop_recovery(other)
                self._come_back(other)
        for other in list(self.recoveries):
            if recovery.loading and other.loading:
                taken = other.loading & recovery.loading
                other.loading -= taken
                if other.sharing:
                    self._move_no_more(other, taken)
        for slot in recovery.slots:
            self.slots[slot].recovery = recovery.number
        self._begin_recovery(recovery)
        self.go_on(recovery)

    def _begin_recovery(self, recovery: Recovery) -> None:
        recovery.course = self._walk(recovery)
        self.recoveries.append(recovery)

    def _walk(self, recovery: Recovery) -> Iterator[float]:
        """A recovery: those of its stages that take time, one after the other, to its end."""
        while recovery.ahead:
            if recovery.stage is not None and recovery.stage.copies_again:
                for slot in recovery.slots:
                    self.slots[slot].left = True
            stage, hours = recovery.ahead.popleft()
            recovery.stage = stage
            if stage.kind == WAIT and not isnan(stage.grows_h):
                hours = transitions.grows_in_h(stage.grows_h, self.now_h)
            elif stage.kind == WAIT:
                self.cluster.nodes.ask(self, recovery.slots)
                hours = 0.0 if self._has_its_nodes(recovery) else inf
            elif stage.kind == REGROUP and not stage.has_cost:
                hours = transitions.regroup_h_of(self.num, self.copies, self.slots)
            elif stage.kind == LOAD and recovery.loading == set():
                hours = 0.0
            elif stage.kind == LOAD and recovery.sharing:
                self._move(recovery)
                hours = inf
            if hours > 0.0:
                self._note(EventKind.STAGE)
                yield hours
        self.recoveries.remove(recovery)
        self._come_back(recovery)

    def _come_back(self, recovery: Recovery) -> None:
        """The slots of a recovery that has ended are up."""
        was_waited_for = recovery.stage is None or recovery.stage.blocks
        for slot in sorted(recovery.slots):
            self.slots[slot].recovery = NONE
            transitions.come_back(self.copies, self.slots, slot)
            if not was_waited_for:
                self._note(EventKind.REPLACED, slot)

    def _stop_recovery(self, recovery: Recovery) -> None:
        self.recoveries.remove(recovery)
        if recovery.end is not None:
            recovery.end.cancel()
        if recovery.flows:
            self._share_link({flows: 0 for flows in recovery.flows.values()})

    # Waiting for nodes

    def on_node(self) -> None:
        """A slot has got its node: recoveries that waited for it alone go on."""
        for recovery in list(self.recoveries):
            waits = recovery.stage.kind == WAIT and not recovery.is_held
            if waits and self._has_its_nodes(recovery):
                self.go_on(recovery)

    def _has_its_nodes(self, recovery: Recovery) -> bool:
        """Whether a wait is over; from one for each slot those that still wait stay behind."""
        waiting = recovery.slots & self.vacant
        if not waiting:
            return True
        if not recovery.stage.each or waiting == recovery.slots:
            return False
        recovery.slots -= waiting
        self._begin_recovery(
            replace(recovery, slots=waiting, ahead=recovery.ahead.copy(), flows={})
        )
        return True

    # Loads that share a link

    def _move(self, recovery: Recovery) -> None:
        """The shards of a recovery begin to move."""
        n_by_bytes = self._n_by_bytes(recovery.loading or recovery.sharing)
        cap = self._share_link({}, sum(n_by_bytes.values()))
        for size_bytes, n in n_by_bytes.items():
            moved = partial(self.happens, partial(self._moved, recovery, size_bytes))
            flows = self.cluster.storage.start(self.alarm, n, size_bytes, cap, STAGES, moved)
            recovery.flows[size_bytes] = flows

    def _moved(self, recovery: Recovery, size_bytes: float) -> None:
        """The shards of one size have moved."""
        del recovery.flows[size_bytes]
        self._share_link({})
        if not recovery.flows:
            self.go_on(recovery)

    def _move_no_more(self, recovery: Recovery, shards: Collection[int]) -> None:
        """Shards of a recovery stop; its load ends where none is left that moves."""
        fewer = {size: n for size, n in self._n_by_bytes(shards).items() if size in recovery.flows}
        flows = recovery.flows
        self._share_link({flows[size]: flows[size].n - n for size, n in fewer.items()})
        recovery.flows = {size: one for size, one in flows.items() if one.n}
        if fewer and not recovery.flows:
            self.go_on(recovery)

    def _share_link(self, n_now: Mapping[Flows, int], n_more: int = 0) -> float:
        """The loads of a job divide its link evenly, shard by shard: the bytes per hour of each."""
        flows = {one: one.n for other in self.recoveries for one in other.flows.values()}
        flows |= n_now
        cap = transitions.rate_of_each(self.num, max(1, n_more + sum(flows.values())))
        self.cluster.storage.change(flows, cap)
        return cap

    def _n_by_bytes(self, shards: Collection[int]) -> dict[float, int]:
        """How many of some shards are of each size, as the link that loads share takes them."""
        return link_of(self.job.policy).n_by_bytes(shards, self.job.cluster.shard_slots.start)

    # ----------------------------------------------------------------- the end, and the log

    def _end(self, finished: bool) -> None:
        """The job leaves the cluster, at its useful work or horizon, or given up."""
        self._settle()
        for save in self._saves_under_way():
            save.end.cancel()
            self._note(EventKind.SAVE_ABANDONED)
        finished = finished and self.progress_h > 0.0
        if finished and self.progress_h < self.frontier_h:
            self.hours[self.num.lost] += self.frontier_h - self.progress_h  # for good
            self.frontier_h = self.progress_h
        self.outcome = ReplicationOutcome(
            finished,
            self.now_h,
            self.frontier_h,
            tuple(self.hours),
            self.n_failures,
            self.n_saves,
            tuple(self.stale),
        )
        self._note(EventKind.FINISHED if finished else EventKind.STOPPED)
        self.name_activity(Activity.OVER)
        for alarm in (self.step, self.last, self.failure_alarm):
            if alarm is not None:
                alarm.cancel()
        for recovery in list(self.recoveries):
            self._stop_recovery(recovery)
        self.cluster.nodes.leave(self, self.num.n_slots)
        if self.on_end is not None:
            self.on_end(self)

    def _note(self, kind: EventKind, slot: int = -1) -> None:
        """Add a line to the log."""
        if self.lines is None:
            return
        if len(self.lines) % SOME_LINES == SOME_LINES - 1:
            require_room(
                LINE_BYTES * len(self.lines),
                f"the events of one replication, {self.n_met} failures among them,",
                "an MTBF {} times as long would fit",
                share=LINES_SHARE,
            )
        self.lines.append([self.now_h, kind, None, self.progress_h, slot])

    def name_activity(self, activity: Activity) -> None:
        """Note what the job does after all that happened at this instant.

        A change of activity has a line. A stage has none if the activity stays, as another stage
        of its kind, or of one less advanced, is under way.
        """
        lines, n = self.lines, self.n_named
        if lines is None:
            return
        changes = n == 0 or lines[n - 1][2] is not activity
        if n == len(lines) and changes:
            self._note(EventKind.SAVE_DUE if activity is Activity.SAVE else EventKind.STAGE)
        for line in lines[n:]:
            line[2] = activity
        stages = [place for place in range(n, len(lines)) if lines[place][1] is EventKind.STAGE]
        for place in reversed(stages):
            if place > n or not changes:
                del lines[place]
        self.n_named = len(lines)

    def log(self, replication: int = 0) -> EventLog:
        """Its log so far; empty if it keeps none."""
        rows: Any = np.array([tuple(line) for line in self.lines or ()], LINE)
        columns = [np.ascontiguousarray(rows[name]) for name, _ in LINE]
        return EventLog(np.full(len(rows), replication, dtype=np.int64), *columns)


# --------------------------------------------------------------------------- one job, and many


class Played(NamedTuple):
    """One replication: its outcome, and its log, empty if that was not asked for."""

    outcome: ReplicationOutcome
    log: EventLog


def run(
    job: SimulatedJob,
    failures: Iterator[ScopedFailure],
    draws: ReplicationDraws,
    *,
    logged: bool = True,
    skips: bool = True,
) -> Played:
    """Run a job alone on its cluster: a fleet of one."""
    cluster = Cluster(n_spares=job.cluster.n_spares, of_many=False)
    alone = Job(cluster, job, failures, draws, logged=logged, skips=skips)
    while alone.outcome is None:
        cluster.env.step()
    return Played(alone.outcome, alone.log())


def run_fleet(
    cluster: Cluster,
    arrivals: Sequence[tuple[float, int]],
    begin: Callable[[int, Callable[[Job], object]], object],
) -> list[tuple[float, ReplicationOutcome]]:
    """When each job of a fleet starts, and its outcome.

    Parameters
    ----------
    arrivals : hour and nodes of each job
    begin : makes the job of that number, with its `on_end`, as soon as it has its nodes
    """
    ran: list[Any] = [None for _ in arrivals]

    def end(number: int, job: Job) -> None:
        ran[number] = job.began_at_h, job.outcome

    for number, (at_h, n_nodes) in enumerate(arrivals):
        start = partial(begin, number, partial(end, number))
        Alarm(cluster.env, at_h, JOB, partial(cluster.nodes.arrive, n_nodes, start), {})
    cluster.env.run()
    return ran
