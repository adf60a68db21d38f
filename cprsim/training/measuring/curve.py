"""A measurement as a curve: responses, the checks, whether it is fit for use, and what made it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from cprsim.accuracy.curve import (
    FEWEST_SEEDS_TO_USE,
    UNFIT,
    MeanLoss,
    Replicate,
    Response,
    StalenessCurve,
    Weight,
)
from cprsim.job.losses import ALWAYS, WHOLE, Metric
from cprsim.job.records import ShardLoss
from cprsim.results.folder import git_state
from cprsim.results.words import ends
from cprsim.training.kernel.blas import description
from cprsim.training.kernel.trials import sub_saves_of
from cprsim.training.measuring.checks import HOLDS, checks_of
from cprsim.training.measuring.fit import FittedCurve
from cprsim.training.measuring.measure import Measured, MeasureRequest, identity
from cprsim.training.measuring.runs import COUNTED_INTERVAL
from cprsim.version import __version__

TYPICAL_INTERVAL = 0.1  # between saves, as a share of the run
FAILED_FRACTION = 0.125  # of the servers
N_TIMES = 100


def curve_file(
    measured: Measured, request: MeasureRequest, name: str, command: str
) -> StalenessCurve:
    """Contents of the file of a curve."""
    return StalenessCurve(
        name=name,
        responses=tuple(
            response_of(fitted, strategy)
            for fitted in measured.fitted.values()
            for strategy in fitted.strategies
        ),
        kernel=identity(request)["kernel"],
        command=command,
        manifest=manifest(measured, request),
        checks=checks_document(measured),
        unfit=why_unfit(measured),
    )


def checks_document(measured: Measured) -> dict[str, Any]:
    """Checks of each metric, of JSON's types; and the bytes of all saves of one run."""
    document: dict[str, Any] = {}
    for metric, fitted in measured.fitted.items():
        document[metric.value] = checks_of(measured.observed, fitted)
        # why nothing should be decided by a further metric, which leaves the others as they are
        if metric not in ALWAYS and (reason := _lost_in_noise(measured, metric)):
            document[metric.value][UNFIT] = [reason]
    twin, written = measured.results[0].twin, {}
    assert twin is not None, "a measured seed is complete"
    if twin.bytes_written:
        by_strategy = {saving.strategy: n_bytes for saving, n_bytes in twin.bytes_written.items()}
        written = {"interval_fraction": COUNTED_INTERVAL, "by_strategy": by_strategy}
    return {**document, "bytes_written": written}


def manifest(measured: Measured, request: MeasureRequest) -> dict[str, Any]:
    """Origin of a curve: versions, seeds, number of runs. Names no machine and no person."""
    return {
        "cprsim": __version__,
        "commit": git_state(),
        "numpy": np.__version__,
        "blas": description(),
        "seeds": list(measured.observed.seeds),
        "n_runs": sum(len(seed.quality) + 1 for seed in measured.results),
        "cpu_minutes": round(sum(seed.cpu_s for seed in measured.results) / 60, 2),
        "n_emb_ps": request.n_servers,
        "design": asdict(request.design),
        "expected": None if measured.expected is None else asdict(measured.expected),
        **({} if request.n_samples is None else {"n_samples": request.n_samples}),
        **({"trainer": dict(request.described)} if request.described else {}),
    }


def why_unfit(measured: Measured) -> tuple[str, ...]:
    """Reasons against using the curve, in sentences; empty for a curve that is fit for use."""
    reasons = []
    n_seeds, expected = len(measured.observed.seeds), measured.expected
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
    judged = [metric for metric in measured.fitted if metric in ALWAYS]
    lost = list(filter(None, (_lost_in_noise(measured, metric) for metric in judged)))
    checks = [checks_of(measured.observed, measured.fitted[metric]) for metric in judged]
    verdicts = [history["verdict"] for of_metric in checks for history in of_metric["held_out"]]
    if not lost and HOLDS not in verdicts:
        reasons.append("no held-out group of runs confirms the prediction: use more seeds")
    reasons += lost
    return tuple(reasons)


def _lost_in_noise(measured: Measured, metric: Metric) -> str:
    """A sentence if the losses of a metric are not significantly above 0; else empty."""
    low, high = typical_loss(response_of(measured.fitted[metric], WHOLE)).interval()
    if low > 0:
        return ""
    return (
        f"the loss of plain partial recovery in {metric.value} is not significantly above 0 "
        f"({ends(low, high)} for a failure at any time, 95 % interval)"
    )


def typical_loss(response: Response) -> MeanLoss:
    """Mean loss from a failure of one server of eight, over the times of the failure."""
    at = (np.arange(N_TIMES) + 0.5) / N_TIMES
    stale = (at * 7.3) % 1.0 * np.minimum(TYPICAL_INTERVAL, at)
    number = np.arange(N_TIMES)
    share = np.full(N_TIMES, FAILED_FRACTION)
    losses = ShardLoss(number, at, np.zeros(N_TIMES, np.int64), stale, stale, share)
    lost = response.predict_losses(losses, number, 1.0, TYPICAL_INTERVAL)
    return MeanLoss(float(lost.loss.mean()), lost.error_of_mean(), lost.degrees)


def response_of(fitted: FittedCurve, strategy: str) -> Response:
    """One strategy's response. A slope below 0 is cut there, which makes it no surer."""
    part, most = fitted.parts[strategy], fitted.most_weighted_pls
    slope = max(part.slope, 0.0), fitted.slope(strategy).standard_error
    return Response.linear(
        strategy,
        fitted.metric,
        slope,
        most,
        weight=_rounded(part).weight,
        interval_share=part.interval_share,
        intercept=part.intercept,
        degrees=len(fitted.without) - 1,
        settings=sub_saves_of(strategy),
        replicates=tuple(_rounded(parts[strategy]) for parts in fitted.without),
    )


def _rounded(part: Replicate) -> Replicate:
    """With six significant digits: more would only make the file long."""
    phi, slope, intercept, *weight = (
        float(f"{number:.6g}")
        for number in (part.interval_share, part.slope, part.intercept, *part.weight.weight)
    )
    return Replicate(Weight(part.weight.at, np.array(weight)), phi, slope, intercept)
