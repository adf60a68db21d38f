"""Sentences on a run: the answer, cautions, and the savings of strategies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf, isnan

from cprsim.commands.run.contents import kept_sentence
from cprsim.files.units import SIZE
from cprsim.job.intervals import ROUNDING, WORTH_NO_SAVES, n_saves_due
from cprsim.job.losses import WHOLE, Metric, strategy_key
from cprsim.job.policy import PARTS_IN_ORDER, RELOAD, RESTART, ROLL_BACK, Outside, Policy, Ring
from cprsim.job.records import NO_NUMBER, STOPPED_BEYOND, Estimate
from cprsim.pages.recommendation import back_to_start, never_saves, others_do_not_wait
from cprsim.results.folder import stops_save, stored_scenario
from cprsim.results.metrics import FINISHED, OVERHEAD, differences, more_than
from cprsim.results.run import UNLIMITED, Result, cheapest_of, why_not
from cprsim.results.words import (
    count,
    ends,
    hours,
    part_label,
    percent,
    priced_by,
    saves,
    significant,
    with_ends,
    writes_parts_only,
)
from cprsim.scenario.assemble import Experiment, memory_of_copies
from cprsim.scenario.curves import fit_curves

MUCH_STORAGE = 0.5  # of its bandwidth

WHAT_FAILURES_DO = {
    RESTART: "start again from nothing",
    ROLL_BACK: "all roll back to the last save",
    RELOAD: "only the failed servers reload the last save, the others keep their state",
}
HOW_TO = (
    "The accuracy loss of stale shards is unknown: no staleness curve belongs to this scenario. "
    "`cprsim measure` makes one, `accuracy.curve` names one."
)


def question(result: Result) -> str:
    """The question that a run answers."""
    job = f"{hours(result.useful_h)} of useful work on {count(result.n_nodes, 'node')}"
    return (
        f"What do failures cost a job of {job}, and which way of recovering from them costs least?"
    )


def answer(result: Result, maintained: str = "") -> list[str]:
    """The answer first, then ties of strategies and the accuracy that it costs."""
    summary = result.summary
    best = result.cheapest
    if best is None:
        return ["No strategy reliably gets this job done."]
    finishing = [policy for policy in result.policies if summary[policy.name][FINISHED].mean == 1]
    plain = plain_full(finishing)
    acts = WHAT_FAILURES_DO.get(best.on_failure), _saving(best, result.useful_h), maintained
    choice = f"{best.name} ({'; '.join(filter(None, acts))})"
    cost = _cost(summary[best.name])
    overhead = {policy: summary[policy.name]["overhead_fraction"].mean for policy in finishing}
    cheaper = [policy for policy in finishing if overhead[policy] < overhead[best]]
    whys = {policy: why_not(policy, summary, result.limits) for policy in [*cheaper, best]}
    of = " of those that save" if cheaper else ""
    if any(whys.values()) and not whys[best]:
        of = " of those that lose no accuracy or keep your limit"
    if not all(policy.from_cpr_paper for policy in result.policies):
        of += " at these intervals"  # `select` and `systems` look for better ones
    sentence = f"Use {choice}: it costs least{of}, {cost}."
    if whys[best]:
        sentence = f"Use none of these. The least overhead is that of {choice}: {cost}."
    if len(result.policies) == 1:
        sentence = f"With {choice}, failures and saves cost {cost}."
    if plain is not None and plain is not best:
        saving = _saving(plain, result.useful_h)
        sentence = (
            f"Under full recovery ({plain.name}, {saving}), failures and saves cost "
            f"{_cost(summary[plain.name])}. {sentence}"
        )
    refused = (
        f"{policy.name} costs {percent(overhead[policy])}, but {why}."
        for policy, why in whys.items()
        if why and not (why == UNLIMITED and policy.name in _guessed(result))
    )
    tied = _ties(result, best, finishing)
    return [sentence, *refused, *tied, *_staleness(result, best)]


def plain_full(policies: Sequence[Policy]) -> Policy | None:
    """The first policy that is full recovery and nothing else."""
    return next((policy for policy in policies if policy.is_plain_full), None)


def _cost(summary: dict[str, Estimate]) -> str:
    cost_h, node_h = summary["overhead_h"].mean, summary["overhead_node_h"].mean
    return (
        f"{spread_in_percent(summary['overhead_fraction'])} of useful time, {hours(cost_h)} or "
        f"{significant(node_h)} node-hours per job"
    )


def spread_in_percent(spread: Estimate) -> str:
    """``8.71 % (8.37 to 9.05 %, 95 % interval)``; without an interval if it is unknown."""
    return NO_NUMBER if isnan(spread.mean) else with_ends(*spread.times(100).triple, "%")


def _saving(policy: Policy, useful_h: float) -> str:
    every = saves(policy, useful_h)
    return "never saving" if "no saves" in every else f"saving {every}"


def _ties(result: Result, best: Policy, finishing: list[Policy]) -> Iterator[str]:
    """Strategies whose overhead is not significantly different from the best one's."""
    if len(finishing) < 2:
        return
    more = more_than(best.name, result.replications, result.n_nodes)
    if tied := [name for name, of in more.items() if of.low <= 0 <= of.high]:
        yield (
            f"{best.name} is not significantly different from {', '.join(tied)}: the 95 % interval "
            "of the difference contains 0."
        )


