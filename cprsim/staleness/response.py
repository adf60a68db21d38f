"""How much one strategy's stale shards cost in one metric: loss over weighted PLS, as measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from math import inf
from typing import Self

import numpy as np

from cprsim.errors import ParameterError
from cprsim.records import CostBreakdown, Floats, Ints, ShardLoss, SubSaves
from cprsim.staleness.expected import Prediction, jackknife_error
from cprsim.staleness.metric import Metric
from cprsim.staleness.strategies import STRATEGIES

WEIGHED_AT = (
    0.1  # staleness, as a share of the job, at which the mean of a weight over the job is 1
)
WEIGHT_TOLERANCE = 1e-3  # by which that mean may miss 1, as files round
BY_PLS = "pls"
COUNTED: Mapping[str, Callable[[CostBreakdown, float], Floats]] = {
    "failures": lambda costs, useful_h: costs.n_failures.astype(float),
    "saves": lambda costs, useful_h: costs.n_saves.astype(float),
    "degraded": lambda costs, useful_h: costs.hours_of("degraded") / useful_h,
}
"""What the loss of a recovery system may go by instead of PLS, (n,) of a job: failures, saves, and
hours that it lacks in speed as a share of useful time."""


@dataclass(frozen=True, slots=True, eq=False)
class Weight:
    """How much a lost sample counts, by when it is lost and how old the reloaded shard is.

    Bilinear between the knots, level beyond them. The default: all samples count alike.

    Parameters
    ----------
    at : (m,) ascending shares of the job that are done at the failure
    staleness : (n,) ascending work that the shard goes back by, as shares of the job
    weight : (m, n) none negative; its mean over the job at a staleness of 0.1 is 1

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
            "one is negative: to lose samples is no gain": bool((weight >= 0).all()),
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
        weights = np.zeros(len(at))
        for knot, factor in self._near(at, staleness):
            weights += factor * self.weight.ravel()[knot]
        return weights

    def factors(self, at: Floats, staleness: Floats, lost: Floats, row: Ints, n: int) -> Floats:
        """(n, n_knots) factors of the weights in weighted sums of losses.

        Parameters
        ----------
        at, staleness, lost : (n_asked,) of each loss
        row : (n_asked,) the sum that it belongs to, of `n`
        """
        n_knots = self.weight.size
        summed = np.zeros(n * n_knots)
        for knot, factor in self._near(at, staleness):
            summed += np.bincount(row * n_knots + knot, factor * lost, n * n_knots)
        return summed.reshape(n, n_knots)

    def _near(self, at: Floats, staleness: Floats) -> Iterator[tuple[Ints, Floats]]:
        """The knots around each failure and how much each counts, corner by corner."""
        rows, columns = _between(at, self.at), _between(staleness, self.staleness)
        for (i, of_i), (j, of_j) in product(rows, columns):
            yield i * len(self.staleness) + j, of_i * of_j


def _between(asked: Floats, known: Floats) -> list[tuple[Ints, Floats]]:
    """The knots on both sides of each number, and the share of each."""
    if len(known) == 1:
        return [(np.zeros(len(asked), np.int64), np.ones(len(asked)))]
    place = np.interp(asked, known, np.arange(len(known)))
    left = np.minimum(place.astype(np.int64), len(known) - 2)
    return [(left, 1.0 - (place - left)), (left + 1, place - left)]


@dataclass(frozen=True, slots=True, eq=False)
class Replicate:
    """A response as it would be without one of the seeds that it was measured on."""

    weight: Weight  # its knots are those of the response
    interval_share: float
    pls: Floats  # (n,) the first 0
    loss: Floats  # (n,) as it was seen: it may fall, or lie below 0


