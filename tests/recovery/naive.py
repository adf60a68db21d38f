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
    Reverts,
    Ring,
    Rule,
    Scope,
    StageKind,
    Tier,
    To,
    WhenBusy,
)
from cprsim.simulate.job import (
    NOTICE,
    ReplicationDraws,
    ReplicationOutcome,
    ScopedFailure,
    SimulatedJob,
    StaleShard,
)

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

    capture: int  # number among the policy's
    number: int  # how many of the capture began before
    content_h: float
    ends_at_h: float  # the stall, or the background
    completes: bool = True  # a content: 3.2
    stands_for: list[Due] = field(default_factory=list)  # 3.8
    on: set[int] = field(default_factory=set)  # of a flush: slots that have what it copies


@dataclass(eq=False)
class Planned:
    """A stage of one recovery, with its hours; those of a wait show."""

    kind: StageKind
    blocks: bool
    hours: float
    link: Storage | None = None  # of a load that shares its bandwidth: that has no hours
    by_units: bool = False  # what it takes hangs on the units that are missing then
    each: bool = False  # of a wait: each slot for its own node
    grows_h: float | None = None  # of a wait for the job, not for nodes
    copies_again: bool = False

    @property
    def takes_time(self) -> bool:
        return self.hours > 0.0 or (self.link is not None and self.link.transfer_h(1) > 0.0)


