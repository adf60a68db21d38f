"""Whether a measured curve is fit for use, and why not."""

from __future__ import annotations

import numpy as np

from cprsim.measuring.measure import Measured
from cprsim.measuring.responses import response_of
from cprsim.records import ShardLoss
from cprsim.staleness import FEWEST_SEEDS_TO_USE, WHOLE, MeanLoss, Metric

TYPICAL_INTERVAL = 0.1  # between saves, as a share of the run
SHARE = 0.125  # of the servers
N_TIMES = 100


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
    for metric in measured.fitted:
        low, high = typical_loss(measured, metric).interval()
        if low <= 0:
            reasons.append(
                f"what plain partial recovery loses in {metric.value} cannot be told from nothing "
                f"({low:.2g} to {high:.2g} for a failure at any time, 95 % interval)"
            )
    return tuple(reasons)


def typical_loss(measured: Measured, metric: Metric) -> MeanLoss:
    """What a failure of one server of eight at any time costs under plain partial recovery."""
    at = (np.arange(N_TIMES) + 0.5) / N_TIMES
    stale = (at * 7.3) % 1.0 * np.minimum(TYPICAL_INTERVAL, at)
    number = np.arange(N_TIMES)
    share = np.full(N_TIMES, SHARE)
    losses = ShardLoss(number, at, np.zeros(N_TIMES, np.int64), stale, stale, share)
    most = measured.checks(metric).most_weighted_pls
    response = response_of(measured.fitted[metric], WHOLE, most)
    lost = response.predict_losses(losses, number, 1.0, TYPICAL_INTERVAL)
    return MeanLoss(float(lost.loss.mean()), lost.error_of_mean(), lost.degrees)