@dataclass(frozen=True, slots=True, eq=False)
class Response:
    """How much one strategy's stale shards cost in one metric, as measured; or a system's state.

    The error of a prediction is that of a jackknife where there are replicates: what it differs by
    as each seed is left out, weight and all. Else it is that of the line alone.

    Parameters
    ----------
    strategy : one of `STRATEGIES`, or a recovery system
    metric : in what
    pls : (n,) ascending portions of lost samples, the first 0; straight lines between them. Of a
        recovery system what `by` counts
    loss, standard_error : (n,) the mean loss at those, and its standard error; the first 0. A loss
        neither falls nor is negative, and one of 0 has an error
    weight : how much a sample counts by when it is lost
    interval_share : phi, the share of the loss that goes by the save interval and not by the time
        since the last save: of priority saving, whose rows may be older than the last save
    degrees : of freedom of the standard errors; infinite where they are known
    settings : at which priority saving was measured; None: not said, or there is none
    replicates : the same without each of the seeds; none where only the errors are known
    by : what `pls` holds: `pls` itself, or one of `COUNTED`

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
    replicates: tuple[Replicate, ...] = ()
    by: str = BY_PLS

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

    def scaled(self, factor: float, without_each: Floats) -> Self:
        """Every loss times a factor that is known as the replicates know it.

        Parameters
        ----------
        without_each : (n_replicates,) the factor without each of the seeds
        """
        of_factor = self.loss * float(jackknife_error(without_each))
        return replace(
            self,
            loss=factor * self.loss,
            standard_error=np.hypot(factor * self.standard_error, of_factor),
            replicates=tuple(
                replace(one, loss=each * one.loss)
                for one, each in zip(
                    self.replicates, without_each.tolist(), strict=bool(self.replicates)
                )
            ),
        )

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
        since, whole = self._factors(losses, replications, useful_h, interval_h)
        return _weighted(since, whole, self)

    def _factors(
        self, losses: ShardLoss, replications: Ints, useful_h: float, interval_h: float
    ) -> tuple[Floats, Floats | None]:
        """Factors of the weights by the time since the save and by the interval, if it counts."""
        at, stale = losses.progress_h / useful_h, losses.since_reload_h / useful_h
        row, n = np.searchsorted(replications, losses.replication), len(replications)
        since = self.weight.factors(at, stale, losses.share * stale, row, n)
        if not self.interval_share and not any(one.interval_share for one in self.replicates):
            return since, None
        interval = np.minimum(interval_h / useful_h, at)
        return since, self.weight.factors(at, interval, losses.share * interval / 2.0, row, n)

    def predict(self, weighted_pls: Floats) -> tuple[Floats, Floats]:
        """Loss and its standard error at some weighted PLS, both (n,), weights taken as known.

        Notes
        -----
        Between two points the standard error is interpolated like the loss: right where points err
        together, as those of one slope do, and too large where they err apart. Beyond the last
        point goes on the steeper of the last line and the line from 0 to the last point, and the
        relative error stays.
        """
        error = np.interp(weighted_pls, self.pls, self.standard_error)
        beyond = np.maximum(weighted_pls / self.pls[-1] - 1.0, 0.0)
        return _along(self, weighted_pls), error * (1.0 + beyond)

    def predict_counted(self, costs: CostBreakdown, useful_h: float) -> Prediction:
        """What replications lose by what is counted of each, one of `COUNTED`."""
        found = COUNTED[self.by](costs, useful_h)
        return Prediction(*self.predict(found), found > self.most_pls, self.degrees)

    def predict_losses(
        self, losses: ShardLoss, replications: Ints, useful_h: float, interval_h: float
    ) -> Prediction:
        """What some losses cost each replication; parameters as those of `weighted_pls`."""
        since, whole = self._factors(losses, replications, useful_h, interval_h)
        lost = _weighted(since, whole, self)
        loss, error = self.predict(lost)
        apart = np.zeros((0, len(loss)))
        if self.replicates:
            apart = np.array([_along(one, _weighted(since, whole, one)) for one in self.replicates])
            error = jackknife_error(apart)
        return Prediction(loss, error, lost > self.most_pls, self.degrees, apart)


def _weighted(since: Floats, whole: Floats | None, one: Response | Replicate) -> Floats:
    """Weighted PLS (n,) by the weights and the phi of one response."""
    weight, phi = one.weight.weight.ravel(), one.interval_share
    lost: Floats = (1.0 - phi) * (since @ weight)
    return lost if whole is None else lost + phi * (whole @ weight)


def _along(line: Response | Replicate, weighted_pls: Floats) -> Floats:
    """Loss at some weighted PLS (n,); beyond the end along the steeper of two lines."""
    pls, loss = line.pls, line.loss
    last = (loss[-1] - loss[-2]) / (pls[-1] - pls[-2])
    steepest = max(last, loss[-1] / pls[-1])
    beyond = np.maximum(weighted_pls - pls[-1], 0.0)
    return np.asarray(np.interp(weighted_pls, pls, loss) + steepest * beyond)


def _wrong(response: Response) -> list[str]:
    """What keeps some numbers from being a response."""
    pls, loss, error = response.pls, response.loss, response.standard_error
    if response.by == BY_PLS and response.strategy not in STRATEGIES:
        return [f"there is no such strategy; known are {', '.join(STRATEGIES)}"]
    if not len(pls) == len(loss) == len(error) >= 2:
        return ["pls, loss and standard_error need equally many numbers, at least 2"]
    if not all(np.isfinite(numbers).all() for numbers in (pls, loss, error)):
        return ["not every number is finite"]
    checks = {
        "pls must ascend from 0": pls[0] == 0 and _ascends(pls),
        "the loss at PLS 0 must be 0, and known": loss[0] == 0 and error[0] == 0,
        "a standard error is negative": bool((error >= 0).all()),
        "a loss is negative, or falls as more is lost": bool((np.diff(loss) >= 0).all()),
        "a loss of 0 needs a standard error above 0": bool(((loss > 0) | (error > 0))[1:].all()),
        "interval_share must lie between 0 and 1": 0 <= response.interval_share <= 1,
        "degrees of freedom must be positive": response.degrees > 0,
        "replicates are none, or at least 2": len(response.replicates) != 1,
        "replicates have knots of their own": all(
            np.array_equal(one.weight.at, response.weight.at)
            and np.array_equal(one.weight.staleness, response.weight.staleness)
            for one in response.replicates
        ),
    }
    return [message for message, holds in checks.items() if not holds]


def _ascends(numbers: Floats) -> bool:
    return all(first < second for first, second in pairwise(numbers.tolist()))


def _ascend_within(shares: Floats) -> bool:
    return bool(shares[0] >= 0 and shares[-1] <= 1) and _ascends(shares)
