"""Expected losses with their errors by simulation and by measurement together."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, nan, sqrt

import numpy as np
from scipy import special

from cprsim.job.records import Bools, Floats, pooled


@dataclass(frozen=True, slots=True)
class MeanLoss:
    """A mean loss over jobs with its errors by simulation and by measurement."""

    mean: float
    standard_error: float  # NaN where there was one job only
    degrees: float = inf  # of freedom of the standard error

    def quantile(self, p: float) -> float:
        """The value below which the mean lies with probability `p` (Student's t)."""
        if self.standard_error == 0:
            return self.mean
        return self.mean + float(special.stdtrit(min(self.degrees, 1e9), p)) * self.standard_error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Both ends of the two-sided interval of the mean."""
        return self.quantile(0.5 - confidence / 2), self.quantile(0.5 + confidence / 2)


def jackknife_error(replicates: Floats) -> Floats:
    """Standard error of estimates (...) from those without each of n seeds, (n, ...).

    sqrt((n - 1) / n sum (x_i - mean)^2), of n - 1 degrees of freedom (Tukey 1958).
    """
    error: Floats = np.std(replicates, axis=0) * sqrt(len(replicates) - 1)
    return error


@dataclass(frozen=True, slots=True)
class Prediction:
    """Loss that a curve predicts for each of n replications.

    With replicates, the error of a mean over jobs is computed from the mean under each replicate:
    the curve's errors early and late in a job may differ.
    """

    loss: Floats  # (n,)
    standard_error: Floats  # (n,) the curve's; it errs alike in all of them
    beyond: Bools  # (n,) whether more was lost than was ever measured
    degrees: float  # of freedom of the standard error

    apart: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(n_replicates, n) losses by the curve without each of its seeds; none: only errors known."""

    @property
    def beyond_fraction(self) -> float:
        """Share of the replications that lose more than the measured range."""
        return float(self.beyond.mean())

    def error_of_mean(self) -> float:
        """The curve's standard error of the mean over the replications."""
        if len(self.apart):
            return float(jackknife_error(self.apart.mean(axis=1)))
        return float(np.mean(self.standard_error))

    def mean(self) -> MeanLoss:
        """The mean over the replications, with both kinds of noise.

        The curve errs alike in all jobs, so that its standard error is averaged and not divided by
        sqrt(n); that of the simulation, s / sqrt(n), is independent of it. The squares add up,
        their degrees of freedom after Welch (1947) and Satterthwaite (1946).
        """
        n, mean = len(self.loss), float(np.mean(self.loss))
        if n < 2:
            return MeanLoss(mean, nan)
        of_simulation = float(np.var(self.loss, ddof=1)) / n
        of_curve = self.error_of_mean() ** 2
        return MeanLoss(mean, *pooled((of_simulation, n - 1), (of_curve, self.degrees)))


def nothing_lost(n: int) -> Prediction:
    """Prediction for strategies under which no shard ever goes stale: a loss of exactly 0."""
    return Prediction(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool), inf)
