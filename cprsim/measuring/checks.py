"""Checks of a measurement: runs held out of the fit, and which strategies differ."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from enum import StrEnum
from math import sqrt
from typing import Any

import numpy as np
from scipy import stats

from cprsim.measuring.fit import FittedCurve, predicted, weighted
from cprsim.measuring.observed import Observed
from cprsim.records import HIGH, Bools, Floats
from cprsim.recovery.losses import MORE_BYTES, WHOLE
from cprsim.staleness.expected import jackknife_error

CONTROL = "round-robin"
FAILS_BEYOND = 0.2  # of the prediction: what is surely further off is not predicted
POWER = 0.8  # of the test whose smallest detectable difference is named
NOISE_AT = (0.1, 0.5, 0.9)  # shares of the run


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

    @property
    def verdict(self) -> HeldOutVerdict:
        """Of measured over predicted: the 95 % interval has to exclude 0 and 2."""
        low, high = (self.mean + sign * self.half_width for sign in (-1, 1))
        if low > 1 + FAILS_BEYOND or high < 1 - FAILS_BEYOND:
            return HeldOutVerdict.FAILS
        return HeldOutVerdict.HOLDS if low > 0 and high < 2 else HeldOutVerdict.UNKNOWN


def checks_of(seen: Observed, fitted: FittedCurve) -> dict[str, Any]:
    """What the file of a curve says of one metric's fit, of JSON's types."""
    slopes, loss = fitted.slopes, seen.loss[fitted.metric]
    single = seen.strategy(WHOLE) & (seen.n_failures == 1)

    def correlation(lost: Floats) -> dict[str, Any]:
        """Pearson's, seed by seed: a seed's lucky twin moves all its losses alike."""
        some = [single & (seen.seed == seed) for seed in range(len(seen.seeds))]
        by_seed = [np.corrcoef(lost[one], loss[one])[0, 1] for one in some]
        return asdict(SeedMean.over(np.array(by_seed)))

    return {
        "slopes": {
            key: {
                "mean": slopes.mean(key),
                "standard_error": slopes.standard_error(key),
                "by_seed": slopes.of(key).tolist(),
            }
            for key in slopes.strategies
        },
        "intercept": asdict(SeedMean.over(fitted.intercept)),
        "noise_of_one_trial": {
            f"failure at {at:.0%}": float(fitted.noise.at(np.array([at]))[0]) for at in NOISE_AT
        },
        "correlation_with_pls": correlation(seen.pls),
        "correlation_with_weighted_pls": correlation(weighted(seen, fitted.parts)),
        "paired_differences": _differences(fitted),
        "held_out": _held_out(seen, fitted),
    }


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


def _held_out(seen: Observed, fitted: FittedCurve) -> list[dict[str, Any]]:
    """What each seed's histories lose over what the fit without that seed predicts; by PLS."""
    by_each = np.array([predicted(seen, parts) for parts in fitted.without])
    by_others = by_each[seen.seed, np.arange(len(seen.trials))]
    loss, found = seen.loss[fitted.metric], []

    def mean_of_seeds(values: Floats, ours: Bools) -> Floats:
        n = np.bincount(seen.seed[ours])
        return np.asarray(np.bincount(seen.seed[ours], values[ours])[n > 0] / n[n > 0])

    for key in seen.strategies:
        for n in np.unique(seen.n_failures[seen.held_out]).tolist():
            ours = seen.strategy(key) & seen.held_out & (seen.n_failures == n)
            if len(np.unique(seen.seed[ours])) < 2:
                continue
            measured = mean_of_seeds(loss, ours)
            ratio, error, n_seeds = ratio_of_means(measured, mean_of_seeds(by_others, ours))
            of_fit = float(jackknife_error(by_each[:, ours].mean(axis=1)) / by_others[ours].mean())
            over = SeedMean(ratio, float(np.hypot(error, ratio * of_fit)), n_seeds)
            found.append(
                {
                    "strategy": key,
                    "n_failures": n,
                    "pls": float(seen.pls[ours].mean()),
                    "measured": float(measured.mean()),
                    "measured_over_predicted": asdict(over),
                    "verdict": over.verdict.value,
                }
            )
    return sorted(found, key=lambda one: float(one["pls"]))


def ratio_of_means(above: Floats, below: Floats) -> tuple[float, float, int]:
    """The ratio of two means over the same seeds, its error by the delta method; n."""
    ratio = above.mean() / below.mean()
    off = (above - ratio * below) / below.mean()
    return float(ratio), float(off.std(ddof=1)) / sqrt(len(off)), len(off)
