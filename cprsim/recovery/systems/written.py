"""A policy written in the scenario, its records as they are: tiers, captures and rules.

What an entry leaves out follows from the job. A tier lies on the role that holds the state; what is
saved to a remote tier, and loaded from it, costs what the job's own saves and loads do; a stage
`reschedule` takes what the job's takes. An interval `young` is the tier's own,
``sqrt(2 s/lambda)``: s what a save of it stalls the job for, lambda the rate of the failures for
which it is the nearest that survives, in the order in which tiers are listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Duration, OverLink
from cprsim.recovery.pieces import interval_of_level_h, nearest_failures_per_h, require_positive
from cprsim.recovery.policy import (
    Capture,
    Elastic,
    Medium,
    Policy,
    Rule,
    Stage,
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


def plan(facts: JobFacts, options: WrittenOptions, name: str) -> Policy:
    if not options.rules:
        raise ParameterError(f"{name} has no rule: give `rules`, the last of which always holds")
    saved_to = {capture.tier for capture in options.captures}
    tiers = tuple(_tier(facts, tier, tier.name in saved_to, name) for tier in options.tiers)
    by_name = {tier.name: tier for tier in tiers}
    captures = tuple(_capture(facts, one, by_name, name) for one in options.captures)
    captures = _with_intervals(facts, captures, tiers, options.every, name)
    elastic = options.elastic
    if elastic is not None and not elastic.role:
        elastic = replace(elastic, role=facts.role)
    rules = tuple(_rule(facts, rule, name) for rule in options.rules)
    step_h = facts.step_h or 0.0
    return Policy(name, rules, tiers, captures, elastic, options.tax, step_h)


def _tier(facts: JobFacts, tier: Tier, is_saved_to: bool, wanted_by: str) -> Tier:
    load = tier.load
    if load is None and is_saved_to and tier.medium is Medium.REMOTE:
        load = facts.load
    return replace(tier, role=tier.role or facts.role, load=_duration(facts, load, wanted_by))


def _capture(
    facts: JobFacts, capture: Capture, tiers: Mapping[str, Tier], wanted_by: str
) -> Capture:
    stall, background = capture.stall, capture.background
    tier = tiers.get(capture.tier)
    if stall is None and background is None and tier is not None and tier.medium is Medium.REMOTE:
        stall, background = facts.save_stall, facts.save_background
        if capture.after is not None:  # the copy that it follows stalled the job already
            stall, background = None, background or facts.save_stall
    return replace(
        capture,
        stall=_duration(facts, stall, wanted_by),
        background=_duration(facts, background, wanted_by),
    )


def _rule(facts: JobFacts, rule: Rule, wanted_by: str) -> Rule:
    stages = tuple(_stage(facts, stage, wanted_by) for stage in rule.stages)
    return replace(rule, stages=stages)


def _stage(facts: JobFacts, stage: Stage, wanted_by: str) -> Stage:
    cost = stage.cost
    if cost is None and stage.kind is StageKind.RESCHEDULE:
        cost = facts.reschedule
    return replace(stage, cost=_duration(facts, cost, wanted_by))


def _duration(facts: JobFacts, cost: Any, wanted_by: str) -> Duration | None:
    if not isinstance(cost, OverLink):
        given: Duration | None = cost
        return given
    if cost.link not in facts.links:
        known = ", ".join(facts.links) or "none"
        raise ParameterError(f"{wanted_by} names the link `{cost.link}`; `cluster.links`: {known}")
    return Constant(facts.needed("state_bytes", wanted_by) / facts.links[cost.link])


def _with_intervals(
    facts: JobFacts, captures: tuple[Capture, ...], tiers: tuple[Tier, ...],
    given_h: float | None, wanted_by: str,
) -> tuple[Capture, ...]:  # fmt: skip
    """Intervals `young` as hours of progress: what is given in their place, else each tier's."""
    if given_h is not None:
        require_positive(wanted_by, every=given_h)
        return tuple(replace(one, every_h=given_h) if _is_young(one) else one for one in captures)
    written = {capture.tier for capture in captures}
    levels = [tier for tier in tiers if tier.name in written]
    rates = nearest_failures_per_h(facts, levels)
    rate_of = {tier.name: rate for tier, rate in zip(levels, rates, strict=True)}
    return tuple(_with_interval(facts, one, rate_of, wanted_by) for one in captures)


def _with_interval(
    facts: JobFacts, capture: Capture, rate_of: Mapping[str, float], wanted_by: str
) -> Capture:
    if not _is_young(capture):
        return capture
    stall_h = 0.0 if capture.stall is None else capture.stall.mean_h
    behind_h = 0.0 if capture.background is None else capture.background.mean_h
    every_h = interval_of_level_h(
        facts, rate_of.get(capture.tier, 0.0), stall_h, behind_h, wanted_by, capture.tier
    )
    return replace(capture, every_h=every_h)


def _is_young(capture: Capture) -> bool:
    return capture.every_h is not None and isnan(capture.every_h)


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