@dataclass(eq=False)
class Recovery:
    """The recovery from one failure."""

    of_all: bool
    slots: set[int]
    stages: list[Planned]
    speed: float  # of the job, in stages that do not block it
    shards: set[int] | None = None  # that it has to load; None: it takes none back
    at: int = -1  # the stage that it is in
    ends_at_h: float = inf  # that stage; a wait ends when it ends, and so does a shared load
    left_bytes: dict[int, float] = field(default_factory=dict)  # of its shards in a shared load

    @property
    def stage(self) -> Planned:
        return self.stages[self.at]

    @property
    def waits(self) -> bool:
        return self.stage.kind is StageKind.WAIT and self.stage.grows_h is None

    @property
    def has_a_load(self) -> bool:
        """Before it or under way. Reading: a load that takes no time is none."""
        rest = self.stages[self.at :]
        return any(stage.kind is StageKind.LOAD and stage.takes_time for stage in rest)

    @property
    def has_nothing_to_load(self) -> bool:
        """Whether others load all shards that it takes back."""
        return self.shards is not None and not self.shards

    @property
    def link(self) -> Storage | None:
        """Over which it loads now. One that has just begun is in no stage."""
        return self.stage.link if self.at >= 0 else None


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
    again: dict[int, list[Due]] = field(default_factory=dict)  # by capture, off the grid
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
        for name in policy.written:
            if isinstance(self.tiers[name].placement, Outside):  # 2.4
                self.kept[name].append(Content(0.0, False, set()))
        self.n_begun = dict.fromkeys(self.tiers, 0)
        self.due_h = {
            number: self.next_due_h(capture.every_h)
            for number, capture in enumerate(policy.captures)
            if capture.every_h is not None or capture.on_notice
        }
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
        return ReplicationOutcome(
            self.finished,
            self.now_h,
            useful_h,
            tuple(self.hours[part] for part in self.job.policy.parts),
            self.n_failures,
            self.n_saves,
            tuple(self.stale),
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
                if recovery.at >= 0 and recovery.waits
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
        return min(speeds, default=1.0) * self.elastic_speed()

    def elastic_speed(self) -> float:
        elastic = self.job.policy.elastic
        if elastic is None:
            return 1.0
        n_missing = self.n_units_missing(elastic)
        return elastic.speed[n_missing] if n_missing < len(elastic.speed) else 0.0

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
        if isinstance(tier.placement, Outside):
            return True
        slots = self.role_slots[tier.role]
        return all(self.shard_survives(tier, slots, on, shard) for shard in shards)

    def live_survives(self, tier: Tier, shards: Sequence[int]) -> bool:
        """2.6: the same of a tier that some slots have left."""
        if isinstance(tier.placement, Outside):
            return True
        there = [slot for slot in self.role_slots[tier.role] if slot not in self.left]
        place, size = tier.placement, len(there)
        if isinstance(place, Ring):
            place = Ring(min(place.copies, max(1, size)))
        elif size < place.size:
            place = replace(place, size=max(1, size), tolerates=min(place.tolerates, size - 1))
        smaller, on = replace(tier, placement=place), self.live_copies(tier)
        return size > 0 and all(
            self.shard_survives(smaller, there, on, shard) for shard in shards if shard in there
        )

    def shard_survives(self, tier: Tier, slots: list[int], on: set[int], shard: int) -> bool:
        """Of a tier that lies on these slots."""
        place = slots.index(shard)
        if isinstance(tier.placement, Ring):
            holders = [slots[(place + k) % len(slots)] for k in range(tier.placement.copies)]
            return any(slot in on for slot in holders)
        assert isinstance(tier.placement, Groups)
        size, n_groups = tier.placement.size, len(slots) // tier.placement.size
        if tier.placement.strided:
            members = [slot for k, slot in enumerate(slots) if k % n_groups == place % n_groups]
        else:
            groups = [min(k // size, n_groups - 1) for k in range(len(slots))]
            members = [slots[k] for k in range(len(slots)) if groups[k] == groups[place]]
        return len([slot for slot in members if slot not in on]) <= tier.placement.tolerates

    def live_copies(self, tier: Tier) -> set[int]:
        return {slot for slot in self.role_slots[tier.role] if self.has(slot, tier.medium.level)}

    def drop_beyond(self, progress_h: float) -> None:
        """2.5: nothing is kept of what the job has not done any more."""
        for name, contents in self.kept.items():
            self.kept[name] = [
                one for one in contents if one.content_h <= progress_h * (1.0 + ROUNDING)
            ]

    # ----------------------------------------------------------------- 3. saves

    def next_due_h(self, every_h: float | None) -> float:
        """3.1: the first whole multiple beyond the progress, up to T; never on notice alone."""
        useful_h = self.job.useful_h
        if every_h is None:
            return inf
        if every_h >= useful_h * (1.0 - ROUNDING):
            return inf
        due_h = (whole_multiples(self.progress_h, every_h) + 1) * every_h
        if due_h > useful_h * (1.0 + ROUNDING):
            return inf
        return useful_h if due_h > useful_h * (1.0 - ROUNDING) else due_h

    def captures_due(self) -> list[int]:
        """3.1: in the policy's order."""
        return [
            number
            for number, due_h in self.due_h.items()
            if self.has_reached(due_h) or self.again.get(number)
        ]

    def let_the_job_go_on(self) -> None:
        """Begin the saves that are due and end the job, where nothing is in the way."""
        while not self.blocking_stages() and self.stalling is None:
            due = self.captures_due()
            if not due:
                if self.progress_h >= self.job.useful_h and not self.last_saves():
                    self.finished = True
                return
            capture = self.job.policy.captures[due[0]]
            if self.n_in_background(due[0]) >= capture.in_flight:  # 3.3. Reading: in its turn
                if capture.when_busy is WhenBusy.WAIT:
                    return
                self.no_longer_due(due[0])
            else:
                self.begin_save(due[0])
            self.end_what_ends()

    def has_reached(self, due_h: float) -> bool:
        """3.1: but for rounding, by which the grids of two tiers differ."""
        if due_h >= self.job.useful_h:
            return self.progress_h >= due_h
        return self.progress_h * (1.0 + ROUNDING) >= due_h

    def last_saves(self) -> list[Save]:
        """3.5: those in the background that hold T, flushes excepted."""
        return [
            save
            for save in self.background
            if save.content_h >= self.job.useful_h and save.capture in self.due_h
        ]

    def n_in_background(self, capture: int) -> int:
        return len([save for save in self.background if save.capture == capture])

    def all_due(self, number: int) -> list[Due]:
        """3.8: what one save of a capture would stand for."""
        found, capture = [*self.again.get(number, [])], self.job.policy.captures[number]
        due_h = self.due_h[number]
        if capture.every_h is not None and self.has_reached(due_h):
            found.append(Due(due_h, round(due_h / capture.every_h) % capture.parts == 0))
        return found

    def no_longer_due(self, number: int) -> None:
        every_h = self.job.policy.captures[number].every_h
        self.again.pop(number, None)
        self.due_h[number] = self.next_due_h(every_h)

    def begin_save(self, number: int) -> None:
        """3.2: it holds the progress at its start."""
        stands_for = self.all_due(number)
        self.no_longer_due(number)
        save = self.new_save(number, self.progress_h)
        save.stands_for = stands_for
        save.completes = any(one.completes for one in stands_for)  # 3.2 and 3.8
        capture = self.job.policy.captures[number]
        save.ends_at_h = self.now_h + self.cost_h(
            capture.stall, f"stall/{capture.tier}", save.number
        )
        self.stalling = save

    def new_save(self, number: int, content_h: float) -> Save:
        tier = self.job.policy.captures[number].tier
        self.n_begun[tier] += 1
        return Save(number, self.n_begun[tier] - 1, content_h, inf)

    def go_to_background(self, save: Save) -> None:
        capture = self.job.policy.captures[save.capture]
        save.ends_at_h = self.now_h + self.cost_h(
            capture.background, f"background/{capture.tier}", save.number
        )
        if save.ends_at_h > self.now_h:
            self.background.append(save)
        else:
            self.commit(save)

    def commit(self, save: Save) -> None:
        capture = self.job.policy.captures[save.capture]
        if capture.tier == CHECK and self.errors_h:  # 7.3
            self.noticed_at_h = self.now_h
        if not save.completes:
            return
        tier = self.tiers[capture.tier]
        u = self.draws.uniform(tier.name, save.number)
        if u < capture.p_fail:  # 3.6
            return
        corrupt = u < capture.p_fail + (1.0 - capture.p_fail) * tier.p_corrupt
        contents = self.kept[tier.name]
        # 2.2: on each slot that is not without the level. Reading: written as it commits
        contents.append(Content(save.content_h, corrupt, self.live_copies(tier)))
        del contents[: -tier.generations]  # 2.4. Reading: the newest in order of commit
        self.n_saves += 1
        self.flush(capture, save.content_h)

    def flush(self, source: Capture, content_h: float) -> None:
        """3.4: copies of what has just been committed."""
        for number, capture in enumerate(self.job.policy.captures):
            if capture.after != source.tier:
                continue
            assert source.every_h is not None, "a chain of flushes"
            is_copied = round(content_h / source.every_h) % capture.every_nth == 0
            if is_copied and self.n_in_background(number) < capture.in_flight:
                save = self.new_save(number, content_h)
                save.on = self.live_copies(self.tiers[source.tier])
                self.go_to_background(save)

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
            for number, capture in enumerate(self.job.policy.captures):
                if capture.on_notice:
                    self.again.setdefault(number, []).append(Due(self.progress_h, True))
            return
        if self.job.scopes[failure.scope].silent:
            self.err(self.job.scopes[failure.scope].latency)
            return
        self.meet(failure)

    def meet(self, failure: ScopedFailure) -> None:
        self.n_met += 1
        if self.hardly_gets_further():
            self.finished = False
            return
        struck = {slot for slot in failure.slots if slot not in self.queue}
        if not struck:  # missed
            return
        if self.is_hopeless():
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

    def err(self, latency: Duration | None) -> None:
        """7.1"""
        latency_h = inf if latency is None else self.cost_h(latency, "latency", self.n_errors)
        self.n_errors += 1
        self.errors_h.append(self.progress_h)
        self.noticed_at_h = min(self.noticed_at_h, self.now_h + latency_h)

    def is_bad(self, content_h: float) -> bool:
        """7.2"""
        return any(error_h < content_h for error_h in self.errors_h)

    def notice(self) -> None:
        """7.4"""
        for name, contents in self.kept.items():
            self.kept[name] = [one for one in contents if not self.is_bad(one.content_h)]
        self.errors_h, self.noticed_at_h = [], inf
        slots = tuple(slot for some in self.role_slots.values() for slot in some)
        scope = next(n for n, one in enumerate(self.job.scopes) if one.silent)
        self.meet(ScopedFailure(self.now_h, slots, scope, ()))

    def hardly_gets_further(self) -> bool:
        if self.n_met <= HARDLY_AFTER:
            return False
        return self.now_h > HARDLY_TIMES * max(self.frontier_h, self.progress_h)

    def is_hopeless(self) -> bool:
        if self.frontier_h > self.frontier_at_failure_h + NO_WORK_H:
            self.frontier_at_failure_h = self.frontier_h
            self.n_without_work = 0
        self.n_without_work += 1
        return self.n_without_work > HOPELESS_AFTER

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
            after = self.job.policy.captures[save.capture].after
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
            if rule.roles and not all(self.role_of(slot) in rule.roles for slot in struck):
                continue
            if not all(self.needed_survives(rule, self.tiers[name], struck) for name in rule.needs):
                continue
            if rule.reverts is Reverts.NOBODY or rule.to is not To.NEWEST:
                return Choice(n, rule.reverts, rule.to, tried_h=tried_h)
            for content, tier in self.surviving(rule, struck):
                if not content.corrupt:
                    return Choice(n, rule.reverts, rule.to, tier, content.content_h, tried_h)
                tried_h += self.loads_h([tier], number)
        return Choice(len(rules) - 1, Reverts.ALL, To.START, tried_h=tried_h)

    def role_of(self, slot: int) -> str:
        return next(name for name, slots in self.role_slots.items() if slot in slots)

    def shards_needed(self, rule: Rule, tier: Tier, struck: set[int]) -> list[int]:
        slots = self.role_slots[tier.role]
        return [slot for slot in slots if rule.reverts is not Reverts.STRUCK or slot in struck]

    def needed_survives(self, rule: Rule, tier: Tier, struck: set[int]) -> bool:
        shards = self.shards_needed(rule, tier, struck)
        return self.live_survives(tier, shards)

    def surviving(self, rule: Rule, struck: set[int]) -> list[tuple[Content, Tier]]:
        """Contents that survive, in the order in which they are tried."""
        there = [
            (content, self.tiers[name])
            for name in rule.sources
            for content in self.kept[name]
            if self.survives(
                self.tiers[name],
                content.on,
                self.shards_needed(rule, self.tiers[name], struck),
            )
        ]
        order = {name: place for place, name in enumerate(rule.sources)}
        there.reverse()  # of one tier, the newest commit first
        return sorted(there, key=lambda pair: (-pair[0].content_h, order[pair[1].name]))

    def loads_h(self, tiers: Sequence[Tier], number: int) -> float:
        """Of those alone that share no link."""
        hours = 0.0
        for tier in tiers:
            assert not isinstance(tier.load, Storage)
            hours += self.cost_h(tier.load, f"load/{tier.name}", number)
        return hours

    def revert(self, choice: Choice, struck: set[int]) -> None:
        """4.4"""
        rule = self.job.policy.rules[choice.rule]
        if choice.reverts is Reverts.ALL:
            self.roll_back(self.goes_back_to_h(choice))
            self.replay_speed = rule.replay_speed
        elif choice.source is not None:
            replays = any(stage.kind is StageKind.REPLAY for stage in rule.stages)
            for slot in self.role_slots[choice.source.role]:
                if slot not in struck and choice.reverts is Reverts.STRUCK:
                    continue
                if slot in struck and replays:  # Reading: of `shards` the others are stale then
                    continue
                self.stale.append(StaleShard(self.progress_h, slot, choice.content_h))

    def goes_back_to_h(self, choice: Choice) -> float:
        step_h = self.job.policy.step_h
        if choice.to is To.NEWEST:
            return choice.content_h
        if choice.to is To.STEP_BEGUN:
            return min(self.progress_h, whole_multiples(self.progress_h, step_h) * step_h)
        if choice.to is To.STEP_BEFORE:
            return max(0.0, self.progress_h - step_h)
        return 0.0

    def roll_back(self, to_h: float) -> None:
        self.progress_h = to_h
        self.errors_h = [one for one in self.errors_h if one < to_h]  # 7.2
        if not self.errors_h:
            self.noticed_at_h = inf
        self.drop_beyond(to_h)
        for number, again in self.again.items():  # 3.8
            self.again[number] = [one for one in again if self.has_reached(one.since_h)]
        for number, due_h in self.due_h.items():
            if not self.has_reached(due_h):
                every_h = self.job.policy.captures[number].every_h
                self.due_h[number] = self.next_due_h(every_h)

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
                self.again.setdefault(save.capture, []).extend(again)

    def outlives(self, save: Save) -> bool:
        """3.7: a flush goes on while what it copies is there, on all shards."""
        after = self.job.policy.captures[save.capture].after
        if after is None or save.content_h > self.progress_h:
            return False
        tier = self.tiers[after]
        return self.survives(tier, save.on, self.role_slots[tier.role])

    def recover(
        self, choice: Choice, scope: Scope, struck: set[int], number: int, progress_h: float
    ) -> None:
        """4.6"""
        shards = self.shards_to_load(choice, struck)
        if shards is not None and choice.reverts is not Reverts.ALL:
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
            if old.at >= 0 and old.stage.grows_h is not None:
                self.end_recovery(old)
        self.recoveries.append(
            Recovery(
                choice.reverts is Reverts.ALL,
                slots,
                self.plan(choice, scope, struck, number, progress_h),
                self.job.policy.rules[choice.rule].speed_meanwhile,
                shards,
                ends_at_h=self.now_h,
            )
        )
        self.end_what_ends()

    # ----------------------------------------------------------------- 5. stages

    def plan(
        self, choice: Choice, scope: Scope, struck: set[int], number: int, progress_h: float
    ) -> list[Planned]:
        """The stages of a recovery with their hours: only those of waits are not known yet."""
        rule = self.job.policy.rules[choice.rule]
        source = choice.source
        nobody_goes_back = (
            choice.reverts is Reverts.STRUCK
            and source is not None
            and struck.isdisjoint(self.role_slots[source.role])
        )
        planned = []
        for n, stage in enumerate(rule.stages):
            hours = self.cost_h(stage.cost, f"stage/{choice.rule}/{n}", number)
            link = None
            if stage.kind is StageKind.WAIT:
                assert stage.cost is None, "the page does not say what a wait with a cost is"
            elif stage.kind is StageKind.DETECT and stage.cost is None:
                hours = self.cost_h(scope.detect, f"detect/{scope.name}", number)
            elif stage.kind is StageKind.LOAD:
                if nobody_goes_back:
                    hours = 0.0
                elif source is not None and isinstance(source.load, Storage):
                    # The page does not say how such a load goes with others before it
                    assert stage.cost is None
                    assert choice.tried_h == 0.0
                    link = source.load
                else:
                    loads = [] if source is None else [source]
                    hours += choice.tried_h + self.loads_h(loads, number)
            elif stage.kind is StageKind.REPLAY and stage.cost is None:
                # Reading: nothing to do again where nobody went back
                lost_h = 0.0 if nobody_goes_back else progress_h - choice.content_h
                hours = lost_h / rule.replay_speed
            by_units = stage.kind is StageKind.REGROUP and stage.cost is None
            planned.append(
                Planned(
                    stage.kind,
                    stage.blocks,
                    hours,
                    link,
                    by_units,
                    stage.each,
                    stage.grows_h,
                    stage.copies_again,
                )
            )
        return planned

    def enter_next_stage(self, recovery: Recovery) -> None:
        """Go on to the next stage that takes time, or end."""
        while True:
            if recovery.at >= 0 and recovery.stage.copies_again:
                self.left |= recovery.slots
            recovery.at += 1
            if recovery.at == len(recovery.stages):
                self.end_recovery(recovery)
                return
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
            elif recovery.stage.kind is StageKind.LOAD and recovery.has_nothing_to_load:
                continue
            elif recovery.stage.by_units:
                elastic = self.job.policy.elastic
                assert elastic is not None, "the page: what an elastic job's table says"
                hours = [*elastic.regroup_h, *([elastic.regroup_h[-1]] * 1000)]
                takes_h = hours[self.n_units_missing(elastic)]
                if takes_h > 0.0:
                    recovery.ends_at_h = self.now_h + takes_h
                    return
            elif recovery.stage.takes_time:
                if recovery.stage.link is None:
                    recovery.ends_at_h = self.now_h + recovery.stage.hours
                else:
                    recovery.ends_at_h = inf
                    recovery.left_bytes = self.bytes_to_load(recovery, recovery.stage.link)
                return

    def grows_at_h(self, every_h: float) -> float:
        """5: when the job takes in the slots that wait for it to grow, if nothing else makes it."""
        if every_h in (0.0, inf):
            return self.now_h + every_h
        n = whole_multiples(self.now_h, every_h)
        is_now = n * every_h >= self.now_h * (1.0 - ROUNDING)
        return self.now_h if is_now else (n + 1) * every_h

    def takes_in(self) -> bool:
        """5: as it would stand still at speed 0 without the slots that wait for it to grow."""
        held = [one for one in self.recoveries if one.stage.grows_h is not None]
        busy = self.blocking_stages() or self.stalling is not None or self.waits_for_a_commit()
        if busy or self.finished is not None or self.speed() > 0.0:
            return False
        for recovery in held:
            self.enter_next_stage(recovery)
        return bool(held)

    def leave_behind(self, recovery: Recovery) -> None:
        """5: of a wait for each slot, those without a node are a recovery of their own."""
        if recovery.at < 0 or not recovery.waits or not recovery.stage.each:
            return
        waiting = recovery.slots & self.vacant
        if waiting and waiting != recovery.slots:
            recovery.slots -= waiting
            self.recoveries.append(replace(recovery, slots=waiting, ends_at_h=inf))

    # ----------------------------------------------------------------- 5. loads

    def shards_to_load(self, choice: Choice, struck: set[int]) -> set[int] | None:
        """5: those that the failure takes back."""
        if choice.source is None:
            return None
        slots = set(self.role_slots[choice.source.role])
        return slots & struck if choice.reverts is Reverts.STRUCK else slots

    def load_no_more(self, shards: set[int]) -> None:
        """5: these are taken back again. What all have gone back to is loaded as a whole."""
        for recovery in self.recoveries:
            if recovery.shards is not None and not recovery.of_all:
                recovery.shards -= shards
                for shard in shards:
                    recovery.left_bytes.pop(shard, None)

    def bytes_to_load(self, recovery: Recovery, link: Storage) -> dict[int, float]:
        """Of each shard that a recovery loads."""
        first = self.job.cluster.shard_slots.start
        sizes = link.bytes_of_shards
        return {
            shard: sizes[shard - first] if sizes else link.shard_bytes
            for shard in recovery.shards or ()
        }

    def ends_of(self, recovery: Recovery, per_h: float) -> list[float]:
        """Of its stage, or of each shard that it loads, as far as can be told by now.

        Parameters
        ----------
        per_h : bytes per hour of each shard that goes over the link
        """
        if recovery.link is None:
            return [recovery.ends_at_h]
        return [self.now_h + left / per_h for left in recovery.left_bytes.values()] or [self.now_h]

    def bytes_per_hour(self) -> float:
        """5: of each shard that goes over the one link, of whatever recovery."""
        loading = [recovery for recovery in self.recoveries if recovery.link is not None]
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
            if recovery.link is None:
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
