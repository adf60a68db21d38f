"""Constant inputs of all replications of a job under a policy, as plain numbers.

Durations that vary are NaN here, and have a table of draws (`Tables`).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import inf, isnan, nan
from typing import Annotated, NamedTuple

import numpy as np

from cprsim.job.distributions import Constant
from cprsim.job.intervals import n_saves_due
from cprsim.job.legal import (
    MOST_ROLES,
    MOST_RULES,
    MOST_SCOPES,
    MOST_STAGES,
    MOST_TIERS,
    MOST_UNITS,
)
from cprsim.job.policy import (
    CHECK,
    STAGE_ORDER,
    STOP,
    Groups,
    Level,
    Policy,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    Scope,
    Stage,
    StageKind,
    Tier,
    To,
    WhenBusy,
)
from cprsim.job.records import STOPPED_BEYOND, Clock, Duration, Floats, Storage
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.records import record

NONE = -1
OUTSIDE = int(Level.OUTSIDE)
STOPPING = -2  # in place of a capture: the job waits for the save before a stop

# What has become of a replication. WANTS_MORE: it needs more draws or room, and runs again
RUNNING, FINISHED, STOPPED, WANTS_FAILURES, WANTS_MORE = range(5)

SAME_INSTANT = (
    1e-11  # of the job: instants nearer than that are one, as they may differ by rounding
)
OF_JOB = 4  # columns of hours before those of the parts: wall, useful, and stale in two ways

# Members of the records, by number
REVERTS = tuple(Reverts)
ALL, STRUCK, SHARDS, NOBODY = range(4)
TO = tuple(To)
NEWEST, STEP_BEGUN, STEP_BEFORE, START = range(4)
CLOCKS = (Clock.WALL, Clock.UPTIME, Clock.PROGRESS)
WALL, UPTIME, PROGRESS = range(3)
(
    PLANNED, DETECT, SAVE, WAIT, RETRY, RESCHEDULE, REGROUP, LOAD, WARM_UP, REPLAY, REBUILD,
) = range(len(STAGE_ORDER))  # fmt: skip

# Columns of a job's hours: those of the stages by their kind, and these
LOST, DEGRADED, TAX = range(len(STAGE_ORDER), len(STAGE_ORDER) + 3)
COLUMNS: tuple[str, ...] = (*STAGE_ORDER, "lost", "degraded", "tax")

MOST_CAPTURES = MOST_SOURCES = MOST_TIERS  # a tier is written by one capture


@record
class CostSpec:
    """Hours that something takes."""

    hours: float  # NaN: they vary
    table: int  # of their draws, or NONE


@record
class TierSpec:
    """A place that keeps saves."""

    level: int  # of the memory that it is in
    first: int  # slot of its role
    size: int  # slots of its role
    copies: int  # of a ring, else 0
    group: int  # size of a group
    stride: int  # slots between neighbours of a group
    tolerates: int  # lost slots of a group whose shards can still be had
    generations: int  # contents that it keeps
    load: CostSpec
    shares: bool  # a link with other loads
    p_corrupt: float


@record
class CaptureSpec:
    """The saves to one tier, or the flushes from one tier to another."""

    tier: int
    every_h: float  # of progress; infinite for a flush
    n_due: int  # how many saves the grid has
    after: int  # the capture whose commits it follows, or NONE
    nth: int  # of these it copies
    parts: int  # saves that make one content
    stall: CostSpec
    background: CostSpec
    in_flight: int  # at most
    skips: bool  # a save that is due while so many are in flight; else the job waits
    is_followed: bool  # by a flush
    on_notice: bool  # of a failure a save is due
    checks: bool  # whether the state holds a silent error
    p_fail: float


NO_COST = CostSpec(0.0, NONE)
NO_SAVES = CaptureSpec(
    NONE, inf, 0, NONE, 1, 1, NO_COST, NO_COST, 1, False, False, False, False, 0.0
)  # in place of the first where a policy has none


@record
class StageSpec:
    """A stage of a recovery."""

    kind: int
    cost: CostSpec
    has_cost: bool  # of its own
    blocks: bool  # the job meanwhile
    each: bool  # a wait is over for each slot by itself
    grows_h: float  # of a wait for the job to take slots in, else NaN
    copies_again: bool  # what its slots held is on other slots when it ends
    # of a retry
    gives_up_after: int  # failed attempts in a row; 0: never
    operator: CostSpec  # its cost then


@record
class RuleSpec:
    """A rule of recovery; the first that applies is used."""

    scopes: int  # bit mask
    roles: int  # bit mask of those that all struck slots have to be of; 0: any
    reverts: int
    to: int
    first_stage: int  # in the list of all stages
    n_stages: int
    replay_speed: float
    speed: float  # of the job in stages that do not block it
    is_transparent: bool  # of the saves in flight
    replays: bool
    loads: bool
    attempts: CostSpec  # how many attempts to restart fail, drawn as hours are
    again: int  # stage at which each begins
    load_h: float  # what its loads cost by themselves
    sources: Annotated[list[int], MOST_SOURCES]  # tiers, NONE behind the last
    needs: Annotated[list[int], MOST_SOURCES]  # live tiers, NONE behind the last


@record
class ScopeSpec:
    """A kind of failure."""

    wipes: int  # the highest level of memory that it takes
    detect: CostSpec
    needs_node: bool
    latency: CostSpec  # of a silent error; infinite for others


@record
class Spec:
    """A job under a policy."""

    useful_h: float
    end_h: float  # of wall time
    end_is_planned: bool
    clock: int
    step_h: float
    tax: float  # extra compute, as a share of the work
    silent: int  # scope of silent errors, or NONE
    stop: int  # scope of planned stops, or NONE
    stop_every_h: float
    stop_saves: int  # capture to an outside tier, by which the job saves before, or NONE
    n_slots: int
    n_spares: int  # NONE: without limit
    role_ends: Annotated[list[int], MOST_ROLES]  # the slot after each role's last
    shares: bool  # loads share a link:
    shard_bytes: float  # on average
    is_uneven: bool  # they differ
    link_bytes_per_h: float
    server_bytes_per_h: float
    # elastic: the role's slots, in units; no slots where the job is not
    elastic_first: int
    elastic_size: int
    unit: int
    elastic_speed: Annotated[list[float], MOST_UNITS + 1]  # by units with a slot in a recovery
    elastic_regroup_h: Annotated[list[float], MOST_UNITS + 1]  # of a regrouping that begins then
    n_tiers: int
    tiers: Annotated[list[TierSpec], MOST_TIERS]
    n_captures: int
    most_frequent_capture: int  # capture with the most saves, if it has several, or NONE
    captures: Annotated[list[CaptureSpec], MOST_CAPTURES]
    n_rules: int
    rules: Annotated[list[RuleSpec], MOST_RULES]
    stages: Annotated[list[StageSpec], MOST_STAGES]  # those of all rules
    scopes: Annotated[list[ScopeSpec], MOST_SCOPES]
    has_closed_form: bool  # `closed_form_steps` takes it from failure to failure


class Tables(NamedTuple):
    """The durations that vary, in the order of their tables of draws, by name."""

    of_saves: dict[str, Duration]
    of_failures: dict[str, Duration]


class FailedAttempts(NamedTuple):
    """How many attempts to restart fail before one succeeds; drawn as durations are."""

    p_fail: float

    @property
    def mean_h(self) -> float:
        return self.p_fail / (1.0 - self.p_fail)

    def sample(self, rng: np.random.Generator, size: int) -> Floats:
        """(size,) whole numbers."""
        return np.asarray(rng.geometric(1.0 - self.p_fail, size) - 1, dtype=np.float64)


NO_LINK = Storage(inf)


def link_of(policy: Policy) -> Storage:
    """The link that the loads of a policy share, if they do."""
    return next((tier.load for tier in policy.tiers if isinstance(tier.load, Storage)), NO_LINK)


def shares(tier: Tier) -> bool:
    """Whether loads from a tier share a link, and take time on it."""
    return isinstance(tier.load, Storage) and tier.load.transfer_h(1) > 0.0


def cost_of(tables: dict[str, Duration], name: str, cost: Duration | None) -> CostSpec:
    """A cost in numbers; it gets a table where it varies."""
    if cost is None or isinstance(cost, Constant):
        return CostSpec(0.0 if cost is None else cost.mean_h, NONE)
    tables[name] = cost
    return CostSpec(nan, len(tables) - 1)


@lru_cache(maxsize=256)
def spec_of(job: SimulatedJob) -> tuple[Spec, Tables]:
    """The numbers of a job, and the durations that vary."""
    policy, cluster, tables = job.policy, job.cluster, Tables({}, {})
    tiers = [_tier(job, tier, tables) for tier in policy.tiers]
    captures = [_capture(job, capture, tables) for capture in policy.captures]
    stages = [
        _stage(f"stage/{r}/{s}", stage, tables)
        for r, rule in enumerate(policy.rules)
        for s, stage in enumerate(rule.stages)
    ]
    scopes = [_scope(scope, tables) for scope in job.scopes]
    first_stages = accumulate((len(rule.stages) for rule in policy.rules), initial=0)
    rules = [
        _rule(job, n, rule, first_stage, tables)
        for n, (rule, first_stage) in enumerate(zip(policy.rules, first_stages, strict=False))
    ]
    often = [n for n, capture in enumerate(captures) if capture.n_due > 1]
    silent = [number for number, scope in enumerate(job.scopes) if scope.silent]
    stops = [number for number, scope in enumerate(job.scopes) if scope.every_h < inf]
    ends = [*accumulate(role.n_nodes for role in cluster.roles)]
    link, elastic = link_of(policy), policy.elastic
    units = cluster.slots(elastic.role) if elastic is not None else range(0)
    regroup_h = (elastic and elastic.regroup_h) or (0.0,)
    deadline_h = STOPPED_BEYOND * job.useful_h
    planned = job.horizon_h is not None and job.horizon_h <= deadline_h
    spec = Spec(
        useful_h=job.useful_h,
        end_h=deadline_h if job.horizon_h is None or not planned else job.horizon_h,
        end_is_planned=planned,
        clock=CLOCKS.index(job.clock),
        step_h=policy.step_h,
        tax=policy.tax.compute,
        silent=silent[0] if silent else NONE,
        stop=stops[0] if stops else NONE,
        stop_every_h=job.scopes[stops[0]].every_h if stops else inf,
        stop_saves=_stop_saves(job) if stops and job.scopes[stops[0]].saves else NONE,
        n_slots=cluster.n_nodes,
        n_spares=NONE if cluster.n_spares is None else cluster.n_spares,
        role_ends=[*ends, *MOST_ROLES * [cluster.n_nodes]][:MOST_ROLES],
        shares=any(map(shares, policy.tiers)),
        shard_bytes=link.shard_bytes,
        is_uneven=bool(link.bytes_of_shards),
        link_bytes_per_h=link.bandwidth_bytes_per_h,
        server_bytes_per_h=link.server_bandwidth_bytes_per_h,
        elastic_first=units.start,
        elastic_size=len(units),
        unit=1 if elastic is None else elastic.unit_nodes,
        elastic_speed=[*(elastic.speed if elastic else ()), *MOST_UNITS * [0.0]][: MOST_UNITS + 1],
        elastic_regroup_h=[*regroup_h, *MOST_UNITS * regroup_h[-1:]][: MOST_UNITS + 1],
        n_tiers=len(tiers),
        tiers=tiers,
        n_captures=len(captures),
        most_frequent_capture=min(often, key=lambda n: captures[n].every_h, default=NONE),
        captures=captures or [NO_SAVES],
        n_rules=len(rules),
        rules=rules,
        stages=stages,
        scopes=scopes,
        has_closed_form=False,
    )
    varies = tables.of_saves or tables.of_failures
    spec.has_closed_form = not varies and has_closed_form(spec)
    return spec, tables


def _tier(job: SimulatedJob, tier: Tier, tables: Tables) -> TierSpec:
    role, place = job.cluster.slots(tier.role), tier.placement
    groups = place if isinstance(place, Groups) else Groups(1, 0)
    load = None if isinstance(tier.load, Storage) else tier.load
    return TierSpec(
        level=tier.medium.level,
        first=role.start,
        size=len(role),
        copies=place.copies if isinstance(place, Ring) else 0,
        group=groups.size,
        stride=len(role) // groups.size if groups.strided else 1,
        tolerates=groups.tolerates,
        generations=tier.generations,
        load=cost_of(tables.of_failures, f"load/{tier.name}", load),
        shares=shares(tier),
        p_corrupt=tier.p_corrupt,
    )


def _capture(job: SimulatedJob, capture: SaveSchedule, tables: Tables) -> CaptureSpec:
    captures, tiers = job.policy.captures, [tier.name for tier in job.policy.tiers]
    written_by = {of.tier: number for number, of in enumerate(captures)}
    every_h = inf if capture.every_h is None else capture.every_h
    return CaptureSpec(
        tier=tiers.index(capture.tier),
        every_h=every_h,
        n_due=n_saves_due(every_h, job.useful_h),
        after=NONE if capture.after is None else written_by[capture.after],
        nth=capture.every_nth,
        parts=capture.parts,
        stall=cost_of(tables.of_saves, f"stall/{capture.tier}", capture.stall),
        background=cost_of(tables.of_saves, f"background/{capture.tier}", capture.background),
        in_flight=capture.in_flight,
        skips=capture.when_busy is WhenBusy.SKIP,
        is_followed=capture.tier in {of.after for of in captures},
        on_notice=capture.on_notice,
        checks=capture.tier == CHECK,
        p_fail=capture.p_fail,
    )


def _stop_saves(job: SimulatedJob) -> int:
    """The capture by which a job saves before a stop: the first to a tier that it loads from."""
    outside = {name for rule in job.policy.rules if STOP in rule.scopes for name in rule.sources}
    captures = enumerate(job.policy.captures)
    return next((number for number, capture in captures if capture.tier in outside), NONE)


def _rule(job: SimulatedJob, number: int, rule: Rule, first_stage: int, tables: Tables) -> RuleSpec:
    number_of_scope = {scope.name: number for number, scope in enumerate(job.scopes)}
    number_of_role = {role.name: number for number, role in enumerate(job.cluster.roles)}
    names = [tier.name for tier in job.policy.tiers]
    scopes = set(rule.scopes or number_of_scope)
    if rule.needs or not (rule.sources or rule.to is To.START):
        scopes -= {scope.name for scope in job.scopes if scope.silent}  # live copies hold the error
    kinds = [stage.kind for stage in rule.stages]
    p_fail = max((stage.p_fail for stage in rule.stages), default=0.0)
    failed = FailedAttempts(p_fail) if p_fail else None
    loads = [stage.cost for stage in rule.stages if stage.kind is StageKind.LOAD]

    def padded(of: tuple[str, ...]) -> list[int]:
        return [*(names.index(name) for name in of), *MOST_SOURCES * [NONE]][:MOST_SOURCES]

    return RuleSpec(
        scopes=sum(1 << number_of_scope[name] for name in scopes),
        roles=sum(1 << number_of_role[name] for name in set(rule.roles)),
        reverts=REVERTS.index(rule.reverts),
        to=TO.index(rule.to),
        first_stage=first_stage,
        n_stages=len(rule.stages),
        replay_speed=rule.replay_speed,
        speed=rule.speed_meanwhile,
        is_transparent=rule.is_transparent,
        replays=StageKind.REPLAY in kinds,
        loads=StageKind.LOAD in kinds,
        attempts=cost_of(tables.of_failures, f"attempts/{number}", failed),
        again=kinds.index(StageKind.RESCHEDULE) if p_fail else NONE,
        load_h=sum(cost_of({}, "", cost).hours for cost in loads),
        sources=padded(rule.sources),
        needs=padded(rule.needs),
    )


def _stage(name: str, stage: Stage, tables: Tables) -> StageSpec:
    of, operator = tables.of_failures, name.replace("stage", "operator")
    return StageSpec(
        kind=STAGE_ORDER.index(stage.kind),
        cost=cost_of(of, name, stage.cost),
        has_cost=stage.cost is not None,
        blocks=stage.blocks,
        each=stage.each,
        grows_h=nan if stage.grows_h is None else stage.grows_h,
        copies_again=stage.copies_again,
        gives_up_after=stage.gives_up_after,
        operator=cost_of(of, operator, stage.operator),
    )


def _scope(scope: Scope, tables: Tables) -> ScopeSpec:
    detect, latency = (
        cost_of(tables.of_failures, f"detect/{scope.name}", scope.detect),
        scope.latency,
    )
    return ScopeSpec(
        wipes=scope.wipes,
        detect=detect,
        needs_node=scope.needs_node,
        latency=(
            CostSpec(inf, NONE)
            if latency is None
            else cost_of(tables.of_failures, "latency", latency)
        ),
    )


def has_closed_form(spec: Spec) -> bool:
    """Whether the job has constant costs and at most one kind of save, without background work."""
    captures = spec.captures[: spec.n_captures]
    if len(captures) > 1 or spec.elastic_size or spec.is_uneven or spec.tax:
        return False
    if spec.n_spares != NONE or spec.silent != NONE or spec.stop != NONE:
        return False
    for saves in captures:
        if saves.background.hours or saves.on_notice or saves.p_fail:
            return False
    tier = captures[0].tier if captures else NONE
    if captures and spec.tiers[tier].p_corrupt > 0.0:
        return False
    for n, rule in enumerate(spec.rules):
        source, *others = rule.sources
        if source != NONE:
            is_saved_to = source == tier or not captures
            if not is_saved_to or spec.tiers[source].level != OUTSIDE or others[0] != NONE:
                return False
        if rule.reverts == ALL:
            has_others = spec.n_rules > 1 or rule.needs[0] != NONE or rule.roles != 0
            to_save = rule.to == NEWEST and (not captures or captures[0].parts == 1)
            to_start = rule.to == START and not captures
            if has_others or rule.replay_speed != 1.0 or not (to_save or to_start):
                return False
        elif rule.reverts == SHARDS:
            if n < spec.n_rules - 1:
                return False
        elif rule.reverts != STRUCK or rule.replays or rule.is_transparent or source == NONE:
            return False
        for stage in spec.stages[rule.first_stage : rule.first_stage + rule.n_stages]:
            is_fixed = stage.has_cost or stage.kind not in (REPLAY, REGROUP)
            if not is_fixed or not stage.blocks or not isnan(stage.grows_h) or stage.copies_again:
                return False
    return True