def _staleness(result: Result, best: Policy) -> Iterator[str]:
    """Sentences on the PLS and the accuracy loss of partial recovery."""
    if best.on_failure != RELOAD:
        return
    summary, limits = result.summary[best.name], result.limits.get(best.name, ())
    lost, pls = summary["auc_loss"], with_ends(*summary["pls"].triple)
    loses = f"On average a portion of {pls} of the samples is lost (PLS)."
    accuracy = " The overhead excludes the accuracy loss."
    if limits:
        loses = " ".join(held.sentence for held in limits)
    if any(held.column != "pls" for held in limits):
        accuracy = ""
    elif not isnan(lost.mean):
        accuracy = f" By the staleness curve it loses {with_ends(*lost.triple)} of AUC."
    exact = [policy for policy in result.policies if strategy_key(policy) is None]
    other = cheapest_of(exact, result.summary, result.useful_h, {})
    instead = "" if other is None else f" If no lost update is acceptable, use {other.name}."
    yield f"{best.name} trades accuracy for time. {loses}{accuracy}{instead}"


# ------------------------------------------------------------------------------ resources


def bytes_per_h(policy: Policy, experiment: Experiment) -> tuple[float | None, float | None]:
    """Bytes to the storage from all nodes, and from one node to others, per hour of progress.

    As if each save moved the whole state, to the storage one replica of it; None: unknown size.
    """
    state_bytes, storage, peers = experiment.scenario.cluster.shard_bytes, 0.0, 0.0
    if state_bytes is None:
        return None, None
    for capture in policy.captures:
        per_h = state_bytes / policy.content_every_h(capture, experiment.useful_h)
        per_h_once = per_h / experiment.scenario.cluster.replicas
        tier = policy.tier(capture.tier)
        place = tier.placement
        if isinstance(place, Outside):
            storage += per_h_once * len(experiment.cluster.slots(tier.role))
        else:  # copies on all others of its group, or as parity on `tolerates` of them
            peers += per_h * (place.copies - 1 if isinstance(place, Ring) else place.tolerates)
    return storage, peers


def storage_share(policy: Policy, experiment: Experiment) -> float | None:
    """Share of the storage's bandwidth that its saves take; None: unknown."""
    per_h, storage = bytes_per_h(policy, experiment)[0], experiment.costs.storage
    return None if per_h is None or storage is None else per_h / storage.bandwidth_bytes_per_h


def resources_of(policies: Sequence[Policy], experiment: Experiment) -> str:
    """`resource_sentence` of some policies, and `kept_sentence` of each."""
    taken = [
        (policy.name, memory_of_copies(policy, experiment), storage_share(policy, experiment))
        for policy in policies
    ]
    kept = (kept_sentence(experiment, policy) for policy in policies)
    return " ".join(filter(None, [resource_sentence(taken), *kept]))


def resource_sentence(of_each: Iterable[tuple[str, float | None, float | None]]) -> str:
    """Memory for copies, and storage bandwidth if a large share; by name, in bytes and shares."""
    words = []
    for name, memory_bytes, share in of_each:
        if memory_bytes:
            memory = SIZE.format(float(f"{memory_bytes:.3g}"))
            words.append(f"{name} {memory} of memory on each node for copies")
        if share is not None and share > MUCH_STORAGE:
            words.append(f"{name} {percent(share)} of the storage's bandwidth")
    return f"Takes: {', '.join(words)}." if words else ""


