"""Checks of a measurement: runs held out of the fit, and which strategies differ."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from math import sqrt
from typing import Any

import numpy as np

from cprsim.measuring.fit import FittedCurve, SeedMean, predicted, weighted
from cprsim.measuring.observed import Observed
from cprsim.records import Bools, Floats
from cprsim.recovery.losses import MORE_BYTES, WHOLE
from cprsim.staleness.expected import jackknife_error

CONTROL = "round-robin"
FAILS_BEYOND = 0.2  # of the prediction: what is surely further off is not predicted
NOISE_AT = (0.1, 0.5, 0.9)  # shares of the run


class HeldOutVerdict(StrEnum):
    """Whether the curve predicts what held-out histories lose."""

    HOLDS = "holds"
    FAILS = "does not hold"
    UNKNOWN = "cannot be told"


def verdict_of(ratio: SeedMean) -> HeldOutVerdict:
    """Of measured over predicted: the 95 % interval has to exclude 0 and 2."""
    low, high = (ratio.mean + sign * ratio.half_width for sign in (-1, 1))
    if low > 1 + FAILS_BEYOND or high < 1 - FAILS_BEYOND:
        return HeldOutVerdict.FAILS
    return HeldOutVerdict.HOLDS if low > 0 and high < 2 else HeldOutVerdict.UNKNOWN


def checks_of(seen: Observed, fitted: FittedCurve) -> dict[str, Any]:
    """What the file of a curve says of one metric's fit, of JSON's types."""
    loss = seen.loss[fitted.metric]
    single = seen.strategy(WHOLE) & (seen.n_failures == 1)

    def correlation(lost: Floats) -> dict[str, Any]:
        """Pearson's, seed by seed: a seed's lucky twin moves all its losses alike."""
        some = [single & (seen.seed == seed) for seed in range(len(seen.seeds))]
        by_seed = [np.corrcoef(lost[one], loss[one])[0, 1] for one in some]
        return asdict(SeedMean.over(np.array(by_seed)))

    return {
        "slopes": {
            key: {
                "mean": fitted.slope(key).mean,
                "standard_error": fitted.slope(key).standard_error,
                "by_seed": of_seeds.tolist(),
            }
            for key, of_seeds in fitted.slopes.items()
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
        found = SeedMean.over(slopes[one] - slopes[other])
        return {
            "strategy": one, "other": other, "mean": found.mean,
            "half_width_95": found.half_width, "smallest_detectable": found.detectable,
        }  # fmt: skip

    found = [between(key, WHOLE) for key in slopes if key != WHOLE]
    for suffix in ("", MORE_BYTES):
        control = CONTROL + suffix
        same_bytes = [key for key in slopes if key.endswith(MORE_BYTES) == bool(suffix)]
        if control in slopes:
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
                    "verdict": verdict_of(over).value,
                }
            )
    return sorted(found, key=lambda one: float(one["pls"]))


def ratio_of_means(above: Floats, below: Floats) -> tuple[float, float, int]:
    """The ratio of two means over the same seeds, its error by the delta method; n."""
    ratio = above.mean() / below.mean()
    off = (above - ratio * below) / below.mean()
    return float(ratio), float(off.std(ddof=1)) / sqrt(len(off)), len(off)
