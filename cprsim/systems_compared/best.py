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
    options = {one.name: PricedEntry(one.entry) for one in entrants if _is_searched(one, limit)}
    taken = options.get(FULL)
    if taken is not None and taken.entry.strategy != FULL:
        raise ParameterError("a recovery system has the name `full`: give it another `name`")
    bench = bench_of(experiment, limit or NO_LIMIT, options)
    done = count(1)
    decided = decide(bench, step=lambda: on_progress(next(done), len(bench.options)))
    best = {FULL: decided.full, **fit_tails(bench, decided).best}
    found, left_out = [], {}
    for one in entrants:
        if one.name not in options:
            found.append(one)
        elif (priced := best.get(one.name)) is not None:
            option = options[one.name]
            if option.interval is not None:
                policy = option.policy_at(experiment, priced.policy.interval_h)
                one = replace(one, policy=policy, how=FOUND)
            found.append(one)
        else:
            left_out[one.name] = NONE_KEEPS if one.name in best else NOT_KNOWN
    return found, left_out


def _is_searched(one: Entrant, limit: Limit | None) -> bool:
    """Whether the selector looks for an interval."""
    if one.is_today:
        return False
    if one.entry.strategy == FULL:
        return True
    if one.entry.strategy not in STRATEGIES:
        return limit is not None or not one.policy.leaves_stale
    return one.entry.strategy in RELOADING and limit is not None and one.entry.costs is None
