"""A measurement as a curve: responses, the checks, whether it is fit for use, and what made it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

import cprsim
from cprsim.curves import CurveFile
from cprsim.curves.curve_file import UNFIT
from cprsim.kernel.blas import description
from cprsim.kernel.trials import sub_saves_of
from cprsim.measuring.checks import Checks, SeedMean
from cprsim.measuring.fit import Fitted
from cprsim.measuring.measure import Measured, MeasureRequest, identity
from cprsim.measuring.runs import COUNTED_INTERVAL
from cprsim.measuring.shape import AT, STALENESS, Shape
from cprsim.records import Floats, Ints, ShardLoss
from cprsim.results.manifest import git_state
from cprsim.staleness import (
    ALWAYS,
    FEWEST_SEEDS_TO_USE,
    WHOLE,
    MeanLoss,
    Metric,
    Replicate,
    Response,
    Weight,
)

TYPICAL_INTERVAL = 0.1  # between saves, as a share of the run
FAILED_FRACTION = 0.125  # of the servers
N_TIMES = 100
NOISE_AT = (0.1, 0.5, 0.9)  # shares of the run


def curve_file(measured: Measured, request: MeasureRequest, name: str, command: str) -> CurveFile:
    """Everything that the file of a curve says."""
    return CurveFile(
        name=name,
        responses=tuple(
            response_of(fitted, strategy, measured.checks(metric).most_weighted_pls)
            for metric, fitted in measured.fitted.items()
            for strategy in measured.seen.strategies
        ),
        kernel=request.elsewhere or identity(request)["kernel"],
        command=command,
        manifest=manifest(measured, request),
        checks=checks_document(measured),
        unfit=why_unfit(measured),
    )


def checks_document(measured: Measured) -> dict[str, Any]:
    """What was checked, of JSON's types, by metric."""
    return {
        metric.value: _checks(measured.checks(metric), measured.fitted[metric], measured)
        | _of_further(measured, metric)
        for metric in measured.fitted
    } | {"bytes_written": _bytes_written(measured)}


def _of_further(measured: Measured, metric: Metric) -> dict[str, Any]:
    """Why nothing should be decided by a further metric, which leaves the others as they are."""
    reason = "" if metric in ALWAYS else _lost_in_noise(measured, metric)
    return {UNFIT: [reason]} if reason else {}


def _checks(checks: Checks, fitted: Fitted, measured: Measured) -> dict[str, Any]:
    slopes = fitted.slopes
    took = measured.effort(fitted.metric)
    return {
        "several_failures": [
            {
                "n_failures": one.n_failures,
                "weighted_pls": one.weighted_pls,
                "over_sum": one.factor,
                "standard_error": one.standard_error,
            }
            for one in fitted.joint
        ],
        "slopes_of_single_failures": {
            key: {
                "mean": slopes.mean(key),
                "standard_error": slopes.standard_error(key),
                "by_seed": slopes.by_seed[:, column].tolist(),
            }
            for column, key in enumerate(slopes.strategies)
        },
        "intercept": asdict(SeedMean.over(slopes.intercept)),
        "noise_of_one_trial": {
            f"failure at {at:.0%}": float(fitted.noise.at(np.array([at]))[0]) for at in NOISE_AT
        },
        "correlation_with_pls": asdict(checks.correlation),
        "correlation_with_weighted_pls": asdict(checks.weighted_correlation),
        "paired_differences": [
            {
                "strategy": one.strategy,
                "other": one.other,
                "mean": one.difference.mean,
                "half_width_95": one.difference.half_width,
                "smallest_detectable": one.difference.detectable,
            }
            for one in checks.differences
        ],
        "adding_up": [
            {
                "strategy": one.strategy,
                "n_failures": one.n_failures,
                "pls": one.pls,
                "weighted_pls": one.weighted_pls,
                "measured_over_sum": asdict(one.measured_over_sum),
                "measured_over_predicted": asdict(one.measured_over_predicted),
                "verdict": one.verdict.value,
            }
            for one in checks.adding_up
        ],
        "verdict": checks.verdict.value,
        "fails_from_pls": checks.fails_from_pls,
        "effort": asdict(took),
    }


def _bytes_written(measured: Measured) -> dict[str, Any]:
    """By all saves of one run at the interval named."""
    twin = measured.results[0].twin
    assert twin is not None, "a measured seed is complete"
    if not twin.bytes_written:
        return {}
    by_strategy = {saving.strategy: n_bytes for saving, n_bytes in twin.bytes_written.items()}
    return {"interval_fraction": COUNTED_INTERVAL, "by_strategy": by_strategy}


