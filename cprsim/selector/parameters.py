"""How sure the failures themselves are: the job at draws of the parameters of its failures.

A fit leaves its parameters with intervals, and few failures leave wide ones. Each draw is the same
scenario with other parameters, from the lognormal that has these intervals; parameters are drawn
independently of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, inf, log
from typing import Any

from scipy import special

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.sources import stream
from cprsim.records import Z_95
from cprsim.scenario.failures import CorrelatedFailures, JobFailures, NodeFailures
from cprsim.scenario.quantities import Lifetime
from cprsim.scenario.reading import LoadedScenario

N_DRAWS = 40
TAKEN = {"shape": (0.1, 100.0), "sigma": (0.0, 3.7)}  # by a scenario
Parameter = tuple[str, str, float, tuple[float, float]]  # role, field, value, 95 % interval


def variants(loaded: LoadedScenario, n_replications: int) -> tuple[Experiment, ...]:
    """The experiment at each draw of the failures' parameters; none where all are taken as known.

    The draws fill each interval evenly (a Latin hypercube), so that few of them are enough.
    """
    scenario, found = loaded.scenario, []
    parameters = [*_parameters(scenario.failures)]
    if not parameters:
        return ()
    from scipy.stats import qmc  # takes longer to import than all else that selecting needs

    rng = stream(scenario.simulation.seed, 0, "select/parameters")
    uniform = qmc.LatinHypercube(len(parameters), rng=rng).random(N_DRAWS)
    for row in special.ndtri(uniform).tolist():
        drawn: dict[str, dict[str, float]] = {}
        for (role, name, value, (low, high)), z in zip(parameters, row, strict=True):
            least, most = TAKEN.get(name, (0.0, inf))
            at = value * exp(z * log(high / low) / (2 * Z_95))
            drawn.setdefault(role, {})[name] = min(max(at, least), most)
        failures = _with(scenario.failures, drawn)
        varied = replace(loaded, scenario=scenario.model_copy(update={"failures": failures}))
        found.append(assemble(varied, with_policies=False).simulated(replications=n_replications))
    return tuple(found)


def _parameters(failures: Any) -> Iterator[Parameter]:
    sections: Mapping[str, Lifetime | CorrelatedFailures] = {}
    if isinstance(failures, NodeFailures):
        sections = failures.roles
    elif isinstance(failures, JobFailures | CorrelatedFailures):
        sections = {"": failures}
    for role, one in sections.items():
        if one.mtbf_95_h is not None:
            name = "mtbf_h" if isinstance(one, CorrelatedFailures) else "mean_between_h"
            yield role, name, one.mtbf_h, one.mtbf_95_h
        if one.spread_95 is not None:
            name = "sigma" if one.family == "lognormal" else "shape"
            yield role, name, getattr(one, name), one.spread_95


def _with(failures: Any, drawn: Mapping[str, dict[str, float]]) -> Any:
    """The section `failures` with parameters as drawn, by role."""
    if not isinstance(failures, NodeFailures):
        return failures.model_copy(update=drawn[""])
    roles = {
        role: lifetime.model_copy(update=drawn.get(role, {}))
        for role, lifetime in failures.roles.items()
    }
    return failures.model_copy(update={"roles": roles})
