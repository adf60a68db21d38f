"""Measured loss of one strategy in one metric, as a function of weighted PLS."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Any, Self

import numpy as np

from cprsim.accuracy.expected import Prediction, jackknife_error
from cprsim.files import NOT_STORED, Endless, Stored
from cprsim.job.losses import Metric
from cprsim.job.records import CostBreakdown, Floats, Ints, ShardLoss, SubSaves

N_MEAN = 2000  # instants of the job over which that mean is taken
BY_PLS = "pls"
COUNTED: Mapping[str, Callable[[CostBreakdown, float], Floats]] = {
    "failures": lambda costs, useful_h: costs.n_failures.astype(float),
    "saves": lambda costs, useful_h: costs.n_saves.astype(float),
    "degraded": lambda costs, useful_h: costs.hours_of("degraded") / useful_h,
}
"""What the loss of a recovery system may go by instead of PLS, (n,) of a job: failures, saves, and
hours that it lacks in speed as a share of useful time."""


Column = Annotated[Floats, Stored(np.ndarray.tolist, lambda plain: np.asarray(plain, float))]


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """Weight of a lost sample, by the share of the job done when it is lost.

    Its logarithm is linear between the knots, and constant beyond them. Default: 1 for all.
    """

    # (m,) ascending shares of the job that are done at the failure
    at: Column = field(default_factory=lambda: np.zeros(1))
    # (m,) positive; its mean over the job is 1
    weight: Column = field(default_factory=lambda: np.ones(1))

    def of(self, at: Floats) -> Floats:
        """The weight at each of some failures, (n,)."""
        return np.asarray(np.exp(np.interp(at, self.at, np.log(self.weight))))

    def mean(self) -> float:
        """Mean over the job."""
        return float(self.of((np.arange(N_MEAN) + 0.5) / N_MEAN).mean())


@dataclass(frozen=True, slots=True, eq=False)
class Replicate:
    """The response fitted without one of the seeds of the measurement."""

    weight: Weight
    interval_share: float
    slope: float  # loss per weighted PLS: it may be negative
    intercept: float

    def along(self, weighted_pls: Floats) -> Floats:
        """Loss at some weighted PLS (n,)."""
        return np.asarray(self.slope * weighted_pls + self.intercept * (weighted_pls > 0))


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """Measured loss in one metric from one strategy's stale shards, or from a system's lost state.

        loss = intercept + line(weighted PLS)     of a job that loses samples; else 0

    With replicates, the error of a prediction is the jackknife's: the response, weight included, is
    fitted again without each seed. Without replicates it is the error of the line alone.
    """

    strategy: str  # one of `RESPONSE_KEYS`, or a recovery system
    metric: Annotated[Metric, Stored(str, Metric)]  # in what
    # (n,) ascending portions of lost samples, the first 0; straight lines between them. Of a
    # recovery system what `by` counts
    pls: Column
    # loss, standard_error: (n,) the mean loss at those, and its standard error; the first 0. A
    # loss neither falls nor is negative, and one of 0 has an error
    loss: Column
    standard_error: Column
    weight: Weight = field(default_factory=Weight)  # how much a sample counts by when it is lost
    # phi, the share of the loss that goes by the save interval and not by the time since the last
    # save: of priority saving, whose rows may be older than the last save
    interval_share: float = 0.0
    # of the line: what losing any samples costs; negative where few cost less than their share of
    # many
    intercept: float = 0.0
    degrees: Endless = inf  # of freedom of the standard errors; infinite where they are known
    # at which priority saving was measured; None: not said, or there is none
    settings: SubSaves | None = None
    # the same without each of the seeds; none where only the errors are known
    replicates: tuple[Replicate, ...] = ()
    # what `pls` holds: `pls` itself, or one of `COUNTED`; files have none of these
    by: str = field(default=BY_PLS, metadata=NOT_STORED)

    @classmethod
    def linear(
        cls, strategy: str, metric: Metric, slope: tuple[float, float], most_pls: float,
        **others: Any,
    ) -> Self:  # fmt: skip
        """A loss in proportion to PLS; `slope` is the estimate and its standard error."""
        ends = np.array([0.0, most_pls])
        return cls(strategy, metric, ends, slope[0] * ends, slope[1] * ends, **others)

    @property
    def most_pls(self) -> float:
        """The largest weighted PLS that was measured; larger ones are extrapolated."""
        return float(self.pls[-1])

    def predict(self, weighted_pls: Floats) -> tuple[Floats, Floats]:
        """Loss and its standard error at some weighted PLS, both (n,), weights taken as known.

        Without replicates the standard error is interpolated like the loss: exact if the errors of
        the points are fully correlated, else too large. Beyond the last point the loss follows the
        steeper of the last line and the line from 0 to that point, at its relative error.
        """
        loss = self._along(weighted_pls)
        if self.replicates:
            return loss, jackknife_error(np.array([r.along(weighted_pls) for r in self.replicates]))
        error = np.interp(weighted_pls, self.pls, self.standard_error)
        return loss, error * (1.0 + np.maximum(weighted_pls / self.pls[-1] - 1.0, 0.0))

    def predict_losses(
        self, losses: ShardLoss, replications: Ints, useful_h: float, interval_h: float
    ) -> Prediction:
        """Predict each replication's loss from its lost shards; parameters as of `weighted_pls`."""
        job = (losses, replications, useful_h, interval_h)
        lost = weighted_pls(self, *job)
        beyond = lost > self.most_pls
        if not self.replicates:
            return Prediction(*self.predict(lost), beyond, self.degrees)
        apart = np.array(
            [replicate.along(weighted_pls(replicate, *job)) for replicate in self.replicates]
        )
        return Prediction(self._along(lost), jackknife_error(apart), beyond, self.degrees, apart)

    def _along(self, weighted_pls: Floats) -> Floats:
        """Loss at some weighted PLS (n,); beyond the end along the steeper of two lines."""
        pls, loss = self.pls, self.loss
        last = (loss[-1] - loss[-2]) / (pls[-1] - pls[-2])
        beyond = np.maximum(weighted_pls - pls[-1], 0.0) * max(last, loss[-1] / pls[-1])
        on_line = np.interp(weighted_pls, pls, loss) + beyond
        return np.asarray(on_line + self.intercept * (weighted_pls > 0))


