"""A recovery system as one record, which the step of a simulation follows.

    Policy ── tiers      places of copies of the state, hence the failures that they survive
           ── captures   saves to a tier: their content, interval and stall
           ── rules      recoveries from failures: the first rule that applies is used
           ── elastic    speed of the job without some of its units
           ── tax        permanent overhead of the system

`docs/recovery.md` owns the semantics. Hours are wall hours unless a name says otherwise; intervals
and contents are hours of progress.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from math import inf
from typing import Annotated

import numpy as np
from annotated_types import Interval

from cprsim.files import OMITTED, Endless, Number, Tagged
from cprsim.job.distributions import ALONE, Mixture
from cprsim.job.intervals import n_saves_due
from cprsim.job.options import NOT_NEGATIVE, POSITIVE, SHARE, SOME
from cprsim.job.records import Cluster, Decision, Duration, Floats, Reliability, Storage, SubSaves

DISTRIBUTIONS = (*ALONE, Mixture)
MOST_GENERATIONS = 256
MOST_IN_FLIGHT = 8
PositiveCount = Annotated[int, POSITIVE]
NotNegative = Annotated[float, NOT_NEGATIVE]
Probability = Annotated[float, Interval(ge=0, lt=1)]  # of failing: some must succeed


@dataclass(frozen=True, slots=True)
class PartOf:
    """A fraction of a duration, and a time on top of it."""

    whole: Annotated[Duration, Tagged(*DISTRIBUTIONS)]
    fraction: float
    extra_h: float

    @property
    def mean_h(self) -> float:
        return self.fraction * self.whole.mean_h + self.extra_h

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """(size,) draws [h], of the same draws of the whole."""
        return self.fraction * self.whole.sample(rng, size) + self.extra_h


Varying = Annotated[Duration, Tagged(*DISTRIBUTIONS, PartOf)]
Loading = Annotated[Duration | Storage, Tagged(*DISTRIBUTIONS, PartOf, Storage)]


class Reach(IntEnum):
    """Extent of a failure, from the smallest to the largest."""

    PROCESS = 0
    GPU = 1
    NODE = 2
    RACK = 3
    ALL = 4


@dataclass(frozen=True, slots=True)
class Scope:
    """One kind of failure: its reach, its time to detection, and whether nodes are replaced."""

    name: str
    reach: Reach
    detect: Duration
    needs_node: bool = True  # False: the same node goes on, so no spare is asked for
    notice_h: float = 0.0  # of the failures' clock, by which it is announced
    silent: bool = False  # errors in the state, each a failure when it is noticed:
    latency: Duration | None = None  # so long after it struck; None: by a check alone
    every_h: float = inf  # of wall time: stops by plan, which are no failures ...
    saves: bool = False  # ... and for which the job saves first

    @property
    def wipes(self) -> Level:
        """The most lasting memory that it wipes on the slots that it strikes."""
        if self.needs_node:
            return Level.DISK
        return Level.HOST if self.reach >= Reach.NODE else Level.DEVICE


class Level(IntEnum):
    """How lasting a memory is; a failure that wipes a level wipes those before it."""

    DEVICE = 0  # goes with the process
    HOST = 1  # goes with the node's power
    DISK = 2  # goes with the node
    OUTSIDE = 3  # stays


class Medium(StrEnum):
    """Medium to which a copy is written."""

    DEVICE = "device"
    HOST = "host"
    SSD = "ssd"
    PMEM = "pmem"
    REMOTE = "remote"

    @property
    def level(self) -> Level:
        return LEVELS[self]


LEVELS = {
    Medium.DEVICE: Level.DEVICE,
    Medium.HOST: Level.HOST,
    Medium.SSD: Level.DISK,
    Medium.PMEM: Level.DISK,
    Medium.REMOTE: Level.OUTSIDE,
}


@dataclass(frozen=True, slots=True)
class Outside:
    """Copies lie on no slot of the job."""


@dataclass(frozen=True, slots=True)
class Ring:
    """The shard of slot i lies on the slots i, i + 1, ... i + copies - 1, around the role."""

    copies: int


@dataclass(frozen=True, slots=True)
class Groups:
    """Slots in groups of `size`; a group's shards outlive up to `tolerates` wiped members.

    Copies of all on all have ``tolerates = size - 1``, k data and m parity ``size = k + m`` and
    ``tolerates = m``. Groups are neighbours, or with `strided` every (n / size)th slot: replicas
    of a job that shards its state within each of them.
    """

    size: int
    tolerates: int
    strided: bool = False


OWN = Ring(1)
Placement = Outside | Ring | Groups


@dataclass(frozen=True, slots=True)
class Tier:
    """A place for copies of the state of one role.

    A tier that no capture writes is live: its copies are always current, on each slot
    that is not without that level of memory. Loads from a `Storage` share its bandwidth.
    """

    name: str
    medium: Medium
    placement: Annotated[Placement, Tagged(Outside, Ring, Groups)]
    role: str
    load: Loading | None = None  # to fetch the state from here; None: no time
    # committed contents that are kept
    generations: Annotated[int, Interval(ge=1, le=MOST_GENERATIONS)] = 1
    p_corrupt: Probability = 0.0  # that a committed content turns out useless when it is loaded


class WhenBusy(StrEnum):
    """Behaviour of a save that is due when `in_flight` saves are running."""

    WAIT = "wait"  # the job waits, then saves
    SKIP = "skip"  # this one is left out


@dataclass(frozen=True, slots=True)
class SaveSchedule:
    """Saves to a tier: each `every_h` of progress, after commits of another, or on notice."""

    tier: str
    every_h: Annotated[Number, POSITIVE] | None = None
    after: str | None = None  # the tier whose commits it follows: it copies from there
    every_nth: PositiveCount = 1
    stall: Varying | None = None  # what it stalls the job for; None: not at all
    background: Varying | None = None  # from then on until it commits; None: at once
    in_flight: Annotated[int, Interval(ge=1, le=MOST_IN_FLIGHT)] = 1  # so many at most
    when_busy: WhenBusy = WhenBusy.WAIT
    parts: PositiveCount = 1  # saves that make one content: the last of them completes it
    p_fail: Probability = 0.0  # that it comes to nothing, noticed when it would commit
    on_notice: bool = False  # saves when a failure is announced, and then alone


CHECK = "check"  # tier of captures that look for silent errors and keep nothing
NO_CONTENT = 2**40  # parts of a content that is never complete


class Reverts(StrEnum):
    """Whose state goes back."""

    ALL = "all"  # the job's: what it did since is done again
    STRUCK = "struck"  # the struck shards', which are stale from then on
    SHARDS = "shards"  # every shard's of the source's role; the job's progress stays
    NOBODY = "nobody"


class To(StrEnum):
    """What state goes back to; asked only where somebody's does."""

    NEWEST = "newest"  # the newest content that survives in one of the sources
    STEP_BEGUN = "step begun"  # the beginning of the step in hand: that is retried
    STEP_BEFORE = "step before"  # one whole step is undone and done again
    START = "start"


