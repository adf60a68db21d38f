"""A job under a recovery system in plain numbers and arrays, as both engines take it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from math import inf, isnan, nan
from typing import Any

import numpy as np

from cprsim.failures.distributions import Constant
from cprsim.records import STOPPED_BEYOND, Activity, Clock, Duration, Ints, Storage
from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.legal import (
    MOST_ROLES,
    MOST_RULES,
    MOST_SCOPES,
    MOST_STAGES,
    MOST_TIERS,
    MOST_UNITS,
)
from cprsim.recovery.policy import (
    CHECK,
    STAGE_ORDER,
    Capture,
    Groups,
    Level,
    Policy,
    Reverts,
    Ring,
    Rule,
    StageKind,
    Tier,
    To,
    WhenBusy,
)
from cprsim.simulate.job import SimulatedJob

NONE = -1
OUTSIDE = int(Level.OUTSIDE)

# What has become of a replication
GOING, FINISHED, STOPPED, WANTS_FAILURES, WANTS_COSTS, WANTS_SAVES, WANTS_ROOM = range(7)

NEAR = 1e-11  # of the job: instants nearer than that are one, as they may differ by rounding
OF_JOB = 4  # columns of hours before those of the parts: wall, useful, and stale in two ways

# Members of the records, by number
REVERTS = tuple(Reverts)
ALL, STRUCK, SHARDS, NOBODY = range(4)
TO = tuple(To)
NEWEST, STEP_BEGUN, STEP_BEFORE, START = range(4)
CLOCKS = (Clock.WALL, Clock.UPTIME, Clock.PROGRESS)
WALL, UPTIME, PROGRESS = range(3)
DETECT, SAVE, WAIT, RESCHEDULE, REGROUP, LOAD, REPLAY, REBUILD = range(len(STAGE_ORDER))


TIER = np.dtype(
    [
        ("level", "i8"),
        ("first", "i8"),  # slot of its role
        ("size", "i8"),  # slots of its role
        ("copies", "i8"),  # of a ring, else 0
        ("group", "i8"),  # size of a group
        ("stride", "i8"),  # slots between neighbours of a group
        ("tolerates", "i8"),
        ("generations", "i8"),
        ("load_h", "f8"),
        ("load_table", "i8"),
        ("shares", "?"),  # a link with other loads
        ("p_corrupt", "f8"),
    ],
    align=True,
)
CAPTURE = np.dtype(
    [
        ("tier", "i8"),
        ("every_h", "f8"),  # infinite for a flush
        ("n_due", "i8"),  # how many saves the grid has
        ("after", "i8"),  # the capture whose commits it follows, or NONE
        ("nth", "i8"),
        ("parts", "i8"),
        ("stall_h", "f8"),
        ("stall_table", "i8"),
        ("background_h", "f8"),
        ("background_table", "i8"),
        ("in_flight", "i8"),
        ("skips", "?"),
        ("is_followed", "?"),  # by a flush
        ("on_notice", "?"),
        ("checks", "?"),
        ("p_fail", "f8"),
    ],
    align=True,
)
RULE = np.dtype(
    [
        ("scopes", "i8"),  # bit mask
        ("roles", "i8"),  # bit mask of those that all struck slots have to be of; 0: any
        ("reverts", "i8"),
        ("to", "i8"),
        ("first_stage", "i8"),  # in the list of all stages
        ("n_stages", "i8"),
        ("replay_speed", "f8"),
        ("speed", "f8"),
        ("stops_nothing", "?"),
        ("replays", "?"),
        ("loads", "?"),
        ("load_h", "f8"),  # what its loads cost by themselves
    ],
    align=True,
)
STAGE = np.dtype(
    [
        ("kind", "i8"),
        ("part", "i8"),
        ("cost_h", "f8"),
        ("table", "i8"),
        ("has_cost", "?"),
        ("blocks", "?"),
        ("each", "?"),
        ("grows_h", "f8"),  # of a wait for the job to take slots in, else NaN
        ("copies_again", "?"),
    ],
    align=True,
)
SCOPE = np.dtype(
    [
        ("wipes", "i8"),
        ("detect_h", "f8"),
        ("table", "i8"),
        ("needs_node", "?"),
        ("latency_h", "f8"),
        ("latency_table", "i8"),
    ],
    align=True,
)


NO_LINK = Storage(inf)


def link_of(policy: Policy) -> Storage:
    """The link that the loads of a policy share, if they do."""
    return next((tier.load for tier in policy.tiers if isinstance(tier.load, Storage)), NO_LINK)


def shares(tier: Tier) -> bool:
    """Whether loads from a tier share a link, and take time on it."""
    return isinstance(tier.load, Storage) and tier.load.transfer_h(1) > 0.0


MOST_CAPTURES = MOST_SOURCES = MOST_TIERS  # a tier is written by one capture

NUMBERS = np.dtype(
    [
        ("useful_h", "f8"),
        ("end_h", "f8"),  # of wall time
        ("end_is_planned", "?"),
        ("clock", "i8"),
        ("step_h", "f8"),
        ("tax", "f8"),
        ("silent", "i8"),  # scope of silent errors, or NONE
        ("n_slots", "i8"),
        ("n_spares", "i8"),  # NONE: without limit
        ("role_ends", "i8", (MOST_ROLES,)),  # the slot after each role's last
        ("shares", "?"),  # loads share a link:
        ("shard_bytes", "f8"),  # on average
        ("is_uneven", "?"),  # they differ
        ("link_bytes_per_h", "f8"),
        ("server_bytes_per_h", "f8"),
        ("n_parts", "i8"),
        # columns of the parts that the engines book by themselves, NONE where a policy has none
        ("lost", "i8"),
        ("save", "i8"),
        ("wait", "i8"),
        ("degraded", "i8"),
        ("taxed", "i8"),
        # elastic: the role's slots, in units; none where the job is not
        ("elastic_first", "i8"),
        ("elastic_size", "i8"),
        ("unit", "i8"),
        ("elastic_speed", "f8", (MOST_UNITS + 1,)),  # by units lost
        ("elastic_regroup_h", "f8", (MOST_UNITS + 1,)),
        ("n_tiers", "i8"),
        ("tiers", TIER, (MOST_TIERS,)),
        ("n_captures", "i8"),
        ("fastest", "i8"),  # that with the most saves, if it has several, or NONE
        ("captures", CAPTURE, (MOST_CAPTURES,)),
        ("n_rules", "i8"),
        ("rules", RULE, (MOST_RULES,)),
        ("stages", STAGE, (MOST_STAGES,)),  # those of all rules
        ("scopes", SCOPE, (MOST_SCOPES,)),
        ("sources", "i8", (MOST_RULES, MOST_SOURCES)),  # tiers, NONE behind the last
        ("needs", "i8", (MOST_RULES, MOST_SOURCES)),  # tiers, NONE behind the last
        ("is_plain", "?"),  # `leap` takes it from failure to failure
    ],
    align=True,
)
"""What is the same in all replications. Hours that vary are NaN, and have a table of draws.

