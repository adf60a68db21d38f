"""Random recovery systems, jobs and failures, for comparing one simulator with another.

All that `docs/recovery.md` allows comes up often, and failures come in bursts, so that they strike
in recoveries, saves and waits. Instants coincide in the cases on a grid alone. `CASES` lists the
kinds of cases, each made from a seed; those of `random_case` are also goldens (`events`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from math import inf
from typing import Any, TypeVar

import numpy as np

from cprsim.job.distributions import Constant, Exponential, Mixture
from cprsim.job.legal import problems
from cprsim.job.policy import (
    CHECK,
    NO_CONTENT,
    STOP,
    Elastic,
    Groups,
    Medium,
    Outside,
    Placement,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    Scope,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
    WhenBusy,
    checked,
)  # fmt: skip
from cprsim.job.records import (
    STOPPED_BEYOND,
    Attempts,
    Clock,
    Cluster,
    Costs,
    Duration,
    Holds,
    Role,
    Storage,
    SubSaves,
)
from cprsim.recovery.building_blocks import with_restarts, with_stops
from cprsim.simulation.job import ScopedFailure, SimulatedJob
from tests.simulators import FULL, NONE, PARTIAL, job_of

STATE, READERS, TRAINERS = "state", "readers", "trainers"
ALONE = (Reverts.STRUCK, Reverts.SHARDS)  # shards go back while the job goes on
MOST_FAILURES = 3000
MOST_WITH_LINK = 300  # recoveries that do not block the job may pile up on a link

Case = tuple[SimulatedJob, list[ScopedFailure]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Dice:
    """Random choices for one job."""

    rng: np.random.Generator
    useful_h: float = 0.0
    waits: bool = False  # rules have to wait for nodes

    def for_job(self, job: SimulatedJob) -> Dice:
        return replace(self, useful_h=job.useful_h, waits=job.cluster.n_spares is not None)

    def between(self, least: float, most: float) -> float:
        return float(self.rng.uniform(least, most))

    def integer(self, least: int, most: int) -> int:
        """A whole number from `least` to `most`, both included."""
        return int(self.rng.integers(least, most + 1))

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def one_of(self, choices: Sequence[T]) -> T:
        return choices[int(self.rng.integers(len(choices)))]

    def some_of(self, choices: Sequence[T], least: int = 1) -> list[T]:
        """At least so many of them, in any order."""
        n = self.integer(least, len(choices))
        return [choices[i] for i in self.rng.permutation(len(choices))[:n]]

    def duration(self, mean_h: float) -> Duration:
        """About this long, and sometimes varying."""
        hours = mean_h * self.between(0.3, 1.7)
        return Exponential(hours) if self.chance(0.2) else Constant(hours)

    def mixture(self, mean_h: float) -> Duration:
        """One of two, or a fixed one."""
        if self.chance(0.3):
            return Constant(mean_h)
        return Mixture((0.7, 0.3), (self.duration(0.5 * mean_h), self.duration(2.0 * mean_h)))

    def duration_or_none(self, mean_h: float) -> Duration | None:
        return None if self.chance(0.15) else self.duration(mean_h)


def dice_of(*numbers: int) -> Dice:
    return Dice(np.random.default_rng(numbers))


def random_case(seed: int) -> Case:
    """A job under a legal policy, and the failures that it meets."""
    dice = dice_of(seed, 1)
    job = random_job(dice)
    return job, random_failures(dice, job)


def random_job(dice: Dice) -> SimulatedJob:
    useful_h = dice.between(20.0, 60.0)
    dice = replace(dice, useful_h=useful_h)
    roles, scopes = random_roles(dice), random_scopes(dice)
    n_spares = dice.one_of([0, 0, 1, 1, 2, 3, 4]) if dice.chance(0.5) else None
    dice = replace(dice, waits=n_spares is not None)
    policy = random_policy(dice, roles, [scope.name for scope in scopes])
    clock = dice.one_of(list(Clock))
    horizon_h = useful_h * dice.between(0.5, 1.8) if dice.chance(0.3) else None
    job = SimulatedJob(useful_h, Cluster(roles, n_spares), clock, scopes, policy, horizon_h)
    return with_more(replace(dice, rng=dice.rng.spawn(1)[0]), job)


def random_roles(dice: Dice) -> tuple[Role, ...]:
    state = Role(STATE, dice.one_of([4, 5, 6, 8, 9, 10, 12]), Holds.SHARD)
    if dice.chance(0.5):
        return (state,)
    readers = Role(READERS, dice.integer(1, 4), Holds.NOTHING)
    return (state, readers) if dice.chance(0.7) else (readers, state)


def random_scopes(dice: Dice) -> tuple[Scope, ...]:
    kinds = [
        ("process", Reach.PROCESS, False), ("gpu", Reach.GPU, dice.chance(0.4)),
        ("reboot", Reach.NODE, False), ("node", Reach.NODE, True),
        ("rack", Reach.RACK, dice.chance(0.6)), ("all", Reach.ALL, dice.chance(0.4)),
    ]  # fmt: skip
    return tuple(
        Scope(name, reach, dice.duration(0.01 * dice.useful_h), needs_node)
        for name, reach, needs_node in dice.some_of(kinds)[:4]
    )


# --------------------------------------------------------------------------- policies


def random_policy(dice: Dice, roles: tuple[Role, ...], scopes: list[str]) -> Policy:
    state = next(role for role in roles if role.name == STATE)
    written = random_written_tiers(dice, state.n_nodes)
    live = random_live_tiers(dice, roles, state)
    return Policy(
        "random",
        random_rules(dice, scopes, written, live),
        tuple(dice.some_of([*written, *live], len(written) + len(live))),
        random_captures(dice, written),
        random_elastic(dice, state.n_nodes) if dice.chance(0.45) else None,
        Tax(dice.between(0.01, 0.2) if dice.chance(0.4) else 0.0),
        dice.useful_h / dice.between(15.0, 150.0),
    )


def random_placement(dice: Dice, n_nodes: int) -> Placement:
    sizes = [size for size in range(2, n_nodes + 1) if n_nodes % size == 0]
    if not sizes or dice.chance(0.45):
        return Ring(dice.integer(1, min(3, n_nodes)))
    size = dice.one_of(sizes)
    return Groups(size, dice.integer(1, size - 1), strided=dice.chance(0.5))


def random_written_tiers(dice: Dice, n_nodes: int) -> list[Tier]:
    tiers = []
    for number in range(dice.one_of([0, 1, 1, 2, 2, 2, 3, 3, 3])):
        medium = dice.one_of([Medium.HOST, Medium.SSD, Medium.REMOTE])
        place = Outside() if medium is Medium.REMOTE else random_placement(dice, n_nodes)
        load = dice.duration_or_none(0.015 * dice.useful_h)
        generations = dice.integer(1, 3)
        p_corrupt = dice.between(0.1, 0.8) if dice.chance(0.4) else 0.0
        name = f"{medium.value}-{number}"
        tiers.append(Tier(name, medium, place, STATE, load, generations, p_corrupt))
    return tiers


def random_live_tiers(dice: Dice, roles: tuple[Role, ...], state: Role) -> list[Tier]:
    tiers = []
    for number in range(dice.one_of([0, 0, 1, 1, 2])):
        any_role = dice.one_of(roles)
        role = any_role if dice.chance(0.2) else state
        medium = dice.one_of([Medium.DEVICE, Medium.DEVICE, Medium.HOST])
        place = random_placement(dice, role.n_nodes)
        tiers.append(Tier(f"live-{number}", medium, place, role.name))
    return tiers


def random_captures(dice: Dice, written: list[Tier]) -> tuple[SaveSchedule, ...]:
    n_parts = dice.integer(3, 12) if dice.chance(0.4) else dice.between(2.5, 14.0)
    base_h = dice.useful_h / n_parts
    captures: list[SaveSchedule] = []
    for tier in written:
        sources = [capture.tier for capture in captures if capture.every_h is not None]
        follows = dice.one_of(sources) if sources and dice.chance(0.5) else None
        every_h = base_h
        if captures:
            every_h *= dice.integer(1, 4) if dice.chance(0.7) else dice.between(0.5, 3.0)
        in_background = follows is not None or dice.chance(0.65)
        slow_h = every_h * dice.one_of([0.1, 0.9, 1.5, 3.0])
        captures.append(
            SaveSchedule(
                tier.name,
                every_h if follows is None else None,
                follows,
                every_nth=1 if follows is None else dice.integer(1, 3),
                stall=None if follows else dice.duration_or_none(0.01 * dice.useful_h),
                background=dice.duration(slow_h) if in_background else None,
                in_flight=dice.one_of([1, 1, 1, 2, 2, 3]),
                when_busy=dice.one_of(list(WhenBusy)),
                p_fail=dice.between(0.05, 0.4) if dice.chance(0.3) else 0.0,
            )
        )
    return tuple(dice.some_of(captures, len(captures)))


def random_elastic(dice: Dice, n_state: int) -> Elastic:
    unit_nodes = dice.one_of([size for size in (1, 1, 2, 3) if n_state % size == 0])
    speeds = [1.0]
    for _ in range(dice.integer(0, min(4, n_state // unit_nodes))):
        speeds.append(speeds[-1] * dice.between(0.6, 0.95))
    if len(speeds) > 1 and dice.chance(0.35):
        speeds[-1] = 0.0
    return Elastic(STATE, tuple(speeds), unit_nodes)


def random_rules(
    dice: Dice, scopes: list[str], written: list[Tier], live: list[Tier]
) -> tuple[Rule, ...]:
    rules = []
    steps = [To.STEP_BEGUN, To.STEP_BEGUN, To.STEP_BEFORE, To.STEP_BEFORE, To.START]
    for _ in range(dice.one_of([0, 1, 1, 2, 2, 3, 3])):
        reverts = dice.one_of(list(Reverts))
        if not written and reverts in ALONE:
            reverts = Reverts.NOBODY
        to = To.NEWEST
        if reverts is Reverts.ALL and (not written or dice.chance(0.6)):
            to = dice.one_of(steps)
        loads = to is To.NEWEST and reverts is not Reverts.NOBODY
        of_scopes = dice.some_of(scopes) if dice.chance(0.5) else ()
        needs = dice.some_of([tier.name for tier in live]) if live and dice.chance(0.55) else ()
        sources = dice.some_of([one.name for one in written]) if loads else ()
        rules.append(random_rule(dice, reverts, to, sources, of_scopes, needs))
    outside = [tier.name for tier in written if isinstance(tier.placement, Outside)]
    last = [dice.one_of(outside)] if outside else []
    to = To.NEWEST if outside else To.START
    return (*rules, random_rule(dice, Reverts.ALL, to, last))


def random_rule(
    dice: Dice,
    reverts: Reverts,
    to: To,
    sources: Sequence[str],
    scopes: Sequence[str] = (),
    needs: Sequence[str] = (),
) -> Rule:
    stages = random_stages(dice, reverts, bool(sources))
    speed = 1.0 if dice.chance(0.4) else dice.between(0.3, 0.95)
    replay_speed = dice.between(1.1, 4.0) if dice.chance(0.5) else 1.0
    if any(stage.kind is StageKind.WAIT for stage in stages) and dice.chance(0.1):
        speed = 0.01
    names = tuple(scopes), tuple(needs), tuple(sources)
    return Rule(reverts, stages, to, *names, replay_speed, speed)


def random_stages(dice: Dice, reverts: Reverts, has_sources: bool) -> tuple[Stage, ...]:
    likely = {
        StageKind.DETECT: 0.85,
        StageKind.SAVE: 0.15,
        StageKind.WAIT: 1.0 if dice.waits else 0.4,
        StageKind.RESCHEDULE: 0.5,
        StageKind.REGROUP: 0.4,
        StageKind.LOAD: 0.85 if has_sources else 0.2,
        StageKind.REPLAY: 0.6 if reverts is Reverts.STRUCK else 0.0,
        StageKind.REBUILD: 0.35,
    }
    kinds = [kind for kind, p in likely.items() if dice.chance(p)]
    if dice.chance(0.15):
        kinds = dice.some_of(kinds, len(kinds))
    blocks = random_blocks(dice, len(kinds))
    return tuple(
        Stage(kind, random_cost(dice, kind), block)
        for kind, block in zip(kinds, blocks, strict=True)
    )


def random_blocks(dice: Dice, n: int) -> list[bool]:
    how = dice.one_of(["all", "all", "all", "none", "last", "last", "any"])
    if how == "any":
        return [dice.chance(0.5) for _ in range(n)]
    n_free = {"all": 0, "none": n, "last": dice.integer(0, n)}[how]
    return [False] * n_free + [True] * (n - n_free)


def random_cost(dice: Dice, kind: StageKind) -> Duration | None:
    """The stage's own, where it needs one or may have one."""
    if kind in (StageKind.WAIT, StageKind.REPLAY):
        return None
    if kind in (StageKind.DETECT, StageKind.LOAD) and dice.chance(0.6):
        return None
    return dice.duration(0.02 * dice.useful_h)


