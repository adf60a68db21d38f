"""The naive interpreter of recovery systems: `docs/recovery.md`, event by event and rule by rule.

It shares only the records with the engines of `cprsim/simulate`, so that they can be held to it:
no step is jumped over, and nothing is kept that could be looked up again. Numbers in comments are
sections and rules of the page. Where the page is open, the reading chosen is marked "Reading:".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import floor, inf

from cprsim.failures.distributions import Constant
from cprsim.records import STOPPED_BEYOND, Clock, Duration, Storage
from cprsim.recovery.policy import (
    CHECK,
    STAGE_ORDER,
    Capture,
    Elastic,
    Groups,
    Level,
    Outside,
    Placement,
    Reverts,
    Ring,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
    WhenBusy,
)  # fmt: skip
from cprsim.simulate.blocks import ReplicationDraws
from cprsim.simulate.job import (
    NOTICE,
    ReplicationOutcome,
    ScopedFailure,
    SimulatedJob,
    StaleShard,
)  # fmt: skip

# Section 12 of docs/model.md
HOPELESS_AFTER = 1000
NO_WORK_H = 1e-9
HARDLY_AFTER = 5000
HARDLY_TIMES = 10.0

ROUNDING = 1e-9  # how far from a whole multiple still counts as one
AT_ONCE = 1e-11  # of the job: instants no further apart are one


def run(
    job: SimulatedJob, failures: Sequence[ScopedFailure], draws: ReplicationDraws
) -> ReplicationOutcome:
    """One replication, from its beginning to its end."""
    return Replication(job, failures, draws).run()


def whole_multiples(value_h: float, of_h: float) -> int:
    """How many times `of_h` goes into `value_h`."""
    return floor(value_h / of_h * (1.0 + ROUNDING))


@dataclass(eq=False)
class Content:
    """What one commit left on a tier."""

    content_h: float
    corrupt: bool
    on: set[int]  # slots that have their copies of it


@dataclass(eq=False)
class Due:
    """A save that is due, or was as one began that stands for it."""

    since_h: float  # of progress
    completes: bool


@dataclass(eq=False)
class Save:
    """A save under way, in the stall or in the background."""

    capture: Capture
    number: int  # how many of the capture began before
    content_h: float
    ends_at_h: float  # the stall, or the background
    completes: bool = True  # a content: 3.2
    stands_for: list[Due] = field(default_factory=list)  # 3.8
    on: set[int] = field(default_factory=set)  # of a flush: slots that have what it copies


@dataclass(eq=False)
class Recovery:
    """The recovery from one failure."""

    of_all: bool
    slots: set[int]
    stages: tuple[Stage, ...]
    hours: list[float]  # of its stages; those of waits and shared loads show
    speed: float  # of the job, in stages that do not block it
    link: Storage | None  # that its load shares
    shards: set[int] | None  # that it has to load; None: it takes none back
    ends_at_h: float  # its stage; a wait ends when it ends, and so does a shared load
    at: int = -1  # the stage that it is in
    left_bytes: dict[int, float] = field(default_factory=dict)  # of its shards in a shared load

    @property
    def stage(self) -> Stage:
        return self.stages[self.at]

    @property
    def waits(self) -> bool:
        return self.at >= 0 and self.stage.kind is StageKind.WAIT and self.stage.grows_h is None

    @property
    def grows(self) -> bool:
        return self.at >= 0 and self.stage.grows_h is not None

    @property
    def shares(self) -> bool:
        """Whether it loads over the link now. One that has just begun is in no stage."""
        return self.at >= 0 and self.stage.kind is StageKind.LOAD and self.link is not None

    def takes_time(self, n: int) -> bool:
        moves = self.link is not None and self.link.transfer_h(1) > 0.0
        return self.hours[n] > 0.0 or (self.stages[n].kind is StageKind.LOAD and moves)

    @property
    def has_a_load(self) -> bool:
        """Before it or under way. Reading: a load that takes no time is none."""
        rest = [n for n, stage in enumerate(self.stages) if stage.kind is StageKind.LOAD]
        return any(n >= self.at and self.takes_time(n) for n in rest)


@dataclass(eq=False)
class Choice:
    """What is done about one failure: section 4, rules 2 and 3."""

    rule: int
    reverts: Reverts
    to: To
    source: Tier | None = None
    content_h: float = 0.0
    tried_h: float = 0.0  # loads of corrupt contents


@dataclass(eq=False)
class Replication:
    """The state of one replication, and what changes it."""

    job: SimulatedJob
    failures: Sequence[ScopedFailure]
    draws: ReplicationDraws
    now_h: float = 0.0
    progress_h: float = 0.0
    frontier_h: float = 0.0
    replay_speed: float = 1.0
    age_h: float = 0.0  # on the failures' clock
    n_met: int = 0  # failures, missed ones too
    n_seen: int = 0  # and notices
    n_failures: int = 0
    n_saves: int = 0
    finished: bool | None = None
    stalling: Save | None = None
    background: list[Save] = field(default_factory=list)
    recoveries: list[Recovery] = field(default_factory=list)
    without: dict[int, Level] = field(default_factory=dict)  # slot: the most lasting level, 2.2
    left: set[int] = field(default_factory=set)  # slots that have left the live tiers, 2.6
    vacant: set[int] = field(default_factory=set)  # slots that lost their node and have no other
    queue: list[int] = field(default_factory=list)  # those of them that asked, in that order
    repaired_at_h: list[float] = field(default_factory=list)
    stale: list[StaleShard] = field(default_factory=list)
    errors_h: list[float] = field(default_factory=list)  # progress at those in the state, 7.1
    n_errors: int = 0
    noticed_at_h: float = inf
    frontier_at_failure_h: float = -1.0
    n_without_work: int = 0

    def __post_init__(self) -> None:
        policy, cluster = self.job.policy, self.job.cluster
        self.hours = dict.fromkeys(policy.parts, 0.0)
        self.tiers = {tier.name: tier for tier in policy.tiers}
        self.role_slots = {role.name: list(cluster.slots(role.name)) for role in cluster.roles}
        self.kept: dict[str, list[Content]] = {name: [] for name in self.tiers}
        for name, tier in self.tiers.items():
            if isinstance(tier.placement, Outside):  # 2.4
                self.kept[name].append(Content(0.0, False, set()))
        self.n_begun = dict.fromkeys(self.tiers, 0)
        self.captures = [one for one in policy.captures if one.after is None]
        self.due_h = {one.tier: self.next_due_h(one) for one in self.captures}
        self.again: dict[str, list[Due]] = {one.tier: [] for one in self.captures}  # off the grid
        self.n_pooled = cluster.n_spares  # None: unlimited

    # ----------------------------------------------------------------- the course of events

    def run(self) -> ReplicationOutcome:
        job = self.job
        limit_h = STOPPED_BEYOND * job.useful_h
        planned_end = job.horizon_h is not None and job.horizon_h <= limit_h
        if planned_end:
            assert job.horizon_h is not None
            limit_h = job.horizon_h
        fails_now = False
        while True:
            self.end_what_ends()
            if self.is_now(self.noticed_at_h):
                self.notice()
                continue
            self.let_the_job_go_on()
            if self.takes_in():
                continue
            if self.finished is None and self.is_now(limit_h):
                self.finished = planned_end and self.progress_h > 0.0  # 6
            if self.finished is not None:
                return self.outcome()
            if fails_now:  # 5: what ends at an instant ends before a failure of that instant
                fails_now = False
                if self.clock_runs():
                    self.fail(self.failures[self.n_seen])
                    continue
            works_to_h, work_ends_at_h = self.stretch_of_work()
            fails_at_h = self.next_failure_at_h()
            ends_at_h = (self.noticed_at_h, *self.ends_of_what_goes_on())
            until_h = min(limit_h, work_ends_at_h, fails_at_h, *ends_at_h)
            fails_now = fails_at_h <= until_h + self.at_once_h
            is_there = work_ends_at_h <= until_h + self.at_once_h
            self.pass_hours(until_h, works_to_h if is_there else None)

    @property
    def at_once_h(self) -> float:
        return AT_ONCE * self.job.useful_h

    def is_now(self, at_h: float) -> bool:
        """Whether an instant has come: the page's 5, what ends at an instant."""
        return at_h <= self.now_h + self.at_once_h

    def outcome(self) -> ReplicationOutcome:
        assert self.finished is not None
        useful_h = self.progress_h if self.finished else self.frontier_h
        self.book("lost", self.frontier_h - useful_h)  # 1: for good
        hours = tuple(self.hours[part] for part in self.job.policy.parts)
        counts = self.n_failures, self.n_saves
        return ReplicationOutcome(
            self.finished, self.now_h, useful_h, hours, *counts, tuple(self.stale)
        )

    def ends_of_what_goes_on(self) -> list[float]:
        """Instants at which a save, a stage or a repair ends."""
        ends = [save.ends_at_h for save in self.background]
        if self.stalling is not None:
            ends.append(self.stalling.ends_at_h)
        per_h = self.bytes_per_hour()
        ends += [min(self.ends_of(recovery, per_h)) for recovery in self.recoveries]
        return ends + self.repaired_at_h

    def end_what_ends(self) -> None:
        """Handle all that ends now, and what ends with it: commits first."""
        while self.end_one():
            pass

    def end_one(self) -> bool:
        for save in self.background:
            if self.is_now(save.ends_at_h):
                self.background.remove(save)
                self.commit(save)
                return True
        if self.stalling is not None and self.is_now(self.stalling.ends_at_h):
            save, self.stalling = self.stalling, None
            self.go_to_background(save)
            return True
        for at_h in self.repaired_at_h:
            if self.is_now(at_h):
                self.repaired_at_h.remove(at_h)
                assert self.n_pooled is not None
                self.n_pooled += 1
                self.give_nodes()
                return True
        per_h = self.bytes_per_hour()
        for recovery in list(self.recoveries):
            self.leave_behind(recovery)
            has_ended = (
                recovery.slots.isdisjoint(self.vacant)  # a wait: each slot has its node
                if recovery.waits
                else self.is_now(max(self.ends_of(recovery, per_h)))
            )
            if has_ended:
                self.enter_next_stage(recovery)
                return True
        return False

    # ----------------------------------------------------------------- 1. speed and accounts

    def blocking_stages(self) -> list[StageKind]:
        return [one.stage.kind for one in self.recoveries if one.stage.blocks]

    def speed(self) -> float:
        speeds = [one.speed for one in self.recoveries if not one.stage.blocks]
        speed, elastic = min(speeds, default=1.0), self.job.policy.elastic
        if elastic is None:
            return speed
        n_missing = self.n_units_missing(elastic)
        return speed * elastic.speed[n_missing] if n_missing < len(elastic.speed) else 0.0

    def n_units_missing(self, elastic: Elastic) -> int:
        slots = self.role_slots[elastic.role]
        recovering = {slot for recovery in self.recoveries for slot in recovery.slots}
        return len({slots.index(slot) // elastic.unit_nodes for slot in recovering & set(slots)})

    def waits_for_a_commit(self) -> bool:
        """3.3 and 3.5. Asked after `let_the_job_go_on`: what could be saved is being saved."""
        return bool(self.captures_due()) or self.progress_h >= self.job.useful_h

    def works(self) -> bool:
        if self.blocking_stages() or self.stalling is not None or self.waits_for_a_commit():
            return False
        return self.speed() > 0.0

    def progress_per_hour(self) -> float:
        again = self.replay_speed if self.progress_h < self.frontier_h else 1.0
        return self.speed() * again / (1.0 + self.job.policy.tax.compute)

    def stretch_of_work(self) -> tuple[float, float]:
        """The progress to which the job works on undisturbed, and when it gets there."""
        if not self.works():
            return inf, inf
        to_h = min(self.job.useful_h, *self.due_h.values(), inf)
        if self.progress_h < self.frontier_h:
            to_h = min(to_h, self.frontier_h)
        elif self.job.clock is Clock.PROGRESS and self.n_seen < len(self.failures):
            to_h = min(to_h, max(self.failures[self.n_seen].at_h, self.progress_h))
        return to_h, self.now_h + (to_h - self.progress_h) / self.progress_per_hour()

    def next_failure_at_h(self) -> float:
        if self.n_seen == len(self.failures):
            return inf
        at_h = self.failures[self.n_seen].at_h
        if self.job.clock is Clock.WALL:
            return max(self.now_h, at_h)
        if self.job.clock is Clock.UPTIME:
            return inf if self.blocking_stages() else self.now_h + max(0.0, at_h - self.age_h)
        # The clock of progress shows the frontier.
        works_to_h, ends_at_h = self.stretch_of_work()
        strikes = self.progress_h >= self.frontier_h and works_to_h >= at_h
        return ends_at_h if strikes and ends_at_h < inf else inf

    def clock_runs(self) -> bool:
        """1: whether failures age; a save or a stage that begins may have stopped them."""
        if self.job.clock is Clock.PROGRESS:
            return self.works()
        return self.job.clock is Clock.WALL or not self.blocking_stages()

    def pass_hours(self, until_h: float, worked_to_h: float | None) -> None:
        """Book the hours from now on; `worked_to_h`: the stretch of work ends with them."""
        hours = until_h - self.now_h
        blocking = self.blocking_stages()
        if blocking:  # 4.7
            least = min(blocking, key=STAGE_ORDER.index)
            self.book(least.value, hours)
        elif self.stalling is not None or self.waits_for_a_commit():
            self.book("save", hours)
        elif not self.works():
            self.book("wait", hours)
        else:
            self.work(hours, worked_to_h)
        if self.job.clock is Clock.UPTIME and not blocking:
            self.age_h += hours
        self.move_bytes(until_h)
        self.now_h = until_h

    def work(self, hours: float, worked_to_h: float | None) -> None:
        speed, tax = self.speed(), self.job.policy.tax.compute
        again = self.progress_h < self.frontier_h
        if again:
            self.book("lost", speed * hours / (1.0 + tax))
        self.book("tax", tax * speed * hours / (1.0 + tax))
        self.book("degraded", (1.0 - speed) * hours)
        if worked_to_h is None:
            worked_to_h = self.progress_h + hours * self.progress_per_hour()
            if again:
                worked_to_h = min(worked_to_h, self.frontier_h)
        self.progress_h = worked_to_h
        self.frontier_h = max(self.frontier_h, self.progress_h)

    def book(self, part: str, hours: float) -> None:
        if hours > 0.0:
            self.hours[part] += hours

    # ----------------------------------------------------------------- 2. copies

    def has(self, slot: int, level: Level) -> bool:
        """2.2: whether the slot is not without this level."""
        return slot not in self.without or self.without[slot] < level

    def survives(self, tier: Tier, on: set[int], shards: Sequence[int]) -> bool:
        """2.3: whether these shards are there, of a content of which these slots have copies."""
        slots = self.role_slots[tier.role]
        return all(self.shard_survives(tier.placement, slots, on, shard) for shard in shards)

    def live_survives(self, tier: Tier, shards: Sequence[int]) -> bool:
        """2.6: the same of a tier that some slots have left."""
        there = [slot for slot in self.role_slots[tier.role] if slot not in self.left]
        place, size = tier.placement, len(there)
        if isinstance(place, Ring):
            place = Ring(min(place.copies, max(1, size)))
        elif isinstance(place, Groups) and size < place.size:
            place = replace(place, size=max(1, size), tolerates=min(place.tolerates, size - 1))
        on = self.live_copies(tier)
        return size > 0 and all(
            self.shard_survives(place, there, on, shard) for shard in shards if shard in there
        )

    def shard_survives(
        self, placement: Placement, slots: list[int], on: set[int], shard: int
    ) -> bool:
        """Of a tier that lies on these slots."""
        if isinstance(placement, Outside):
            return True
        place = slots.index(shard)
        if isinstance(placement, Ring):
            holders = [slots[(place + k) % len(slots)] for k in range(placement.copies)]
            return any(slot in on for slot in holders)
        size, n_groups = placement.size, len(slots) // placement.size
        if placement.strided:
            group = [k % n_groups for k in range(len(slots))]
        else:
            group = [min(k // size, n_groups - 1) for k in range(len(slots))]
        members = [slot for k, slot in enumerate(slots) if group[k] == group[place]]
        return len(set(members) - on) <= placement.tolerates

    def live_copies(self, tier: Tier) -> set[int]:
        return {slot for slot in self.role_slots[tier.role] if self.has(slot, tier.medium.level)}

    # ----------------------------------------------------------------- 3. saves

    def next_due_h(self, capture: Capture) -> float:
        """3.1: the first whole multiple beyond the progress, up to T; never on notice alone."""
        useful_h, every_h = self.job.useful_h, capture.every_h
        if every_h is None or every_h >= useful_h * (1.0 - ROUNDING):
            return inf
        due_h = (whole_multiples(self.progress_h, every_h) + 1) * every_h
        if due_h > useful_h * (1.0 + ROUNDING):
            return inf
        return useful_h if due_h > useful_h * (1.0 - ROUNDING) else due_h

    def captures_due(self) -> list[Capture]:
        """3.1: in the policy's order."""
        return [
            one
            for one in self.captures
            if self.has_reached(self.due_h[one.tier]) or self.again[one.tier]
        ]

    def let_the_job_go_on(self) -> None:
        """Begin the saves that are due and end the job, where nothing is in the way."""
        while not self.blocking_stages() and self.stalling is None:
            due, useful_h = self.captures_due(), self.job.useful_h
            if not due:
                last = [one for one in self.background if one.capture in self.captures]
                if self.progress_h >= useful_h > max((one.content_h for one in last), default=0.0):
                    self.finished = True  # 3.5
                return
            capture = due[0]
            stands_for = list(self.again[capture.tier])  # 3.8
            due_h = self.due_h[capture.tier]
            if capture.every_h is not None and self.has_reached(due_h):
                nth = round(due_h / capture.every_h)
                stands_for.append(Due(due_h, nth % capture.parts == 0))
            is_busy = self.n_in_background(capture) >= capture.in_flight
            if is_busy and capture.when_busy is WhenBusy.WAIT:  # 3.3. Reading: in its turn
                return
            self.again[capture.tier] = []
            self.due_h[capture.tier] = self.next_due_h(capture)
            if not is_busy:
                self.begin_save(capture, stands_for)
            self.end_what_ends()

    def has_reached(self, due_h: float) -> bool:
        """3.1: but for rounding, by which the grids of two tiers differ."""
        if due_h >= self.job.useful_h:
            return self.progress_h >= due_h
        return self.progress_h * (1.0 + ROUNDING) >= due_h

    def n_in_background(self, capture: Capture) -> int:
        return len([save for save in self.background if save.capture is capture])

    def begin_save(self, capture: Capture, stands_for: list[Due]) -> None:
        """3.2: it holds the progress at its start."""
        save = self.stalling = self.new_save(capture, self.progress_h)
        save.stands_for = stands_for
        save.completes = any(one.completes for one in stands_for)  # 3.2 and 3.8
        stall_h = self.cost_h(capture.stall, f"stall/{capture.tier}", save.number)
        save.ends_at_h = self.now_h + stall_h

    def new_save(self, capture: Capture, content_h: float) -> Save:
        self.n_begun[capture.tier] += 1
        return Save(capture, self.n_begun[capture.tier] - 1, content_h, inf)

    def go_to_background(self, save: Save) -> None:
        name = f"background/{save.capture.tier}"
        save.ends_at_h = self.now_h + self.cost_h(save.capture.background, name, save.number)
        if save.ends_at_h > self.now_h:
            self.background.append(save)
        else:
            self.commit(save)

    def commit(self, save: Save) -> None:
        if save.capture.tier == CHECK and self.errors_h:  # 7.3
            self.noticed_at_h = self.now_h
        if not save.completes:
            return
        source, tier = save.capture, self.tiers[save.capture.tier]
        u = self.draws.uniform(tier.name, save.number)
        if u < source.p_fail:  # 3.6
            return
        corrupt = u < source.p_fail + (1.0 - source.p_fail) * tier.p_corrupt
        contents = self.kept[tier.name]
        # 2.2: on each slot that is not without the level. Reading: written as it commits
        contents.append(Content(save.content_h, corrupt, self.live_copies(tier)))
        del contents[: -tier.generations]  # 2.4. Reading: the newest in order of commit
        self.n_saves += 1
        for capture in self.job.policy.captures:  # 3.4
            if capture.after == tier.name:
                assert source.every_h is not None, "a chain of flushes"
                is_copied = round(save.content_h / source.every_h) % capture.every_nth == 0
                if is_copied and self.n_in_background(capture) < capture.in_flight:
                    flush = self.new_save(capture, save.content_h)
                    flush.on = self.live_copies(tier)
                    self.go_to_background(flush)

    def cost_h(self, cost: Duration | None, name: str, n: int) -> float:
        if cost is None:
            return 0.0
        if isinstance(cost, Constant):
            return cost.mean_h
        return self.draws.hours(name, n)

    # ----------------------------------------------------------------- 4. failures

    def fail(self, failure: ScopedFailure) -> None:
        self.n_seen += 1
        if failure.scope == NOTICE:
            for capture in self.captures:
                if capture.on_notice:
                    self.again[capture.tier].append(Due(self.progress_h, True))
            return
        if self.job.scopes[failure.scope].silent:
            self.err(self.job.scopes[failure.scope].latency)
        else:
            self.meet(failure)

    def err(self, latency: Duration | None) -> None:
        """7.1"""
        latency_h = inf if latency is None else self.cost_h(latency, "latency", self.n_errors)
        self.n_errors += 1
        self.errors_h.append(self.progress_h)
        self.noticed_at_h = min(self.noticed_at_h, self.now_h + latency_h)

    def notice(self) -> None:
        """7.4"""
        for name, contents in self.kept.items():
            self.kept[name] = [one for one in contents if not self.is_bad(one.content_h)]
        self.errors_h, self.noticed_at_h = [], inf
        slots = tuple(slot for some in self.role_slots.values() for slot in some)
        scope = next(n for n, one in enumerate(self.job.scopes) if one.silent)
        self.meet(ScopedFailure(self.now_h, slots, scope, ()))

    def is_bad(self, content_h: float) -> bool:
        """7.2"""
        return any(error_h < content_h for error_h in self.errors_h)

    def meet(self, failure: ScopedFailure) -> None:
        self.n_met += 1
        far_h = max(self.frontier_h, self.progress_h)
        if self.n_met > HARDLY_AFTER and self.now_h > HARDLY_TIMES * far_h:
            self.finished = False
            return
        struck = {slot for slot in failure.slots if slot not in self.queue}
        if not struck:  # missed
            return
        if self.frontier_h > self.frontier_at_failure_h + NO_WORK_H:
            self.frontier_at_failure_h = self.frontier_h
            self.n_without_work = 0
        self.n_without_work += 1
        if self.n_without_work > HOPELESS_AFTER:
            self.finished = False
            return
        number = self.n_failures  # counted before
        self.n_failures += 1
        scope = self.job.scopes[failure.scope]
        if scope.needs_node:
            self.lose_nodes(failure, struck)
        self.wipe(scope, struck)  # rule 1
        choice = self.choose(scope, struck, number)  # rules 2 and 3
        progress_h = self.progress_h
        self.revert(choice, struck)  # rule 4
        self.abandon_saves(choice, scope)  # rule 5
        self.recover(choice, scope, struck, number, progress_h)  # rule 6

    def lose_nodes(self, failure: ScopedFailure, struck: set[int]) -> None:
        """5: a failed node goes to repair; a slot that has none loses none."""
        if self.n_pooled is None:
            return
        for slot, repair_h in zip(failure.slots, failure.repair_h, strict=True):
            if slot in struck and slot not in self.vacant:
                self.vacant.add(slot)
                self.repaired_at_h.append(self.now_h + repair_h)

    def wipe(self, scope: Scope, struck: set[int]) -> None:
        """2.1. Reading: up to `Scope.wipes`, also where less than a node fails and is replaced."""
        for slot in struck:
            self.without[slot] = max(self.without.get(slot, scope.wipes), scope.wipes)
        for name, contents in self.kept.items():
            if self.tiers[name].medium.level <= scope.wipes:
                for content in contents:
                    content.on -= struck
        for save in self.background:
            after = save.capture.after
            if after is not None and self.tiers[after].medium.level <= scope.wipes:
                save.on -= struck

    def choose(self, scope: Scope, struck: set[int], number: int) -> Choice:
        """4.2 and 4.3: the first rule that holds, and what it goes back to."""
        tried_h = 0.0
        rules = self.job.policy.rules
        for n, rule in enumerate(rules):
            if rule.scopes and scope.name not in rule.scopes:
                continue
            is_current = not rule.sources and rule.to is not To.START
            if scope.silent and (rule.needs or is_current):  # 7.4
                continue
            of_roles = {slot for role in rule.roles for slot in self.role_slots[role]}
            if rule.roles and not struck <= of_roles:
                continue
            needed = [self.tiers[name] for name in rule.needs]
            if not all(
                self.live_survives(tier, self.shards_needed(rule, tier, struck)) for tier in needed
            ):
                continue
            if rule.reverts is Reverts.NOBODY or rule.to is not To.NEWEST:
                return Choice(n, rule.reverts, rule.to, tried_h=tried_h)
            for content, tier in self.surviving(rule, struck):
                if not content.corrupt:
                    return Choice(n, rule.reverts, rule.to, tier, content.content_h, tried_h)
                tried_h += self.load_h(tier, number)
        return Choice(len(rules) - 1, Reverts.ALL, To.START, tried_h=tried_h)

    def shards_needed(self, rule: Rule, tier: Tier, struck: set[int]) -> list[int]:
        slots = self.role_slots[tier.role]
        return [slot for slot in slots if rule.reverts is not Reverts.STRUCK or slot in struck]

    def surviving(self, rule: Rule, struck: set[int]) -> list[tuple[Content, Tier]]:
        """Contents that survive, in the order in which they are tried."""
        there = []
        for tier in (self.tiers[name] for name in rule.sources):
            shards = self.shards_needed(rule, tier, struck)
            kept = [one for one in self.kept[tier.name] if self.survives(tier, one.on, shards)]
            there += [(content, tier) for content in kept]
        there.reverse()  # of one tier, the newest commit first
        return sorted(
            there, key=lambda pair: (-pair[0].content_h, rule.sources.index(pair[1].name))
        )

    def load_h(self, tier: Tier, number: int) -> float:
        """Of a tier that shares no link."""
        assert not isinstance(tier.load, Storage)
        return self.cost_h(tier.load, f"load/{tier.name}", number)

    def revert(self, choice: Choice, struck: set[int]) -> None:
        """4.4"""
        rule = self.job.policy.rules[choice.rule]
        if choice.reverts is Reverts.ALL:
            self.roll_back(choice)
            self.replay_speed = rule.replay_speed
        elif choice.source is not None:
            replays = any(stage.kind is StageKind.REPLAY for stage in rule.stages)
            for slot in self.role_slots[choice.source.role]:
                if slot not in struck and choice.reverts is Reverts.STRUCK:
                    continue
                if slot in struck and replays:  # Reading: of `shards` the others are stale then
                    continue
                self.stale.append(StaleShard(self.progress_h, slot, choice.content_h))

    def roll_back(self, choice: Choice) -> None:
        step_h = self.job.policy.step_h
        begun_h = whole_multiples(self.progress_h, step_h) * step_h if step_h else 0.0
        self.progress_h = {
            To.NEWEST: choice.content_h,
            To.STEP_BEGUN: min(self.progress_h, begun_h),
            To.STEP_BEFORE: max(0.0, self.progress_h - step_h),
            To.START: 0.0,
        }[choice.to]
        self.errors_h = [one for one in self.errors_h if one < self.progress_h]  # 7.2
        if not self.errors_h:
            self.noticed_at_h = inf
        for name, contents in self.kept.items():  # 2.5
            beyond_h = self.progress_h * (1.0 + ROUNDING)
            self.kept[name] = [one for one in contents if one.content_h <= beyond_h]
        for capture in self.captures:  # 3.8
            again = self.again[capture.tier]
            self.again[capture.tier] = [one for one in again if self.has_reached(one.since_h)]
            if not self.has_reached(self.due_h[capture.tier]):
                self.due_h[capture.tier] = self.next_due_h(capture)

    def abandon_saves(self, choice: Choice, scope: Scope) -> None:
        """3.7 and 3.8"""
        rule = self.job.policy.rules[choice.rule]
        if choice.reverts is Reverts.NOBODY and rule.stops_nothing:
            return
        under_way = [*self.background, *([self.stalling] if self.stalling is not None else [])]
        self.stalling = None
        self.background = [
            save
            for save in self.background
            if self.outlives(save) and not scope.silent  # 7.4
        ]
        for save in under_way:
            if save not in self.background:
                again = [one for one in save.stands_for if self.has_reached(one.since_h)]
                if again:
                    self.again[save.capture.tier].extend(again)

    def outlives(self, save: Save) -> bool:
        """3.7: a flush goes on while what it copies is there, on all shards."""
        after = save.capture.after
        if after is None or save.content_h > self.progress_h:
            return False
        tier = self.tiers[after]
        return self.survives(tier, save.on, self.role_slots[tier.role])

    def recover(
        self, choice: Choice, scope: Scope, struck: set[int], number: int, progress_h: float
    ) -> None:
        """4.6"""
        shards = None  # 5: those that the failure takes back
        if choice.source is not None:
            shards = set(self.role_slots[choice.source.role])
            shards = shards & struck if choice.reverts is Reverts.STRUCK else shards
            if choice.reverts is not Reverts.ALL:
                self.load_no_more(shards)
        slots = set(struck)
        for old in list(self.recoveries):
            if choice.reverts is Reverts.ALL and old.stage.blocks:
                slots |= old.slots
                self.recoveries.remove(old)
            elif old.slots & struck:  # Reading: under `all` too, where it does not block
                old.slots -= struck
                if not old.slots and not (old.of_all and old.has_a_load):
                    self.recoveries.remove(old)
        for old in list(self.recoveries):
            if old.grows:
                self.end_recovery(old)
        rule = self.job.policy.rules[choice.rule]
        hours, link = self.plan(choice, scope, struck, number, progress_h)
        self.recoveries.append(
            Recovery(
                choice.reverts is Reverts.ALL, slots, rule.stages, hours, rule.speed_meanwhile,
                link, shards, ends_at_h=self.now_h,
            )
        )  # fmt: skip
        self.end_what_ends()

    # ----------------------------------------------------------------- 5. stages

    def plan(
        self, choice: Choice, scope: Scope, struck: set[int], number: int, progress_h: float
    ) -> tuple[list[float], Storage | None]:
        """Hours of each stage, as far as they are known before, and the link of a shared load."""
        rule, source, found, link = self.job.policy.rules[choice.rule], choice.source, [], None
        nobody_goes_back = (
            choice.reverts is Reverts.STRUCK
            and source is not None
            and struck.isdisjoint(self.role_slots[source.role])
        )
        for n, stage in enumerate(rule.stages):
            hours = self.cost_h(stage.cost, f"stage/{choice.rule}/{n}", number)
            if stage.kind is StageKind.DETECT and stage.cost is None:
                hours = self.cost_h(scope.detect, f"detect/{scope.name}", number)
            elif stage.kind is StageKind.LOAD and nobody_goes_back:
                hours = 0.0
            elif stage.kind is StageKind.LOAD and source is not None:
                if isinstance(source.load, Storage):
                    link = source.load  # tries and a cost of its own do not go with it
                else:
                    hours += choice.tried_h + self.load_h(source, number)
            elif stage.kind is StageKind.LOAD:
                hours += choice.tried_h
            elif stage.kind is StageKind.REPLAY and stage.cost is None and not nobody_goes_back:
                hours = (progress_h - choice.content_h) / rule.replay_speed
            found.append(hours)
        return found, link

    def enter_next_stage(self, recovery: Recovery) -> None:
        """Go on to the next stage that takes time, or end."""
        while True:
            if recovery.at >= 0 and recovery.stage.copies_again:
                self.left |= recovery.slots
            recovery.at += 1
            if recovery.at == len(recovery.stages):
                self.end_recovery(recovery)
                return
            kind, hours = recovery.stage.kind, recovery.hours[recovery.at]
            if recovery.stage.grows_h is not None:
                recovery.ends_at_h = self.grows_at_h(recovery.stage.grows_h)
                if recovery.ends_at_h > self.now_h:
                    return
            elif recovery.waits:
                self.ask_for_nodes(recovery)
                self.leave_behind(recovery)
                if not recovery.slots.isdisjoint(self.vacant):
                    recovery.ends_at_h = inf
                    return
            elif kind is StageKind.LOAD and recovery.shards is not None and not recovery.shards:
                continue  # others load all that it takes back
            elif recovery.shares:
                if recovery.takes_time(recovery.at):
                    recovery.ends_at_h = inf
                    recovery.left_bytes = self.bytes_to_load(recovery)
                    return
            else:
                if kind is StageKind.REGROUP and recovery.stage.cost is None:
                    hours = self.regroup_h()
                if hours > 0.0:
                    recovery.ends_at_h = self.now_h + hours
                    return

    def regroup_h(self) -> float:
        elastic = self.job.policy.elastic
        assert elastic is not None
        known_h = elastic.regroup_h
        return known_h[min(self.n_units_missing(elastic), len(known_h) - 1)]

    def grows_at_h(self, every_h: float) -> float:
        """5: when the job takes in the slots that wait for it to grow, if nothing else makes it."""
        if every_h in (0.0, inf):
            return self.now_h + every_h
        n = whole_multiples(self.now_h, every_h)
        is_now = n * every_h >= self.now_h * (1.0 - ROUNDING)
        return self.now_h if is_now else (n + 1) * every_h

    def takes_in(self) -> bool:
        """5: as it would stand still at speed 0 without the slots that wait for it to grow."""
        held = [one for one in self.recoveries if one.grows]
        busy = self.blocking_stages() or self.stalling is not None or self.waits_for_a_commit()
        if busy or self.finished is not None or self.speed() > 0.0:
            return False
        for recovery in held:
            self.enter_next_stage(recovery)
        return bool(held)

    def leave_behind(self, recovery: Recovery) -> None:
        """5: of a wait for each slot, those without a node are a recovery of their own."""
        if not recovery.waits or not recovery.stage.each:
            return
        waiting = recovery.slots & self.vacant
        if waiting and waiting != recovery.slots:
            recovery.slots -= waiting
            self.recoveries.append(replace(recovery, slots=waiting, ends_at_h=inf))

    # ----------------------------------------------------------------- 5. loads

    def load_no_more(self, shards: set[int]) -> None:
        """5: these are taken back again. What all have gone back to is loaded as a whole."""
        for recovery in self.recoveries:
            if recovery.shards is not None and not recovery.of_all:
                recovery.shards -= shards
                for shard in shards:
                    recovery.left_bytes.pop(shard, None)

    def bytes_to_load(self, recovery: Recovery) -> dict[int, float]:
        """Of each shard that a recovery loads."""
        first, link = self.job.cluster.shard_slots.start, recovery.link
        assert link is not None
        sizes = link.bytes_of_shards
        return {
            shard: sizes[shard - first] if sizes else link.shard_bytes
            for shard in recovery.shards or ()
        }

    def ends_of(self, recovery: Recovery, per_h: float) -> list[float]:
        """Of its stage, or of each shard that it loads over the link at this speed."""
        if not recovery.shares:
            return [recovery.ends_at_h]
        return [self.now_h + left / per_h for left in recovery.left_bytes.values()] or [self.now_h]

    def bytes_per_hour(self) -> float:
        """5: of each shard that goes over the one link, of whatever recovery."""
        loading = [recovery for recovery in self.recoveries if recovery.shares]
        n_shards = sum(len(recovery.left_bytes) for recovery in loading)
        if n_shards == 0:
            return 0.0
        link = loading[0].link
        assert link is not None
        return min(link.server_bandwidth_bytes_per_h, link.bandwidth_bytes_per_h / n_shards)

    def move_bytes(self, until_h: float) -> None:
        """5: what goes over the link from now on."""
        per_h = self.bytes_per_hour()
        for recovery in self.recoveries:
            if not recovery.shares:
                continue
            for shard, left in list(recovery.left_bytes.items()):
                if self.now_h + left / per_h <= until_h + self.at_once_h:
                    del recovery.left_bytes[shard]
                else:
                    recovery.left_bytes[shard] = left - per_h * (until_h - self.now_h)

    def end_recovery(self, recovery: Recovery) -> None:
        """Its slots are up: their memory counts from now on."""
        self.recoveries.remove(recovery)
        for slot in recovery.slots:
            self.without.pop(slot, None)
            self.left.discard(slot)

    def ask_for_nodes(self, recovery: Recovery) -> None:
        for slot in sorted(recovery.slots & self.vacant):
            if slot not in self.queue:
                self.queue.append(slot)
        self.give_nodes()

    def give_nodes(self) -> None:
        """In the order in which slots asked."""
        while self.queue and self.n_pooled:
            self.n_pooled -= 1
            self.vacant.remove(self.queue.pop(0))
