"""How sure the failures themselves are: the job at draws of the parameters of its failures.

A fit leaves its parameters with intervals, and few failures leave wide ones. Each draw is the same
scenario with other parameters, from the lognormal that has these intervals; parameters are drawn
independently of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import exp, log
from typing import Any, NamedTuple

from scipy import special

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.sources import stream
from cprsim.records import Z_95
from cprsim.scenario.failures import CorrelatedFailures, JobFailures, NodeFailures
from cprsim.scenario.quantities import Lifetime
from cprsim.scenario.reading import LoadedScenario

N_DRAWS = 40
NARROWEST, WIDEST = 0.1, 100.0  # shapes that a scenario takes
MOST_SIGMA = 3.7


class _Parameter(NamedTuple):
    """One parameter with an interval, of a role or of the job."""

    role: str
    field: str
    value: float
    interval: tuple[float, float]

    def at(self, z: float) -> float:
        """Its value where a standard normal draw is `z`."""
        low, high = self.interval
        drawn = self.value * exp(z * log(high / low) / (2 * Z_95))
        if self.field == "shape":
            return min(max(drawn, NARROWEST), WIDEST)
        return min(drawn, MOST_SIGMA) if self.field == "sigma" else drawn


def variants(loaded: LoadedScenario, n_replications: int) -> tuple[Experiment, ...]:
    """The experiment at each draw of the failures' parameters; none where all are taken as known.

    The draws fill each interval evenly (a Latin hypercube), so that few of them are enough.
    """
    parameters = [*_parameters(loaded.scenario.failures)]
    if not parameters:
        return ()
    from scipy.stats import qmc  # takes longer to import than all else that selecting needs

    rng = stream(loaded.scenario.simulation.seed, 0, "select/parameters")
    uniform = qmc.LatinHypercube(len(parameters), rng=rng).random(N_DRAWS)
    found = []
    for row in special.ndtri(uniform).tolist():
        drawn: dict[str, dict[str, float]] = {}
        for one, z in zip(parameters, row, strict=True):
            drawn.setdefault(one.role, {})[one.field] = one.at(z)
        scenario = loaded.scenario
        failures = _with(scenario.failures, drawn)
        varied = replace(loaded, scenario=scenario.model_copy(update={"failures": failures}))
        found.append(assemble(varied, with_policies=False).simulated(replications=n_replications))
    return tuple(found)


def _parameters(failures: Any) -> Iterator[_Parameter]:
    sections: dict[str, Lifetime | CorrelatedFailures] = {}
    if isinstance(failures, NodeFailures):
        sections = dict(failures.roles)
    elif isinstance(failures, JobFailures | CorrelatedFailures):
        sections = {"": failures}
    for role, one in sections.items():
        if one.mtbf_95_h is not None:
            field = "mtbf_h" if isinstance(one, CorrelatedFailures) else "mean_between_h"
            yield _Parameter(role, field, one.mtbf_h, one.mtbf_95_h)
        if one.spread_95 is not None:
            field = "sigma" if one.family == "lognormal" else "shape"
            yield _Parameter(role, field, getattr(one, field), one.spread_95)


def _with(failures: Any, drawn: Mapping[str, dict[str, float]]) -> Any:
    """The section `failures` with parameters as drawn, by role."""
    if not isinstance(failures, NodeFailures):
        return failures.model_copy(update=drawn[""])
    roles = {
        role: lifetime.model_copy(update=drawn.get(role, {}))
        for role, lifetime in failures.roles.items()
    }
    return failures.model_copy(update={"roles": roles})