One record, so that compiled functions hand on one pointer."""

Numbers = Any  # a record of NUMBERS, or an object with the same attributes


def as_objects(value: Any) -> Any:
    """A record as an object, an array as a list: quick to read one by one in Python."""
    if isinstance(value, np.void):
        record = class_of(value.dtype)()
        for name in value.dtype.names or ():
            setattr(record, name, as_objects(value[name]))
        return record
    return Objects(map(as_objects, value)) if value.dtype.names else value.tolist()


class Objects(list[Any]):
    """Objects for an array of records: what is assigned is copied."""

    def __setitem__(self, place: Any, record: Any) -> None:
        for name in record.__slots__[:-1]:
            setattr(self[place], name, getattr(record, name))


@lru_cache(maxsize=64)
def class_of(dtype: np.dtype[Any]) -> type:
    """The class of what stands for the records of an array in Python."""
    return type("Record", (), {"__slots__": (*(dtype.names or ()), "__dict__")})


N_OF_LOSS = 5
"""Of a shard that went back while the job went on: replication, slot, progress, and hours of work
since the content and since the later of that and its own last reload."""


@lru_cache(maxsize=256)
def numbers_of(job: SimulatedJob) -> tuple[Numbers, dict[str, Duration], dict[str, Duration]]:
    """The numbers of a job; the durations of its saves that are drawn, and those of its failures.

    They are in the order of the tables of draws, by their names (`ReplicationDraws`).
    """
    policy, cluster = job.policy, job.cluster
    parts = policy.parts
    names = [tier.name for tier in policy.tiers]
    written_by = {capture.tier: number for number, capture in enumerate(policy.captures)}
    number_of_scope = {scope.name: number for number, scope in enumerate(job.scopes)}
    number_of_role = {role.name: number for number, role in enumerate(cluster.roles)}
    followed = {capture.after for capture in policy.captures}
    silent = [scope for scope in job.scopes if scope.silent]
    of_saves: dict[str, Duration] = {}
    of_failures: dict[str, Duration] = {}

    def fixed(tables: dict[str, Duration], name: str, cost: Duration | None) -> tuple[float, int]:
        if cost is None or isinstance(cost, Constant):
            return (0.0 if cost is None else cost.mean_h), NONE
        tables[name] = cost
        return nan, len(tables) - 1

    def column(part: str) -> int:
        return parts.index(part) if part in parts else NONE

    def padded(rows: list[tuple[str, ...]]) -> Ints:
        table = np.full((MOST_RULES, MOST_SOURCES), NONE)
        for row, of_rule in zip(table, rows, strict=False):
            row[: len(of_rule)] = [names.index(name) for name in of_rule]
        return table

    def tier_row(tier: Tier) -> tuple[Any, ...]:
        role, place = cluster.slots(tier.role), tier.placement
        groups = place if isinstance(place, Groups) else Groups(1, 0)
        load = None if isinstance(tier.load, Storage) else tier.load
        return (
            tier.medium.level, role.start, len(role),
            place.copies if isinstance(place, Ring) else 0,
            groups.size, len(role) // groups.size if groups.strided else 1, groups.tolerates,
            tier.generations, *fixed(of_failures, f"load/{tier.name}", load), shares(tier),
            tier.p_corrupt,
        )  # fmt: skip

    def capture_row(capture: Capture) -> tuple[Any, ...]:
        every_h = inf if capture.every_h is None else capture.every_h
        return (
            names.index(capture.tier), every_h, n_saves_due(every_h, job.useful_h),
            NONE if capture.after is None else written_by[capture.after], capture.every_nth,
            capture.parts,
            *fixed(of_saves, f"stall/{capture.tier}", capture.stall),
            *fixed(of_saves, f"background/{capture.tier}", capture.background),
            capture.in_flight, capture.when_busy is WhenBusy.SKIP, capture.tier in followed,
            capture.on_notice, capture.tier == CHECK,
            capture.p_fail,
        )  # fmt: skip

    def rule_row(rule: Rule, first_stage: int) -> tuple[Any, ...]:
        scope_names = set(rule.scopes or number_of_scope)
        if rule.needs or not (rule.sources or rule.to is To.START):
            scope_names -= {scope.name for scope in silent}  # what is current holds the error
        kinds = {stage.kind for stage in rule.stages}
        return (
            sum(1 << number_of_scope[name] for name in scope_names),
            sum(1 << number_of_role[name] for name in set(rule.roles)),
            REVERTS.index(rule.reverts), TO.index(rule.to), first_stage, len(rule.stages),
            rule.replay_speed, rule.speed_meanwhile, rule.stops_nothing,
            StageKind.REPLAY in kinds, StageKind.LOAD in kinds,
            sum(fixed({}, "", s.cost)[0] for s in rule.stages if s.kind is StageKind.LOAD),
        )  # fmt: skip

    link = link_of(policy)
    stages = [
        (
            STAGE_ORDER.index(stage.kind), parts.index(stage.kind.value),
            *fixed(of_failures, f"stage/{r}/{s}", stage.cost),
            stage.cost is not None, stage.blocks, stage.each,
            nan if stage.grows_h is None else stage.grows_h, stage.copies_again,
        )
        for r, rule in enumerate(policy.rules)
        for s, stage in enumerate(rule.stages)
    ]  # fmt: skip
    first_stage = [0, *accumulate(len(rule.stages) for rule in policy.rules)]
    elastic = policy.elastic
    units = cluster.slots(elastic.role) if elastic is not None else range(0)
    deadline_h = STOPPED_BEYOND * job.useful_h
    planned = job.horizon_h is not None and job.horizon_h <= deadline_h
    rules = [rule_row(*pair) for pair in zip(policy.rules, first_stage, strict=False)]
    tiers = [tier_row(tier) for tier in policy.tiers]
    captures = [capture_row(capture) for capture in policy.captures]
    often = [n for n, (_, _, n_due, *_) in enumerate(captures) if n_due > 1]
    scopes = [
        (
            s.wipes, *fixed(of_failures, f"detect/{s.name}", s.detect), s.needs_node,
            *((inf, NONE) if s.latency is None else fixed(of_failures, "latency", s.latency)),
        )
        for s in job.scopes
    ]  # fmt: skip
    values = {
        "useful_h": job.useful_h,
        "end_h": deadline_h if job.horizon_h is None or not planned else job.horizon_h,
        "end_is_planned": planned,
        "clock": CLOCKS.index(job.clock),
        "step_h": policy.step_h,
        "tax": policy.tax.compute,
        "silent": job.scopes.index(silent[0]) if silent else NONE,
        "n_slots": cluster.n_nodes,
        "n_spares": NONE if cluster.n_spares is None else cluster.n_spares,
        "shares": any(map(shares, policy.tiers)),
        "shard_bytes": link.shard_bytes,
        "is_uneven": bool(link.bytes_of_shards),
        "link_bytes_per_h": link.bandwidth_bytes_per_h,
        "server_bytes_per_h": link.server_bandwidth_bytes_per_h,
        "n_parts": len(parts),
        "lost": column("lost"),
        "save": column("save"),
        "wait": column("wait"),
        "degraded": column("degraded"),
        "taxed": column("tax"),
        "elastic_first": units.start,
        "elastic_size": len(units),
        "unit": 1 if elastic is None else elastic.unit_nodes,
        "n_tiers": len(tiers),
        "n_captures": len(captures),
        "fastest": min(often, key=lambda n: policy.captures[n].every_h or inf, default=NONE),
        "n_rules": len(rules),
        "sources": padded([rule.sources for rule in policy.rules]),
        "needs": padded([rule.needs for rule in policy.rules]),
    }
    ends = [*accumulate(role.n_nodes for role in cluster.roles)]
    regroup_h = (elastic and elastic.regroup_h) or (0.0,)
    nested: dict[str, Sequence[Any]] = {
        "tiers": tiers, "captures": captures, "rules": rules, "stages": stages, "scopes": scopes,
        "role_ends": [*ends, *MOST_ROLES * [cluster.n_nodes]][:MOST_ROLES],
        "elastic_speed": (1.0,) if elastic is None else elastic.speed,
        "elastic_regroup_h": [*regroup_h, *MOST_UNITS * regroup_h[-1:]][: MOST_UNITS + 1],
    }  # fmt: skip
    numbers = np.zeros(1, NUMBERS)
    for name, value in values.items():
        numbers[name] = value
    for name, rows in nested.items():
        numbers[name][0, : len(rows)] = np.array(rows, numbers[name].dtype)
    if not of_saves and not of_failures:
        numbers["is_plain"] = is_plain(as_objects(numbers[0]))
    return numbers, of_saves, of_failures


def is_plain(num: Numbers) -> bool:
    """Whether saves of a job without varying costs only stall it, and nothing goes on beside it."""
    captures = num.captures[: num.n_captures]
    if len(captures) > 1 or num.elastic_size or num.is_uneven or num.tax:
        return False
    if num.n_spares != NONE or num.silent != NONE:
        return False
    for saves in captures:
        if saves.background_h or saves.on_notice or saves.p_fail:
            return False
    tier = captures[0].tier if captures else NONE
    if captures and num.tiers[tier].p_corrupt > 0.0:
        return False
    for n, rule in enumerate(num.rules[: num.n_rules]):
        source, *others = num.sources[n]
        if source != NONE:
            is_saved_to = source == tier or not captures
            if not is_saved_to or num.tiers[source].level != OUTSIDE or others[0] != NONE:
                return False
        if rule.reverts == ALL:
            has_others = num.n_rules > 1 or num.needs[n][0] != NONE or rule.roles != 0
            to_save = rule.to == NEWEST and (not captures or captures[0].parts == 1)
            to_start = rule.to == START and not captures
            if has_others or rule.replay_speed != 1.0 or not (to_save or to_start):
                return False
        elif rule.reverts == SHARDS:
            if n == 0 or n < num.n_rules - 1:
                return False
        elif rule.reverts != STRUCK or rule.replays or rule.stops_nothing or source == NONE:
            return False
        for stage in num.stages[rule.first_stage : rule.first_stage + rule.n_stages]:
            is_fixed = stage.has_cost or stage.kind not in (REPLAY, REGROUP)
            if not is_fixed or not stage.blocks or not isnan(stage.grows_h) or stage.copies_again:
                return False
    return True


@lru_cache(maxsize=2048)  # kinds of jobs of a fleet
def numbers_as_objects(job: SimulatedJob) -> Numbers:
    """A job's numbers as objects, with the names of its parts, tiers and activities."""
    num, policy = as_objects(numbers_of(job)[0][0]), job.policy
    num.activities = [Activity.__members__.get(part.upper()) for part in policy.parts]
    for capture, of_policy in zip(num.captures, policy.captures, strict=False):
        capture.name = of_policy.tier
    # A fleet has thousands of jobs: no room for what they do not have
    del num.tiers[num.n_tiers :], num.captures[num.n_captures :], num.rules[num.n_rules :]
    del num.stages[sum(rule.n_stages for rule in num.rules) :], num.scopes[len(job.scopes) :]
    return num
