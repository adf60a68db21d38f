"""Waits for spares: where they are much of an overhead, and how many spares change the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import isnan
from typing import NamedTuple

from cprsim.job.records import Estimate
from cprsim.results.decisive import SpareNeed
from cprsim.results.metrics import OVERHEAD, spreads, summarise
from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import Experiment

WAITS_FROM = 0.1  # of an overhead: from there on waits are shown
WAITING = "waiting, %"  # their column
REPLICATIONS_PER_SPARES = 1000  # of each number of spares
MORE_SPARES = (*range(1, 5), *(n * 2**power for power in range(1, 12) for n in (3, 4)))


class Waits(NamedTuple):
    """Overhead of a strategy, and the waits for spares in it, as shares of useful time."""

    overhead: Estimate
    waiting: float

    @property
    def is_shown(self) -> bool:
        return self.waiting > WAITS_FROM * self.overhead.mean


WithSpares = Callable[[Sequence[str], int], Mapping[str, Waits]]
"""Function from strategies and a number of spares to their costs."""


def waits_of(summary: Mapping[str, Estimate]) -> Waits:
    """Overhead and waits of one strategy, from its summary."""
    waiting = summary["wait"].mean if "wait" in summary else 0.0
    return Waits(summary[OVERHEAD], 0.0 if isnan(waiting) else waiting)


def with_spares(experiment: Experiment) -> WithSpares:
    """Costs of an experiment's policies by number of spares, simulated on the same failures."""
    n = min(experiment.simulation.replications or REPLICATIONS_PER_SPARES, REPLICATIONS_PER_SPARES)
    few, cluster = experiment.simulated(replications=n), experiment.cluster
    policies = {policy.name: policy for policy in experiment.policies}

    def simulated(names: Sequence[str], n_spares: int) -> Mapping[str, Waits]:
        of_names = tuple(policies[name] for name in names)
        at = replace(few, cluster=replace(cluster, n_spares=n_spares), policies=of_names)
        summary = spreads(summarise(simulate(at)))
        return {name: waits_of(summary[name]) for name in names}

    return simulated


def spares_of(
    experiment: Experiment, able: Mapping[str, Waits], picks: Sequence[str]
) -> tuple[SpareNeed, ...]:
    """`spares_needed` by an experiment whose policies are those that may be chosen."""
    cluster, at = experiment.cluster, with_spares(experiment)
    return spares_needed(able, picks, cluster.n_spares, cluster.n_nodes, at)


def spares_needed(
    able: Mapping[str, Waits], picks: Sequence[str], n_now: int | None, n_nodes: int, at: WithSpares
) -> tuple[SpareNeed, ...]:
    """Spares needed by each pick, and by the strategy that would win if no job waited.

    The number that makes another strategy the cheapest, or halves a pick's overhead, at the
    fewest node-hours, spares included. `able`: all strategies that may be chosen.
    """
    if n_now is None or not picks:
        return ()
    # without waits, to first order; the winner then is simulated to be sure
    winner = min(able, key=lambda name: able[name].overhead.mean - able[name].waiting)
    asked = [*dict.fromkeys([winner, *picks])]
    halved = [2 * able[name].waiting > able[name].overhead.mean for name in picks]
    if winner == picks[0] and not any(halved):
        return ()
    of_number: dict[int, Mapping[str, Waits]] = {}
    for more in (n for n in MORE_SPARES if n <= n_nodes):
        of_number[n_now + more] = costs = at(asked, n_now + more)
        if not any(2 * costs[name].waiting > more / n_nodes for name in asked):
            break  # more spares can't be worth their nodes
    needs = []
    for name in asked:

        def helps(costs: Mapping[str, Waits], name: str = name) -> bool:
            mean = costs[name].overhead.mean
            if name == winner != picks[0]:
                return mean < costs[picks[0]].overhead.mean
            return 2 * mean <= able[name].overhead.mean

        good = {n: costs[name].overhead for n, costs in of_number.items() if helps(costs)}
        if good:
            n = min(good, key=lambda n: good[n].mean + (n - n_now) / n_nodes)
            cheapest = min(asked, key=lambda other: of_number[n][other].overhead.mean)
            needs.append(SpareNeed(name, n, n_now, good[n], name == cheapest != picks[0]))
    return tuple(needs)
