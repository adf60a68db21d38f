"""Checks of a measurement: runs held out of the fit, and which strategies differ."""

from __future__ import annotations

from dataclasses import asdict
from math import sqrt
from typing import Any

import numpy as np

from cprsim.accuracy.curve import jackknife_error
from cprsim.job.losses import MORE_BYTES, WHOLE
from cprsim.job.records import Floats, Ints
from cprsim.training.measuring.fit import FittedCurve, SeedMean, predicted
from cprsim.training.measuring.observed import Observed

CONTROL = "round-robin"
FAILS_BEYOND = 0.2  # of the prediction: what is surely further off is not predicted
NOISE_AT = (0.1, 0.5, 0.9)  # shares of the run
# whether the curve predicts what held-out histories lose
HOLDS, DOES_NOT_HOLD, CANNOT_BE_TOLD = "holds", "does not hold", "cannot be told"


def verdict_of(ratio: SeedMean) -> str:
    """Of measured over predicted: the 95 % interval has to exclude 0 and 2."""
    low, high = (ratio.mean + sign * ratio.half_width for sign in (-1, 1))
    if low > 1 + FAILS_BEYOND or high < 1 - FAILS_BEYOND:
        return DOES_NOT_HOLD
    return HOLDS if low > 0 and high < 2 else CANNOT_BE_TOLD


def checks_of(observed: Observed, fitted: FittedCurve) -> dict[str, Any]:
    """Checks of one metric's fit for the file of a curve, of JSON's types."""
    return {
        "slopes": {
            key: {
                "mean": fitted.slope(key).mean,
                "standard_error": fitted.slope(key).standard_error,
                "by_seed": of_seeds.tolist(),
            }
            for key, of_seeds in fitted.slopes.items()
        },
        "noise_of_one_trial": {
            f"failure at {at:.0%}": float(np.exp(fitted.noise(at))) for at in NOISE_AT
        },
        "paired_differences": _differences(fitted),
        "held_out": _held_out(observed, fitted),
    }


def _differences(fitted: FittedCurve) -> list[dict[str, Any]]:
    """Each strategy against plain partial recovery, and against round robin at as many bytes."""
    slopes = fitted.slopes

    def between(strategy: str, other: str) -> dict[str, Any]:
        difference = SeedMean.over(slopes[strategy] - slopes[other])
        return {
            "strategy": strategy, "other": other, "mean": difference.mean,
            "half_width_95": difference.half_width, "smallest_detectable": difference.detectable,
        }  # fmt: skip

    differences = [between(key, WHOLE) for key in slopes if key != WHOLE]
    for suffix in ("", MORE_BYTES):
        control = CONTROL + suffix
        same_bytes = [key for key in slopes if key.endswith(MORE_BYTES) == bool(suffix)]
        if control in slopes:
            differences += [between(k, control) for k in same_bytes if k not in (control, WHOLE)]
    return differences


def _held_out(observed: Observed, fitted: FittedCurve) -> list[dict[str, Any]]:
    """Losses of held-out trials over those predicted by the fit without their seed, by PLS."""
    by_each = np.array([predicted(observed, parts) for parts in fitted.without])
    trials, loss, checks = observed.trials, observed.loss[fitted.metric], []
    by_others = by_each[trials["seed"], np.arange(len(trials))]
    held_out = trials[trials["held_out"]]
    for (key, _), group in held_out.groupby(["strategy", "n_failures"], sort=False):
        if group["seed"].nunique() < 2:
            continue
        chosen, seed = group.index.to_numpy(), group["seed"].to_numpy()
        measured = _mean_of_seeds(loss[chosen], seed)
        ratio, error, n_seeds = ratio_of_means(measured, _mean_of_seeds(by_others[chosen], seed))
        of_fit = float(jackknife_error(by_each[:, chosen].mean(axis=1)) / by_others[chosen].mean())
        relative = SeedMean(ratio, float(np.hypot(error, ratio * of_fit)), n_seeds)
        checks.append(
            {
                "strategy": key,
                "n_failures": int(group["n_failures"].iloc[0]),
                "pls": float(group["pls"].to_numpy().mean()),
                "measured": float(measured.mean()),
                "measured_over_predicted": asdict(relative),
                "verdict": verdict_of(relative),
            }
        )
    return sorted(checks, key=lambda one: float(one["pls"]))


def _mean_of_seeds(values: Floats, seed: Ints) -> Floats:
    n = np.bincount(seed)
    return np.asarray(np.bincount(seed, values)[n > 0] / n[n > 0])


def ratio_of_means(above: Floats, below: Floats) -> tuple[float, float, int]:
    """The ratio of two means over the same seeds, its error by the delta method; n."""
    ratio = above.mean() / below.mean()
    off = (above - ratio * below) / below.mean()
    return float(ratio), float(off.std(ddof=1)) / sqrt(len(off)), len(off)
