"""Each system at its own best interval, found on the failures that all are compared on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment, policy_of
from cprsim.recovery.paper import NEVER, STRATEGIES
from cprsim.scenario.schema import dump_entry
from cprsim.selector.deciding import WAYS, bench_of, decide, fit_tails
from cprsim.selector.limit import NO_LIMIT, Limit
from cprsim.selector.pricing import FULL, Bench, Priced, option_of
from cprsim.selector.search import best_full
from cprsim.selector.words import system_entry, typed
from cprsim.systems_compared.lineup import FOUND, Entrant

NONE_KEEPS = "no interval that is worth its saves keeps the limit"
NOT_KNOWN = "the staleness curve does not say what it loses"


def at_their_best(
    entrants: Sequence[Entrant],
    experiment: Experiment,
    limit: Limit | None = None,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[list[Entrant], dict[str, str]]:
    """All that can run the job, each at its best, and why others are left out after all.

    Without a limit on what accuracy may be lost, what leaves shards stale would never save: it
    keeps the interval that its entry says. So does CPR, whose interval is its formula's.
    """
    ways = {
        one.name: one.entry
        if one.entry.strategy not in STRATEGIES
        else one.policy.sub_saves or WAYS[one.entry.strategy]
        for one in entrants
        if _is_searched(one, limit)
    }
    if FULL in ways:
        raise ParameterError("a recovery system has the name `full`: give it another `name`")
    within = limit or NO_LIMIT
    bench = bench_of(
        experiment, experiment.curve, within, ways,
        lambda: on_progress(bench.n_looked_at, len(bench.ways)),
    )  # fmt: skip
    decided = fit_tails(bench, within, decide(bench, within))
    found, left_out = [], {}
    for one in entrants:
        if one.entry.strategy == FULL and not one.is_today:
            found.append(_at(_best_full(one, bench, decided.full), one, experiment))
        elif one.name not in ways:
            found.append(one)
        elif (priced := decided.best.get(one.name)) is not None:
            found.append(_at(priced, one, experiment))
        else:
            left_out[one.name] = NONE_KEEPS if one.name in decided.best else NOT_KNOWN
    return found, left_out


def _is_searched(one: Entrant, limit: Limit | None) -> bool:
    """Whether the selector looks for an interval."""
    if one.is_today:
        return False
    if one.entry.strategy not in STRATEGIES:
        return limit is not None or not one.policy.leaves_stale
    return one.entry.strategy in WAYS and limit is not None and one.entry.costs is None


def _best_full(one: Entrant, bench: Bench, full: Priced) -> Priced:
    """Full recovery at its best, at the costs of its entry."""
    if one.entry.costs is None:
        return full
    there = bench.experiment.at_costs_of(one.entry)
    return best_full(Bench(there, {FULL: None}, bench.losing, bench.on_priced))


def _at(priced: Priced, one: Entrant, experiment: Experiment) -> Entrant:
    """An entrant at the interval that was found, if it has one to choose."""
    if option_of(one.entry) is None:
        return one
    policy = policy_of(one.entry, experiment, interval_h=priced.policy.interval_h)
    return replace(one, policy=policy, how=FOUND)


def entry_of(one: Entrant, useful_h: float) -> str:
    """The entry of `recovery` that runs an entrant as it is compared."""
    entry, interval_h = one.entry, one.policy.interval_h
    if one.how != FOUND:
        return dump_entry(entry, entry.options or {})
    if entry.strategy not in STRATEGIES:
        return system_entry(entry, one.policy, useful_h)
    unsaid = dict.fromkeys(("interval", "target_pls", "assumed", "options"))
    text = dump_entry(entry.model_copy(update=unsaid), {}).removesuffix("}")
    return f"{text}, interval: {NEVER if interval_h == inf else typed(interval_h)}}}"
