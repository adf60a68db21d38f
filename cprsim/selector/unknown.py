"""What would reverse a choice among entries of `recovery`: each at other values of the unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    others = sorted((name for name in costs if name != best), key=costs.__getitem__)
    names = [best, *others][:MOST_CONTENDERS]
    text = "\n".join(["recovery:", *(f"  - {entries[name]}" for name in names)])
    n = min(loaded.scenario.simulation.replications or N_REPLICATIONS, N_REPLICATIONS)
    fixed = {
        "recovery": cast(dict[str, Plain], read_yaml(text, loaded.path)[0])["recovery"],
        "simulation.replications": n,
        "simulation.precision": None,
    }
    unknown, done = unknown_values(loaded), count(1)
    simulated = [len(some.written) for key, some in unknown.items() if not key.startswith(PRICES)]
    priced = len(simulated) < len(unknown)  # what is used then is simulated once
    total = sum(simulated) + N_DRAWS * bool(simulated) + priced
    now: list[Used] = []  # what is used as the scenario says

    def varied(changes: Mapping[str, Plain]) -> LoadedScenario:
        return loaded.varied({**fixed, **changes}, lambda key: Place(f"unknown {key}"))

    with watch.progress("values of unknown inputs") as on_progress:

        def used(one: LoadedScenario) -> Used:
            found = _used(one, names)
            on_progress(next(done), total)
            return found

        def costs_of(all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
            """Costs under each of some changes; those of prices need no simulation."""
            scenarios = [varied(changes) for changes in all_changes]
            if only_prices(all_changes):
                now.extend([] if now else [used(varied({}))])
                of_each = now * len(scenarios)
            else:
                of_each = [used(one) for one in scenarios]
            rows = [
                [_cost(one, of.get(name), prices_of(one.scenario)) for name in names]
                for one, of in zip(scenarios, of_each, strict=True)
            ]
            return dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True))

        return sensitivity(loaded, best, costs_of, unknown)


def _used(loaded: LoadedScenario, names: Sequence[str]) -> Used:
    """What a job uses under each entry under which all jobs finish."""
    experiment = assemble(loaded)
    rows = replication_rows(simulate(experiment))
    found = spreads(summarise_rows(rows, experiment.cluster.n_nodes))
    each = {
        name: (policy, use_of(experiment.useful_h, found[policy.name]))
        for name, policy in zip(names, experiment.policies, strict=True)
    }
    return {name: (policy, use) for name, (policy, use) in each.items() if use is not None}


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