def aged(
    losses: ShardLoss, phi: float | Floats, useful_h: float, interval_h: float | Floats
) -> Floats:
    """(m,) age of the rows of each shard, as a share of the job: ``(1 - phi) s + phi T/2``."""
    interval = np.minimum(interval_h / useful_h, losses.progress_h / useful_h)
    return np.asarray((1.0 - phi) * losses.since_reload_h / useful_h + phi * interval / 2.0)


def weighed(
    losses: ShardLoss, weight: Weight, phi: float | Floats, useful_h: float,
    interval_h: float | Floats,
) -> Floats:  # fmt: skip
    """(m,) weighted PLS of each shard."""
    old = aged(losses, phi, useful_h, interval_h)
    return losses.share * old * weight.of(losses.progress_h / useful_h)


def weighted_pls(
    response: Response | Replicate, losses: ShardLoss, replications: Ints, useful_h: float,
    interval_h: float,
) -> Floats:  # fmt: skip
    """Portion of lost samples of each replication (n,), each weighed by when it was lost.

    With t the share of the job done, s the net staleness (nothing is lost twice) and T the
    interval, but no more than t, all as shares of the job, and W the weight:
    sum of ``share * W(t) * ((1 - phi) * s + phi * T/2)``.
    """
    lost = weighed(losses, response.weight, response.interval_share, useful_h, interval_h)
    row = np.searchsorted(replications, losses.replication)
    return np.asarray(np.bincount(row, lost, len(replications)), float)
