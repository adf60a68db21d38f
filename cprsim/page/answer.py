"""The answer of a run in sentences: what failures cost, and what to do."""

from __future__ import annotations

from math import isnan

from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.report.sentences import verdicts
from cprsim.results import FINISHED, Result, Spread, differences, records_of
from cprsim.results.words import NO_NUMBER, count, hours, saves, significant, with_ends

WAYS = {
    OnFailure.RESTART: "start again from nothing",
    OnFailure.ROLL_BACK: "all go back to the last save",
    OnFailure.RELOAD: "only the failed servers go back, the others go on",
    OnFailure.BY_RULES: "a recovery system",
}


def question(result: Result) -> str:
    """What was asked."""
    job = f"{hours(result.useful_h)} of useful work on {count(result.n_nodes, 'node')}"
    return (
        f"What do failures cost a job of {job}, and which way of recovering from them costs least?"
    )


def answer(result: Result) -> list[str]:
    """The answer first, then what has to be known with it."""
    spreads = result.spreads()
    done = [policy for policy in result.policies if spreads[policy.name][FINISHED].mean == 1]
    if not done:
        return ["No strategy reliably gets this job done.", *verdicts(result)]
    best = min(done, key=lambda policy: spreads[policy.name]["overhead_fraction"].mean)
    plain = _plain_full(done)
    said = [_cheapest(result, best, spreads[best.name], alone=len(result.policies) == 1)]
    if plain is not None and plain is not best:
        said[0] = f"{_full(result, plain, spreads[plain.name])} {said[0]}"
    return [*said, *_ties(result, best, done), *_staleness(best, spreads[best.name], plain)]


def _plain_full(policies: list[RecoveryPolicy]) -> RecoveryPolicy | None:
    """Full recovery, as most run it: everybody goes back, without a decision."""
    plain = (p for p in policies if p.on_failure is OnFailure.ROLL_BACK and p.decision is None)
    return next(plain, None)


def _full(result: Result, policy: RecoveryPolicy, mine: dict[str, Spread]) -> str:
    return (
        f"Under full recovery ({policy.name}, {_saving(policy, result)}), failures and saves cost "
        f"{spread_in_percent(mine['overhead_fraction'])} of useful time: {_hours(mine)}."
    )


def _cheapest(
    result: Result, policy: RecoveryPolicy, mine: dict[str, Spread], *, alone: bool
) -> str:
    what = f"{policy.name} ({WAYS[policy.on_failure]}; {_saving(policy, result)})"
    cost = f"{spread_in_percent(mine['overhead_fraction'])} of useful time, {_hours(mine)}"
    if alone:
        return f"With {what}, failures and saves cost {cost}."
    return f"Use {what}: it costs least, {cost}."


def _saving(policy: RecoveryPolicy, result: Result) -> str:
    every = saves(policy, result.useful_h)
    return "without saves" if "no saves" in every else f"saving {every}"


def _hours(mine: dict[str, Spread]) -> str:
    cost_h, node_h = mine["overhead_h"].mean, mine["overhead_node_h"].mean
    return f"{hours(cost_h)} or {significant(node_h)} node-hours per job"


def spread_in_percent(spread: Spread) -> str:
    """``8.71 % (8.37 to 9.05 %, 95 % interval)``; without an interval where there is none."""
    if isnan(spread.mean):
        return NO_NUMBER
    return with_ends(100 * spread.mean, 100 * spread.low, 100 * spread.high, "%")


def _ties(result: Result, best: RecoveryPolicy, done: list[RecoveryPolicy]) -> list[str]:
    """Strategies whose overhead these replications can't tell from the best one's."""
    if len(done) < 2:
        return []
    table = differences(result.replications, result.n_nodes, best.name)
    rows = records_of(table[table["quantity"] == "overhead_fraction"])
    names = {policy.name for policy in done}
    tied = [str(r["strategy"]) for r in rows if r["strategy"] in names and not r["low"] > 0]
    if not tied:
        return []
    return [
        f"These replications do not tell {best.name} from {', '.join(tied)}: the 95 % interval of "
        "the difference has 0 in it, or there is none."
    ]


def _staleness(
    best: RecoveryPolicy, mine: dict[str, Spread], plain: RecoveryPolicy | None
) -> list[str]:
    """What partial recovery costs besides hours."""
    if best.on_failure is not OnFailure.RELOAD:
        return []
    pls = mine["pls"]
    instead = "" if plain is None else f" Where no stale row is acceptable, stay with {plain.name}."
    return [
        f"The price of {best.name} besides hours: on average a portion of "
        f"{with_ends(pls.mean, pls.low, pls.high)} of the samples is lost to the embeddings "
        f"(PLS). {_accuracy(mine['auc_loss'])}{instead}"
    ]


def _accuracy(lost: Spread) -> str:
    """What that does to accuracy, as far as a staleness curve says so."""
    if isnan(lost.mean):
        return (
            "What that does to accuracy is not in these hours; cprsim train shows it on a small "
            "model."
        )
    return f"By the staleness curve it loses {with_ends(lost.mean, lost.low, lost.high)} of AUC."