# ------------------------------------------------------------------------------ remarks


def assumed_limits(result: Result) -> Iterator[str]:
    """Limits that the user has not confirmed, and their known cost in accuracy."""
    guessed = _guessed(result)
    for policy in result.policies:
        if policy.name in guessed and policy.leaves_stale:
            yield (
                f"{policy.name} has a default limit that you have not confirmed: a portion of lost "
                f"samples (PLS) of {guessed[policy.name]:g}. {_its_price(policy, result)} "
                "To allow it, set the `target_pls` that you accept, and delete `assumed: true`."
            )


def _guessed(result: Result) -> dict[str, float]:
    """The limits of the PLS that are assumed, by entry."""
    entries = stored_scenario(result.path).get("recovery", ())
    return {entry["name"]: entry["target_pls"] for entry in entries if entry.get("assumed")}


def _its_price(policy: Policy, result: Result) -> str:
    """Accuracy loss of a strategy: by the curve that applies, or else by the shipped ones."""
    loss = result.summary[policy.name]["auc_loss"]
    if not isnan(loss.mean):
        return f"The curve predicts an AUC loss of {with_ends(*loss.triple)}."
    rows = result.replications[result.replications["strategy"] == policy.name]
    responses = (curve.of(strategy_key(policy) or WHOLE, Metric.AUC) for curve in fit_curves())
    losses = [
        float(response.predict(rows["pls_net"].to_numpy())[0].mean())
        for response in responses
        if response
    ]
    return (
        f"The shipped curves predict an AUC loss of {min(losses):.2g} to {max(losses):.2g}; they "
        "were measured on small models, not on yours."
    )


def decisions(result: Result) -> Iterator[str]:
    """The reason for each choice of a strategy between partial and full recovery."""
    for policy in result.policies:
        if (decision := policy.decision) is None:
            continue
        at_full = replace(policy, interval_h=decision.full_interval_h, sub_saves=None)
        full = (
            f"full recovery costs {percent(decision.full_overhead_fraction)} of useful time, "
            f"{_saving(at_full, result.useful_h)}"
        )
        if decision.partial_overhead_fraction == inf:
            why = f"as no stale shard is allowed. By the first-order formulas, {full}."
            yield f"{policy.name} falls back to full recovery, {why}"
            continue
        at_partial = replace(policy, interval_h=decision.partial_interval_h)
        partial = (
            f"partial recovery costs {percent(decision.partial_overhead_fraction)} of useful time, "
            f"{_saving(at_partial, result.useful_h)}, at a planned PLS of "
            f"{decision.expected_pls:.3g}"
        )
        chose = "chose partial" if decision.chosen == "partial" else "falls back to full"
        yield f"{policy.name} {chose} recovery. By the first-order formulas, {partial}; {full}."


