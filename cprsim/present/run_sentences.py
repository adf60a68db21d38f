"""What a run says in sentences: the answer, CPR's decision, verdicts, savings, accuracy lost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan

from cprsim.curves import fit_curves
from cprsim.records import NO_NUMBER, STOPPED_BEYOND, Estimate
from cprsim.recovery.intervals import n_saves_due
from cprsim.recovery.policy import BY_RULES, RELOAD, RESTART, ROLL_BACK, Policy
from cprsim.results import FINISHED, Result, differences, records_of
from cprsim.results.folder import stored_scenario
from cprsim.results.words import (
    count,
    ends,
    hours,
    percent,
    priced_by,
    saves,
    significant,
    with_ends,
    writes_parts_only,
)
from cprsim.simulate.job import HARDLY_AFTER, HARDLY_TIMES, HOPELESS_AFTER
from cprsim.staleness import WHOLE, Metric, strategy_key

FORMULAS = "By the first-order formulas"
LIMITS = (
    f"{STOPPED_BEYOND:g} times the useful hours, {HARDLY_AFTER:,} failures at over "
    f"{HARDLY_TIMES:g} times the hours of the work done by then, {HOPELESS_AFTER:,} failures in a "
    "row without any, or at a horizon with none left"
)
"""When a replication is given up (docs/model.md, section 9)."""

ROUNDING = 1e-9  # of useful time: two engines differ by less where a strategy costs the same

WHAT_FAILURES_DO = {
    RESTART: "start again from nothing",
    ROLL_BACK: "all go back to the last save",
    RELOAD: "only the failed servers go back, the others go on",
    BY_RULES: "a recovery system",
}

HOW_TO = (
    "What stale shards cost in accuracy is not known: no staleness curve belongs to this scenario. "
    "`cprsim measure` makes one, `accuracy.curve` names one."
)


# ------------------------------------------------------------------------------ the answer


def assumed_limits(result: Result) -> list[str]:
    """Which limits nobody has accepted yet, and what they cost in accuracy, as far as is known."""
    entries = stored_scenario(result.path).get("recovery", ())
    guessed = {one["name"]: one["target_pls"] for one in entries if one.get("assumed")}
    return [
        f"The limit of {policy.name} is assumed, nobody gave it: a portion of "
        f"{guessed[policy.name]:g} of the samples lost (PLS). {_its_price(policy, result)} Write "
        "the `target_pls` that you accept, without `assumed`."
        for policy in result.policies
        if policy.name in guessed and policy.leaves_stale
    ]


def _its_price(policy: Policy, result: Result) -> str:
    """What a strategy loses: by the curve that applies, or else by the shipped ones."""
    known = result.spreads()[policy.name]["auc_loss"]
    if not isnan(known.mean):
        return f"It costs {with_ends(known.mean, known.low, known.high)} of AUC."
    rows = result.replications[result.replications["strategy"] == policy.name]
    responses = (
        file.curve("shipped", ()).of(strategy_key(policy) or WHOLE, Metric.AUC)
        for file in fit_curves()
    )
    losses = [float(one.predict(rows["pls_net"].to_numpy())[0].mean()) for one in responses if one]
    return (
        f"By the shipped curves, the nearest there are, it costs {min(losses):.2g} to "
        f"{max(losses):.2g} of AUC; they were measured on small models, not on yours."
    )


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
    sentences = [_cheapest(result, best, spreads[best.name], alone=len(result.policies) == 1)]
    if plain is not None and plain is not best:
        sentences[0] = f"{_full(result, plain, spreads[plain.name])} {sentences[0]}"
    return [*sentences, *_ties(result, best, done), *_staleness(best, spreads[best.name], plain)]


def _plain_full(policies: Sequence[Policy]) -> Policy | None:
    return next((policy for policy in policies if policy.is_plain_full), None)


def _full(result: Result, policy: Policy, spreads: dict[str, Estimate]) -> str:
    return (
        f"Under full recovery ({policy.name}, {_saves(policy, result)}), failures and saves cost "
        f"{spread_in_percent(spreads['overhead_fraction'])} of useful time: {_hours(spreads)}."
    )


def _cheapest(result: Result, policy: Policy, spreads: dict[str, Estimate], *, alone: bool) -> str:
    what = f"{policy.name} ({WHAT_FAILURES_DO[policy.on_failure]}; {_saves(policy, result)})"
    cost = f"{spread_in_percent(spreads['overhead_fraction'])} of useful time, {_hours(spreads)}"
    if alone:
        return f"With {what}, failures and saves cost {cost}."
    return f"Use {what}: it costs least, {cost}."


def _saves(policy: Policy, result: Result) -> str:
    return _saving(policy, result.useful_h, never="without saves")


def _hours(spreads: dict[str, Estimate]) -> str:
    cost_h, node_h = spreads["overhead_h"].mean, spreads["overhead_node_h"].mean
    return f"{hours(cost_h)} or {significant(node_h)} node-hours per job"


def spread_in_percent(spread: Estimate) -> str:
    """``8.71 % (8.37 to 9.05 %, 95 % interval)``; without an interval where there is none."""
    if isnan(spread.mean):
        return NO_NUMBER
    return with_ends(*spread.times(100).triple, "%")


def _ties(result: Result, best: Policy, done: list[Policy]) -> list[str]:
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


def _staleness(best: Policy, spreads: dict[str, Estimate], plain: Policy | None) -> list[str]:
    """What partial recovery costs besides hours."""
    if best.on_failure != RELOAD:
        return []
    pls = spreads["pls"]
    instead = "" if plain is None else f" Where no stale row is acceptable, stay with {plain.name}."
    return [
        f"The price of {best.name} besides hours: on average a portion of "
        f"{with_ends(pls.mean, pls.low, pls.high)} of the samples is lost to the embeddings "
        f"(PLS). {_accuracy(spreads['auc_loss'])}{instead}"
    ]


def _accuracy(lost: Estimate) -> str:
    """What that does to accuracy, as far as a staleness curve says so."""
    if isnan(lost.mean):
        return (
            "What that does to accuracy is not in these hours; cprsim train shows it on a small "
            "model."
        )
    return f"By the staleness curve it loses {with_ends(lost.mean, lost.low, lost.high)} of AUC."


# ------------------------------------------------------------------------------ remarks


def decisions(result: Result) -> list[str]:
    """Why each strategy that decides between partial and full recovery chose what it did."""
    return [
        f"{policy.name} {explain(policy, result.useful_h)}"
        for policy in result.policies
        if policy.decision is not None
    ]


def explain(policy: Policy, useful_h: float) -> str:
    """A policy's decision with the first-order prices of both ways; it has to have one."""
    decision = policy.decision
    assert decision is not None
    full = (
        f"full recovery costs {percent(decision.full_overhead_fraction)} of useful time, "
        f"{_saving(_whole(policy, decision.full_interval_h), useful_h)}"
    )
    if decision.partial_overhead_fraction == inf:
        return f"falls back to full recovery, as no stale shard is allowed. {FORMULAS}, {full}."
    as_partial = replace(policy, interval_h=decision.partial_interval_h)
    partial = (
        f"partial recovery costs {percent(decision.partial_overhead_fraction)} of useful time, "
        f"{_saving(as_partial, useful_h)}, at an expected PLS of "
        f"{decision.expected_pls:.3g}"
    )
    if decision.chosen == "partial":
        return f"chose partial recovery. {FORMULAS}, {partial}; {full}."
    return f"falls back to full recovery. {FORMULAS}, {full}; {partial}."


