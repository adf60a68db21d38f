"""Checks of a measurement: runs held out of the fit, and which strategies differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from cprsim.measuring.fit import FittedCurve, predicted, weighted
from cprsim.measuring.observed import Observed
from cprsim.records import HIGH, Bools, Floats, Ints
from cprsim.staleness.expected import jackknife_error
from cprsim.staleness.names import MORE_BYTES, WHOLE

CONTROL = "round-robin"
FAILS_BEYOND = 0.2  # of the prediction: what is surely further off is not predicted
POWER = 0.8  # of the test whose smallest detectable difference is named


class HeldOutVerdict(StrEnum):
    """Whether the curve predicts what held-out histories lose."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be told"


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
class HeldOut:
    """Histories of one kind, which no fit has seen: what they lost over what was predicted."""

    strategy: str
    n_failures: int
    pls: float  # mean over the seeds
    measured: float  # likewise
    measured_over_predicted: SeedMean  # each seed's by the fit without it

    @property
    def verdict(self) -> HeldOutVerdict:
        """By the 95 % interval of the ratio, which has to exclude none and twice the prediction."""
        ratio = self.measured_over_predicted
        low, high = (ratio.mean + sign * ratio.half_width for sign in (-1, 1))
        if low > 1 + FAILS_BEYOND or high < 1 - FAILS_BEYOND:
            return HeldOutVerdict.FAILS
        return HeldOutVerdict.HOLDS if low > 0 and high < 2 else HeldOutVerdict.UNKNOWN


@dataclass(frozen=True, slots=True)
class Checks:
    """All that is said about one metric's fit."""

    correlation: SeedMean  # of loss and plain PLS, of single failures under partial recovery
    weighted_correlation: SeedMean
    differences: tuple[dict[str, Any], ...]  # of slopes, strategies by pairs
    held_out: tuple[HeldOut, ...]  # by rising PLS


def check(seen: Observed, fitted: FittedCurve) -> Checks:
    """Hold a fit to what it was not fitted to."""
    n_failures = np.array([len(trial.failures) for trial in seen.trials])
    partial = seen.strategy(WHOLE) & (n_failures == 1)
    loss = seen.loss[fitted.metric]
    return Checks(
        correlation=_correlation(seen, partial, seen.pls, loss),
        weighted_correlation=_correlation(seen, partial, weighted(seen, fitted.parts), loss),
        differences=tuple(_differences(fitted)),
        held_out=tuple(_held_out(seen, fitted, n_failures)),
    )


def _correlation(seen: Observed, some: Bools, lost: Floats, loss: Floats) -> SeedMean:
    """Pearson's, seed by seed: a seed's lucky twin moves all its losses alike."""
    by_seed = [
        np.corrcoef(lost[some & (seen.seed == seed)], loss[some & (seen.seed == seed)])[0, 1]
        for seed in range(len(seen.seeds))
    ]
    return SeedMean.over(np.array(by_seed))


def _differences(fitted: FittedCurve) -> list[dict[str, Any]]:
    """Each strategy against plain partial recovery, and against round robin at as many bytes."""
    slopes = fitted.slopes

    def between(one: str, other: str) -> dict[str, Any]:
        found = SeedMean.over(slopes.of(one) - slopes.of(other))
        return {
            "strategy": one, "other": other, "mean": found.mean,
            "half_width_95": found.half_width, "smallest_detectable": found.detectable,
        }  # fmt: skip

    found = [between(key, WHOLE) for key in slopes.strategies if key != WHOLE]
    for suffix in ("", MORE_BYTES):
        control = CONTROL + suffix
        same_bytes = [key for key in slopes.strategies if key.endswith(MORE_BYTES) == bool(suffix)]
        if control in slopes.strategies:
            found += [between(k, control) for k in same_bytes if k not in (control, WHOLE)]
    return found


def _held_out(seen: Observed, fitted: FittedCurve, n_failures: Ints) -> list[HeldOut]:
    """What each seed's histories lose, by the fit without that seed."""
    by_each = np.array([predicted(seen, parts) for parts in fitted.without])
    by_others = by_each[seen.seed, np.arange(len(seen.trials))]
    found = []
    for key in seen.strategies:
        for n in np.unique(n_failures[seen.held_out]):
            ours = seen.strategy(key) & seen.held_out & (n_failures == n)
            if len(np.unique(seen.seed[ours])) < 2:
                continue
            measured = by_seed(seen.loss[fitted.metric][ours], seen.seed[ours])
            ratio = ratio_of_means(measured, by_seed(by_others[ours], seen.seed[ours]))
            of_fit = float(jackknife_error(by_each[:, ours].mean(axis=1)) / by_others[ours].mean())
            error = float(np.hypot(ratio.standard_error, ratio.mean * of_fit))
            pls, mean = float(seen.pls[ours].mean()), float(measured.mean())
            found.append(HeldOut(key, int(n), pls, mean, replace(ratio, standard_error=error)))
    return sorted(found, key=lambda one: one.pls)


def by_seed(values: Floats, seed: Ints) -> Floats:
    """The mean of each seed that has any."""
    n = np.bincount(seed)
    return np.asarray(np.bincount(seed, values)[n > 0] / n[n > 0])


def ratio_of_means(above: Floats, below: Floats) -> SeedMean:
    """The ratio of two means over the same seeds; its error by the delta method."""
    ratio = above.mean() / below.mean()
    off = (above - ratio * below) / below.mean()
    return SeedMean(float(ratio), float(off.std(ddof=1)) / sqrt(len(off)), len(off))
