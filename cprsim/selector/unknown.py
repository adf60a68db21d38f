"""What would reverse a choice among entries of `recovery`: each at other values of the unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import cast

import numpy as np

from cprsim.errors import Place, watch
from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.records import Floats
from cprsim.recovery.policy import Policy
from cprsim.results.metrics import spreads, summarise_rows
from cprsim.results.money import JobPrices, JobUse, Used, prices_of, use_of
from cprsim.results.rows import replication_rows
from cprsim.results.sensitivity import (
    MOST_CONTENDERS,
    N_DRAWS,
    Sensitivity,
    only_prices,
    sensitivity,
)
from cprsim.scenario.failures import ANY
from cprsim.scenario.prices import HOURS_PER_MONTH
from cprsim.scenario.reading import PRICES, LoadedScenario, unknown_values
from cprsim.scenario.yaml_text import Plain, read_yaml

N_REPLICATIONS = 200  # of each value: costs are compared on the same failures


def sensitivity_of(
    loaded: LoadedScenario,
    entries: Mapping[str, str],
    costs: Mapping[str, float],
    best: str,
) -> Sensitivity | None:
    """What would make another entry the cheapest; None where no input is said to be unknown.

    The entries keep the intervals that they say. Cost is that of a month where there are prices,
    else node-hours of overhead.

    Raises ScenarioError: an unknown input that can't be varied.
    """
    if not loaded.scenario.unknown:
        return None
    few = [best, *(name for name in sorted(costs, key=costs.__getitem__) if name != best)]
    unknown = unknown_values(loaded)
    simulated = [len(some.written) for key, some in unknown.items() if not key.startswith(PRICES)]
    priced = len(simulated) < len(unknown)  # what is used then is simulated once
    total, done = sum(simulated) + N_DRAWS * bool(simulated) + priced, count(1)
    with watch.progress("values of unknown inputs") as on_progress:
        tried = {name: entries[name] for name in few[:MOST_CONTENDERS]}
        lab = _EntryTrials(loaded, tried, lambda: on_progress(next(done), total))
        return sensitivity(loaded, best, lab.costs, unknown)


class _EntryTrials:
    """Finds out what entries cost if inputs were otherwise."""

    def __init__(
        self, loaded: LoadedScenario, entries: Mapping[str, str], on_priced: Callable[[], None]
    ) -> None:
        text = "\n".join(["recovery:", *(f"  - {entry}" for entry in entries.values())])
        listed = cast(dict[str, Plain], read_yaml(text, loaded.path)[0])["recovery"]
        n = loaded.scenario.simulation.replications or N_REPLICATIONS
        self._fixed: dict[str, Plain] = {
            "recovery": listed,
            "simulation.replications": min(n, N_REPLICATIONS),
            "simulation.precision": None,
        }
        self._loaded, self._names, self._on_priced = loaded, tuple(entries), on_priced
        self._now: Used | None = None  # as the scenario says

    def costs(self, all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
        """Cost of each entry under each of some changes; those of prices need no simulation."""
        scenarios = [self._varied(changes) for changes in all_changes]
        if only_prices(all_changes):
            if self._now is None:
                self._now = self._used(self._varied({}))
            used = [self._now] * len(scenarios)
        else:
            used = [self._used(one) for one in scenarios]
        rows = [
            [_cost(one, of.get(name), prices_of(one.scenario)) for name in self._names]
            for one, of in zip(scenarios, used, strict=True)
        ]
        return dict(zip(self._names, np.array(rows, dtype=np.float64).T, strict=True))

    def _varied(self, changes: Mapping[str, Plain]) -> LoadedScenario:
        return self._loaded.varied({**self._fixed, **changes}, lambda key: Place(f"unknown {key}"))

    def _used(self, loaded: LoadedScenario) -> Used:
        """What a job uses under each entry under which all jobs finish."""
        experiment = assemble(loaded)
        rows = replication_rows(simulate(experiment))
        found = spreads(summarise_rows(rows, experiment.cluster.n_nodes))
        self._on_priced()
        used = {}
        for name, policy in zip(self._names, experiment.policies, strict=True):
            if (use := use_of(experiment.useful_h, found[policy.name])) is not None:
                used[name] = policy, use
        return used


def _cost(
    loaded: LoadedScenario, of: tuple[Policy, JobUse] | None, prices: JobPrices | None
) -> float:
    """Of a month: cents, or node-hours of overhead; infinite where not all jobs finish."""
    if of is None:
        return float("inf")
    policy, use = of
    if prices is not None:
        return float(prices.billed(policy, use).month.total_cents)
    n_nodes = loaded.scenario.n_nodes_of[ANY]
    lost_h = n_nodes * (use.wall_h - use.useful_h) + policy.tax.nodes * use.wall_h
    return lost_h * HOURS_PER_MONTH / use.useful_h