def _whole(policy: Policy, interval_h: float) -> Policy:
    """The policy with whole saves at another interval: as full recovery takes them."""
    return replace(policy, interval_h=interval_h, sub_saves=None)


def _saving(policy: Policy, useful_h: float, never: str = "never saving") -> str:
    every = saves(policy, useful_h)
    return never if "no saves" in every else f"saving {every}"


def verdicts(result: Result) -> list[str]:
    """What the numbers alone would not tell: warnings, jobs that do not finish, no saves."""
    sentences, spreads = [f"Warning: {one}" for one in result.warnings], result.spreads()
    for strategy in result.strategies:
        name, interval_h = strategy.policy.name, strategy.policy.interval_h
        finished = spreads[name][FINISHED]
        share, n = finished.mean, finished.n
        if share == 0:
            sentences.append(
                f"{name} never finishes: of {count(n, 'replication')} none was done after "
                f"{LIMITS}; failures come faster than it recovers."
            )
        elif share < 1:
            sentences.append(
                f"{name} often does not finish: {percent(share)} of {count(n, 'replication')} "
                f"were done; the others were stopped after {LIMITS} (95 % interval of the share "
                f"{ends(100 * finished.low, 100 * finished.high)} %); means of the others "
                "would mislead."
            )
        elif interval_h < inf and not n_saves_due(interval_h, result.useful_h):
            sentences.append(_no_whole_save(strategy.policy, result.useful_h))
        sentences += _staler_than_expected(strategy.policy, spreads[name]["pls"])
        sentences += _imprecise(result, name, spreads[name]["overhead_fraction"])
    return sentences


