"""Each system at its own best interval, found on the failures that all are compared on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from cprsim.errors import ParameterError
from cprsim.experiments.assemble import Experiment
from cprsim.recovery.paper import STRATEGIES
from cprsim.selector.deciding import decide, fit_tails
from cprsim.selector.limit import NO_LIMIT, Limit
from cprsim.selector.option import FULL, RELOADING, PricedEntry
from cprsim.selector.pricing import bench_of
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
    options = {
        entrant.name: PricedEntry(entrant.entry)
        for entrant in entrants
        if _is_searched(entrant, limit)
    }
    named_full = options.get(FULL)
    if named_full is not None and named_full.entry.strategy != FULL:
        raise ParameterError("a recovery system has the name `full`: give it another `name`")
    bench = bench_of(experiment, limit or NO_LIMIT, options)
    steps = count(1)
    decided = decide(bench, step=lambda: on_progress(next(steps), len(bench.options)))
    best = {FULL: decided.full, **fit_tails(bench, decided).best}
    at_best, left_out = [], {}
    for entrant in entrants:
        if entrant.name not in options:
            at_best.append(entrant)
        elif (priced := best.get(entrant.name)) is not None:
            option = options[entrant.name]
            if option.interval is not None:
                policy = option.policy_at(experiment, priced.policy.interval_h)
                entrant = replace(entrant, policy=policy, how=FOUND)
            at_best.append(entrant)
        else:
            left_out[entrant.name] = NONE_KEEPS if entrant.name in best else NOT_KNOWN
    return at_best, left_out


def _is_searched(entrant: Entrant, limit: Limit | None) -> bool:
    """Whether the selector looks for an interval."""
    if entrant.is_today:
        return False
    if entrant.entry.strategy == FULL:
        return True
    if entrant.entry.strategy not in STRATEGIES:
        return limit is not None or not entrant.policy.leaves_stale
    return entrant.entry.strategy in RELOADING and limit is not None and entrant.entry.costs is None
