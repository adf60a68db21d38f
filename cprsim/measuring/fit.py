"""From what trials lost to a response of each strategy.

    loss = intercept(seed) + slope(strategy) x weighted PLS
    weighted PLS = sum over stale shards of share x [(1 - phi) s W(t, s) + phi T/2 W(t, T)]

t is the share of the run done at the failure, s the shard's net staleness and T the save interval,
as shares of the run. W, bilinear between knots and the same for all strategies, says how much a
sample counts by when it is lost and how old the save is; phi, a strategy's own, which part of its
loss goes by the interval instead of by the time since the last save (rows that a sub-save did not
choose). W and phi are estimated jointly from all single failures. Then each seed gives slopes of
its own; their mean and spread over seeds are the answer, so its error speaks for new data.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy import optimize, stats

from cprsim.errors import ParameterError
from cprsim.kernel.trials import PARTIAL
from cprsim.measuring.observed import Observed, Shards
from cprsim.records import Floats
from cprsim.staleness import Metric

AT = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])  # knots of W over progress
STALENESS = np.array([0.0, 0.1, 0.25, 0.5, 1.0])  # and over staleness
REFERENCE = 1  # of STALENESS: the mean of W over progress is 1 there
SMOOTHNESS = 5.0  # of W: weight of its second differences against a standardised residual
FEWEST_SEEDS = 3
N_PASSES = 3  # of reweighting: residuals grow with what is lost
TOLERANCE = 1e-7
MODEL_ERROR = 0.1  # by which a single loss may miss the model, as share of it


@dataclass(frozen=True, slots=True)
class Shape:
    """W and phi of one metric."""

    weight: Floats  # (m, n) at AT x STALENESS
    interval_share: dict[str, float]  # phi by strategy

    def weighted_pls(self, shards: Shards, strategy: str, n_trials: int) -> Floats:
        """(n_trials,) of trials that all have this strategy."""
        since, whole = _features(shards, n_trials)
        phi = self.interval_share[strategy]
        weighted: Floats = ((1 - phi) * since + phi * whole) @ self.weight.ravel()
        return weighted


@dataclass(frozen=True, slots=True)
class Slopes:
    """Slopes of one metric: a row per seed, a column per strategy."""

    strategies: tuple[str, ...]
    by_seed: Floats  # (n_seeds, n_strategies)
    intercept: Floats  # (n_seeds,)

    @property
    def n_seeds(self) -> int:
        return len(self.by_seed)

    def mean(self, strategy: str) -> float:
        return float(self.by_seed[:, self.strategies.index(strategy)].mean())

    def standard_error(self, strategy: str) -> float:
        return _standard_error(self.by_seed[:, self.strategies.index(strategy)])

    def difference(self, strategy: str, other: str) -> tuple[float, float]:
        """Mean and standard error of the paired difference of two slopes."""
        columns = [self.strategies.index(key) for key in (strategy, other)]
        difference = self.by_seed[:, columns[0]] - self.by_seed[:, columns[1]]
        return float(difference.mean()), _standard_error(difference)

    def half_width(self, standard_error: float) -> float:
        """Of the 95 % interval that belongs to a standard error over these seeds."""
        return float(stats.t.ppf(0.975, self.n_seeds - 1)) * standard_error


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was estimated for one metric."""

    metric: Metric
    shape: Shape
    slopes: Slopes
    noise: float  # standard deviation of a trial that hardly loses anything


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / sqrt(len(values))


def fit(seen: Observed, metric: Metric) -> Fitted:
    """Fit the response of every strategy in one metric.

    Raises ParameterError for fewer than three seeds: their spread is the only measure of error.
    """
    if len(seen.seeds) < FEWEST_SEEDS:
        raise ParameterError(
            f"{len(seen.seeds)} complete seeds are too few for a standard error; at least "
            f"{FEWEST_SEEDS}: allow more time"
        )
    problem = _Problem(seen, metric)
    scale = np.full(len(problem.loss), np.std(problem.loss))
    for _ in range(N_PASSES):
        shape, predicted = problem.solve(scale)
        noise = _noise(problem.loss - predicted, predicted)
        scale = np.hypot(noise, MODEL_ERROR * predicted)
    return Fitted(metric, shape, problem.slopes(shape, scale), noise)


