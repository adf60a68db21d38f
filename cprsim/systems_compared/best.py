"""Each system at its own best interval, found on the failures that all are compared on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment, with_own_costs
from cprsim.experiments.listed import ListedSystem
from cprsim.recovery import NEVER
from cprsim.scenario import dump_entry
from cprsim.selector.deciding import WAYS, bench_of, decide, fit_tails
from cprsim.selector.limit import NO_LIMIT, Limit
from cprsim.selector.pricing import FULL, Bench, Priced
from cprsim.selector.search import best_full
from cprsim.selector.words import typed
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
    ways = {one.name: one.way for one in entrants if _is_searched(one, limit)}
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
            found.append(_full_at_best(one, bench, decided.full))
        elif one.name not in ways:
            found.append(one)
        elif one.name not in decided.best:
            left_out[one.name] = NOT_KNOWN
        elif (priced := decided.best[one.name]) is None:
            left_out[one.name] = NONE_KEEPS
        else:
            found.append(_at_best(one, priced, experiment.useful_h))
    return found, left_out


def _is_searched(one: Entrant, limit: Limit | None) -> bool:
    """Whether the selector looks for an interval."""
    if one.is_today:
        return False
    if isinstance(one.way, ListedSystem):
        return limit is not None or not one.policy.leaves_stale
    return one.entry.strategy in WAYS and limit is not None and one.entry.costs is None


def _at_best(one: Entrant, priced: Priced, useful_h: float) -> Entrant:
    if not isinstance(one.way, ListedSystem):
        return _with_interval(replace(one, policy=replace(priced.policy, name=one.name)))
    if one.way.option is None:
        return one
    text = one.way.text(typed(min(priced.policy.save_interval_h, useful_h)))
    return replace(one, policy=priced.policy, how=FOUND, text=text)


def _full_at_best(one: Entrant, bench: Bench, full: Priced) -> Entrant:
    """Full recovery at its best, at the costs of its entry."""
    experiment, costs = bench.experiment, one.entry.costs
    if costs is not None:
        own, scopes = costs.instead_of(experiment.costs), experiment.scopes
        if costs.detect is not None:
            scopes = tuple(replace(scope, detect=own.detect) for scope in scopes)
        there = replace(experiment, costs=own, scopes=scopes)
        full = best_full(Bench(there, {FULL: None}, bench.losing, bench.on_priced))
    policy = with_own_costs(replace(full.policy, name=one.name), one.entry, experiment)
    return _with_interval(replace(one, policy=policy))


def _with_interval(one: Entrant) -> Entrant:
    """A strategy whose entry says the interval of its policy."""
    interval_h = one.policy.save_interval_h
    interval = NEVER if interval_h == inf else typed(interval_h)
    unsaid = dict.fromkeys(("interval", "target_pls", "assumed", "options"))
    text = dump_entry(one.entry.model_copy(update=unsaid), {}).removesuffix("}")
    return replace(one, how=FOUND, text=f"{text}, interval: {interval}}}")
