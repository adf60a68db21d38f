"""From what trials lost to a response of each strategy.

    loss = intercept(seed) + slope(strategy) x weighted PLS
    weighted PLS = sum over stale shards of share x [(1 - phi) s W(t, s) + phi T/2 W(t, T)]

t is the share of the run done at the failure, s the shard's net staleness and T the save interval,
as shares of the run. W, bilinear between knots and the same for all strategies, says how much a
sample counts by when it is lost and how old the save is; phi, a strategy's own, which part of its
loss goes by the interval instead of by the time since the last save (rows that a sub-save did not
choose). W and phi are estimated jointly from all single failures. Then each seed gives slopes of
its own; their mean and spread over seeds are the answer, so its error speaks for new data.

Where much is lost, histories of several failures lose more than their failures would one by one:
the line of loss over PLS bends. Its corners are the kinds of history that were run; the factor at
each is one for all strategies, with an error of its own that is part of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import sqrt

import numpy as np
from scipy import optimize, stats

from cprsim.errors import ParameterError
from cprsim.measuring.observed import Observed, Shards
from cprsim.records import Floats
from cprsim.staleness import WHOLE, Metric

AT = np.array([0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 1.0])  # knots of W over progress
STALENESS = np.array([0.0, 0.1, 0.25, 0.5, 1.0])  # and over staleness
REFERENCE = 1  # of STALENESS: the mean of W over progress is 1 there
SMOOTHNESS = 5.0  # of W: weight of its second differences against a standardised residual
FEWEST_SEEDS = 3
N_PASSES = 5  # of reweighting: residuals grow with what is lost
TOLERANCE = 1e-6
TINY = 1e-7  # of a loss: nothing finer shows in an AUC of tens of thousands of clicks
MEAN_LOG = 0.635  # mean of -log |z|, z standard normal: (Euler's constant + log 2) / 2
MODEL_ERROR = 0.3  # by which a typical loss misses the model: which rows a server holds matters


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

    def difference(self, strategy: str, other: str) -> Floats:
        """(n_seeds,) one slope less another, seed by seed."""
        one, another = (self.by_seed[:, self.strategies.index(key)] for key in (strategy, other))
        return one - another

    def half_width(self, standard_error: float) -> float:
        """Of the 95 % interval that belongs to a standard error over these seeds."""
        return float(stats.t.ppf(0.975, self.n_seeds - 1)) * standard_error


@dataclass(frozen=True, slots=True)
class Joint:
    """What histories of one kind lose, over the sum of what their failures would lose alone."""

    n_failures: int
    weighted_pls: float  # mean
    measured: Floats  # (n_seeds,)
    predicted: Floats  # (n_seeds,) by the seed's slopes of single failures

    @property
    def factor(self) -> float:
        """The ratio over all seeds."""
        return float(self.measured.sum() / self.predicted.sum())

    @property
    def standard_error(self) -> float:
        """Of the factor, by the delta method over seeds."""
        off = self.measured - self.factor * self.predicted
        return _standard_error(off) / float(self.predicted.mean())

    def without(self, seed: int) -> Joint:
        """The same, of all seeds but one."""
        others = np.arange(len(self.measured)) != seed
        return replace(self, measured=self.measured[others], predicted=self.predicted[others])


def factor_at(joint: Sequence[Joint], weighted_pls: Floats) -> Floats:
    """By how much the losses of jobs with some weighted PLS (n,) exceed the sum of their failures'.

    1 up to the kind of history that loses least: there losses add up; from there on as the line
    of loss over PLS through the kinds that were measured.
    """
    x, factor = _knots(joint)
    loss = np.interp(weighted_pls, x, x * factor)
    size = np.maximum(np.abs(weighted_pls), TINY)
    inside: Floats = np.where(weighted_pls > x[-1], factor[-1], loss / size)
    return np.where(weighted_pls <= x[min(1, len(x) - 1)], 1.0, inside)


def _knots(joint: Sequence[Joint]) -> tuple[Floats, Floats]:
    """Weighted PLS and factor at the corners of the line of loss."""
    x = np.array([0.0, *(one.weighted_pls for one in joint)])
    factor = np.array([1.0, 1.0, *(one.factor for one in joint[1:])])[: len(x)]
    return x, factor


@dataclass(frozen=True, slots=True)
class Noise:
    """By how much a run misses its due, whatever it lost: less, the later it left its twin.

    Two runs that differ a little drift apart as training goes on; the standard deviation is taken
    to fall exponentially with the share of the run done at the failure.
    """

    log_at_start: float
    per_progress: float

    @classmethod
    def of(cls, residual: Floats, at: Floats) -> Noise:
        """From residuals (n,) of failures at some shares of the run (Harvey 1976)."""
        log_size = np.log(np.abs(residual) + TINY) + MEAN_LOG
        line = stats.linregress(at, log_size)
        return cls(float(line.intercept), float(line.slope))

    def at(self, at: Floats) -> Floats:
        """(n,) standard deviations."""
        deviation: Floats = np.exp(self.log_at_start + self.per_progress * at)
        return deviation


@dataclass(frozen=True, slots=True)
class Fitted:
    """What was estimated for one metric."""

    metric: Metric
    shape: Shape
    slopes: Slopes  # of single failures
    noise: Noise
    joint: tuple[Joint, ...]  # by rising PLS; none where no histories were run

    def line(self, strategy: str, most: float) -> tuple[Floats, Floats, Floats]:
        """Loss over weighted PLS of jobs of any number of failures: corners, loss, its error.

        Parameters
        ----------
        most : weighted PLS at which the line ends
        """
        x, factor = _knots(self.joint)
        errors = [0.0, 0.0, *(one.standard_error for one in self.joint[1:])][: len(x)]
        x, factor = np.append(x, most), np.append(factor, factor[-1])
        error = np.append(errors, errors[-1])
        first = np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > TINY])
        x, factor, error = x[first], factor[first], error[first]
        mean, of_slope = self.slopes.mean(strategy), self.slopes.standard_error(strategy)
        return x, mean * factor * x, np.hypot(factor * of_slope, mean * error) * x


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
    noise = Noise(float(np.log(np.std(problem.loss))), 0.0)
    scale = noise.at(problem.at)
    typical = float(np.mean(np.abs(problem.loss)))
    parameters = problem.start()
    for _ in range(N_PASSES):
        parameters, predicted = problem.solve(scale, parameters)
        noise = Noise.of(problem.loss - predicted, problem.at)
        of_model = MODEL_ERROR * np.sqrt(np.abs(predicted) * typical)  # a sum over lost rows
        scale = np.hypot(noise.at(problem.at), of_model)
    shape = problem.shape(parameters)
    slopes = problem.slopes(shape, scale)
    return Fitted(metric, shape, slopes, noise, _joint(seen, metric, shape, slopes))


def _joint(seen: Observed, metric: Metric, shape: Shape, slopes: Slopes) -> tuple[Joint, ...]:
    """The histories of several failures, one entry per kind, all strategies together."""
    kinds = sorted({len(trial.failures) for trial in seen.trials} - {1})
    lost, own = np.zeros(len(seen.trials)), np.zeros(len(seen.trials))
    for column, key in enumerate(seen.strategies):
        ours = seen.strategy(key)
        lost[ours] = shape.weighted_pls(seen.shards, key, len(seen.trials))[ours]
        own[ours] = slopes.by_seed[seen.seed[ours], column]
    n_failures = np.array([len(trial.failures) for trial in seen.trials])
    found = []
    for kind in kinds:
        ours = n_failures == kind
        measured, predicted = np.zeros(len(seen.seeds)), np.zeros(len(seen.seeds))
        np.add.at(measured, seen.seed[ours], seen.loss[metric][ours])
        np.add.at(predicted, seen.seed[ours], (own * lost)[ours])
        found.append(Joint(kind, float(lost[ours].mean()), measured, predicted))
    return tuple(sorted(found, key=lambda one: one.weighted_pls))


class _Problem:
    """The single failures of all seeds, ready for least squares."""

    def __init__(self, seen: Observed, metric: Metric) -> None:
        single = ~seen.held_back
        since, whole = _features(seen.shards, len(seen.trials))
        self.since, self.whole = since[single], whole[single]
        self.loss = seen.loss[metric][single]
        self.seed = seen.seed[single]
        self.at = np.array([trial.failures[0].at_fraction for trial in seen.trials])[single]
        self.n_seeds = len(seen.seeds)
        self.strategies = seen.strategies
        if WHOLE not in self.strategies:
            raise ParameterError("plain partial recovery has to be among the strategies")
        keys = np.array([trial.saving.strategy for trial in seen.trials])[single]
        self.strategy = np.array([self.strategies.index(key) for key in keys])
        self._smooth = _second_differences()
        lost = self.since.sum(axis=1)
        self._size = float(np.std(self.loss) / np.std(lost))  # of a loss per PLS, roughly

    def start(self) -> Floats:
        """Parameters to begin the search at: all samples count alike."""
        n_weights, n = self.since.shape[1], len(self.strategies)
        free = (np.ones(n_weights), np.ones(n), np.full(n, 0.3))
        return np.concatenate([*free, np.zeros(self.n_seeds)])

    def solve(self, scale: Floats, start: Floats) -> tuple[Floats, Floats]:
        """The parameters, and the losses that they predict with each seed's intercept."""
        n_weights, n = self.since.shape[1], len(self.strategies)
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
        return found.x, self._residual(found.x, scale)[: len(self.loss)] * scale + self.loss

    def shape(self, parameters: Floats) -> Shape:
        """W and phi."""
        weight, _, phi, _ = self._parts(parameters)
        return Shape(_normalised(weight), dict(zip(self.strategies, phi.tolist(), strict=True)))

    def _parts(self, parameters: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Weights, slopes relative to partial recovery's, phi, intercepts, all in units of size."""
        n, n_weights = len(self.strategies), self.since.shape[1]
        weight, ratio, phi, intercept = np.split(
            parameters, [n_weights, n_weights + n, n_weights + 2 * n]
        )
        plain = self.strategies.index(WHOLE)
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
        of_strategy[:, self.strategies.index(WHOLE)] = 0.0
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