def _no_whole_save(policy: Policy, useful_h: float) -> str:
    """What to say of an interval that is at least the job: there may be sub-saves all the same."""
    interval_h = policy.interval_h
    how_long = "longer than" if interval_h > useful_h else "as long as"
    why = f"its interval of {hours(interval_h)} is {how_long} the job"
    if not writes_parts_only(policy, useful_h):
        return f"{policy.name} never saves: {why}."
    return f"{policy.name} ends no whole checkpoint: {why}. It saves {saves(policy, useful_h)}."


def _staler_than_expected(policy: Policy, pls: Estimate) -> list[str]:
    """What to say where more is lost than CPR's formula expects, as with a single trainer."""
    decision = policy.decision
    if decision is None or policy.on_failure != RELOAD:
        return []
    if not pls.low > 1.25 * decision.expected_pls:
        return []
    return [
        f"{policy.name} loses more than its formula expects: PLS {pls.mean:.3g} where "
        f"{decision.expected_pls:.3g} was expected (model, section 7)."
    ]


def _imprecise(result: Result, name: str, overhead: Estimate) -> list[str]:
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
    plain = _plain_full(result.policies)
    if plain is None:
        return []
    full = plain.name
    against = result.spreads()[full]["overhead_fraction"].mean
    table = differences(result.replications, result.n_nodes, full)
    table = table[(table["quantity"] == "overhead_fraction") & (table["mean"] < -ROUNDING)]
    return [
        f"{row['strategy']} removes {percent(-row['mean'] / against)} of {full}'s overhead"
        + _points(-row["high"], -row["low"])
        for row in records_of(table)
    ]


def _points(low: float, high: float) -> str:
    if isnan(low):
        return "."
    return f" ({ends(100 * low, 100 * high)} percentage points, 95 % interval)."


# ------------------------------------------------------------------------------ accuracy


def accuracy_sentences(result: Result) -> list[str]:
    """Which curve priced the losses, what it does not know, and where it was stretched.

    Empty where no strategy ever keeps a stale shard.
    """
    stale = [policy for policy in result.policies if strategy_key(policy) is not None]
    if not stale:
        return []
    if result.curve is None:
        return [HOW_TO] if any(policy.leaves_stale for policy in stale) else []
    used = result.curve
    shown = knows_loss(result)
    sentences = priced_by(used.name, used.origin, used.notes, used.unpriced, shown=shown)
    return sentences + [sentence for policy in stale for sentence in _of(policy, result)]


def knows_loss(result: Result, quantity: str = "auc_loss") -> bool:
    """Whether there is a mean loss, by default of AUC, of any strategy that loses some."""
    spreads = result.spreads()
    return any(
        strategy_key(policy) is not None and not isnan(spreads[policy.name][quantity].mean)
        for policy in result.policies
    )


def _of(policy: Policy, result: Result) -> list[str]:
    found = result.spreads()[policy.name]
    if found[FINISHED].mean < 1 or (result.curve and policy.name in result.curve.unpriced):
        return []
    if isnan(found["auc_loss"].mean):  # a result of an earlier version, which did not say why
        return [f"{policy.name}: the curve does not say what it loses, saving as it does here."]
    beyond = found["beyond_measured"].mean
    if not beyond > 0:
        return []
    return [
        f"{policy.name}: {percent(beyond)} of its jobs lose more than was measured; their loss "
        "is extrapolated."
    ]