class StageKind(StrEnum):
    """The stages of a recovery, from the least advanced on."""

    PLANNED = "planned"  # the job stands, as planned
    DETECT = "detect"
    SAVE = "save"  # those who are left save what they have
    WAIT = "wait"  # for a node
    RETRY = "retry"  # after an attempt to restart that failed
    RESCHEDULE = "reschedule"
    REGROUP = "regroup"
    LOAD = "load"
    WARM_UP = "warm-up"  # of processes that have started again
    REPLAY = "replay"  # the struck do again what they lost, while the others wait
    REBUILD = "rebuild"


STAGE_ORDER = tuple(StageKind)
# when a job takes slots in, besides each so many hours
GROWTH_H = {"at once": 0.0, "next loss": inf}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a recovery.

    Without `cost`, detection takes the scope's time, a load the source's, a replay the lost work
    over the rule's replay speed, a wait as long as nodes are missing, and a regrouping the time in
    `Elastic`. A wait for `each` ends for each slot when it gets its node; another ends when the
    last slot does. A wait with `grows` is not for nodes but for the job to admit slots: at the
    next multiple of `grows_h` hours, or at the next failure.
    """

    kind: StageKind
    cost: Varying | None = None
    blocks: bool = True  # the job stands still meanwhile
    each: bool = False  # of a wait: no slot waits for the node of another
    grows_h: Number | None = None  # of a wait; `GROWTH_H` has words
    copies_again: bool = False  # as it ends, the other slots hold all copies of live tiers again
    p_fail: float = 0.0  # of a retry: that the attempt before it fails, from the reschedule on
    gives_up_after: int = 0  # of a retry: after so many in a row (0: never) ...
    operator: Varying | None = None  # ... it takes until a person has come


@dataclass(frozen=True, slots=True)
class Rule:
    """Recovery from a failure; the first rule of a policy that applies is used.

    A rule applies to its scopes (none: to all) if all struck slots are of its roles (none: of any),
    and if the tiers that it needs and one of its sources survive.
    """

    reverts: Reverts
    stages: tuple[Stage, ...]
    to: To = To.NEWEST  # START and the steps: under ALL alone
    scopes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()  # live tiers
    sources: tuple[str, ...] = ()  # written tiers, the fastest first
    replay_speed: Annotated[float, POSITIVE] = 1.0  # of work that is done again
    # of the job, in stages that do not block it
    speed_meanwhile: Annotated[float, SOME] = 1.0
    roles: tuple[str, ...] = ()  # of all struck slots

    @property
    def replays(self) -> bool:
        """Whether slots that roll back redo their lost work."""
        return any(stage.kind is StageKind.REPLAY for stage in self.stages)

    @property
    def is_transparent(self) -> bool:
        """Whether the job continues undisturbed: no slot rolls back and no stage blocks."""
        return self.reverts is Reverts.NOBODY and not any(stage.blocks for stage in self.stages)


@dataclass(frozen=True, slots=True)
class Elastic:
    """The speed of the job without some units of a role: groups of neighbouring slots.

    `speed[d]` is the speed without d units, relative to none missing; beyond the table it is 0.
    `regroup_h[d]` is the time of a regrouping without `cost` that begins with d units missing;
    beyond the table its last entry applies.
    """

    role: str
    speed: tuple[Annotated[float, SHARE], ...]
    unit_nodes: PositiveCount = 1
    regroup_h: tuple[NotNegative, ...] = ()


STOP = "planned"  # scope of stops
RESTART = "restart"  # begin again from nothing
ROLL_BACK = "roll back"  # everybody goes back to the last save
RELOAD = "reload"  # the struck servers alone go back; the others keep what they have
BY_RULES = "by rules"  # of a recovery system


@dataclass(frozen=True, slots=True)
class Tax:
    """Permanent overhead of a system."""

    compute: NotNegative = 0.0  # hours on top of each hour of work
    nodes: NotNegative = 0.0  # on top of the job's
    memory: NotNegative = 0.0  # on top of the state's, as a fraction of it


@dataclass(frozen=True, slots=True)
class Policy:
    """A recovery system applied to a job: rules for the simulation, and an interval for tables."""

    name: str
    rules: tuple[Rule, ...]
    tiers: tuple[Tier, ...] = ()
    captures: tuple[SaveSchedule, ...] = ()
    elastic: Elastic | None = None
    tax: Tax = Tax()
    step_h: float = 0.0  # progress of a training step; 0 where nothing asks for it
    interval_h: Endless = inf  # progress between its saves; infinite: it never saves
    interval_rule: str = ""  # how the interval came about, in words for the table
    decision: Decision | None = None
    sub_saves: SubSaves | None = None  # None: every save is whole
    # the recovery system whose loss of accuracy nothing but a curve for it prices; None: no such
    accuracy_model: str | None = field(default=None, metadata=OMITTED)
    from_cpr_paper: bool = False  # of the paper

    @property
    def as_simulated(self) -> Policy:
        """Return the part that the simulation uses: equal for policies of equal cost to a job."""
        return replace(
            self, name="", tax=Tax(self.tax.compute), interval_h=inf, interval_rule="",
            decision=None, sub_saves=None, accuracy_model=None,
        )  # fmt: skip

    def tier(self, name: str) -> Tier:
        """Raises KeyError where the policy has none of that name."""
        return {tier.name: tier for tier in self.tiers}[name]

    def followed_by(self, capture: SaveSchedule) -> SaveSchedule | None:
        """Return the capture whose commits this one copies on; None if it copies the state."""
        return next((source for source in self.captures if source.tier == capture.after), None)

    def with_storage(self, reliability: Reliability) -> Policy:
        """Return the policy with retention and unreliable saves applied to its remote tiers."""
        if reliability == Reliability():
            return self
        remote = {tier.name for tier in self.tiers if tier.medium is Medium.REMOTE}
        n_kept, p_corrupt = reliability.kept, reliability.p_corrupt
        return replace(
            self,
            tiers=tuple(
                replace(tier, generations=max(n_kept, tier.generations), p_corrupt=p_corrupt)
                if tier.name in remote
                else tier
                for tier in self.tiers
            ),
            captures=tuple(
                replace(capture, p_fail=reliability.p_fail) if capture.tier in remote else capture
                for capture in self.captures
            ),
        )

    def with_stages(self, changed: Callable[[Stage], Stage]) -> Policy:
        """Return the policy with each stage of its rules changed."""
        rules = (replace(rule, stages=tuple(map(changed, rule.stages))) for rule in self.rules)
        return replace(self, rules=tuple(rules))

    @property
    def leaves_stale(self) -> bool:
        """Whether some shards may roll back while the job continues."""
        partial = (Reverts.STRUCK, Reverts.SHARDS)
        return any(rule.reverts in partial and not rule.replays for rule in self.rules)

    def risks_all(self, useful_h: float) -> bool:
        """Whether a failure loses everything it strikes: no save is due, no live copy survives."""
        saves = (c.every_h is None or n_saves_due(c.every_h, useful_h) for c in self.captures)
        return not any(saves) and (self.leaves_stale or not any(rule.needs for rule in self.rules))

    def content_every_h(self, capture: SaveSchedule, useful_h: float) -> float:
        """Progress between contents that a capture completes; infinite if it never saves [h]."""
        followed = self.followed_by(capture)
        if followed is not None:
            return capture.every_nth * self.content_every_h(followed, useful_h)
        if capture.every_h is None or capture.every_h >= useful_h:
            return inf
        return capture.parts * capture.every_h

    @property
    def on_failure(self) -> str:
        """Name of the response to a failure, for tables."""
        if not self.from_cpr_paper:
            return BY_RULES
        if self.leaves_stale:
            return RELOAD
        return ROLL_BACK if self.tiers else RESTART

    def draw_name(self, name: str) -> str:
        """The name of the draws of a cost; strategies share them under the name of the cost."""
        kind, *where = name.split("/")
        of_rule = kind in ("stage", "attempts", "operator")
        if not self.from_cpr_paper or (of_rule and STOP in self.rules[int(where[0])].scopes):
            return name
        if kind == "stage":
            rule, stage = map(int, where)
            return self.rules[rule].stages[stage].kind.value
        return f"save/{kind}" if kind in ("stall", "background") else kind

    @property
    def is_plain_full(self) -> bool:
        """Whether it is full recovery as most run it: all go back, without a decision."""
        return self.on_failure == ROLL_BACK and self.decision is None

    @property
    def written(self) -> frozenset[str]:
        """Names of the tiers that are not live."""
        return frozenset(capture.tier for capture in self.captures)

    @property
    def parts(self) -> tuple[str, ...]:
        """What its hours can go into besides useful work, in the order of tables."""
        rules, last = self.rules, self.rules[-1]  # where the last does not hold, all start again
        slows = any(
            rule.speed_meanwhile < 1.0 and not all(stage.blocks for stage in rule.stages)
            for rule in rules
        )
        names = {stage.kind.value for rule in rules for stage in rule.stages}
        if last.needs or any(rule.reverts is not Reverts.NOBODY for rule in rules):
            names.add("lost")
        if self.captures:
            names.add("save")
        if slows or self.elastic is not None:
            names.add("degraded")
        if self.elastic is not None:
            names.add("wait")
        if self.tax.compute:
            names.add("tax")
        return tuple(part for part in PARTS_IN_ORDER if part in names)


def checked(policy: Policy, cluster: Cluster, check: SaveSchedule) -> Policy:
    """The policy with checks for silent errors; without an interval, one before each save."""
    intervals_h = [capture.every_h for capture in policy.captures if capture.every_h is not None]
    every_h = check.every_h or next(iter(intervals_h), None)
    if every_h is None:
        return policy
    tier = Tier(CHECK, Medium.REMOTE, Outside(), cluster.roles[0].name)
    captures = (replace(check, every_h=every_h), *policy.captures)
    return replace(policy, tiers=(*policy.tiers, tier), captures=captures)


PARTS_IN_ORDER = (
    "lost", "save", "detect", "wait", "retry", "reschedule", "regroup", "load", "warm-up",
    "replay", "rebuild", "planned", "degraded", "tax",
)  # fmt: skip


def remote_share(policy: Policy, useful_h: float) -> float:
    """Which share of the saves of an undisturbed job goes to remote storage, by their number."""
    medium = {tier.name: tier.medium for tier in policy.tiers}
    n_by_tier: dict[str, float] = {}
    for capture in policy.captures:  # a flush stands behind what it follows
        n = float(n_saves_due(capture.every_h, useful_h)) if capture.every_h else 0.0
        if capture.after is not None:
            n = n_by_tier.get(capture.after, 0.0) / capture.every_nth
        n_by_tier[capture.tier] = n_by_tier.get(capture.tier, 0.0) + n / capture.parts
    n_remote = sum(n for tier, n in n_by_tier.items() if medium[tier] is Medium.REMOTE)
    n_all = sum(n_by_tier.values())
    return n_remote / n_all if n_all else 0.0
