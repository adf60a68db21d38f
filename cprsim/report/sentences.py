"""What a result says in sentences: CPR's decision, verdicts, what a strategy saves."""

from __future__ import annotations

from math import inf, isnan

from cprsim.records import STOPPED_BEYOND, Decision, OnFailure, RecoveryPolicy
from cprsim.results import FINISHED, Result, Spread, differences, records_of
from cprsim.results.words import count, hours, percent, percent_number
from cprsim.setting import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER

FORMULAS = "By the first-order formulas"
LIMITS = (
    f"{STOPPED_BEYOND:g} times the useful hours, {HARDLY_AFTER:,} failures at over "
    f"{HARDLY_TIMES:g} times the hours of the work done by then, or {HOPELESS_AFTER:,} failures in "
    "a row without any"
)
"""When a replication is given up (docs/model.md, section 12)."""


def decisions(result: Result) -> list[str]:
    """Why each strategy that decides between partial and full recovery chose what it did."""
    return [
        f"{policy.name} {explain(policy.decision, result.useful_h)}"
        for policy in result.policies
        if policy.decision is not None
    ]


def explain(decision: Decision, useful_h: float) -> str:
    """The decision with the first-order prices of both ways."""
    full = (
        f"full recovery costs {percent(decision.full_overhead_fraction)} of useful time, "
        f"{_saving(decision.full_interval_h, useful_h)}"
    )
    if decision.partial_overhead_fraction == inf:
        return f"falls back to full recovery, as no stale shard is allowed. {FORMULAS}, {full}."
    partial = (
        f"partial recovery costs {percent(decision.partial_overhead_fraction)} of useful time, "
        f"{_saving(decision.partial_interval_h, useful_h)}, at an expected PLS of "
        f"{decision.expected_pls:.3g}"
    )
    if decision.chosen == "partial":
        return f"chose partial recovery. {FORMULAS}, {partial}; {full}."
    return f"falls back to full recovery. {FORMULAS}, {full}; {partial}."


def _saving(interval_h: float, useful_h: float) -> str:
    return "never saving" if interval_h > useful_h else f"saving every {hours(interval_h)}"


def verdicts(result: Result) -> list[str]:
    """What the numbers alone would not tell: jobs that do not finish, intervals past the end."""
    said, spreads = [], result.spreads()
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
                f"{percent_number(finished.low)} to {percent(finished.high)}); means of the others "
                "would mislead."
            )
        elif result.useful_h < interval_h < inf:
            said.append(
                f"{name} never saves: its interval of {hours(interval_h)} is longer than the job."
            )
        said += _staler_than_expected(strategy.policy, spreads[name]["pls"])
        said += _imprecise(result, name, spreads[name]["overhead_fraction"])
    return said


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
    table = table[(table["quantity"] == "overhead_fraction") & (table["mean"] < 0)]
    return [
        f"{row['strategy']} removes {percent(-row['mean'] / against)} of {full[0]}'s overhead"
        + _points(-row["high"], -row["low"])
        for row in records_of(table)
    ]


def _points(low: float, high: float) -> str:
    if isnan(low):
        return "."
    return f" ({percent_number(low)} to {percent_number(high)} percentage points, 95 % interval)."
