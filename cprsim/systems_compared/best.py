"""Each system at its own best interval, found on the failures that all are compared on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment, policy_of
from cprsim.recovery.paper import NEVER
from cprsim.recovery.policy import Policy
from cprsim.scenario import dump_entry
from cprsim.scenario.recovery import RecoverySection
from cprsim.selector.deciding import WAYS, Decided, bench_of, decide, fit_tails
from cprsim.selector.limit import NO_LIMIT
from cprsim.selector.pricing import FULL, Bench, Priced, Way, option_of
from cprsim.selector.search import best_full
from cprsim.selector.words import entry as entry_text
from cprsim.selector.words import system_entry, typed
from cprsim.systems_compared.lineup import Entrant, Lineup

FOUND, LISTED, DEFAULT = "found", "listed", "default"  # how an interval came about
NONE_KEEPS = "no interval that is worth its saves keeps the limit"
NOT_KNOWN = "the staleness curve does not say what it loses"


@dataclass(frozen=True, slots=True)
class Found:
    """One system as it is compared.

    Parameters
    ----------
    how : whether its interval was found here, is the scenario's, or its default
    text : its entry of `recovery`, which runs it so
    """

    name: str
    strategy: str
    policy: Policy
    how: str
    text: str


def best_policies(
    lineup: Lineup, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> tuple[list[Found], dict[str, str]]:
    """All that can run the job, each at its best, and why others are left out after all.

    Without a limit on what accuracy may be lost, what leaves shards stale would never save: it
    keeps the interval that its entry says. So does CPR, whose interval is its formula's.
    """
    if lineup.fixed:
        return [_as_it_is(one) for one in lineup.entrants], {}
    ways = {one.name: _way(one, lineup) for one in lineup.entrants if _is_searched(one, lineup)}
    if FULL in ways:
        raise ParameterError("a recovery system has the name `full`: give it another `name`")
    limit = lineup.limit or NO_LIMIT
    bench = bench_of(
        lineup.experiment, lineup.curve, limit, ways,
        lambda: on_progress(bench.n_looked_at, len(bench.ways)),
    )  # fmt: skip
    decided = fit_tails(bench, limit, decide(bench, limit))
    found, left_out = [], {}
    for one in lineup.entrants:
        made = _one(one, lineup, bench, decided, one.name in ways)
        if isinstance(made, str):
            left_out[one.name] = made
        else:
            found.append(made)
    return found, left_out


def _is_searched(one: Entrant, lineup: Lineup) -> bool:
    """Whether the selector looks for an interval."""
    if one.keeps:
        return False
    if one.is_system:
        assert one.policy is not None, "a system's entry says all"
        return not one.policy.leaves_stale or lineup.limit is not None
    return one.entry.strategy in WAYS and lineup.limit is not None and one.entry.costs is None


def _way(one: Entrant, lineup: Lineup) -> Way:
    """How an entrant saves, as the selector varies it."""
    if one.is_system:
        return next(way for way in lineup.experiment.systems if way.name == one.name)
    own = None if one.policy is None else one.policy.sub_saves
    return own or WAYS[one.entry.strategy]


def _one(
    one: Entrant, lineup: Lineup, bench: Bench, decided: Decided, searched: bool
) -> Found | str:
    """An entrant at its best, or why it is left out."""
    if one.entry.strategy == FULL and not one.keeps:
        return _full(one, lineup.experiment, bench, decided)
    if not searched:
        return _as_it_is(one)
    if one.name not in decided.best:
        return NOT_KNOWN
    priced = decided.best[one.name]
    return NONE_KEEPS if priced is None else _searched(one, priced, bench)


def _as_it_is(one: Entrant) -> Found:
    assert one.policy is not None, "what has no policy of its own is searched"
    text = dump_entry(one.entry, one.entry.options or {})
    return Found(
        one.name, one.entry.strategy, one.policy, LISTED if one.is_listed else DEFAULT, text
    )


def _searched(one: Entrant, priced: Priced, bench: Bench) -> Found:
    way, useful_h = bench.ways[one.name], bench.experiment.useful_h
    if not isinstance(way, RecoverySection):
        policy = replace(priced.policy, name=one.name)
        return Found(one.name, one.entry.strategy, policy, FOUND, _named(one, policy))
    if option_of(way) is None:
        return _as_it_is(one)
    text = system_entry(way, priced.policy, useful_h)
    return Found(one.name, one.entry.strategy, priced.policy, FOUND, text)


def _full(one: Entrant, experiment: Experiment, bench: Bench, decided: Decided) -> Found:
    """Full recovery at its best, at the costs of its entry."""
    full = decided.full if one.entry.costs is None else best_full(_at_own_costs(one, bench))
    policy = policy_of(one.entry, experiment, interval_h=full.policy.interval_h)
    return Found(one.name, one.entry.strategy, policy, FOUND, _named(one, policy))


def _at_own_costs(one: Entrant, bench: Bench) -> Bench:
    """Where full recovery with costs of its own is priced."""
    experiment, own = bench.experiment, one.entry.costs_from(bench.experiment.costs)
    scopes = experiment.scopes
    if one.entry.costs is not None and one.entry.costs.detect is not None:
        scopes = tuple(replace(scope, detect=own.detect) for scope in scopes)
    there = replace(experiment, costs=own, scopes=scopes)
    return Bench(there, {FULL: None}, bench.losing, bench.on_priced)


def _named(one: Entrant, policy: Policy) -> str:
    """The entry of a strategy at the interval of a policy, with its name and its costs."""
    if one.name == one.entry.strategy and one.entry.costs is None:
        return entry_text(one.entry.strategy, policy)
    interval = NEVER if policy.interval_h == inf else typed(policy.interval_h)
    said = one.entry.model_copy(update={"interval": None, "target_pls": None, "options": None})
    return dump_entry(said, {})[:-1] + f", interval: {interval}" + "}"


def run_of(lineup: Lineup, found: list[Found]) -> Experiment:
    """The job under all systems as found: what is simulated to compare them."""
    return replace(lineup.experiment, policies=tuple(one.policy for one in found))
