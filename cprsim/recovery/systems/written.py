"""A policy written in the scenario, as its records: tiers, captures and rules.

Values missing from an entry follow from the job. A tier lies on the role that holds the state; a
save to a remote tier, and a load from it, cost as much as the job's own; a stage `reschedule` takes
the job's time. An interval `young` depends on the tier, ``sqrt(2 s/lambda)``: s the stall of its
save, lambda the rate of the failures for which it is the nearest that survives, in the listed order
of the tiers.
"""

from __future__ import annotations

from dataclasses import fields, replace
from math import isnan
from typing import Any, TypeVar

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.options import POSITIVE, Option, time
from cprsim.job.policy import (
    Elastic,
    Medium,
    Policy,
    Rule,
    SaveSchedule,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.job.records import OverLink
from cprsim.recovery.building_blocks import at_own_intervals, row
from cprsim.recovery.system import JobProfile

Filled = TypeVar("Filled", Tier, SaveSchedule, Stage, Elastic)


DERIVED = (StageKind.RETRY, StageKind.PLANNED)
POLICY_OPTIONS = {
    "tiers": Option(tuple[Tier, ...], "where copies lie", ()),
    "captures": Option(tuple[SaveSchedule, ...], "saves: their tier, content and interval", ()),
    "rules": Option(
        tuple[Rule, ...], "recoveries from failures: the first rule that applies is used", (),
        needed=({"reverts": "all", "to": "start", "stages": ("detect", "reschedule")},),
    ),
    "elastic": Option(Elastic, "the speed without some units of the role"),
    "every": time(
        "progress between the saves whose interval is `young`; default: Young's", bound=POSITIVE
    ),
    "tax": Option(Tax, "permanent overhead of the system", Tax()),
}  # fmt: skip


def plan(job: JobProfile, o: Any) -> Policy:
    if not o.rules:
        raise ParameterError("it has no rule: give `rules`, the last of which always holds")
    remote = {tier.name for tier in o.tiers if tier.medium is Medium.REMOTE}
    loads = dict.fromkeys(remote & {capture.tier for capture in o.captures}, job.load)
    tiers = tuple(_filled(job, tier, role=job.role, load=loads.get(tier.name)) for tier in o.tiers)
    captures = [_capture(job, saves, saves.tier in remote, o.every) for saves in o.captures]
    return Policy(
        o.name,
        rules=tuple(_rule(job, rule) for rule in o.rules),
        tiers=tiers,
        captures=at_own_intervals(job, captures, tiers),
        elastic=None if o.elastic is None else _filled(job, o.elastic, role=job.role),
        tax=o.tax,
        step_h=job.step_h or 0.0,
    )


def _capture(
    job: JobProfile, capture: SaveSchedule, is_remote: bool, every_h: float | None
) -> SaveSchedule:
    if every_h is not None and capture.every_h is not None and isnan(capture.every_h):
        capture = replace(capture, every_h=every_h)
    if not is_remote or capture.stall is not None or capture.background is not None:
        return _filled(job, capture)
    if capture.after is None:
        return _filled(job, capture, stall=job.save_stall, background=job.save_background)
    # the copy that it follows stalled the job already
    return _filled(job, capture, background=job.save_background or job.save_stall)


def _rule(job: JobProfile, rule: Rule) -> Rule:
    costs = {StageKind.RESCHEDULE: job.reschedule}
    if any(s.kind in DERIVED or s.p_fail or s.gives_up_after or s.operator for s in rule.stages):
        raise ParameterError("stages have no retry or stop: give `costs.restart` and `planned`")
    stages = (_filled(job, stage, cost=costs.get(stage.kind)) for stage in rule.stages)
    return replace(rule, stages=tuple(stages))


def _filled(job: JobProfile, record: Filled, **defaults: Any) -> Filled:
    """Return a record with defaults for missing values, and times over a node's link in hours."""
    changes = {key: value for key, value in defaults.items() if not getattr(record, key)}
    for field in fields(record):
        cost = getattr(record, field.name)
        if isinstance(cost, OverLink):
            changes[field.name] = Constant(_link_h(job, cost.link))
    return replace(record, **changes)


def _link_h(job: JobProfile, link: str) -> float:
    if link not in job.links:
        names = ", ".join(job.links) or "none"
        raise ParameterError(f"there is no link `{link}`; `cluster.links`: {names}")
    return job.needed("state_bytes") / job.links[link]


WRITTEN_POLICY = row(
    "policy", "", plan, {}, "the scenario", None,
    "as the scenario's entry writes it: tiers, captures and rules",
    source="the scenario", overrides=POLICY_OPTIONS, interval="every", runs_as="the scenario's own",
    assumed="The values of the entry, and those of the job for the rest.",
)  # fmt: skip
SYSTEMS = (WRITTEN_POLICY,)
