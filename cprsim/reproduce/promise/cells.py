"""The cells of the promise: scenarios, the limits that are tried on each, and what was selected.

The rule for the limits. They are spread evenly, in their logarithm, between two losses that the
curve predicts for plain partial recovery:

- the largest at 2 saves per job: with fewer, hardly any limit binds;
- the smallest at 6: half of that would need four times the runs, as what one run misses its due by
  does not shrink with the limit.

Partial recovery pays at all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment
from cprsim.records import Floats, OnFailure, RecoveryPolicy
from cprsim.selector.limit import Limit, LimitedQuantity
from cprsim.selector.selecting import select
from cprsim.staleness import Metric, StalenessCurve

N_LIMITS = 5
SAVES = (2, 6)  # per job, at the largest limit and at the smallest
STRATEGIES = {"partial": "partial", "cpr-mfu": "mfu"}  # as the selector names them: the curve's key
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PromiseCell:
    """One promise: under this strategy, so chosen, the job loses no more than the limit."""

    scenario: str
    limit: float  # loss of AUC, mean over failure histories
    strategy: str  # of STRATEGIES
    policy: RecoveryPolicy | None  # None: the selector found no interval that keeps the limit
    predicted: float  # by the curve at that interval
    held: float  # the upper bound that the selector held to the limit

    @property
    def name(self) -> str:
        return f"{self.scenario} {self.limit:.2g} {self.strategy}"


def cells_of(
    name: str, experiment: Experiment, curve: StalenessCurve, n_limits: int = N_LIMITS
) -> list[PromiseCell]:
    """The cells of one scenario: every limit, every strategy."""
    return [
        cell
        for limit in limits(experiment, curve, n_limits)
        for cell in _selected(name, experiment, curve, float(limit))
    ]


def _selected(
    name: str, experiment: Experiment, curve: StalenessCurve, most: float
) -> list[PromiseCell]:
    limit = Limit(LimitedQuantity.AUC, most, confidence=CONFIDENCE)
    best = select(experiment, curve, limit, explain=False).best
    cells = []
    for strategy in STRATEGIES:
        found = best.get(strategy)
        if found is None:
            cells.append(PromiseCell(name, most, strategy, None, np.nan, np.nan))
        else:
            cells.append(
                PromiseCell(name, most, strategy, found.policy, found.loss.mean, found.held)
            )
    return cells


def limits(experiment: Experiment, curve: StalenessCurve, n: int = N_LIMITS) -> Floats:
    """The limits of a scenario by the rule, the largest first."""
    policies = tuple(_partial(experiment, n) for n in SAVES)
    outcome = pipeline.simulate(replace(experiment, policies=policies))
    largest, smallest = (
        float(curve_loss(curve, one.policy, outcome.useful_h, one).mean())
        for one in outcome.strategies
    )
    return np.geomspace(largest, smallest, n)


def _partial(experiment: Experiment, n_saves: int) -> RecoveryPolicy:
    interval_h = experiment.useful_h / (n_saves + 1) * (1 + 1e-6)
    return RecoveryPolicy(str(n_saves), OnFailure.RELOAD, interval_h, "given")


def curve_loss(
    curve: StalenessCurve,
    policy: RecoveryPolicy,
    useful_h: float,
    outcome: pipeline.StrategyOutcome,
) -> Floats:
    """(n,) predicted loss of AUC of every replication."""
    predicted = curve.predict(policy, Metric.AUC, outcome.losses, outcome.costs, useful_h)
    assert predicted is not None, "the curve knows the strategies of the promise"
    return predicted.loss
