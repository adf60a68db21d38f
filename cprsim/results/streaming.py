"""Means of many replications without their rows: for sweeps, where rows would fill the memory.

Where a staleness curve prices what shards lose, it does so batch by batch, and what is left are
the losses' moments and the curve's mean error of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cprsim.experiments import pipeline
from cprsim.records import CONFIDENCE, Bools, Estimate, Floats, Ints
from cprsim.recovery.policy import Policy
from cprsim.results.metrics import METRICS, Metric
from cprsim.results.rows import (
    BEYOND,
    QUANTITIES,
    beside_the_job,
    further_losses,
    has_measured_error,
    of_difference,
    priced_by,
    shared_by,
)
from cprsim.staleness import MeanLoss, StalenessCurve, pooled, strategy_key

if TYPE_CHECKING:
    from cprsim.experiments.assemble import Experiment
    from cprsim.simulate.blocks import Rows

PRICED = (*QUANTITIES.values(), BEYOND)
"""The metrics that need a staleness curve, and a row per lost shard."""

STREAMED = tuple(name for name in METRICS if name not in PRICED)
"""The metrics that do not."""


@dataclass(frozen=True, slots=True)
class Moments:
    """What is left of the replications of one experiment: means and sums of products.

    A strategy that was given up has no moments: its means and products are NaN.
    """

    strategies: tuple[Policy, ...]
    metrics: tuple[str, ...]
    n: int  # replications of each strategy, but for those that were given up
    n_finished: Ints  # (n_strategies,)
    gave_up: Bools  # (n_strategies,)
    mean: Floats  # (n_metrics, n_strategies)
    products: Floats  # (n_metrics, n_strategies, n_strategies) of deviations from the means
    curve_error: Floats  # (n_metrics, n_strategies) mean standard error of the staleness curve
    curve_degrees: Floats  # (n_metrics, n_strategies) of freedom of that
    responses: tuple[str, ...]  # (n_strategies,) of the curve, that price the losses
    curve: StalenessCurve | None = None

    def spread(self, strategy: str, metric: str) -> Estimate:
        """Mean and 95 % interval of a metric; NaN where a replication did not finish."""
        i, k = self._place(strategy), self.metrics.index(metric)
        if self.n_finished[i] < self.n:
            return Estimate(np.nan, np.nan, np.nan, self.n)
        mean, squares = float(self.mean[k, i]), float(self.products[k, i, i])
        if not has_measured_error(metric):
            return Estimate.of_squares(mean, squares, self.n)
        error, degrees = self._error(k, i)
        return self._of_loss(mean, squares, (error**2, degrees))

    def difference(self, strategy: str, other: str, metric: str) -> Estimate:
        """Mean and 95 % interval of `strategy` minus `other`, replication by replication."""
        i, j, k = self._place(strategy), self._place(other), self.metrics.index(metric)
        if min(self.n_finished[i], self.n_finished[j]) < self.n:
            return Estimate(np.nan, np.nan, np.nan, self.n)
        products = self.products[k]
        squares = max(0.0, float(products[i, i] + products[j, j] - 2 * products[i, j]))
        mean = float(self.mean[k, i] - self.mean[k, j])
        if not has_measured_error(metric):
            return Estimate.of_squares(mean, squares, self.n)
        correlation = (
            None
            if self.curve is None
            else shared_by(self.curve)(metric, self.responses[i], self.responses[j])
        )
        measured = of_difference(self._error(k, j), self._error(k, i), correlation)
        return self._of_loss(mean, squares, *measured)

    def _error(self, k: int, i: int) -> tuple[float, float]:
        """The curve's standard error of a loss, and its degrees of freedom."""
        return float(self.curve_error[k, i]), float(self.curve_degrees[k, i])

    def _of_loss(self, mean: float, squares: float, *measured: tuple[float, float]) -> Estimate:
        if self.n == 1:
            return Estimate(mean, np.nan, np.nan, self.n)
        simulated = squares / (self.n - 1) / self.n, float(self.n - 1)
        low, high = MeanLoss(mean, *pooled(simulated, *measured)).interval(CONFIDENCE)
        return Estimate(mean, low, high, self.n)

    def _place(self, strategy: str) -> int:
        return [policy.name for policy in self.strategies].index(strategy)


def summarise(
    experiments: Sequence[Experiment], metrics: Sequence[str] = STREAMED
) -> Iterator[tuple[int, Moments]]:
    """Moments of each experiment, with its place, as soon as it is over.

    What comes out for an experiment does not depend on the others.
    """
    groups: dict[object, list[int]] = {}
    for place, experiment in enumerate(experiments):
        groups.setdefault(pipeline.failures_key(experiment), []).append(place)
    for places in groups.values():
        group = [experiments[place] for place in places]
        pipeline.expect_all(group)
        failures = pipeline.FailureBlocks(group)
        for place, experiment in zip(places, group, strict=True):
            sums, keep_losses = _Sums(experiment, tuple(metrics)), experiment.curve is not None
            for batch in pipeline.batches(experiment, failures, keep_losses=keep_losses):
                sums.add(batch.rows)
            yield place, sums.moments()


