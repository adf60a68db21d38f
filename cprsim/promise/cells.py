"""The cells of the promise: scenarios, the limits that are tried on each, and what was selected.

The rule for the limits, written before anything was measured. They are spread evenly, in their
logarithm, between two losses that the curve predicts for plain partial recovery:

- the largest at 4 saves per job: with fewer, whole saves decide and not the limit;
- the smallest at as many saves as make partial recovery half as expensive as full recovery at its
  best: with more, little is gained by it.

Between the two partial recovery pays and the limit binds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cprsim import pipeline
from cprsim.assemble import Experiment
from cprsim.records import Floats, OnFailure, RecoveryPolicy
from cprsim.selector import Limit, Quantity, select
from cprsim.staleness import Metric, StalenessCurve

N_LIMITS = 5
FEWEST_SAVES = 4
DEAR = 0.5  # of full recovery's overhead
SAVES = np.unique(np.geomspace(FEWEST_SAVES, 400, 25).astype(int))
STRATEGIES = {"partial": "partial", "cpr-mfu": "mfu"}  # as the selector names them: the curve's key
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Cell:
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


def cells_of(name: str, experiment: Experiment, curve: StalenessCurve) -> list[Cell]:
    """The cells of one scenario: every limit, every strategy."""
    return [
        cell
        for limit in limits(experiment, curve)
        for cell in _selected(name, experiment, curve, float(limit))
    ]


def _selected(name: str, experiment: Experiment, curve: StalenessCurve, most: float) -> list[Cell]:
    limit = Limit(Quantity.AUC, most, confidence=CONFIDENCE)
    best = select(experiment, curve, limit, explain=False).best
    cells = []
    for strategy in STRATEGIES:
        found = best.get(strategy)
        if found is None:
            cells.append(Cell(name, most, strategy, None, np.nan, np.nan))
        else:
            cells.append(Cell(name, most, strategy, found.policy, found.loss.mean, found.held))
    return cells


def limits(experiment: Experiment, curve: StalenessCurve) -> Floats:
    """The limits of a scenario by the rule, the largest first."""
    policies = tuple(_partial(experiment, int(n)) for n in SAVES)
    outcome = pipeline.simulate(replace(experiment, policies=policies))
    overhead = np.array(
        [float(np.mean(one.costs.wall_h)) / experiment.useful_h - 1 for one in outcome.strategies]
    )
    losses = np.array(
        [
            float(curve_loss(curve, one.policy, outcome.useful_h, one).mean())
            for one in outcome.strategies
        ]
    )
    anything = Limit(Quantity.AUC, 1.0, confidence=CONFIDENCE)
    full = select(experiment, curve, anything, explain=False).full.overhead.mean
    cheap = np.flatnonzero(overhead <= DEAR * full)
    return np.geomspace(losses[0], losses[cheap[-1]], N_LIMITS)


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
    predicted = curve.predict(
        policy, Metric.AUC, outcome.losses, outcome.costs.replication, useful_h
    )
    assert predicted is not None, "the curve knows the strategies of the promise"
    return predicted.loss
