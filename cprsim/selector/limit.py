"""How much accuracy a user is willing to lose, and how a candidate is held to it."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Annotated

import numpy as np

from cprsim.files import Stored
from cprsim.records import Floats, pooled
from cprsim.recovery.losses import Metric
from cprsim.staleness.expected import MeanLoss, Prediction

PLS = Metric("pls")  # portion of lost samples: limited as published, without a curve


@dataclass(frozen=True, slots=True)
class Limit:
    """The most that may be lost, and how surely."""

    quantity: Annotated[Metric, Stored(str, Metric)]  # the loss in a metric of the curve, or PLS
    most: float  # the limit, not negative, in what the quantity is counted in
    # the limit holds at this one-sided upper bound of what is estimated, from 0.5 (the estimate
    # itself) to below 1
    confidence: float = 0.95
    # None: the mean over failure histories is held to the limit; between 0 and 1: this quantile of
    # single jobs
    risk: float | None = None

    @property
    def metric(self) -> Metric | None:
        """The metric of the curve that predicts it; None for PLS, which needs no curve."""
        return None if self.quantity == PLS else self.quantity

    @property
    def words(self) -> str:
        """What is limited, in words."""
        return "PLS" if self.metric is None else self.metric.loss_label

    def bound(self, lost: Prediction) -> float:
        """The upper bound, over some replications, that must not lie above `most`."""
        found = lost.mean() if self.risk is None else quantile_loss(lost, self.risk)
        return found.quantile(self.confidence)


def quantile_loss(lost: Prediction, risk: float) -> MeanLoss:
    """The loss that a share `risk` of single jobs stays below, and how well it is known.

    The sample's quantile. Its standard error by simulation is half the distance between the order
    statistics one binomial standard deviation to either side (Woodruff 1952); the curve's is that
    of the job which is the quantile. Of the jobs nothing varies but their failures: what the same
    failures do from one training run to the next is not in it.
    """
    n = len(lost.loss)
    if n < 2:
        return MeanLoss(float(lost.loss[0]), nan)
    order = np.argsort(lost.loss, kind="stable")
    place = (n - 1) * risk
    aside = sqrt(n * risk * (1 - risk))
    low, high = (
        float(np.quantile(lost.loss, min(max((place + side) / (n - 1), 0.0), 1.0)))
        for side in (-aside, aside)
    )
    of_curve = float(lost.standard_error[order[round(place)]]) ** 2
    error, degrees = pooled((((high - low) / 2) ** 2, n - 1), (of_curve, lost.degrees))
    return MeanLoss(float(np.quantile(lost.loss, risk)), error, degrees)


def pls_alone(pls: Floats) -> Prediction:
    """PLS as what is lost: nothing was measured for it, so nothing is unsure but the failures."""
    return Prediction(pls, np.zeros(len(pls)), np.zeros(len(pls), dtype=bool), inf)


NO_LIMIT = Limit(PLS, 0.0)
"""Where nothing that is compared loses samples: all keep it."""
