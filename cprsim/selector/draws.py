"""How sure the failures themselves are: the decision at draws of the parameters of its failures.

A fit leaves its parameters with intervals, and few failures leave wide ones. Each draw is the same
scenario with other parameters, from the lognormal that has these intervals; parameters are drawn
independently of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import exp, inf, log
from typing import Any

import numpy as np
from scipy import special

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.sources import stream
from cprsim.records import Z_95
from cprsim.results.sensitivity import evenly
from cprsim.scenario.failures import CorrelatedFailures, JobFailures, NodeFailures
from cprsim.scenario.quantities import Lifetime
from cprsim.scenario.reading import LoadedScenario
from cprsim.selector.choice import DrawnDecisions
from cprsim.selector.deciding import Decided, decide
from cprsim.selector.flips import contenders, with_experiment
from cprsim.selector.pricing import FEWEST, Bench

N_DRAWS = 40
TAIL = 0.05  # of the draws, on either side of what is shown
TAKEN = {"shape": (0.1, 100.0), "sigma": (0.0, 3.7)}  # by a scenario
Parameter = tuple[str, str, float, tuple[float, float]]  # role, field, value, 95 % interval


def decide_again(
    bench: Bench, decided: Decided, draws: Sequence[Experiment], step: Callable[[], None]
) -> DrawnDecisions | None:
    """In which share of the draws the decision holds, and how the interval spreads."""
    if not draws:
        return None
    chosen, names = decided.chosen, list(bench.options)
    if not all(option.is_strategy for option in bench.options.values()):  # systems take longer
        names = [chosen.strategy, *contenders(bench, decided)]
        n = min(FEWEST, *(draw.simulation.replications or FEWEST for draw in draws))
        draws = [draw.simulated(replications=n) for draw in draws]
    same, within_limit, intervals_h = [], [], []
    for draw in draws:
        drawn = with_experiment(bench, draw, names)
        again = decide(drawn)
        same.append(again.is_full == decided.is_full)
        priced = again.full if decided.is_full else again.best.get(chosen.strategy)
        intervals_h.append(0.0 if priced is None else priced.policy.interval_h)
        (as_chosen,) = drawn.price(chosen.strategy, [chosen.policy.interval_h])
        within_limit.append(as_chosen.keeps(bench.limit))
        step()
    low_h, high_h = np.quantile(intervals_h, [TAIL, 1 - TAIL], method="nearest").tolist()
    fractions = float(np.mean(same)), float(np.mean(within_limit))
    return DrawnDecisions(len(draws), *fractions, low_h, high_h)


# --------------------------------------------------------------------------- the draws


def variants(loaded: LoadedScenario, n_replications: int) -> tuple[Experiment, ...]:
    """The experiment at each draw of the failures' parameters; none where all are taken as known.

    The draws fill each interval evenly (a Latin hypercube), so that few of them are enough.
    """
    scenario = loaded.scenario
    rng = stream(scenario.simulation.seed, 0, "select/parameters")
    draws: list[dict[str, dict[str, float]]] = [{} for _ in range(N_DRAWS)]
    parameters = [*_parameters(scenario.failures)]
    for role, name, value, (low, high) in parameters:
        least, most = TAKEN.get(name, (0.0, inf))
        for draw, z in zip(draws, special.ndtri(evenly(rng, N_DRAWS)).tolist(), strict=True):
            at = value * exp(z * log(high / low) / (2 * Z_95))
            draw.setdefault(role, {})[name] = min(max(at, least), most)
    experiments = []
    for draw in draws if parameters else []:
        failures = _with(scenario.failures, draw)
        varied = replace(loaded, scenario=scenario.model_copy(update={"failures": failures}))
        experiment = assemble(varied, with_policies=False)
        experiments.append(experiment.simulated(replications=n_replications))
    return tuple(experiments)


def _parameters(failures: Any) -> Iterator[Parameter]:
    sections: Mapping[str, Lifetime | CorrelatedFailures] = {}
    if isinstance(failures, NodeFailures):
        sections = failures.roles
    elif isinstance(failures, JobFailures | CorrelatedFailures):
        sections = {"": failures}
    for role, section in sections.items():
        if section.mtbf_95_h is not None:
            name = "mtbf_h" if isinstance(section, CorrelatedFailures) else "mean_between_h"
            yield role, name, section.mtbf_h, section.mtbf_95_h
        if section.spread_95 is not None:
            name = "sigma" if section.family == "lognormal" else "shape"
            yield role, name, getattr(section, name), section.spread_95


def _with(failures: Any, drawn: Mapping[str, dict[str, float]]) -> Any:
    """The section `failures` with parameters as drawn, by role."""
    if not isinstance(failures, NodeFailures):
        return failures.model_copy(update=drawn[""])
    roles = {
        role: lifetime.model_copy(update=drawn.get(role, {}))
        for role, lifetime in failures.roles.items()
    }
    return failures.model_copy(update={"roles": roles})
