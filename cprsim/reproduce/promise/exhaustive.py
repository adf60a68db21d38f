"""Exhaustive search beside the selector: a fine grid of intervals, on fresh failures.

For each cell the cheapest interval of the grid is found three ways:

- *same risk*: the curve's upper bound keeps the limit. What the selector searches for; it tries
  few candidates, the grid has all.
- *measured, same risk*: the same with the measured losses in place of the curve's, at their own
  upper bound.
- *loss known*: the measured mean keeps the limit. What the selector could take if nothing about the
  loss were unsure: the distance to it is the price of the curve's uncertainty.

Measured losses are the curve's at every interval, times measured over predicted of this scenario
and strategy, pooled over its cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy import stats

from cprsim.reproduce.promise.cells import CONFIDENCE, STRATEGIES, PromiseCell
from cprsim.reproduce.promise.histories import FRESH_SEED
from cprsim.reproduce.promise.losses import CellLoss, PromisedJob
from cprsim.selector.deciding import WAYS, bench_of
from cprsim.selector.limit import Limit, LimitedQuantity
from cprsim.selector.pricing import Bench, Priced

N_REPLICATIONS = 2000
N_INTERVALS = 120  # on the grid, spaced evenly in their logarithm
FINEST = 30  # saves per job at the shortest
NEAR_ENOUGH = 1.05  # chosen over best of the same risk


@dataclass(frozen=True, slots=True)
class Ratio:
    """Measured over predicted loss of one scenario and strategy."""

    mean: float
    standard_error: float

    @classmethod
    def of(cls, cells: Iterable[CellLoss]) -> Ratio:
        """Pooled over cells, the error widened where they differ by more; NaN where none is."""
        known = [one for one in cells if one.n_runs >= 2 and one.predicted > 0]
        if not known:
            return cls(np.nan, np.nan)
        ratio = np.array([one.mean / one.predicted for one in known])
        weight = np.array([(one.predicted / one.standard_error) ** 2 for one in known])
        mean = float((ratio * weight).sum() / weight.sum())
        apart = float(((ratio - mean) ** 2 * weight).sum()) / max(len(known) - 1, 1)
        return cls(mean, sqrt(max(apart, 1.0) / float(weight.sum())))

    def upper(self) -> float:
        """Its one-sided upper bound."""
        return self.mean + float(stats.norm.ppf(CONFIDENCE)) * self.standard_error


@dataclass(frozen=True, slots=True)
class GridPoint:
    """A candidate: its saves per job and its overhead, a share of useful time."""

    saves: int
    overhead: float


@dataclass(frozen=True, slots=True)
class ChoiceOnGrid:
    """The selector's choice in one cell, and what the grid has to say of it."""

    cell: PromiseCell
    chosen: GridPoint
    same_risk: GridPoint | None  # None: nothing on the grid keeps the limit
    measured_same_risk: GridPoint | None
    loss_known: GridPoint | None

    @property
    def over_best(self) -> float:
        """Overhead of the choice over that of the best point of the same risk."""
        return self.chosen.overhead / self.same_risk.overhead if self.same_risk else np.nan

    @property
    def price_of_uncertainty(self) -> float:
        """Share of the chosen overhead that a loss known for sure would save."""
        if self.loss_known is None:
            return np.nan
        return 1.0 - self.loss_known.overhead / self.chosen.overhead


def search(job: PromisedJob, kept: Iterable[CellLoss]) -> list[ChoiceOnGrid]:
    """Every cell of a scenario that has an interval, beside the grid."""
    measured = list(kept)
    bench = _fresh_bench(job)
    beside = []
    for strategy in STRATEGIES:
        grid = bench.price(strategy, _intervals(bench, strategy))
        ratio = Ratio.of(one for one in measured if one.cell.strategy == strategy)
        beside += [
            _beside(bench, cell, grid, ratio)
            for cell in job.cells
            if cell.strategy == strategy and cell.policy is not None
        ]
    return beside


def _fresh_bench(job: PromisedJob) -> Bench:
    fresh = replace(
        job.experiment, seed=FRESH_SEED, n_replications=N_REPLICATIONS, precision_fraction=None
    )
    ways = {name: WAYS[name] for name in STRATEGIES}
    return bench_of(fresh, job.curve, _limit(0.0), ways)


def _limit(most: float) -> Limit:
    return Limit(LimitedQuantity.AUC, most, confidence=CONFIDENCE)


def _intervals(bench: Bench, strategy: str) -> list[float]:
    """From many saves per job to a single one; without any where saves are whole."""
    useful_h = bench.experiment.useful_h
    grid = np.geomspace(useful_h / FINEST, useful_h, N_INTERVALS, endpoint=False).tolist()
    return [*grid, np.inf] if bench.ways[strategy] is None else grid


def _beside(bench: Bench, cell: PromiseCell, grid: list[Priced], ratio: Ratio) -> ChoiceOnGrid:
    assert cell.policy is not None
    limit = _limit(cell.limit)
    (chosen,) = bench.price(cell.strategy, [cell.policy.save_interval_h])
    return ChoiceOnGrid(
        cell=cell,
        chosen=_point(chosen),
        same_risk=_cheapest(grid, lambda one: limit.bound(one.lost), cell.limit),
        measured_same_risk=_cheapest(grid, lambda one: _mean(one) * ratio.upper(), cell.limit),
        loss_known=_cheapest(grid, lambda one: _mean(one) * ratio.mean, cell.limit),
    )


def _mean(one: Priced) -> float:
    return one.lost.mean().mean


def _cheapest(grid: list[Priced], held: Callable[[Priced], float], most: float) -> GridPoint | None:
    within = [one for one in grid if one.finished and held(one) <= most]
    return _point(min(within, key=lambda one: one.mean_overhead)) if within else None


def _point(one: Priced) -> GridPoint:
    return GridPoint(one.n_saves, one.mean_overhead)
