"""What stale shards cost in accuracy: measured responses, and what they predict for failures.

A shard that goes back to an old save loses samples. Training was measured to lose accuracy nearly
in proportion to them, one loss adding to the next; when in the run they are lost, and how old what
is reloaded is, weighs too. So a response per strategy and metric is enough to price any failures
(docs/staleness.md says how far).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from math import inf, nan, sqrt
from typing import Self

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.records import (
    Bools,
    Floats,
    Ints,
    OnFailure,
    RecoveryPolicy,
    ShardLoss,
    SmallTables,
    SubSaves,
)

WHOLE = "partial"  # every save is whole: partial recovery, at whatever interval
MORE_BYTES = "+"  # after the tracker's name: the small tables are saved with every sub-save
TRACKERS = ("scar", "mfu", "ssu", "round-robin")
STRATEGIES = (WHOLE, *TRACKERS, *(tracker + MORE_BYTES for tracker in TRACKERS))
WEIGHED_AT = (
    0.1  # staleness, as a share of the job, at which the mean of a weight over the job is 1
)
WEIGHT_TOLERANCE = 1e-3  # by which that mean may miss 1, as files round


class Metric(StrEnum):
    """In what a model is worse than its twin that met no failure; more is worse in both."""

    AUC = "auc"  # the twin's AUC less the run's
    LOG_LOSS = "log-loss"  # the run's log-loss less the twin's


def strategy_key(policy: RecoveryPolicy) -> str | None:
    """Whose response a policy has, one of `STRATEGIES`; None where no shard ever goes stale."""
    if policy.on_failure is not OnFailure.RELOAD:
        return None
    if policy.sub_saves is None:
        return WHOLE
    fresh = policy.sub_saves.small_tables is SmallTables.EACH_SUB_SAVE
    return policy.sub_saves.tracker + (MORE_BYTES if fresh else "")


def lost_portion(
    staleness_h: Floats, losses: ShardLoss, replications: Ints, useful_h: float
) -> Floats:
    """Portion of lost samples of each replication.

    Parameters
    ----------
    staleness_h : (n_losses,) work that each lost shard went back by [h]
    losses : the rows that `staleness_h` belongs to
    replications : (n,) ascending numbers of the replications asked for
    useful_h : work of the whole job [h]

    Notes
    -----
    Sum of ``staleness * share / useful`` over the replication's losses: samples are lost in
    proportion to hours of work, and a shard holds its share of the embedding servers.
    """
    portion = np.zeros(len(replications))
    row = np.searchsorted(replications, losses.replication)
    np.add.at(portion, row, staleness_h * losses.share / useful_h)
    return portion


# --------------------------------------------------------------------------- expected loss


@dataclass(frozen=True, slots=True)
class MeanLoss:
    """A mean loss over jobs and how well it is known, by simulation and by measurement together."""

    mean: float
    standard_error: float  # NaN where there was one job only
    degrees: float = inf  # of freedom of the standard error

    def quantile(self, p: float) -> float:
        """The value below which the mean lies with probability `p` (Student's t)."""
        if self.standard_error == 0:
            return self.mean
        return self.mean + float(special.stdtrit(min(self.degrees, 1e9), p)) * self.standard_error

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Both ends of the two-sided interval of the mean."""
        return self.quantile(0.5 - confidence / 2), self.quantile(0.5 + confidence / 2)


def mean_loss(loss: Floats, standard_error: Floats, degrees: float) -> MeanLoss:
    """The mean over jobs of predicted losses.

    Parameters
    ----------
    loss, standard_error : (n,) predicted loss of each job, and the curve's standard error of it
    degrees : of freedom of the curve's standard error; infinite where it is known

    Notes
    -----
    The curve errs alike in all jobs, so that its standard error is averaged and not divided by
    sqrt(n); that of the simulation, s / sqrt(n), is independent of it. The squares add up, their
    degrees of freedom after Welch (1947) and Satterthwaite (1946).
    """
    n, mean = len(loss), float(np.mean(loss))
    if n < 2:
        return MeanLoss(mean, nan)
    of_simulation = float(np.var(loss, ddof=1)) / n
    of_curve = float(np.mean(standard_error)) ** 2
    return MeanLoss(mean, *pooled((of_simulation, n - 1), (of_curve, degrees)))


def pooled(*variances: tuple[float, float]) -> tuple[float, float]:
    """Standard error of a sum of independent estimates, and its degrees of freedom.

    Parameters
    ----------
    variances : (squared standard error, its degrees of freedom) of each

    Notes
    -----
    Welch (1947), Satterthwaite (1946).
    """
    total = sum(variance for variance, _ in variances)
    spent = sum(variance**2 / degrees for variance, degrees in variances)
    return sqrt(total), total**2 / spent if spent > 0 else inf


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a curve says of some replications, a value for each."""

    loss: Floats  # (n,)
    standard_error: Floats  # (n,) the curve's; it errs alike in all of them
    beyond: Bools  # (n,) whether more was lost than was ever measured
    degrees: float  # of freedom of the standard error

    @property
    def beyond_fraction(self) -> float:
        """Share of the replications that lose more than was measured."""
        return float(self.beyond.mean())

    def mean(self) -> MeanLoss:
        """The mean over the replications, with both kinds of noise."""
        return mean_loss(self.loss, self.standard_error, self.degrees)


def nothing_lost(n: int) -> Prediction:
    """What strategies lose under which no shard ever goes stale: nothing, exactly."""
    return Prediction(np.zeros(n), np.zeros(n), np.zeros(n, dtype=bool), inf)


# --------------------------------------------------------------------------- the curve


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


@dataclass(frozen=True, slots=True, eq=False)
class StalenessCurve:
    """Measured responses of one model: what stale shards cost it under each strategy.

    Raises ParameterError where two responses are of the same strategy and metric.
    """

    name: str
    origin: str  # in one line: which file, and what measured it
    responses: tuple[Response, ...]
    notes: tuple[str, ...] = ()  # sentences: what to be careful with

    def __post_init__(self) -> None:
        seen = [(response.strategy, response.metric) for response in self.responses]
        for strategy, metric in seen:
            if seen.count((strategy, metric)) > 1:
                raise ParameterError(f"there are two responses of {strategy} in {metric}")

    def of(self, strategy: str, metric: Metric) -> Response | None:
        """The response of one of `STRATEGIES`, None where it was not measured."""
        found = (one for one in self.responses if (one.strategy, one.metric) == (strategy, metric))
        return next(found, None)

    def of_policy(self, policy: RecoveryPolicy, metric: Metric) -> Response | None:
        """The response of a policy; None where it loses nothing, or was not measured as it saves.

        Priority saving was measured at settings of its own (r, number of large tables); those of
        the policy have to be the same, where the curve says which they were.
        """
        key = strategy_key(policy)
        response = None if key is None else self.of(key, metric)
        if response is None or response.settings is None or policy.sub_saves is None:
            return response
        same = _what_decides(response.settings) == _what_decides(policy.sub_saves)
        return response if same else None

    def predict(
        self,
        policy: RecoveryPolicy,
        metric: Metric,
        losses: ShardLoss,
        replications: Ints,
        useful_h: float,
    ) -> Prediction | None:
        """What a policy's losses cost each replication; None where that was not measured.

        Parameters
        ----------
        losses : of these replications alone
        replications : (n,) ascending numbers of the replications
        useful_h : work of the whole job [h]
        """
        if strategy_key(policy) is None:
            return nothing_lost(len(replications))
        response = self.of_policy(policy, metric)
        if response is None:
            return None
        interval_h = policy.save_interval_h
        lost = response.weighted_pls(losses, replications, useful_h, interval_h)
        return Prediction(
            *response.predict(lost), beyond=lost > response.most_pls, degrees=response.degrees
        )


def _what_decides(settings: SubSaves) -> tuple[float, int, int | None]:
    """What of the settings of priority saving decides which rows are stale."""
    period = settings.sample_period if settings.tracker == "ssu" else None
    return settings.fraction, settings.n_large_tables, period
