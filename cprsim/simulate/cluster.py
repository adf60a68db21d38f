"""The SimPy cluster: jobs on shared nodes, spares and storage, event by event.

Here one reads what a failure costs. A job is a process: it decides its next step and works or waits
until its end (`life`). A failure, the end of a save or of a stage of a recovery, and whatever else
happens at an instant, ends the step early (`happens`)::

    works     --a save is due-->               stalled by it, or waiting for an earlier one
    any       --a failure strikes-->           blocked by its recovery, if a stage of that blocks
    any       --the last blocking stage ends-> works
    works     --all useful work is done, and saved if a save of it is under way--> finished

`transitions` decides, for the compiled loop as well; here time passes. `docs/model.md` and
`docs/recovery.md` say the rules in words. A single job is a fleet of one (`run`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isnan
from typing import Any, cast

import simpy
from simpy.events import EventPriority

from cprsim.records import Activity, EventKind
from cprsim.simulate import transitions
from cprsim.simulate.bandwidth import Link, SharedStorage
from cprsim.simulate.cycles import skip_cycles
from cprsim.simulate.job import (
    HARDLY_AFTER,
    HARDLY_TIMES,
    HOPELESS_AFTER,
    NO_WORK_H,
    NOTICE,
    LogLines,
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
    numbers_as_objects,
)
from cprsim.simulate.running import END, FAILURES, JOB, NOTICES, STAGES, Alarm, Nodes, Recovery
from cprsim.simulate.saves import ALL_ALONE, Saves, SharedSaves

Process = Generator[simpy.Event, Any, Any]
WORKS, BOOKED = -2, -3  # what a job does, besides standing still for one of its parts


# --------------------------------------------------------------------------- what there is


class SharedCluster:
    """Nodes and storage of jobs on one clock. Without arguments all jobs have enough of both."""

    def __init__(
        self,
        n_nodes: int | None = None,
        n_spares: int | None = None,
        storage_bytes_per_h: float = inf,
    ) -> None:
        self.env = simpy.Environment()
        self.nodes = Nodes(n_nodes, n_spares)
        self.storage = SharedStorage(self.env, storage_bytes_per_h)


# --------------------------------------------------------------------------- the job


class RunningJob:
    """A job on a cluster, from its start on: its work, saves and recoveries, and its hours."""

    outcome: ReplicationOutcome | None = None  # when it has ended

    def __init__(
        self,
        cluster: SharedCluster,
        job: SimulatedJob,
        failures: Iterator[ScopedFailure],
        draws: Any,  # `blocks.ReplicationDraws`
        *,
        shared_saves: SharedSaves = ALL_ALONE,
        logbook: LogLines | None = None,
        skips: bool = True,
    ) -> None:
        num = self.num = numbers_as_objects(job)
        self.job, self.draws = job, draws
        self.cluster, self.env = cluster, cluster.env
        self.alarms: dict[Alarm, None] = {}
        self.shared_saves = shared_saves
        self.skips = skips and not shared_saves.captures
        self.logbook = logbook
        self.began_at_h = float(self.env.now)
        self.copies = transitions.copies_as_object(num)
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

        self.saves, self.link = Saves(self), Link(self)

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
        self.n_recoveries = 0  # that have begun

        ends = partial(self.happens, partial(self._end, bool(num.end_is_planned)))
        self.last = self.at(num.end_h, END, ends)
        self.note(EventKind.STARTED)
        self.alarm = self.at(0.0, JOB)  # of the end of its step
        self.process = self.env.process(self.life())

    @property
    def now_h(self) -> float:
        """Wall time since the start of the job."""
        return float(self.env.now) - self.began_at_h

    # ----------------------------------------------------------------- the process of the job

    def life(self) -> Process:
        """One step after another, each until its end or until something happens."""
        yield self.alarm
        while self.outcome is None:
            self.alarm = self.at(self._step(), JOB)
            yield self.alarm
        return self.outcome

    def happens(self, call: Callable[[], object]) -> None:
        """Something happens to the job."""
        if self.outcome is None:
            self.book()
            call()
            self.decide()

    def decide(self) -> None:
        """Have the job decide again when all that ends at this instant has ended."""
        if self.process is not self.env.active_process and self.alarm.at_h > self.env.now:
            self.alarm = self.alarm.moved(0.0)

    def at(
        self, hours: float, order: EventPriority, call: Callable[[], object] | None = None
    ) -> Alarm:
        """An alarm at one of the job's instants."""
        return Alarm(self.env, hours, order, call, self.alarms, NEAR * self.num.useful_h)

    # ----------------------------------------------------------------- what the job does

    def _step(self) -> float:
        """Decide what the job does from here on, and until when [h]."""
        self.book()
        num = self.num
        if blocking := [recovery.stage for recovery in self.recoveries if recovery.stage.blocks]:
            self.blocked = True
            return self._stand_still(min(blocking, key=lambda stage: int(stage.kind)).part)
        if self.blocked:
            self.blocked = False
            self.note(EventKind.RESUMED)
        if (
            self.saves.stalling is not None
            or self.saves.begin_due()
            or self.saves.has_last_under_way()
        ):
            return self._stand_still(num.save)
        if self.progress_h >= num.useful_h:
            self._end(True)
            return 0.0
        return self._work()

    def _stand_still(self, column: int) -> float:
        """The job stands still until something happens; its hours go into a part."""
        assert column != NONE, "the policy's parts lack what its hours go into"
        self.doing = column
        self.run_clock(1.0 if transitions.ages(self.num, self.blocked, True) else 0.0)
        self.name_activity(self.num.activities[column])
        return inf

    def _work(self) -> float:
        """Work up to where a save is due, the frontier is reached, or the job ends."""
        num, behind = self.num, self.progress_h < self.frontier_h
        speeds = [recovery.speed for recovery in self.recoveries]  # of those none blocks the job
        self.speed = min(speeds, default=1.0)
        if num.elastic_size:
            self.speed *= transitions.speed_of(num, self.copies, self.slots)
        self.rate = transitions.rate(num, self.speed, self.replay_speed, behind)
        if self.rate == 0.0:
            waiting = [recovery for recovery in self.recoveries if recovery.is_held]
            for recovery in waiting:
                self.go_on(recovery)
            return 0.0 if waiting else self._stand_still(num.wait)
        may_skip = self.skips and self.copies.error_h == inf
        if may_skip and (hours := skip_cycles(self, behind)):
            return hours
        self.target_h = min(num.useful_h, *self.saves.due_h, self.frontier_h if behind else inf)
        self.doing = WORKS
        runs = transitions.ages(num, False, behind)
        self.run_clock((self.rate if num.clock == PROGRESS else 1.0) if runs else 0.0)
        self.name_activity(Activity.LOST if behind else Activity.USEFUL)
        return (self.target_h - self.progress_h) / self.rate

    def book(self) -> None:
        """Book the hours up to now, by which failures age."""
        now_h = self.env.now
        if self.doing == BOOKED and now_h == self.since_h:
            return
        hours = now_h - self.since_h
        self.since_h = now_h
        self.age_h += hours * self.clock_per_h
        if self.doing == WORKS:
            progress_h = self.progress_h + hours * self.rate
            is_there = progress_h > self.target_h or now_h >= self.alarm.at_h
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
                self.note(EventKind.CAUGHT_UP)
        else:
            self.frontier_h = progress_h
        if num.tax:
            self.hours[num.taxed] += num.tax * worked_h
        if self.speed < 1.0:
            self.hours[num.degraded] += (1.0 - self.speed) * hours

    def cost_h(self, fixed_h: float, name: str, n: int) -> float:
        """Hours that a thing takes the nth time."""
        return self.draws.hours(name, n) if isnan(fixed_h) else fixed_h

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
            self.failure_alarm = self.at(delay_h, FAILURES, partial(self.happens, self._fail))

    def _fail(self) -> None:
        """A failure or a silent error strikes, or a failure is announced."""
        failure, self.failure = self.failure, next(self.failures, None)
        assert failure is not None
        self.failure_alarm = None
        self.age_h = failure.at_h
        if failure.scope == NOTICE:
            for capture, saves in enumerate(self.num.captures):
                if saves.on_notice:
                    self.saves.make_due(capture, self.progress_h, self.progress_h)
        elif failure.scope == self.num.silent:
            self._err()
        else:
            self._meet(failure)

    def _err(self) -> None:
        """A silent error strikes the state."""
        fixed_h = self.num.scopes[self.num.silent].latency_h
        latency_h = self.cost_h(fixed_h, "latency", self.copies.n_errors)
        transitions.err(self.copies, self.progress_h, self.now_h + latency_h)
        if latency_h < inf:
            self.at(latency_h, NOTICES, self.notice)

    def notice(self) -> None:
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
        line = 0 if self.logbook is None else len(self.logbook.lines)
        for slot in failure.slots:
            self.note(EventKind.MISSED if slot in self.queued else EventKind.FAILED, slot)
        if struck:
            self._strike(failure, struck, line)
            self.n_failures += 1

    def _strike(self, failure: ScopedFailure, struck: list[int], line: int) -> None:
        """What a failure does to the slots that it strikes, to the job, and to its saves."""
        num, copies, slots = self.num, self.copies, self.slots
        scope = num.scopes[failure.scope]
        copied = [save.copied for of in self.saves.in_flight for save in of if save.copied != NONE]
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
            self.note(EventKind.REVERTED, slot)
            if not (rule.replays and slot in struck):
                fresh_h = max(content_h, self.reloaded_at_h.get(slot, content_h))
                self.stale.append(StaleShard(before_h, slot, content_h, fresh_h))
                self.reloaded_at_h[slot] = before_h
        if reverts == ALL or not rule.stops_nothing:
            self.saves.abandon(line, before_h, failure.scope == num.silent)
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
        due_h = enumerate(self.saves.due_h)
        self.saves.stand_on_grid(
            [n for n, at_h in due_h if not transitions.is_due(num, at_h, progress_h)]
        )
        self.reloaded_at_h.clear()
        self.note(EventKind.ROLLED_BACK)

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
        """Whether failures leave the job hardly any first-time work (docs/model.md, section 9)."""
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
            hours = self.cost_h(stage.cost_h, f"stage/{rule}/{place}", n)
            if stage.kind == DETECT and not stage.has_cost:
                name = f"detect/{self.job.scopes[scope].name}"
                hours = self.cost_h(num.scopes[scope].detect_h, name, n)
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
                hours += n_loads * self.cost_h(load_h, name, self.n_failures)
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
                shards = other.loading & recovery.loading
                other.loading -= shards
                self.link.drop(other, shards)
        for slot in recovery.slots:
            self.slots[slot].recovery = recovery.number
        self._begin_recovery(recovery)

    def _begin_recovery(self, recovery: Recovery) -> None:
        self.recoveries.append(recovery)
        self.n_recoveries += 1
        recovery.order = EventPriority(STAGES + self.n_recoveries)
        if recovery.stage is None:
            self._next_stage(recovery)
        else:  # what stays behind in a wait is in it
            recovery.alarm = None

    def go_on(self, recovery: Recovery) -> None:
        """The stage of a recovery has ended."""
        if recovery.alarm is not None:
            recovery.alarm.cancel()
        self.happens(partial(self._next_stage, recovery))

    def _next_stage(self, recovery: Recovery) -> None:
        """A recovery goes on to the next stage that takes time; after the last its slots are up."""
        while recovery.ahead:
            if recovery.stage is not None and recovery.stage.copies_again:
                for slot in recovery.slots:
                    self.slots[slot].left = True
            recovery.stage, hours = recovery.ahead.popleft()
            hours = self._stage_h(recovery, hours)
            if hours > 0.0:
                self.note(EventKind.STAGE)
                ends = partial(self.go_on, recovery)
                recovery.alarm = None if hours == inf else self.at(hours, recovery.order, ends)
                return
        self.recoveries.remove(recovery)
        self._come_back(recovery)

    def _stage_h(self, recovery: Recovery, hours: float) -> float:
        """What a stage takes, of so many hours by itself; infinite where others end it [h]."""
        stage = recovery.stage
        if stage.kind == WAIT and not isnan(stage.grows_h):
            return transitions.grows_in_h(stage.grows_h, self.now_h)
        if stage.kind == WAIT:
            self.cluster.nodes.ask(self, recovery.slots)
            return 0.0 if self._has_its_nodes(recovery) else inf
        if stage.kind == REGROUP and not stage.has_cost:
            return transitions.regroup_h_of(self.num, self.copies, self.slots)
        if stage.kind == LOAD and recovery.loading == set():
            return 0.0
        if stage.kind == LOAD and recovery.sharing:
            self.link.start(recovery, recovery.loading or recovery.sharing)
            return inf
        return hours

    def _come_back(self, recovery: Recovery) -> None:
        """The slots of a recovery that has ended are up."""
        was_waited_for = recovery.stage is None or recovery.stage.blocks
        for slot in sorted(recovery.slots):
            self.slots[slot].recovery = NONE
            transitions.come_back(self.copies, self.slots, slot)
            if not was_waited_for:
                self.note(EventKind.REPLACED, slot)

    def _stop_recovery(self, recovery: Recovery) -> None:
        self.recoveries.remove(recovery)
        if recovery.alarm is not None:
            recovery.alarm.cancel()
        self.link.stop(recovery)

    # Waiting for nodes

    def on_node(self) -> None:
        """A slot has got its node: recoveries that waited for it alone go on."""
        self.book()
        for recovery in list(self.recoveries):
            waits = recovery.stage.kind == WAIT and not recovery.is_held
            if waits and self._has_its_nodes(recovery):
                self.go_on(recovery)
        self.decide()

    def _has_its_nodes(self, recovery: Recovery) -> bool:
        """Whether a wait is over; from one for each slot those that still wait stay behind."""
        waiting = recovery.slots & self.vacant
        if not waiting:
            return True
        if not recovery.stage.each or waiting == recovery.slots:
            return False
        recovery.slots -= waiting
        self._begin_recovery(replace(recovery, slots=waiting, ahead=recovery.ahead.copy()))
        return True

    # ----------------------------------------------------------------- the end, and the log

    def _end(self, finished: bool) -> None:
        """The job leaves the cluster, at its useful work or horizon, or given up."""
        self.book()
        for save in self.saves.under_way():
            save.end.cancel()
            self.note(EventKind.SAVE_ABANDONED)
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
            self.saves.n_committed,
            tuple(self.stale),
        )
        self.note(EventKind.FINISHED if finished else EventKind.STOPPED)
        self.name_activity(Activity.OVER)
        self.last.cancel()
        if self.failure_alarm is not None:
            self.failure_alarm.cancel()
        for recovery in list(self.recoveries):
            self._stop_recovery(recovery)
        self.cluster.nodes.leave(self, self.num.n_slots)

    def note(self, kind: EventKind, slot: int = -1) -> None:
        """Add a line to the log, if one is kept."""
        if self.logbook is not None:
            self.logbook.note(self.now_h, kind, self.progress_h, slot)

    def name_activity(self, activity: Activity) -> None:
        """Have the log say what the job does from here on."""
        if self.logbook is not None:
            self.logbook.name_activity(self.now_h, activity, self.progress_h)