# --------------------------------------------------------------------------- more of a policy


def with_more(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Rules for some roles, saves in parts, loads that share a link, and special stages."""
    if dice.chance(0.35):
        job = with_roles(dice, job)
    if dice.chance(0.35):
        job = with_parts(dice, job)
    if dice.chance(0.4):
        job = with_shared_loads(dice, job)
    elastic = job.policy.elastic
    if elastic is not None and dice.chance(0.5):  # regroupings that depend on the units missing
        hours = [
            0.0 if dice.chance(0.2) else dice.between(0.1, 1.0) * (0.01 * job.useful_h)
            for _ in range(3)
        ]
        job = with_policy(
            job, elastic=replace(elastic, regroup_h=tuple(hours[: dice.integer(1, 3)]))
        )
        job = staged(job, lambda one: replace(one, cost=None) if by_units(dice, one) else one)
    if dice.chance(0.5):
        sharing = {tier.name for tier in job.policy.tiers if isinstance(tier.load, Storage)}
        job = staged(
            job,
            lambda one: replace(one, each=one.kind is StageKind.WAIT),
            lambda rule: (
                not (rule.reverts in ALONE or sharing & set(rule.sources) or dice.chance(0.2))
            ),
        )
    if dice.chance(0.5):
        job = staged(job, lambda one: replace(one, copies_again=dice.chance(0.3)))
    if elastic is not None:
        job = with_policy(job, rules=tuple(growing(dice, rule) for rule in job.policy.rules))
    return job


def with_policy(job: SimulatedJob, **changes: Any) -> SimulatedJob:
    return replace(job, policy=replace(job.policy, **changes))


def staged(
    job: SimulatedJob,
    changed: Callable[[Stage], Stage],
    holds: Callable[[Rule], bool] = lambda rule: True,
) -> SimulatedJob:
    """Other stages, of the rules for which this holds."""
    rules = (
        replace(rule, stages=tuple(map(changed, rule.stages))) if holds(rule) else rule
        for rule in job.policy.rules
    )
    return with_policy(job, rules=tuple(rules))


def by_units(dice: Dice, stage: Stage) -> bool:
    return stage.kind is StageKind.REGROUP and dice.chance(0.8)


def growing(dice: Dice, rule: Rule) -> Rule:
    """Slots that have their nodes wait for the job to take them in, where that is allowed."""
    for_nodes = [n for n, stage in enumerate(rule.stages) if stage.kind is StageKind.WAIT]
    if not for_nodes or rule.reverts in ALONE or dice.chance(0.3):
        return rule
    every_h = dice.useful_h * dice.between(0.01, 0.2)
    wait = Stage(StageKind.WAIT, blocks=False, grows_h=dice.one_of([0.0, inf, inf, every_h]))
    n = dice.integer(for_nodes[0] + 1, len(rule.stages))
    return replace(rule, stages=(*rule.stages[:n], wait, *rule.stages[n:]))


def with_roles(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Two roles at least, and rules that hold for some of them, the last one excepted."""
    roles = list(job.cluster.roles)
    if len(roles) == 1 or dice.chance(0.6):
        roles.append(Role(TRAINERS, dice.integer(1, 4), Holds.REPLICA))
    roles = dice.some_of(roles, len(roles))
    job = replace(job, cluster=replace(job.cluster, roles=tuple(roles)))
    extra_role = dice.one_of([role for role in roles if role.name != STATE])
    if len(job.policy.rules) == 1 or dice.chance(0.4):
        job = with_tier_of(dice, job, extra_role)
    *rules, last = job.policy.rules
    names = [role.name for role in roles]
    for n, rule in enumerate(rules):
        if not rule.roles and dice.chance(0.6):
            rules[n] = replace(rule, roles=tuple(dice.some_of(names)[:2]))
    return with_policy(job, rules=(*rules, last))


def with_tier_of(dice: Dice, job: SimulatedJob, role: Role) -> SimulatedJob:
    """A tier that holds the shards of another role, and a rule, mostly for it alone, from there."""
    policy, useful_h = job.policy, job.useful_h
    medium = dice.one_of([Medium.HOST, Medium.REMOTE])
    place = Outside() if medium is Medium.REMOTE else random_placement(dice, role.n_nodes)
    load = dice.duration_or_none(0.015 * useful_h)
    tier = Tier(f"{medium.value}-{role.name}", medium, place, role.name, load, dice.integer(1, 2))
    capture = SaveSchedule(
        tier.name,
        useful_h / dice.between(4.0, 20.0),
        stall=dice.duration_or_none(0.01 * useful_h),
        background=dice.duration_or_none(0.05 * useful_h),
    )
    reverts = dice.one_of([Reverts.ALL, Reverts.STRUCK, Reverts.STRUCK, Reverts.SHARDS])
    rule = random_rule(dice, reverts, To.NEWEST, [tier.name])
    if dice.chance(0.8):
        rule = replace(rule, roles=(role.name,))
    return with_policy(
        job, rules=(rule, *policy.rules), tiers=(*policy.tiers, tier),
        captures=(*policy.captures, capture),
    )  # fmt: skip


def with_parts(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Contents in parts, where nothing copies them on; mostly some rule does not revert all."""
    captures = job.policy.captures
    job = with_policy(
        job, captures=tuple(in_parts(dice, capture, captures) for capture in captures)
    )
    if captures and dice.chance(0.7):
        sources = [tier.name for tier in job.policy.tiers if tier.name in job.policy.written]
        return with_rule_in_front(dice, job, list(Reverts)[1:], dice.one_of(sources))
    return job


def in_parts(dice: Dice, capture: SaveSchedule, among: Sequence[SaveSchedule]) -> SaveSchedule:
    """Two to four, and often slow ones, so that the next is due before one commits."""
    followed = any(follower.after == capture.tier for follower in among)
    if capture.every_h is None or capture.parts > 1 or followed or dice.chance(0.2):
        return capture
    parts = dice.integer(2, 4)
    every_h = capture.every_h / (parts if dice.chance(0.7) else 1.0)
    background = capture.background
    if dice.chance(0.5):
        background = dice.duration(1.5 * every_h * capture.in_flight)
    return replace(capture, every_h=every_h, background=background, parts=parts)


def with_shared_loads(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Loads from some tiers share a link, mostly on the wall clock and for some shards alone."""
    tiers = job.policy.tiers
    written = [tier.name for tier in tiers if tier.name in job.policy.written]
    if not written:
        return job
    links = [tier.load for tier in tiers if isinstance(tier.load, Storage)]
    link = links[0] if links else random_link(dice.for_job(job))
    chosen = dice.some_of(written)
    tiers = tuple(
        replace(tier, load=link if tier.name in chosen else tier.load, p_corrupt=0.0)
        for tier in tiers
    )
    job = replace(job, clock=Clock.WALL if dice.chance(0.6) else job.clock)
    job = with_policy(job, tiers=tiers)
    if dice.chance(0.8):
        reverts = [Reverts.STRUCK, Reverts.STRUCK, Reverts.STRUCK, Reverts.SHARDS]
        job = with_rule_in_front(dice, job, reverts, chosen[0])
    shared = {tier.name for tier in tiers if isinstance(tier.load, Storage)}

    def over_link(stage: Stage) -> Stage:
        """It takes what the source says, and slots wait for one another."""
        cost = None if stage.kind is StageKind.LOAD else stage.cost
        return replace(stage, cost=cost, each=False)

    return staged(job, over_link, lambda rule: bool(shared & set(rule.sources)))


def with_rule_in_front(
    dice: Dice, job: SimulatedJob, reverts: Sequence[Reverts], source: str
) -> SimulatedJob:
    """A further rule, for some of the scopes."""
    chosen = dice.one_of(reverts)
    scopes = [scope.name for scope in dice.some_of(job.scopes)]
    sources = [] if chosen is Reverts.NOBODY else [source]
    rule = random_rule(dice.for_job(job), chosen, To.NEWEST, sources, scopes)
    return with_policy(job, rules=(rule, *job.policy.rules))


def random_link(dice: Dice) -> Storage:
    """One that one to four servers fill."""
    shard_bytes = dice.between(1.0, 100.0)
    alone_h = dice.useful_h * dice.one_of([0.01, 0.03, 0.1]) * dice.between(0.7, 1.3)
    server_bytes_per_h = shard_bytes / alone_h
    bytes_per_h = server_bytes_per_h * dice.between(1.0, 4.0)
    if dice.chance(0.3):
        server_bytes_per_h = inf
    return Storage(bytes_per_h, server_bytes_per_h, 0.0 if dice.chance(0.05) else shard_bytes)


# --------------------------------------------------------------------------- failures


def random_failures(
    dice: Dice, job: SimulatedJob, bursts: tuple[float, float] = (0.2, 0.6),
    most: int = MOST_FAILURES,
) -> list[ScopedFailure]:  # fmt: skip
    """In bursts, up to 100 times the useful time or to `most` of them (300, if loads share a link).

    The chance that a failure is followed by another at once lies within `bursts`.
    """
    limit_h = STOPPED_BEYOND * job.useful_h
    has_link = any(isinstance(tier.load, Storage) for tier in job.policy.tiers)
    most = min(MOST_WITH_LINK, most) if has_link else most
    mean_gap_h = job.useful_h / dice.one_of([0.5, 3.0, 6.0, 8.0, 12.0])
    p_burst = dice.between(*bursts)
    repair_h = job.useful_h * dice.one_of([0.02, 0.1, 0.3])
    weights = dice.rng.random(len(job.scopes)) + 0.1
    at_h = 0.0
    failures: list[ScopedFailure] = []
    while len(failures) < most:
        in_burst = failures and dice.chance(p_burst)
        gap_h = job.useful_h * dice.one_of([0.002, 0.01, 0.03]) if in_burst else mean_gap_h
        at_h += float(dice.rng.exponential(gap_h))
        if at_h > limit_h:
            break
        scope = int(dice.rng.choice(len(job.scopes), p=weights / weights.sum()))
        slots = random_slots(dice, job.scopes[scope].reach, job.cluster.n_nodes)
        repairs = dice.rng.exponential(repair_h, len(slots))
        failures.append(ScopedFailure(at_h, slots, scope, tuple(repairs.tolist())))
    return failures


def random_slots(dice: Dice, reach: Reach, n_nodes: int) -> tuple[int, ...]:
    if reach is Reach.ALL:
        return tuple(range(n_nodes))
    if reach is Reach.RACK:
        n = dice.integer(2, min(5, n_nodes))
        first = dice.integer(0, n_nodes - n)
        return tuple(range(first, first + n))
    n = 2 if dice.chance(0.15) else 1
    return tuple(sorted(dice.rng.permutation(n_nodes)[:n].tolist()))


# --------------------------------------------------------------------------- kinds of cases


def often(seed: int) -> Case:
    """Fixed costs and a twelfth of the interval, for each capture or for the first alone.

    Saves in the background take about as many cycles as may be in flight, or a fixed time.
    """
    job, failures = random_case(seed)
    dice, captures = dice_of(seed, 2), list(job.policy.captures)
    on_grid = [n for n, capture in enumerate(captures) if capture.every_h is not None]
    for n in on_grid[: 1 if len(job.scopes) % 2 else None]:
        old, every_h = captures[n], (captures[n].every_h or 0.0) / 12
        stall, behind = (
            cost and Constant(cost.mean_h / 12) for cost in (old.stall, old.background)
        )
        if behind and dice.chance(0.5):
            n_cycles = dice.one_of(
                [old.in_flight - 0.5, 0.97 * old.in_flight, 1.04 * old.in_flight]
            )
            stall_h = stall.mean_h if stall else 0.0
            behind = Constant(n_cycles * dice.between(0.98, 1.02) * (every_h + stall_h) - stall_h)
        captures[n] = replace(old, every_h=every_h, stall=stall, background=behind, p_fail=0.0)
    return with_policy(job, captures=tuple(captures)), failures[:100]


def with_own_link(tier: Tier) -> Tier:
    """Its loads share no link, and may find contents corrupt."""
    if not isinstance(tier.load, Storage):
        return tier
    return replace(tier, load=Constant(tier.load.transfer_h(1)))


def sharing_a_link(seed: int) -> Case:
    """Failure upon failure while jobs save in parts and load over one link."""
    dice = dice_of(seed, 5)
    job = with_shared_loads(dice, with_parts(dice, random_job(dice)))
    failures = random_failures(dice, job, bursts=(0.6, 0.9))[:100]
    return with_uneven_shards(dice, job) if seed % 2 else job, failures


def with_uneven_shards(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Shards of three sizes load over the link, and nothing of another role does."""
    shares = [dice.one_of([0.37, 1.0, 1.81]) for _ in job.cluster.shard_slots]

    def uneven(tier: Tier) -> Tier:
        if not isinstance(tier.load, Storage):
            return tier
        sizes = tuple(share * tier.load.shard_bytes for share in shares)
        load = replace(tier.load, bytes_of_shards=sizes) if tier.role == STATE else Constant(0.5)
        return replace(tier, load=load)

    return with_policy(job, tiers=tuple(map(uneven, job.policy.tiers)))


def crowded(seed: int) -> Case:
    """Recoveries that take long and block nothing: many are under way together."""
    dice = dice_of(seed, 9)
    job = random_job(dice)
    more = Role("more", 100, Holds.NOTHING)
    cluster = replace(job.cluster, roles=(*job.cluster.roles, more), n_spares=None)
    job = staged(
        replace(job, cluster=cluster),
        lambda one: replace(one, cost=one.cost and Constant(40 * one.cost.mean_h), blocks=False),
    )
    return job, random_failures(dice, job, (0.9, 0.98), 200)


N_PER_H = {
    "useful_h": 1, "every_h": 2, "horizon_h": 2, "at_h": 4, "repair_h": 4, "background": 4,
    "grows_h": 4, "stall": 8, "cost": 8, "detect": 8, "step_h": 8, "latency": 8, "load": 16,
}  # fmt: skip


def on_grid(seed: int, unit_h: float = 1.0) -> Case:
    """All times are multiples of parts of an hour: saves, stages and failures coincide."""
    job, failures = silent(seed) if seed % 4 == 0 else random_case(seed)
    job = with_policy(job, tiers=tuple(with_own_link(tier) for tier in job.policy.tiers))
    at_h, least_h, strikes = 0.0, unit_h / 4, []
    for failure in failures:
        failure = rounded(failure, unit_h)
        at_h = max(failure.at_h, at_h + least_h)
        strikes.append(replace(failure, at_h=at_h))
    tax, elastic = Tax(1.0 if job.policy.tax.compute else 0.0), job.policy.elastic
    elastic = elastic and replace(elastic, regroup_h=(0.125 * unit_h,))
    return rounded(with_policy(job, tax=tax, elastic=elastic), unit_h), strikes


HOURLY = dict.fromkeys(N_PER_H, 1) | {"stall": 2, "load": 2, "detect": 2}


def at_once(seed: int) -> Case:
    """On a grid of hours: saves to several tiers, failures, stages and few nodes coincide."""
    (job, failures), dice = on_grid(seed), dice_of(seed, 13)
    captures = job.policy.captures
    if dice.chance(0.5):
        captures = tuple(
            replace(capture, every_h=capture.every_h and 3.0 * capture.parts)
            for capture in captures
        )
    job = rounded(with_policy(job, captures=captures), 1.0, n_per_h=HOURLY)
    if dice.chance(0.8):
        rules = tuple(map(waiting, job.policy.rules))
        job = replace(with_policy(job, rules=rules), cluster=replace(job.cluster, n_spares=1))
    at_h, strikes = 0.0, []
    for failure in rounded(tuple(failures[:200]), 1.0, n_per_h=HOURLY):
        at_h = max(round(0.4 * failure.at_h), at_h + 1.0)
        strikes.append(replace(failure, at_h=float(at_h)))
    return job, strikes


def waiting(rule: Rule) -> Rule:
    """It waits for nodes, if only first."""
    kinds = [stage.kind for stage in rule.stages]
    first = () if StageKind.WAIT in kinds else (Stage(StageKind.WAIT),)
    return replace(rule, stages=(*first, *rule.stages))


def rounded(record: Any, unit_h: float, name: str = "", n_per_h: dict[str, int] = N_PER_H) -> Any:
    """All times in a record are on the grid, a unit for each hour; speeds divide exactly."""
    if isinstance(record, tuple):
        return tuple(rounded(value, unit_h, name, n_per_h) for value in record)
    if name in ("speed", "speed_meanwhile"):
        return 0.0 if record == 0.0 else 0.25 if record < 0.4 else 0.5 if record < 0.75 else 1.0
    if name == "replay_speed":
        return 1.0 if record < 1.5 else 2.0
    if isinstance(record, Constant | Exponential):
        return Constant(rounded(record.mean_h, unit_h, name, n_per_h))
    if (
        name in n_per_h
        and record is not None
        and (name != "grows_h" or record > 0.0)
        and record < inf
    ):
        return unit_h * (max(1.0, round(record * n_per_h[name])) / n_per_h[name])
    if not is_dataclass(record):
        return record
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return replace(
        record,
        **{name: rounded(value, unit_h, name, n_per_h) for name, value in values.items()},
    )


def silent(seed: int) -> Case:
    """Silent errors among the failures."""
    dice = dice_of(seed, 9)
    job = with_errors(dice, random_job(dice))
    return job, random_failures(dice, job)[:300]


def often_silent(seed: int) -> Case:
    """Some errors among the failures of jobs that save often."""
    dice, (job, failures) = dice_of(seed, 10), often(seed)
    job = with_errors(dice, job)
    last = len(job.scopes) - 1
    return job, [
        replace(failure, scope=last) if dice.chance(0.4) else failure for failure in failures
    ]


def with_errors(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Silent errors that are noticed after some time, by checks, or by either."""
    noticed_by = dice.one_of(["latency", "latency", "check", "both"])
    latency_h = job.useful_h * dice.one_of([0.002, 0.05, 0.2]) * dice.between(0.7, 1.3)
    latency = Exponential(latency_h) if dice.chance(0.3) else Constant(latency_h)
    scope = Scope(
        "silent", Reach.PROCESS, Constant(0.0), False, silent=True,
        latency=None if noticed_by == "check" else latency,
    )  # fmt: skip
    job = replace(job, scopes=(*job.scopes, scope))
    if noticed_by == "latency":
        return job
    every_h = job.useful_h / dice.between(5.0, 40.0) if dice.chance(0.5) else None
    takes = Constant(0.002 * job.useful_h * dice.between(0.5, 2.0))
    check = SaveSchedule(CHECK, every_h, stall=takes, parts=NO_CONTENT)
    return replace(job, policy=checked(job.policy, job.cluster, check))


def restarting(seed: int) -> Case:
    """Restarts that warm up, and fail; some loads share a link, and shards may be uneven."""
    job, failures = sharing_a_link(seed) if seed % 3 == 0 else random_case(seed)
    dice = dice_of(seed, 11).for_job(job)
    hours = 0.01 * job.useful_h
    n = dice.one_of([0, 1, 2, 3])
    operator = dice.one_of([Constant(0.0), dice.mixture(3 * hours)]) if n else None
    retry = dice.one_of([Constant(0.0), dice.duration(hours), dice.mixture(hours)])
    attempts = Attempts(dice.one_of([0.1, 0.5, 0.8]), retry, n, operator)
    costs = Costs(
        Constant(0.0), Constant(0.0), Constant(0.0), Constant(0.0),
        warmup=dice.mixture(hours) if dice.chance(0.7) else None,
        restart=attempts if dice.chance(0.8) else None,
    )  # fmt: skip
    return replace(job, policy=with_restarts(job.policy, costs)), failures[:300]


def stopping(seed: int) -> Case:
    """Planned stops among everything else that happens."""
    makes = (random_case, restarting, sharing_a_link, silent, often, on_grid)
    job, failures = makes[seed % len(makes)](seed)
    dice = dice_of(seed, 12).for_job(job)
    every_h = job.useful_h * dice.between(0.05, 0.5)
    length = dice.one_of([Constant(0.0), dice.duration(0.2 * every_h), dice.mixture(0.1 * every_h)])
    if seed % len(makes) == 5:
        every_h, length = max(2.0, round(every_h)), Constant(dice.integer(0, 8) / 8)
    stop = Scope(STOP, Reach.ALL, Constant(0.0), False, every_h=every_h, saves=dice.chance(0.7))
    job = replace(
        job,
        policy=with_stops(job.policy, length, SaveSchedule("", job.useful_h, stall=Constant(0.1))),
        scopes=(*job.scopes, stop),
    )
    return job, failures[:300]


def plain(seed: int) -> Case:
    """Strategies at fixed costs: the loop takes most of them from failure to failure."""
    dice = dice_of(seed, 14)
    useful_h = dice.between(20.0, 60.0)
    how, clock = dice.one_of([FULL, FULL, PARTIAL, PARTIAL, NONE]), dice.one_of(list(Clock))
    interval_h = useful_h / dice.between(2.0, 40.0) if dice.chance(0.9) else inf
    in_parts = how == PARTIAL and dice.chance(0.4)
    link = random_link(replace(dice, useful_h=useful_h))
    costs: dict[str, Any] = {
        name: useful_h * share * dice.between(0.3, 1.7) if dice.chance(0.8) else 0.0
        for name, share in (("save_h", 0.01), ("load_h", 0.02), ("detect_h", 0.005),
                            ("reschedule_h", 0.03))
    }  # fmt: skip
    job = job_of(
        how, interval_h, SubSaves("mfu", 1 / dice.integer(2, 5)) if in_parts else None,
        useful_h=useful_h, clock=clock, n_emb_ps=dice.integer(1, 6),
        n_trainers=dice.integer(0, 3), **costs | ({"load_h": link} if dice.chance(0.2) else {}),
    )  # fmt: skip
    if dice.chance(0.3):
        job = replace(job, horizon_h=useful_h * dice.between(0.5, 1.8))
    if dice.chance(0.5):
        job = nearly_plain(dice, job)
    return job, random_failures(dice, job)


def nearly_plain(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """A plain job with one property that `has_closed_form` of the compiled loop excludes."""
    policy, hours = job.policy, Constant(0.01 * job.useful_h)

    def all_of(name: str, **changes: Any) -> SimulatedJob:
        changed = tuple(replace(one, **changes) for one in getattr(policy, name))
        return with_policy(job, **{name: changed})

    def more_stages(stage: Stage) -> SimulatedJob:
        rules = (replace(rule, stages=(*rule.stages, stage)) for rule in policy.rules)
        return with_policy(job, rules=tuple(rules))

    first, *others = policy.rules
    last = policy.rules[-1]
    of_one_role = replace(last, roles=(job.cluster.roles[-1].name,), stages=last.stages[:-1])
    jobs = [
        with_policy(job, tax=Tax(0.1)),
        replace(job, cluster=replace(job.cluster, n_spares=1)),
        all_of("captures", background=hours), all_of("captures", p_fail=0.3),
        all_of("tiers", p_corrupt=0.3), all_of("tiers", medium=Medium.HOST, placement=Ring(2)),
        all_of("rules", replay_speed=2.0), all_of("rules", speed_meanwhile=0.5),
        *(all_of("rules", to=to, sources=()) for to in (To.STEP_BEGUN, To.START)),
        *(with_policy(job, rules=(replace(first, reverts=how), *others)) for how in Reverts),
        more_stages(Stage(StageKind.REPLAY)), more_stages(Stage(StageKind.REGROUP, hours, False)),
        more_stages(Stage(StageKind.REGROUP, hours, copies_again=True)),
        with_policy(job, rules=(of_one_role, *policy.rules)),
    ]  # fmt: skip
    return dice.one_of(
        [one for one in jobs if not any(problems(one.policy, one.cluster, one.scopes))]
    )


CASES: dict[str, Callable[[int], Case]] = {
    "plain": plain,
    "random": random_case, "often": often,
    "together": sharing_a_link, "crowded": crowded, "on a grid": on_grid,
    "silent": silent, "often silent": often_silent, "restarting": restarting,
    "stopping": stopping, "at once": at_once,
}  # fmt: skip
