"""A policy written in the scenario, its records as they are: tiers, captures and rules.

What an entry leaves out follows from the job. A tier lies on the role that holds the state; what is
saved to a remote tier, and loaded from it, costs what the job's own saves and loads do; a stage
`reschedule` takes what the job's takes. An interval `young` is the tier's own,
``sqrt(2 s/lambda)``: s what a save of it stalls the job for, lambda the rate of the failures for
which it is the nearest that survives, in the order in which tiers are listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Duration, OverLink
from cprsim.recovery.pieces import interval_of_level_h, nearest_failures_per_h
from cprsim.recovery.policy import (
    Capture,
    Elastic,
    Medium,
    Policy,
    Rule,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery.system import JobFacts, System, option

YOUNG_H = nan  # an interval that follows from the failures


@dataclass(frozen=True, slots=True)
class WrittenOptions:
    """A policy, less its name."""

    tiers: tuple[Tier, ...] = option((), "records", "where copies lie")
    captures: tuple[Capture, ...] = option((), "records", "what is saved where, and when")
    rules: tuple[Rule, ...] = option(
        (), "records", "what a failure does: the first rule that holds is taken"
    )
    elastic: Elastic | None = option(  # noqa: RUF009
        None, "records", "the speed without some units of the role"
    )
    every: float | None = option(
        None, "time", "progress between the saves whose interval is `young`; default: Young's"
    )
    tax: Tax = option(Tax(), "records", "what the system takes all the time")  # noqa: RUF009


def plan(job: JobFacts, o: WrittenOptions, name: str) -> Policy:
    if not o.rules:
        raise ParameterError(f"{name} has no rule: give `rules`, the last of which always holds")
    saved_to = {capture.tier for capture in o.captures}
    tiers = tuple(_tier(job, tier, tier.name in saved_to, name) for tier in o.tiers)
    remote = {tier.name for tier in tiers if tier.medium is Medium.REMOTE}
    captures = tuple(_capture(job, one, one.tier in remote, name) for one in o.captures)
    elastic = o.elastic
    if elastic is not None and not elastic.role:
        elastic = replace(elastic, role=job.role)
    return Policy(
        name,
        rules=tuple(_rule(job, rule, name) for rule in o.rules),
        tiers=tiers,
        captures=_with_intervals(job, captures, tiers, o.every, name),
        elastic=elastic,
        tax=o.tax,
        step_h=job.step_h or 0.0,
    )


def _tier(job: JobFacts, tier: Tier, is_saved_to: bool, name: str) -> Tier:
    load = tier.load
    if load is None and is_saved_to and tier.medium is Medium.REMOTE:
        load = job.load
    return replace(tier, role=tier.role or job.role, load=_duration(job, load, name))


def _capture(job: JobFacts, capture: Capture, is_remote: bool, name: str) -> Capture:
    stall, background = capture.stall, capture.background
    if stall is None and background is None and is_remote:
        stall, background = job.save_stall, job.save_background
        if capture.after is not None:  # the copy that it follows stalled the job already
            stall, background = None, background or job.save_stall
    stall, background = _duration(job, stall, name), _duration(job, background, name)
    return replace(capture, stall=stall, background=background)


def _rule(job: JobFacts, rule: Rule, name: str) -> Rule:
    stages = []
    for stage in rule.stages:
        is_replaced = stage.cost is None and stage.kind is StageKind.RESCHEDULE
        cost = job.reschedule if is_replaced else _duration(job, stage.cost, name)
        stages.append(replace(stage, cost=cost))
    return replace(rule, stages=tuple(stages))


def _duration(job: JobFacts, cost: Any, name: str) -> Duration | None:
    if not isinstance(cost, OverLink):
        given: Duration | None = cost
        return given
    if cost.link not in job.links:
        known = ", ".join(job.links) or "none"
        raise ParameterError(f"{name} names the link `{cost.link}`; `cluster.links`: {known}")
    return Constant(job.needed("state_bytes", name) / job.links[cost.link])


def _with_intervals(
    job: JobFacts, captures: tuple[Capture, ...], tiers: tuple[Tier, ...], given_h: float | None,
    name: str,
) -> tuple[Capture, ...]:  # fmt: skip
    """Intervals `young` as hours of progress: what is given in their place, else each tier's."""
    if given_h is not None and not given_h > 0.0:
        raise ParameterError(f"`every` of {name} is {given_h}; it must be positive")
    written = {capture.tier for capture in captures}
    levels = [tier for tier in tiers if tier.name in written]
    rates = nearest_failures_per_h(job, levels)
    rate_of = {tier.name: rate for tier, rate in zip(levels, rates, strict=True)}

    def interval_h(one: Capture) -> float | None:
        if one.every_h is None or not isnan(one.every_h):
            return one.every_h
        if given_h is not None:
            return given_h
        stall_h, behind_h = (
            0.0 if cost is None else cost.mean_h for cost in (one.stall, one.background)
        )
        rate = rate_of.get(one.tier, 0.0)
        return interval_of_level_h(job, rate, stall_h, behind_h, name, one.tier)

    return tuple(replace(one, every_h=interval_h(one)) for one in captures)


SYSTEM = System(
    name="policy",
    runs_as="the scenario's own",
    summary="as the scenario's entry writes it: tiers, captures and rules",
    source="the scenario",
    options=WrittenOptions,
    plan=plan,
    interval="every",
    cited="the scenario",
    assumed="What the entry writes, and what the job says of the rest.",
    needs=(("rules", [{"reverts": "all", "to": "start", "stages": ["detect", "reschedule"]}]),),
)
