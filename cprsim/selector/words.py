"""A selection's numbers as people read them, the same in table, sentences and figure."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

from cprsim.records import SubSaves
from cprsim.recovery.paper import NEVER
from cprsim.recovery.policy import Policy
from cprsim.recovery.systems import SYSTEMS
from cprsim.results.words import hours
from cprsim.scenario.recovery import RecoverySection
from cprsim.scenario.schema import dump_entry
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.limit import Limit


def quantity_of(limit: Limit) -> str:
    """What is limited, in words."""
    metric = limit.quantity.metric
    return "PLS" if metric is None else metric.loss_label


def saving(one: Candidate) -> str:
    """How often a candidate saves, in words; of a recovery system, what its option says."""
    if one.is_system and not one.option:
        return "as the scenario has it"
    if one.n_saves == 0:
        return f"never saving ({one.option} as long as the job)" if one.option else "never saving"
    every = hours(one.policy.interval_h)
    return f"{one.option} {every}" if one.option else f"saving every {every}"


def typed(interval_h: float) -> str:
    """An interval with all the digits that it has, so that it can be typed."""
    per_hour, unit = (1.0, "h") if interval_h >= 1 else (60.0, "min")
    if interval_h < 1 / 60:
        per_hour, unit = 3600.0, "s"
    return f"{interval_h * per_hour:.10g} {unit}"


def entries(selection: Selection) -> dict[str, str]:
    """What a scenario says under `recovery` to run each strategy as selected, by strategy."""
    found = [selection.full, *(one for one in selection.best.values() if one is not None)]
    return {one.strategy: one.entry or entry(one.strategy, one.policy) for one in found}


def entry(strategy: str, policy: Policy) -> str:
    """A complete entry of `recovery` in a scenario, which makes the same policy."""
    interval_h, parts = policy.interval_h, policy.sub_saves
    fields = {"strategy": strategy, "interval": NEVER if interval_h == inf else typed(interval_h)}
    settings = {} if parts is None else _settings(parts)
    if settings:
        fields["sub_saves"] = _flow(settings)
    return _flow(fields)


def system_entry(way: RecoverySection, policy: Policy, useful_h: float) -> str:
    """The same of a recovery system, at the interval of a policy."""
    options, option = dict(way.options or {}), SYSTEMS[way.strategy].interval
    if option is not None:
        options[option] = typed(min(policy.interval_h, useful_h))
    return dump_entry(way, options)


def _settings(parts: SubSaves) -> dict[str, str]:
    """What differs from the paper's settings, as a scenario says it."""
    ours = {
        "fraction": repr(parts.fraction),
        "latency": typed(parts.extra_h),
        "large_tables": str(parts.n_large_tables),
        "small_tables": parts.small_tables.value,
        "sample_period": str(parts.sample_period),
    }
    papers = SubSaves(parts.tracker, bytes_share=parts.bytes_share)  # which is the curve's word
    return {} if parts == papers else ours


def _flow(fields: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"