def verdicts(result: Result) -> Iterator[str]:
    """Sentences beyond the numbers: warnings, jobs that do not finish, missing saves."""
    yield from (f"Warning: {warning}" for warning in result.warnings)
    summary, best, useful_h = result.summary, result.cheapest, result.useful_h
    planned = stored_scenario(result.path).get("planned")
    at_stops = stops_save(result.path, useful_h)
    if best and best.risks_all(useful_h) and not (best.leaves_stale or (at_stops and best.tiers)):
        rows = result.replications[result.replications["strategy"] == best.name]
        worst = float((rows["wall_h"] / rows["useful_h"]).max()) - 1.0
        yield never_saves([best.name], worst, len(rows))
    if best is not None and (others := others_do_not_wait(summary[best.name])):
        yield others
    if at_stops:
        yield at_stops
    for policy in result.policies:
        name = policy.name
        finished, overhead = summary[name][FINISHED], summary[name]["overhead_fraction"]
        if finished.mean < 1:
            rows = result.replications.query("strategy == @name and not finished")
            most = rows.filter([f"{part}_h" for part in PARTS_IN_ORDER]).sum().nlargest(2)
            shares = (most / rows["wall_h"].sum()).items()
            parts = [f"{percent(of)} {part_label(str(part)[:-2])}" for part, of in shares if of]
            if planned:
                until = "" if at_stops else f" and work until a save ({_saving(policy, useful_h)})"
                stops = f"It stops as planned every {planned['every']}"
                parts[-1] += f". {stops}: a restart{until} must fit between stops"
            yield (
                f"{name} {'often does not finish' if finished.mean else 'never finishes'}: "
                f"{percent(finished.mean)} of {count(finished.n, 'replication')} were done; those "
                f"stopped, after {STOPPED_BEYOND:g} times the useful hours or sooner "
                f"(docs/model.md, section 9), spent their time on: {', '.join(parts)}."
            )
        elif policy.interval_h < inf and not (at_stops or n_saves_due(policy.interval_h, useful_h)):
            lost = result.replications.loc[result.replications["strategy"] == name, "pls"]
            bare = (lost > 0).any() and not writes_parts_only(policy, useful_h)
            start = f" {back_to_start((lost > 0).mean())}" if bare else ""
            yield _no_whole_save(policy, useful_h) + start
        pls, decision, precision = summary[name]["pls"], policy.decision, result.precision_fraction
        if decision and policy.on_failure == RELOAD and pls.low > 1.25 * decision.expected_pls:
            yield (
                f"{name} loses more than its formula expects: PLS {pls.mean:.3g} where "
                f"{decision.expected_pls:.3g} was expected."
            )
        if precision is not None and overhead.half_width > 1.01 * precision * overhead.mean:
            yield (
                f"{name}: the overhead is known to {percent(overhead.half_width / overhead.mean)} "
                f"of its mean, not to the {percent(precision)} asked for: "
                f"{count(overhead.n, 'replication')} were the most allowed."
            )


def _no_whole_save(policy: Policy, useful_h: float) -> str:
    """The sentence on an interval of at least the job, in which sub-saves may still be due."""
    how_long = "longer than" if policy.interval_h > useful_h else "as long as"
    why = f"its interval of {hours(policy.interval_h)} is {how_long} the job"
    if not writes_parts_only(policy, useful_h):
        stalls_h = (c.stall.mean_h for c in policy.captures if c.stall is not None)
        share = sum(stalls_h) / useful_h
        said = f"{policy.name} never saves: {why}. One save stalls"
        if share >= WORTH_NO_SAVES:
            return f"{said} {percent(share)} of the useful time."
        half = hours(useful_h / 2)
        return f"{said} only {percent(share)} of the useful time; an interval of {half} saves once."
    return f"{policy.name} ends no whole checkpoint: {why}. It saves {saves(policy, useful_h)}."


def savings(result: Result) -> Iterator[str]:
    """Saving of each strategy compared with plain full recovery, paired by replication."""
    plain = plain_full(result.policies)
    if plain is None:
        return
    against = result.summary[plain.name]["overhead_fraction"].mean
    for name, of in differences(result.replications, result.n_nodes, plain.name).items():
        mean, low, high = of[OVERHEAD].triple
        if mean < -ROUNDING:
            interval = ends(-100 * high, -100 * low)
            within = "" if interval == NO_NUMBER else f" ({interval}, 95 % interval)"
            yield (
                f"{name} removes {percent(-mean / against)} of {plain.name}'s overhead: "
                f"{significant(-100 * mean)} percentage points{within}."
            )


# ------------------------------------------------------------------------------ accuracy


def accuracy_sentences(result: Result) -> list[str]:
    """The curve that priced the losses, its gaps, and its extrapolations.

    Empty where no strategy ever keeps a stale shard.
    """
    stale = [policy for policy in result.policies if strategy_key(policy) is not None]
    used = result.curve
    if not stale or used is None:
        return [HOW_TO] if any(policy.leaves_stale for policy in stale) else []
    sentences = priced_by(
        used.name, used.origin, used.notes, used.unpriced, is_shown=knows_loss(result)
    )
    for policy in stale:
        summary = result.summary[policy.name]
        if summary[FINISHED].mean == 1 and summary["beyond_measured"].mean > 0:
            sentences.append(
                f"{policy.name}: {percent(summary['beyond_measured'].mean)} of its jobs lose more "
                "than was measured; their loss is extrapolated."
            )
    return sentences


def knows_loss(result: Result, quantity: str = "auc_loss") -> bool:
    """Whether there is a mean loss, by default of AUC, of any strategy that loses some."""
    summary = result.summary
    return any(
        strategy_key(policy) is not None and not isnan(summary[policy.name][quantity].mean)
        for policy in result.policies
    )
