"""How much one strategy's stale shards cost in one metric: loss over weighted PLS, as measured."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from math import inf
from typing import Self

import numpy as np

from cprsim.errors import ParameterError
from cprsim.records import Floats, Ints, ShardLoss, SubSaves
from cprsim.staleness.strategies import STRATEGIES, Metric, lost_portion

WEIGHED_AT = (
    0.1  # staleness, as a share of the job, at which the mean of a weight over the job is 1
)
WEIGHT_TOLERANCE = 1e-3  # by which that mean may miss 1, as files round


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """How much a lost sample counts, by when it is lost and how old the reloaded shard is.

    Bilinear between the knots, level beyond them. The default: all samples count alike.

    Parameters
    ----------
    at : (m,) ascending shares of the job that are done at the failure
    staleness : (n,) ascending work that the shard goes back by, as shares of the job
    weight : (m, n); its mean over the job at a staleness of 0.1 is 1

    Raises
    ------
    ParameterError : where they do not make a weight
    """

    at: Floats = field(default_factory=lambda: np.zeros(1))
    staleness: Floats = field(default_factory=lambda: np.full(1, WEIGHED_AT))
    weight: Floats = field(default_factory=lambda: np.ones((1, 1)))

    def __post_init__(self) -> None:
        at, staleness, weight = self.at, self.staleness, self.weight
        if not len(at) or not len(staleness) or weight.shape != (len(at), len(staleness)):
            raise ParameterError("weight needs a row per number of `at`, a column per `staleness`")
        checks = {
            "not every number is finite": bool(np.isfinite(weight).all()),
            "at must ascend within 0 and 1": _ascend_within(at),
            "staleness must ascend within 0 and 1": _ascend_within(staleness),
        }
        for message, holds in checks.items():
            if not holds:
                raise ParameterError(f"weight: {message}")
        ends = np.array([0.0, *at, 1.0])
        mean = float(np.trapezoid(self.of(ends, np.full_like(ends, WEIGHED_AT)), ends))
        if abs(mean - 1.0) > WEIGHT_TOLERANCE:
            raise ParameterError(
                f"weight: its mean over the job at a staleness of {WEIGHED_AT} is {mean:.4g}, not 1"
            )

    def of(self, at: Floats, staleness: Floats) -> Floats:
        """The weight at each of some failures, all (n_asked,)."""
        from scipy import ndimage  # slow to load, and bad input ends before it is needed

        knots = ((at, self.at), (staleness, self.staleness))
        where = [np.interp(asked, known, np.arange(len(known))) for asked, known in knots]
        weights: Floats = ndimage.map_coordinates(self.weight, where, order=1, mode="nearest")
        return weights


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """How much one strategy's stale shards cost in one metric, as measured.

    Parameters
    ----------
    strategy : one of `STRATEGIES`
    metric : in what
    pls : (n,) ascending portions of lost samples, the first 0; straight lines between them
    loss, standard_error : (n,) the mean loss at those, and its standard error; the first 0
    weight : how much a sample counts by when it is lost
    interval_share : phi, the share of the loss that goes by the save interval and not by the time
        since the last save: of priority saving, whose rows may be older than the last save
    degrees : of freedom of the standard errors; infinite where they are known
    settings : at which priority saving was measured; None: not said, or there is none

    Raises
    ------
    ParameterError : where they do not make a response
    """

    strategy: str
    metric: Metric
    pls: Floats
    loss: Floats
    standard_error: Floats
    weight: Weight = field(default_factory=Weight)
    interval_share: float = 0.0
    degrees: float = inf
    settings: SubSaves | None = None

    def __post_init__(self) -> None:
        for message in _wrong(self):
            raise ParameterError(f"response of {self.strategy} in {self.metric}: {message}")

    @classmethod
    def linear(
        cls,
        strategy: str,
        metric: Metric,
        slope: tuple[float, float],
        most_pls: float,
        *,
        weight: Weight | None = None,
        interval_share: float = 0.0,
        degrees: float = inf,
        settings: SubSaves | None = None,
    ) -> Self:
        """A loss in proportion to PLS; `slope` is the estimate and its standard error."""
        ends = np.array([0.0, most_pls])
        line = (ends, slope[0] * ends, slope[1] * ends)
        return cls(strategy, metric, *line, weight or Weight(), interval_share, degrees, settings)

    @property
    def most_pls(self) -> float:
        """The largest weighted PLS that was measured: what lies beyond is extrapolated."""
        return float(self.pls[-1])

    def weighted_pls(
        self, losses: ShardLoss, replications: Ints, useful_h: float, interval_h: float
    ) -> Floats:
        """Portion of lost samples of each replication, each weighed by when it was lost.

        Parameters
        ----------
        losses : of these replications alone
        replications : (n,) ascending numbers of the replications
        useful_h : work of the whole job [h]
        interval_h : between saves of the policy [h]; may be infinite

        Notes
        -----
        With t the share of the job done, s the net staleness (nothing is lost twice) and T the
        interval, but no more than t, all as shares of the job, and W the weight:
        sum of ``share * ((1 - phi) * s * W(t, s) + phi * T/2 * W(t, T))``.
        """
        at, stale = losses.progress_h / useful_h, losses.since_reload_h / useful_h
        interval = np.minimum(interval_h / useful_h, at)
        phi = self.interval_share
        lost = (1.0 - phi) * stale * self.weight.of(at, stale)
        if phi:
            lost += phi * interval / 2.0 * self.weight.of(at, interval)
        return lost_portion(lost * useful_h, losses, replications, useful_h)

    def predict(self, weighted_pls: Floats) -> tuple[Floats, Floats]:
        """Loss and its standard error at some weighted PLS, both (n,) as they are.

        Notes
        -----
        Less than 0, as weights may make it, counts as 0. Between two points the standard error is
        interpolated like the loss: right where points err together, as those of one slope do, and
        too large where they err apart. Beyond the last point goes on the steeper of the last line
        and the line from 0 to the last point, and the relative error stays.
        """
        loss = np.interp(weighted_pls, self.pls, self.loss)
        error = np.interp(weighted_pls, self.pls, self.standard_error)
        last = (self.loss[-1] - self.loss[-2]) / (self.pls[-1] - self.pls[-2])
        steepest = max(last, self.loss[-1] / self.pls[-1])
        beyond = np.maximum(weighted_pls / self.pls[-1] - 1.0, 0.0)
        return loss + steepest * beyond * self.pls[-1], error * (1.0 + beyond)


def _wrong(response: Response) -> list[str]:
    """What keeps some numbers from being a response."""
    pls, loss, error = response.pls, response.loss, response.standard_error
    if response.strategy not in STRATEGIES:
        return [f"there is no such strategy; known are {', '.join(STRATEGIES)}"]
    if not len(pls) == len(loss) == len(error) >= 2:
        return ["pls, loss and standard_error need equally many numbers, at least 2"]
    if not all(np.isfinite(numbers).all() for numbers in (pls, loss, error)):
        return ["not every number is finite"]
    checks = {
        "pls must ascend from 0": pls[0] == 0 and _ascends(pls),
        "the loss at PLS 0 must be 0, and known": loss[0] == 0 and error[0] == 0,
        "a standard error is negative": bool((error >= 0).all()),
        "interval_share must lie between 0 and 1": 0 <= response.interval_share <= 1,
        "degrees of freedom must be positive": response.degrees > 0,
    }
    return [message for message, holds in checks.items() if not holds]


def _ascends(numbers: Floats) -> bool:
    return all(first < second for first, second in pairwise(numbers.tolist()))


def _ascend_within(shares: Floats) -> bool:
    return bool(shares[0] >= 0 and shares[-1] <= 1) and _ascends(shares)