class _Problem:
    """The single failures of all seeds, ready for least squares."""

    def __init__(self, seen: Observed, metric: Metric) -> None:
        single = ~seen.held_back
        since, whole = _features(seen.shards, len(seen.trials))
        self.since, self.whole = since[single], whole[single]
        self.loss = seen.loss[metric][single]
        self.seed = seen.seed[single]
        self.n_seeds = len(seen.seeds)
        self.strategies = seen.strategies
        if PARTIAL not in self.strategies:
            raise ParameterError("plain partial recovery has to be among the strategies")
        keys = np.array([trial.saving.strategy for trial in seen.trials])[single]
        self.strategy = np.array([self.strategies.index(key) for key in keys])
        self._smooth = _second_differences()
        lost = self.since.sum(axis=1)
        self._size = float(np.std(self.loss) / np.std(lost))  # of a loss per PLS, roughly

    def solve(self, scale: Floats) -> tuple[Shape, Floats]:
        """W and phi, and the losses that they predict with each seed's intercept."""
        n_weights, n = self.since.shape[1], len(self.strategies)
        free = np.concatenate([np.ones(n_weights), np.ones(n), np.full(n, 0.3)])
        start = np.concatenate([free, np.zeros(self.n_seeds)])
        is_phi = np.zeros(len(start), bool)
        is_phi[n_weights + n : n_weights + 2 * n] = True
        found = optimize.least_squares(
            self._residual,
            start,
            jac=self._jacobian,
            args=(scale,),
            bounds=(np.where(is_phi, 0.0, -np.inf), np.where(is_phi, 1.0, np.inf)),
            ftol=TOLERANCE,
            xtol=TOLERANCE,
        )
        weight, _, phi, _ = self._parts(found.x)
        predicted = self._residual(found.x, scale)[: len(self.loss)] * scale + self.loss
        return Shape(_normalised(weight), dict(zip(self.strategies, phi, strict=True))), predicted

    def _parts(self, parameters: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, slopes relative to partial recovery's, phi, intercepts, all in units of size."""
        n, n_weights = len(self.strategies), self.since.shape[1]
        weight, ratio, phi, intercept = np.split(
            parameters, [n_weights, n_weights + n, n_weights + 2 * n]
        )
        plain = self.strategies.index(PARTIAL)
        ratio, phi = ratio.copy(), phi.copy()
        ratio[plain], phi[plain] = 1.0, 0.0  # whole saves leave no older row
        return weight, ratio, phi, intercept

    def _residual(self, parameters: Floats, scale: Floats) -> Floats:
        weight, ratio, phi, intercept = self._parts(parameters)
        lost = self._mixed(phi) @ weight
        predicted = self._size * (ratio[self.strategy] * lost + intercept[self.seed])
        return np.concatenate([(predicted - self.loss) / scale, SMOOTHNESS * self._smooth @ weight])

    def _mixed(self, phi: Floats) -> Floats:
        """(n, n_weights) factors of W's knots, phi given."""
        share = phi[self.strategy, None]
        return (1 - share) * self.since + share * self.whole

    def _jacobian(self, parameters: Floats, scale: Floats) -> Floats:
        """Derivatives of the residual; plain partial recovery's ratio and phi are no parameters."""
        weight, ratio, phi, _ = self._parts(parameters)
        mixed, own = self._mixed(phi), ratio[self.strategy, None]
        of_strategy = np.eye(len(self.strategies))[self.strategy]
        of_strategy[:, self.strategies.index(PARTIAL)] = 0.0
        moved = (self.whole - self.since) @ weight
        columns = [
            own * mixed,
            of_strategy * (mixed @ weight)[:, None],
            of_strategy * own * moved[:, None],
            np.eye(self.n_seeds)[self.seed],
        ]
        above = self._size * np.concatenate(columns, axis=1) / scale[:, None]
        below = np.zeros((len(self._smooth), above.shape[1]))
        below[:, : len(weight)] = SMOOTHNESS * self._smooth
        return np.vstack([above, below])

    def slopes(self, shape: Shape, scale: Floats) -> Slopes:
        """Each seed's own slopes and intercept, given W and phi."""
        phi = np.array([shape.interval_share[key] for key in self.strategies])[self.strategy]
        weight = shape.weight.ravel()
        lost = (1 - phi) * (self.since @ weight) + phi * (self.whole @ weight)
        n = len(self.strategies)
        by_seed, intercepts = np.empty((self.n_seeds, n)), np.empty(self.n_seeds)
        for seed in range(self.n_seeds):
            ours = self.seed == seed
            design = np.zeros((int(ours.sum()), n + 1))
            design[np.arange(len(design)), self.strategy[ours]] = lost[ours]
            design[:, n] = 1.0
            weighted = design / scale[ours, None]
            found, *_ = np.linalg.lstsq(weighted, self.loss[ours] / scale[ours])
            by_seed[seed], intercepts[seed] = found[:n], found[n]
        return Slopes(self.strategies, by_seed, intercepts)


def _noise(residual: Floats, predicted: Floats) -> float:
    """Spread of the trials that lose least, by their median deviation."""
    little = np.abs(predicted) <= np.quantile(np.abs(predicted), 1 / 3)
    return float(stats.median_abs_deviation(residual[little], scale="normal"))


# --------------------------------------------------------------------------- the knots


def hats(x: Floats, knots: Floats) -> Floats:
    """(n, n_knots) weights of linear interpolation between knots, level beyond the ends."""
    return np.stack([np.interp(x, knots, unit) for unit in np.eye(len(knots))], axis=1)


def _features(shards: Shards, n_trials: int) -> tuple[Floats, Floats]:
    """(n_trials, n_weights) factors of W's knots: by time since the save, and by the interval."""
    return (
        _feature(shards, shards.staleness, shards.staleness, n_trials),
        _feature(shards, shards.interval, shards.interval / 2, n_trials),
    )


def _feature(shards: Shards, old: Floats, lost: Floats, n_trials: int) -> Floats:
    basis = hats(shards.at, AT)[:, :, None] * hats(old, STALENESS)[:, None, :]
    rows = basis.reshape(len(old), -1) * (shards.share * lost)[:, None]
    summed = np.zeros((n_trials, rows.shape[1]))
    np.add.at(summed, shards.trial, rows)
    return summed


def _normalised(weight: Floats) -> Floats:
    """W with mean 1 over progress at the reference staleness."""
    grid = weight.reshape(len(AT), len(STALENESS))
    mean = float(np.trapezoid(grid[:, REFERENCE], AT))
    if not mean > 0:
        raise ParameterError(
            "losing samples did not cost accuracy in these trials: nothing to fit; train longer, "
            "or with a rate that falls to 0"
        )
    scaled: Floats = grid / mean
    return scaled


def _second_differences() -> Floats:
    """What is small for a smooth W: its bends along both knots, a row each."""
    over_at = np.kron(_bends(AT), np.eye(len(STALENESS)))
    over_staleness = np.kron(np.eye(len(AT)), _bends(STALENESS))
    return np.vstack([over_at, over_staleness])


def _bends(knots: Floats) -> Floats:
    """(n_knots - 2, n_knots): by how much a value misses the line between its neighbours."""
    rows = np.zeros((len(knots) - 2, len(knots)))
    for i, (left, right) in enumerate(pairwise(np.diff(knots))):
        rows[i, i : i + 3] = right / (left + right), -1.0, left / (left + right)
    return rows
