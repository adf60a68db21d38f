"""From what trials lost to a response of each strategy.

    loss = intercept(seed) + slope(strategy) x weighted PLS

W and phi, which weigh PLS, are estimated jointly from all single failures (`singles`). Then each
seed gives slopes of its own, and their mean over seeds is the answer.

Where much is lost, histories of several failures lose more than their failures would one by one:
the line of loss over PLS bends. Its corners are the kinds of history that were run; the factor at
each is one for all strategies. A line neither falls nor goes below 0: it is the monotone one that
comes nearest.

The error of all this together is that of a jackknife: the whole fit, W and phi included, is made
again without each of the seeds (Tukey 1958), and what a prediction then differs by is its error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from scipy import optimize, stats

from cprsim.errors import ParameterError
from cprsim.estimate import HIGH
from cprsim.measuring.observed import Observed
from cprsim.measuring.shape import TINY, Errors, Noise, Shape, Singles, estimate, estimate_again
from cprsim.records import Floats
from cprsim.staleness import Metric, jackknife_error

FEWEST_SEEDS = 3  # that can be fitted at all


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
        return float(stats.t.ppf(HIGH, self.n_seeds - 1)) * standard_error


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
class Fitted:
    """What was estimated for one metric."""

    metric: Metric
    shape: Shape
    slopes: Slopes  # of single failures
    noise: Noise
    joint: tuple[Joint, ...]  # by rising PLS; none where no histories were run
    replicates: tuple[Fitted, ...] = ()  # the same without each of the seeds

    def line(self, strategy: str, most: float) -> tuple[Floats, Floats]:
        """Loss over weighted PLS of jobs of any number of failures, as it was seen.

        Parameters
        ----------
        most : weighted PLS at which the line ends
        """
        x, factor = _knots(self.joint)
        x, factor = np.append(x, most), np.append(factor, factor[-1])
        first = np.concatenate([[True], np.diff(np.maximum.accumulate(x)) > TINY])
        return x[first], self.slopes.mean(strategy) * factor[first] * x[first]

    def monotone_line(self, strategy: str, most: float) -> tuple[Floats, Floats, Floats]:
        """Corners, loss and its standard error: the line that neither falls nor goes below 0.

        Notes
        -----
        The isotonic regression of the line as it was seen, each corner weighed by how well it is
        known. The errors are those of the line as seen: to cut a line at 0 makes it no surer.
        """
        pls, loss = self.line(strategy, most)
        others = [np.interp(pls, *one.line(strategy, most)) for one in self.replicates]
        error = jackknife_error(np.array(others))
        weights = 1.0 / np.maximum(error[1:], TINY * pls[1:]) ** 2
        rising = optimize.isotonic_regression(loss[1:], weights=weights).x
        return pls, np.concatenate([[0.0], np.maximum(rising, 0.0)]), error


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / sqrt(len(values))


def fit(seen: Observed, metric: Metric, shape: Shape | None = None) -> Fitted:
    """Fit the response of every strategy in one metric.

    Parameters
    ----------
    shape : W and phi, where they are known; None: they are estimated

    Raises
    ------
    ParameterError : fewer than three seeds, whose spread is the only measure of error; or losing
        samples cost nothing
    """
    if len(seen.seeds) < FEWEST_SEEDS:
        raise ParameterError(
            f"{len(seen.seeds)} complete seeds are too few for a standard error; at least "
            f"{FEWEST_SEEDS}: allow more time"
        )
    singles = Singles.of(seen, metric)
    known = estimate(singles)
    whole = _fitted(seen, singles, metric, shape or known.shape, known.errors)
    replicates = []
    for seed in range(len(seen.seeds)):
        rest = seen.without(seed)
        others = Singles.of(rest, metric)
        again = shape or estimate_again(singles, others, known, seed)
        errors = known.errors.of(singles.seed != seed)
        replicates.append(_fitted(rest, others, metric, again, errors))
    return replace(whole, replicates=tuple(replicates))


def _fitted(
    seen: Observed, singles: Singles, metric: Metric, shape: Shape, errors: Errors
) -> Fitted:
    slopes = slopes_of(singles, shape, errors)
    return Fitted(metric, shape, slopes, errors.noise, _joint(seen, metric, shape, slopes))


def slopes_of(singles: Singles, shape: Shape, errors: Errors) -> Slopes:
    """Each seed's own slopes and intercept, given W and phi."""
    phi = np.array([shape.interval_share[key] for key in singles.strategies])
    lost = singles.mixed(phi) @ shape.weight.ravel()
    n = len(singles.strategies)
    design = np.zeros((len(lost), n + 2))
    design[np.arange(len(lost)), singles.strategy] = lost
    design[:, n], design[:, n + 1] = 1.0, singles.loss
    rows = singles.whitened(design / errors.scale[:, None], errors.correlation)
    found = [
        np.linalg.lstsq(rows[ours, :-1], rows[ours, -1])[0]
        for ours in (singles.seed == seed for seed in range(singles.n_seeds))
    ]
    by_seed = np.array(found)
    return Slopes(singles.strategies, by_seed[:, :n], by_seed[:, n])


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
