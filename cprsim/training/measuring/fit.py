"""Fit a response of each strategy to the losses of trials.

    loss = intercept + slope(strategy) x sum over stale shards of share x W(t) x age
    age = (1 - phi(strategy)) s + phi(strategy) T/2

t is the share of the run done at the failure, s the shard's net staleness and T the save interval,
as shares of the run. W is the weight of a sample by the time of its loss; its logarithm is linear
between knots, and it is positive. phi is the part of a strategy's loss that depends on the interval
instead of the time since the last save: rows that a sub-save did not choose.

One least-squares fit covers all trials of all seeds, single failures and several; each trial is
weighed by how noisy such trials are. Losses of several shards and failures add up: interaction
terms, by strategy and by the other losses, were tried and predicted held out seeds no better. The
error of the whole fit is the jackknife's: the fit is repeated without each of the seeds (Tukey
1958).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.polynomial import Polynomial
from scipy import optimize, stats

from cprsim.accuracy.curve import Replicate, Weight, aged, weighed
from cprsim.errors import ParameterError
from cprsim.job.losses import WHOLE, Metric
from cprsim.job.records import HIGH, Floats
from cprsim.training.measuring.observed import Observed

FEWEST_SEEDS = 3  # that can be fitted at all
POWER = 0.8  # of the test whose smallest detectable difference is named
AT = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # knots of W over progress
STEP_SD = 0.7  # of log W from knot to knot, beforehand
PHI_CENTRE, PHI_SD = -1.4, 1.5  # of the logit of phi: 0.2, and anything from 0.01 to 0.8
INTERCEPT_SD = 0.02  # of the mean loss, beforehand: who loses few samples loses little
N_PASSES = 3  # of reweighting: what trials miss grows with what is lost
MODEL_ERROR = 0.3  # by which a typical loss misses the model: which rows a server holds matters
MEAN_LOG = 0.635  # mean of -log |z|, z standard normal: (Euler's constant + log 2) / 2
TINY = 1e-7  # of a loss: nothing finer shows in an AUC of tens of thousands of clicks


@dataclass(frozen=True, slots=True)
class SeedMean:
    """A mean over seeds and its standard error."""

    mean: float
    standard_error: float
    n: int

    @classmethod
    def over(cls, values: Floats) -> SeedMean:
        n = len(values)
        return cls(float(values.mean()), float(values.std(ddof=1)) / sqrt(n), n)

    @property
    def half_width(self) -> float:
        """Of the 95 % interval (Student's t)."""
        return float(stats.t.ppf(HIGH, self.n - 1)) * self.standard_error

    @property
    def detectable(self) -> float:
        """The smallest difference from 0 that a two-sided test at 5 % sees with 80 % power."""
        quantiles = (float(stats.t.ppf(p, self.n - 1)) for p in (HIGH, POWER))
        return sum(quantiles) * self.standard_error


@dataclass(frozen=True, slots=True)
class FittedCurve:
    """Estimates for one metric."""

    metric: Metric
    strategies: tuple[str, ...]
    parts: dict[str, Replicate]  # of each strategy
    without: tuple[dict[str, Replicate], ...]  # the same without each of the seeds
    noise: Polynomial  # of the logarithm of the standard deviation, over the run
    most_weighted_pls: float  # of a trial that was fitted

    @property
    def slopes(self) -> dict[str, Floats]:
        """(n_seeds,) by strategy: values of each seed whose mean is the slope."""
        replicates = [[parts[key].slope for key in self.strategies] for parts in self.without]
        estimate = np.array([self.parts[key].slope for key in self.strategies])
        return dict(zip(self.strategies, by_seed(estimate, np.array(replicates)).T, strict=True))

    def slope(self, strategy: str) -> SeedMean:
        """The mean over seeds of one strategy."""
        return SeedMean.over(self.slopes[strategy])


def noise_of(residual: Floats, at: Floats) -> Polynomial:
    """Logarithm of the random deviation of a run from its expected loss, over the run.

    Two runs that differ a little drift apart as training continues; the standard deviation is taken
    to fall exponentially with the share of the run done at the first failure. From residuals (n,)
    of trials that failed first at some shares (Harvey 1976).
    """
    line = stats.linregress(at, np.log(np.abs(residual) + TINY) + MEAN_LOG)
    return Polynomial([line.intercept, line.slope])


def by_seed(estimate: Floats, without: Floats) -> Floats:
    """(n_seeds, ...) values whose mean is an estimate, and their spread its jackknife's error."""
    return np.asarray(estimate + (len(without) - 1) * (without.mean(axis=0) - without))


def fit(observed: Observed, metric: Metric) -> FittedCurve:
    """Fit the response of every strategy in one metric, to all trials but those held out."""
    n_seeds = len(observed.seeds)
    if n_seeds < FEWEST_SEEDS:
        raise ParameterError(
            f"{n_seeds} complete seeds are too few for a standard error; at least "
            f"{FEWEST_SEEDS}: allow more time"
        )
    fitted = observed.some(~observed.trials["held_out"].to_numpy())
    seeds = fitted.trials["seed"].to_numpy()
    model = _Model(fitted, metric, observed.strategies)
    parameters = model.start()
    errors, noise = np.full(len(model.loss), 0.01 * model.typical), Polynomial([0.0])
    for _ in range(N_PASSES):
        parameters = model.solve(parameters, errors)
        errors, noise = model.errors(parameters)
    parameters = model.solve(parameters, errors)
    without = []
    for seed in range(n_seeds):
        others = seeds != seed
        again = _Model(fitted.some(others), metric, observed.strategies, model.size)
        without.append(again.parts(again.solve(parameters, errors[others])))
    parts = model.parts(parameters)
    return FittedCurve(
        metric, observed.strategies, parts, tuple(without), noise, weighted(fitted, parts).max()
    )


def weighted(observed: Observed, parts: dict[str, Replicate]) -> Floats:
    """(n,) weighted PLS of every trial."""
    number = observed.shards.replication
    phi = np.array([parts[key].interval_share for key in observed.trials["strategy"]])
    # W is the same for all
    lost = weighed(observed.shards, parts[WHOLE].weight, phi[number], 1.0, observed.interval)
    return np.asarray(np.bincount(number, lost, len(observed.trials)), float)


def predicted(observed: Observed, parts: dict[str, Replicate]) -> Floats:
    """(n,) loss of every trial."""
    lost = weighted(observed, parts)
    for key in observed.strategies:
        some = (observed.trials["strategy"] == key).to_numpy()
        lost[some] = parts[key].along(lost[some])
    return lost


class _Model:
    """Least squares over logarithms of W, logits of phi, slopes and an intercept."""

    def __init__(
        self, observed: Observed, metric: Metric, strategies: tuple[str, ...], size: float = 0.0
    ) -> None:
        self.strategies, self.loss = strategies, observed.loss[metric]
        self.shards, self.interval = observed.shards, observed.interval
        at = observed.shards.progress_h
        self.hats = np.stack([np.interp(at, AT, unit) for unit in np.eye(len(AT))], axis=1)
        trials = observed.trials
        self.strategy = np.array([strategies.index(key) for key in trials["strategy"]])
        self.first_at = trials["at"].to_numpy()
        lost = float(trials["pls"].to_numpy().mean())
        self.typical = float(np.mean(np.abs(self.loss))) + TINY
        self.size = size or self.typical / max(lost, TINY)  # of a slope
        n = len(strategies)
        self.ends = np.cumsum([len(AT), n, n])

    def start(self) -> Floats:
        """All samples count alike."""
        n = len(self.strategies)
        return np.concatenate([np.zeros(len(AT)), np.ones(n), np.full(n, PHI_CENTRE), [0.0]])

    def _split(self, parameters: Floats) -> tuple[Floats, ...]:
        """Log W, slopes, phi and intercept."""
        log_weight, slope, logit, intercept = np.split(parameters, self.ends)
        phi = 1 / (1 + np.exp(-logit))
        phi[self.strategies.index(WHOLE)] = 0.0  # whole saves leave no older row
        return log_weight, slope * self.size, phi, intercept * self.typical

    def predicted(self, parameters: Floats) -> Floats:
        """Losses (n,)."""
        log_weight, slope, phi, intercept = self._split(parameters)
        number = self.shards.replication
        old = aged(self.shards, phi[self.strategy][number], 1.0, self.interval)
        lost = np.exp(self.hats @ log_weight) * self.shards.share * old
        by_trial = np.bincount(number, lost, len(self.loss))
        return np.asarray(slope[self.strategy] * by_trial + intercept)

    def solve(self, start: Floats, errors: Floats) -> Floats:
        """The most probable parameters, errors (n,) of the trials given."""

        def residual(parameters: Floats) -> Floats:
            log_weight, _, logit, intercept = np.split(parameters, self.ends)
            beforehand = np.concatenate(
                [
                    np.diff(log_weight) / STEP_SD,
                    [100 * log_weight.mean()],
                    (logit - PHI_CENTRE) / PHI_SD,
                    intercept / INTERCEPT_SD,
                ]
            )
            return np.concatenate([(self.predicted(parameters) - self.loss) / errors, beforehand])

        return np.asarray(optimize.least_squares(residual, start, x_scale="jac").x)

    def errors(self, parameters: Floats) -> tuple[Floats, Polynomial]:
        """Standard errors (n,) from the residuals: noise by time, and a share of the loss."""
        predicted = self.predicted(parameters)
        residual = self.loss - predicted
        noise = noise_of(residual, self.first_at)
        of_model = MODEL_ERROR * np.sqrt(np.abs(predicted) * self.typical)
        scale = np.hypot(np.exp(noise(self.first_at)), of_model)
        return scale * max(float(np.sqrt(np.mean((residual / scale) ** 2))), TINY), noise

    def parts(self, parameters: Floats) -> dict[str, Replicate]:
        """Estimates by strategy, scaled so that the mean of W over the run is 1."""
        log_weight, slope, phi, (intercept,) = self._split(parameters)
        weight = np.exp(log_weight)
        mean = Weight(AT, weight).mean()
        return {
            key: Replicate(Weight(AT, weight / mean), phi[i], slope[i] * mean, float(intercept))
            for i, key in enumerate(self.strategies)
        }
