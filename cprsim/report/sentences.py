"""What a result says in sentences: CPR's decision, verdicts, what a strategy saves."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

from cprsim.records import STOPPED_BEYOND, OnFailure, RecoveryPolicy
from cprsim.results import FINISHED, Result, Spread, differences, records_of
from cprsim.results.words import (
    count,
    ends,
    hours,
    percent,
    saves,
    writes_parts_only,
)
from cprsim.setting import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER, n_saves_due

FORMULAS = "By the first-order formulas"
LIMITS = (
    f"{STOPPED_BEYOND:g} times the useful hours, {HARDLY_AFTER:,} failures at over "
    f"{HARDLY_TIMES:g} times the hours of the work done by then, or {HOPELESS_AFTER:,} failures in "
    "a row without any"
)
"""When a replication is given up (docs/model.md, section 12)."""

ROUNDING = 1e-9  # of useful time: two engines differ by less where a strategy costs the same


def decisions(result: Result) -> list[str]:
    """Why each strategy that decides between partial and full recovery chose what it did."""
    return [
        f"{policy.name} {explain(policy, result.useful_h)}"
        for policy in result.policies
        if policy.decision is not None
    ]


def explain(policy: RecoveryPolicy, useful_h: float) -> str:
    """A policy's decision with the first-order prices of both ways; it has to have one."""
    decision = policy.decision
    assert decision is not None
    full = (
        f"full recovery costs {percent(decision.full_overhead_fraction)} of useful time, "
        f"{_saving(_whole(policy, decision.full_interval_h), useful_h)}"
    )
    if decision.partial_overhead_fraction == inf:
        return f"falls back to full recovery, as no stale shard is allowed. {FORMULAS}, {full}."
    as_partial = replace(policy, save_interval_h=decision.partial_interval_h)
    partial = (
        f"partial recovery costs {percent(decision.partial_overhead_fraction)} of useful time, "
        f"{_saving(as_partial, useful_h)}, at an expected PLS of "
        f"{decision.expected_pls:.3g}"
    )
    if decision.chosen == "partial":
        return f"chose partial recovery. {FORMULAS}, {partial}; {full}."
    return f"falls back to full recovery. {FORMULAS}, {full}; {partial}."


def _whole(policy: RecoveryPolicy, interval_h: float) -> RecoveryPolicy:
    """The policy with whole saves at another interval: as full recovery takes them."""
    return replace(policy, save_interval_h=interval_h, sub_saves=None)


def _saving(policy: RecoveryPolicy, useful_h: float) -> str:
    every = saves(policy, useful_h)
    return "never saving" if "no saves" in every else f"saving {every}"


def verdicts(result: Result) -> list[str]:
    """What the numbers alone would not tell: warnings, jobs that do not finish, no saves."""
    said, spreads = [f"Warning: {one}" for one in result.warnings], result.spreads()
    for strategy in result.strategies:
        name, interval_h = strategy.policy.name, strategy.policy.save_interval_h
        finished = spreads[name][FINISHED]
        share, n = finished.mean, finished.n
        if share == 0:
            said.append(
                f"{name} never finishes: of {count(n, 'replication')} none was done after "
                f"{LIMITS}; failures come faster than it recovers."
            )
        elif share < 1:
            said.append(
                f"{name} often does not finish: {percent(share)} of {count(n, 'replication')} "
                f"were done; the others were stopped after {LIMITS} (95 % interval of the share "
                f"{ends(100 * finished.low, 100 * finished.high)} %); means of the others "
                "would mislead."
            )
        elif interval_h < inf and not n_saves_due(interval_h, result.useful_h):
            said.append(_no_whole_save(strategy.policy, result.useful_h))
        said += _staler_than_expected(strategy.policy, spreads[name]["pls"])
        said += _imprecise(result, name, spreads[name]["overhead_fraction"])
    return said


def _no_whole_save(policy: RecoveryPolicy, useful_h: float) -> str:
    """What to say of an interval that is at least the job: there may be sub-saves all the same."""
    interval_h = policy.save_interval_h
    how_long = "longer than" if interval_h > useful_h else "as long as"
    why = f"its interval of {hours(interval_h)} is {how_long} the job"
    if not writes_parts_only(policy, useful_h):
        return f"{policy.name} never saves: {why}."
    return f"{policy.name} ends no whole checkpoint: {why}. It saves {saves(policy, useful_h)}."


def _staler_than_expected(policy: RecoveryPolicy, pls: Spread) -> list[str]:
    """What to say where more is lost than CPR's formula expects, as with a single trainer."""
    decision = policy.decision
    if decision is None or policy.on_failure is not OnFailure.RELOAD:
        return []
    if not pls.low > 1.25 * decision.expected_pls:
        return []
    return [
        f"{policy.name} loses more than its formula expects: PLS {pls.mean:.3g} where "
        f"{decision.expected_pls:.3g} was expected; see docs/model.md, sections 5 and 7."
    ]


def _imprecise(result: Result, name: str, overhead: Spread) -> list[str]:
    """What to say where the replications allowed were too few for the precision asked for."""
    wanted = result.precision_fraction
    if wanted is None or not overhead.half_width > 1.01 * wanted * overhead.mean:
        return []
    return [
        f"{name}: the overhead is known to {percent(overhead.half_width / overhead.mean)} of its "
        f"mean, not to the {percent(wanted)} asked for: {count(overhead.n, 'replication')} were "
        "the most allowed."
    ]


def savings(result: Result) -> list[str]:
    """What each strategy saves against full recovery, paired by replication.

    Full recovery is the first strategy that rolls back without deciding; without one that
    finished there is nothing to say.
    """
    full = [
        p.name for p in result.policies if p.on_failure is OnFailure.ROLL_BACK and not p.decision
    ]
    if not full:
        return []
    against = result.spreads()[full[0]]["overhead_fraction"].mean
    table = differences(result.replications, result.n_nodes, full[0])
    table = table[(table["quantity"] == "overhead_fraction") & (table["mean"] < -ROUNDING)]
    return [
        f"{row['strategy']} removes {percent(-row['mean'] / against)} of {full[0]}'s overhead"
        + _points(-row["high"], -row["low"])
        for row in records_of(table)
    ]


def _points(low: float, high: float) -> str:
    if isnan(low):
        return "."
    return f" ({ends(100 * low, 100 * high)} percentage points, 95 % interval)."
