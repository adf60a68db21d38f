"""How sure the failures themselves are: a decision for each draw of their parameters.

A fit leaves its parameters with intervals, and few failures leave wide ones. Each draw is the same
scenario with other parameters, from the lognormal that has these intervals; parameters are drawn
independently of each other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from typing import Any

import numpy as np
from scipy import special

from cprsim.experiments.assemble import Experiment, assemble
from cprsim.failures.sources import stream
from cprsim.records import Z_95, Floats
from cprsim.scenario.failures import CorrelatedFailures, JobFailures, NodeFailures
from cprsim.scenario.quantities import Lifetime
from cprsim.scenario.reading import LoadedScenario
from cprsim.scenario.recovery import RecoverySection
from cprsim.selector.choice import DrawnDecisions
from cprsim.selector.deciding import Decided, decide
from cprsim.selector.flips import contenders
from cprsim.selector.limit import Limit
from cprsim.selector.pricing import FEWEST, FULL, Bench
from cprsim.selector.search import keeps

N_DRAWS = 40
NARROWEST, WIDEST = 0.1, 100.0  # shapes that a scenario takes
MOST_SIGMA = 3.7
TAIL = 0.05  # of the draws, on either side of what is shown

Section = Lifetime | CorrelatedFailures


@dataclass(frozen=True, slots=True)
class _Parameter:
    """One parameter with an interval: the role whose it is, its field, value and interval."""

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
    parameters = _parameters(loaded)
    if not parameters:
        return ()
    from scipy.stats import qmc  # takes longer to import than all else that selecting needs

    rng = stream(loaded.scenario.simulation.seed, 0, "select/parameters")
    uniform = qmc.LatinHypercube(len(parameters), rng=rng).random(N_DRAWS)
    normal: Floats = special.ndtri(uniform)
    made = (
        assemble(_with(loaded, parameters, row), with_policies=False) for row in normal.tolist()
    )
    return tuple(one.simulated(replications=n_replications) for one in made)


def _parameters(loaded: LoadedScenario) -> list[_Parameter]:
    failures = loaded.scenario.failures
    if isinstance(failures, NodeFailures):
        sections: dict[str, Section] = dict(failures.roles)
    elif isinstance(failures, JobFailures | CorrelatedFailures):
        sections = {"": failures}
    else:
        return []
    return [one for role, section in sections.items() for one in _of_section(role, section)]


def _of_section(role: str, section: Section) -> list[_Parameter]:
    found = []
    if section.mtbf_95_h is not None:
        field = "mtbf_h" if isinstance(section, CorrelatedFailures) else "mean_between_h"
        found.append(_Parameter(role, field, section.mtbf_h, section.mtbf_95_h))
    if section.spread_95 is not None:
        field = "sigma" if section.family == "lognormal" else "shape"
        found.append(_Parameter(role, field, getattr(section, field), section.spread_95))
    return found


def _with(
    loaded: LoadedScenario, parameters: list[_Parameter], normal: Sequence[float]
) -> LoadedScenario:
    """The scenario with each parameter at its draw."""
    changes: dict[str, dict[str, float]] = {}
    for parameter, z in zip(parameters, normal, strict=True):
        changes.setdefault(parameter.role, {})[parameter.field] = parameter.at(z)
    failures = loaded.scenario.failures
    update: dict[str, Any] = dict(changes.get("", {}))
    if isinstance(failures, NodeFailures):
        update["roles"] = {
            role: lifetime.model_copy(update=changes.get(role, {}))
            for role, lifetime in failures.roles.items()
        }
    drawn = failures.model_copy(update=update)
    scenario = loaded.scenario.model_copy(update={"failures": drawn})
    return replace(loaded, scenario=scenario)


# --------------------------------------------------------------------------- deciding again


def decide_again(
    bench: Bench,
    decided: Decided,
    limit: Limit,
    experiments: Sequence[Experiment],
    step: Callable[[], None],
) -> DrawnDecisions | None:
    """In which share of the draws the decision holds, and how the interval spreads."""
    if not experiments:
        return None
    chosen, partial = decided.chosen, decided.chosen is not decided.full
    ways = bench.ways
    if any(isinstance(way, RecoverySection) for way in ways.values()):
        names = dict.fromkeys([FULL, chosen.strategy, *contenders(bench, decided)])
        ways = {name: ways[name] for name in names}  # systems take longer
        n = min(FEWEST, *(one.simulation.replications or FEWEST for one in experiments))
        experiments = [one.simulated(replications=n) for one in experiments]
    same, kept, intervals_h = [], [], []
    for experiment in experiments:
        drawn = Bench(experiment, ways, bench.losing, tails=bench.tails)
        again = decide(drawn, limit)
        same.append((again.chosen is not again.full) == partial)
        one = again.best.get(chosen.strategy) if partial else again.full
        intervals_h.append(0.0 if one is None else one.policy.interval_h)
        kept.append(keeps(drawn.price(chosen.strategy, [chosen.policy.interval_h])[0], limit))
        step()
    ends = np.quantile(intervals_h, [TAIL, 1 - TAIL], method="nearest")
    return DrawnDecisions(
        n=len(experiments),
        same_fraction=float(np.mean(same)),
        kept_fraction=float(np.mean(kept)),
        low_h=float(ends[0]),
        high_h=float(ends[1]),
    )