def _column(name: str) -> Metric:
    return lambda columns, n_nodes: columns[name]


class _Sums:
    """Moments of one experiment, batch after batch (Chan, Golub & LeVeque 1983)."""

    def __init__(self, experiment: Experiment, metrics: tuple[str, ...]) -> None:
        n = len(experiment.policies)
        self._experiment = experiment
        asked = {*metrics, *(PRICED if experiment.curve else ())}
        self._priced = priced_by(experiment.curve)
        further = further_losses(self._priced.values())
        metrics = (*(name for name in METRICS if name in asked), *further)
        self._metrics = metrics
        self._n = 0
        self._n_finished = np.zeros(n, dtype=np.int64)
        self._gave_up = np.zeros(n, dtype=bool)
        self._mean = np.zeros((len(metrics), n))
        self._products = np.zeros((len(metrics), n, n))
        self._error_sum = np.zeros((len(metrics), n))
        self._degrees = np.full((len(metrics), n), np.inf)

    def add(self, batch: Sequence[Rows | None]) -> None:
        """Take in the rows of each strategy in some replications."""
        self._gave_up |= [rows is None for rows in batch]
        n_more = max((rows.costs.n_replications for rows in batch if rows is not None), default=0)
        if n_more == 0:
            return
        columns: list[Mapping[str, Floats] | None] = []
        for i, rows in enumerate(batch):
            if rows is not None:
                self._n_finished[i] += np.count_nonzero(rows.costs.finished)
            columns.append(None if rows is None else self._columns(i, rows))
        # metric after metric in the same memory, which stays in the processor's cache
        values = np.full((len(batch), n_more), np.nan)
        for k, metric in enumerate(self._metrics):
            self._add_metric(k, METRICS.get(metric) or _column(metric), columns, values)
        self._n += n_more

    def _columns(self, i: int, rows: Rows) -> Mapping[str, Floats]:
        """What the metrics of one strategy are made of."""
        job = self._experiment
        policy = job.policies[i]
        columns = {
            **columns_of(rows, job.useful_h),
            **{name: np.array(n) for name, n in beside_the_job(policy, job.cluster).items()},
        }
        if job.curve is None:
            return columns
        beyond = unknown = np.full(rows.costs.n_replications, np.nan)
        priced = {}
        for metric, name in self._priced.items():
            found = job.curve.predict(policy, metric, rows.losses, rows.costs, job.useful_h)
            priced[name] = unknown if found is None else found.loss
            if found is None:
                continue
            k = self._metrics.index(name)
            self._error_sum[k, i] += found.standard_error.sum()
            self._degrees[k, i] = found.degrees
            beyond = np.fmax(beyond, found.beyond)
        return {**columns, **priced, BEYOND: beyond}

    def _add_metric(
        self, k: int, metric: Metric, columns: Sequence[Mapping[str, Floats] | None], values: Floats
    ) -> None:
        """Take in one metric of each strategy; `values` (n_strategies, n_more) is overwritten."""
        for i, of_strategy in enumerate(columns):
            if of_strategy is not None:
                values[i] = metric(of_strategy, self._experiment.cluster.n_nodes)
        if not (values.any() or self._mean[k].any()):
            return  # such as waiting for spares: 0 changes nothing
        n_more = values.shape[1]
        mean = values.mean(axis=1)
        values -= mean[:, None]
        off, n = mean - self._mean[k], self._n + n_more
        self._products[k] += values @ values.T
        self._products[k] += off[:, None] * off[None, :] * (self._n * n_more / n)
        self._mean[k] += off * (n_more / n)

    def moments(self) -> Moments:
        return Moments(
            strategies=self._experiment.policies,
            metrics=self._metrics,
            n=self._n,
            n_finished=self._n_finished,
            gave_up=self._gave_up,
            mean=self._mean,
            products=self._products,
            curve_error=self._error_sum / max(self._n, 1),
            curve_degrees=self._degrees,
            responses=tuple(strategy_key(policy) or "" for policy in self._experiment.policies),
            curve=self._experiment.curve,
        )


def columns_of(rows: Rows, useful_h: float) -> Mapping[str, Floats]:
    """What `STREAMED` are made of: the columns of the costs, pls and pls_net."""
    return {
        **rows.costs.columns(),
        "pls": rows.stale_h / useful_h,
        "pls_net": rows.stale_net_h / useful_h,
    }