def manifest(measured: Measured, request: MeasureRequest) -> dict[str, Any]:
    """What made a curve: versions, seeds, number of runs. Names no machine and no person."""
    return {
        "cprsim": cprsim.__version__,
        "commit": git_state(),
        "numpy": np.__version__,
        "blas": description(),
        "seeds": list(measured.seen.seeds),
        "n_runs": sum(len(one.quality) + 1 for one in measured.results),
        "cpu_minutes": round(sum(one.cpu_s for one in measured.results) / 60, 2),
        "n_emb_ps": request.n_servers,
        "design": asdict(request.design),
        "expected": _expected(measured),
        **({} if request.n_samples is None else {"n_samples": request.n_samples}),
        **({"trainer": dict(request.described)} if request.described else {}),
    }


def _expected(measured: Measured) -> dict[str, Any] | None:
    """As it was said beforehand; the noise of equal runs only where there is any."""
    if measured.expected is None:
        return None
    plain = asdict(measured.expected)
    return plain if plain["noise"] else {k: v for k, v in plain.items() if k != "noise"}


def why_unfit(measured: Measured) -> tuple[str, ...]:
    """Sentences, none where nothing speaks against the curve."""
    reasons = []
    n_seeds, expected = len(measured.seen.seeds), measured.expected
    if n_seeds < FEWEST_SEEDS_TO_USE:
        reasons.append(
            f"{n_seeds} seeds are too few: intervals were seen to be right from "
            f"{FEWEST_SEEDS_TO_USE} on (measure with --seeds {FEWEST_SEEDS_TO_USE} or more)"
        )
    if expected is not None and expected.hardly_learned:
        reasons.append(
            f"the model has hardly learned (AUC {expected.auc:.3f})"
            if expected.logistic_auc is None
            else f"the stand-in has hardly learned (AUC {expected.auc:.3f}, logistic regression "
            f"{expected.logistic_auc:.3f}): more samples, or a higher rate"
        )
    lost = (_lost_in_noise(measured, metric) for metric in measured.fitted if metric in ALWAYS)
    return (*reasons, *filter(None, lost))


def _lost_in_noise(measured: Measured, metric: Metric) -> str:
    """A sentence where a metric's losses can't be told from nothing; empty where they can."""
    low, high = typical_loss(measured, metric).interval()
    if low > 0:
        return ""
    return (
        f"what plain partial recovery loses in {metric.value} cannot be told from nothing "
        f"({low:.2g} to {high:.2g} for a failure at any time, 95 % interval)"
    )


def typical_loss(measured: Measured, metric: Metric) -> MeanLoss:
    """What a failure of one server of eight at any time costs under plain partial recovery."""
    losses, number = typical_losses()
    most = measured.checks(metric).most_weighted_pls
    response = response_of(measured.fitted[metric], WHOLE, most)
    lost = response.predict_losses(losses, number, 1.0, TYPICAL_INTERVAL)
    return MeanLoss(float(lost.loss.mean()), lost.error_of_mean(), lost.degrees)


def typical_losses() -> tuple[ShardLoss, Ints]:
    """One server of eight lost, a replication per time of the run; their numbers."""
    at = (np.arange(N_TIMES) + 0.5) / N_TIMES
    stale = (at * 7.3) % 1.0 * np.minimum(TYPICAL_INTERVAL, at)
    number = np.arange(N_TIMES)
    share = np.full(N_TIMES, FAILED_FRACTION)
    return ShardLoss(number, at, np.zeros(N_TIMES, np.int64), stale, stale, share), number


def response_of(fitted: Fitted, strategy: str, most: float) -> Response:
    """One strategy's response, measured up to a weighted PLS of `most`."""
    pls, loss, error = fitted.monotone_line(strategy, most)
    return Response(
        strategy,
        fitted.metric,
        pls,
        loss,
        error,
        weight=_weight(fitted.shape),
        interval_share=fitted.shape.interval_share[strategy],
        degrees=fitted.slopes.n_seeds - 1,
        settings=sub_saves_of(strategy),
        replicates=tuple(_replicate(one, strategy, most) for one in fitted.replicates),
    )


def _replicate(fitted: Fitted, strategy: str, most: float) -> Replicate:
    phi = fitted.shape.interval_share[strategy]
    line = (rounded(numbers) for numbers in fitted.line(strategy, most))
    return Replicate(_weight(fitted.shape), float(rounded(np.array(phi))), *line)


def _weight(shape: Shape) -> Weight:
    return Weight(AT, STALENESS, rounded(shape.weight))


def rounded(numbers: Floats) -> Floats:
    """With six significant digits: more would only make the file long."""
    return np.array([float(f"{number:.6g}") for number in numbers.ravel()]).reshape(numbers.shape)