# --------------------------------------------------------------------------- one job, and many


def run(
    job: SimulatedJob,
    failures: Iterator[ScopedFailure],
    draws: Any,  # `blocks.ReplicationDraws`
    logbook: LogLines | None = None,
    *,
    skips: bool = True,
) -> ReplicationOutcome:
    """Run a job alone on its cluster: a fleet of one."""
    cluster = SharedCluster(n_spares=job.cluster.n_spares)
    running = RunningJob(cluster, job, failures, draws, logbook=logbook, skips=skips)
    return cast(ReplicationOutcome, cluster.env.run(until=running.process))


def run_fleet(
    cluster: SharedCluster,
    arrive_h: Sequence[float],
    n_nodes: Sequence[int],
    begins: Sequence[Callable[[], RunningJob]],
) -> list[tuple[float, ReplicationOutcome]]:
    """When each job starts, and its outcome; `begins` put them on the cluster."""
    ran: list[Any] = [None for _ in begins]

    def passes(number: int) -> Process:
        yield Alarm(cluster.env, arrive_h[number], JOB, None, {})
        starts = cluster.env.event()
        cluster.nodes.arrive(n_nodes[number], starts.succeed)
        yield starts
        job = begins[number]()
        outcome = yield job.process
        ran[number] = job.began_at_h, outcome

    for number in range(len(begins)):
        cluster.env.process(passes(number))
    cluster.env.run()
    return ran
