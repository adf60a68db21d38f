"""What would reverse a choice among entries of `recovery`: each at other values of the unknown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

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
    CostsOf,
    Sensitivity,
    sensitivity,
)
from cprsim.scenario.failures import ANY
from cprsim.scenario.job import Values, values_along
from cprsim.scenario.prices import HOURS_PER_MONTH
from cprsim.scenario.reading import N_TRIED, PRICES, LoadedScenario, unknown_values
from cprsim.scenario.yaml_text import Plain, read_yaml

N_REPLICATIONS = 200  # of each value: costs are compared on the same failures


def sensitivity_of(
    loaded: LoadedScenario,
    entries: Mapping[str, str],
    costs: Mapping[str, float],
    best: str,
    unknown: Mapping[str, Values] | None = None,
) -> Sensitivity | None:
    """Break-even of each unknown input; None where no input is unknown.

    `unknown` has the values to try by key; default: those of the section `unknown`, and of the
    95 % intervals of the failures' parameters.

    Raises ScenarioError: an unknown input that can't be varied.
    """
    if unknown is None:
        unknown = {**intervals_95(loaded), **unknown_values(loaded)}
    if not unknown:
        return None
    by_cost = sorted((name for name in costs if name != best), key=costs.__getitem__)
    names = [best, *by_cost][:MOST_CONTENDERS]
    simulated = [len(some.written) for key, some in unknown.items() if not key.startswith(PRICES)]
    priced = len(simulated) < len(unknown)  # what is used then is simulated once
    total = sum(simulated) + N_DRAWS * bool(simulated) + priced
    with watch.progress("values of unknown inputs") as on_progress:
        costs_of = costs_under(
            loaded, {name: entries[name] for name in names}, lambda n: on_progress(n, total)
        )
        return sensitivity(unknown, best, costs_of, loaded.scenario.simulation.seed)


def intervals_95(loaded: LoadedScenario) -> dict[str, Values]:
    """Values of the failures' parameters along the 95 % intervals that a fit wrote, by key."""
    failures = cast(dict[str, Any], loaded.data["failures"])
    sections = {f"failures.roles.{role}": of for role, of in failures.get("roles", {}).items()}
    values = {}
    for place, section in {"failures": failures, **sections}.items():
        spread = "sigma" if "sigma" in section else "shape"
        for name, interval in (("mtbf", "mtbf_95"), (spread, "spread_95")):
            if section.get(interval) is not None:
                low, high = section[interval]
                values[f"{place}.{name}"] = values_along(f"{low}:{high}:lin{N_TRIED}")
    return values


def costs_under(
    loaded: LoadedScenario,
    entries: Mapping[str, str],
    step: Callable[[int], None] = lambda n_simulated: None,
) -> CostsOf:
    """What entries of `recovery` cost under changes of a scenario, all on the same failures.

    The entries keep the intervals that they say. Cost is that of a month where there are prices,
    else node-hours of overhead. The function raises ScenarioError for a change that can't be made.
    """
    names, uses = list(entries), dict[str, Used]()
    text = "\n".join(["recovery:", *(f"  - {entry}" for entry in entries.values())])
    n = min(loaded.scenario.simulation.replications or N_REPLICATIONS, N_REPLICATIONS)
    fixed = {
        "recovery": cast(dict[str, Plain], read_yaml(text, loaded.path)[0])["recovery"],
        "simulation.replications": n,
        "simulation.precision": None,
    }

    def varied(changes: Mapping[str, Plain]) -> LoadedScenario:
        return loaded.varied({**fixed, **changes}, lambda key: Place(f"unknown {key}"))

    def used(changes: Mapping[str, Plain]) -> Used:
        """What is used under some changes, whatever the prices."""
        but = {key: to for key, to in changes.items() if not key.startswith(PRICES)}
        if str(but) not in uses:
            uses[str(but)] = _used(varied(but), names)
            step(len(uses))
        return uses[str(but)]

    def costs_of(all_changes: Sequence[Mapping[str, Plain]]) -> dict[str, Floats]:
        rows = []
        for changes in all_changes:
            varied_by, used_by = varied(changes), used(changes)
            prices = prices_of(varied_by.scenario)
            rows.append([_cost(varied_by, used_by.get(name), prices) for name in names])
        return dict(zip(names, np.array(rows, dtype=np.float64).T, strict=True))

    return costs_of


def _used(loaded: LoadedScenario, names: Sequence[str]) -> Used:
    """What a job uses under each entry under which all jobs finish."""
    experiment = assemble(loaded)
    rows = replication_rows(simulate(experiment))
    metrics = spreads(summarise_rows(rows, experiment.cluster.n_nodes))
    uses = {
        name: (policy, use_of(experiment.useful_h, metrics[policy.name]))
        for name, policy in zip(names, experiment.policies, strict=True)
    }
    return {name: (policy, use) for name, (policy, use) in uses.items() if use is not None}


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
