"""The staleness curve: measured responses of one model, and the losses predicted from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import inf, nan, sqrt
from typing import Annotated, Any, Self

import numpy as np
from scipy import special

from cprsim.errors import ParameterError
from cprsim.files import NOT_STORED, Endless, Stored, digest_of
from cprsim.job.losses import WHOLE, Metric, priority_key, strategy_key
from cprsim.job.policy import Policy
from cprsim.job.records import (
    Bools,
    CostBreakdown,
    Floats,
    Ints,
    ShardLoss,
    SubSaves,
    pooled,
)

SAME_LENGTH = 0.01  # by which lengths of training may differ and count as one
FEWEST_SEEDS_TO_USE = 8  # of a curve to decide by: benchmarks/held_out.py
UNFIT = "unfit"  # in the checks of one metric: why nothing should be decided by it
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


# --------------------------------------------------------------------------- losses with errors


@dataclass(frozen=True, slots=True)
class MeanLoss:
    """A mean loss over jobs with its errors by simulation and by measurement."""

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


def jackknife_error(replicates: Floats) -> Floats:
    """Standard error of estimates (...) from those without each of n seeds, (n, ...).

    sqrt((n - 1) / n sum (x_i - mean)^2), of n - 1 degrees of freedom (Tukey 1958).
    """
    error: Floats = np.std(replicates, axis=0) * sqrt(len(replicates) - 1)
    return error


@dataclass(frozen=True, slots=True)
class Prediction:
    """Loss that a curve predicts for each of n replications.

    With replicates, the error of a mean over jobs is computed from the mean under each replicate:
    the curve's errors early and late in a job may differ.
    """

    loss: Floats  # (n,)
    standard_error: Floats  # (n,) the curve's; it errs alike in all of them
    beyond: Bools  # (n,) whether more was lost than was ever measured
    degrees: float  # of freedom of the standard error

    apart: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """(n_replicates, n) losses by the curve without each of its seeds; none: only errors known."""

    @property
    def beyond_fraction(self) -> float:
        """Share of the replications that lose more than the measured range."""
        return float(self.beyond.mean())

    def error_of_mean(self) -> float:
        """The curve's standard error of the mean over the replications."""
        if len(self.apart):
            return float(jackknife_error(self.apart.mean(axis=1)))
        return float(np.mean(self.standard_error))

    def mean(self) -> MeanLoss:
        """The mean over the replications, with both kinds of noise.

        The curve errs alike in all jobs, so that its standard error is averaged and not divided by
        sqrt(n); that of the simulation, s / sqrt(n), is independent of it. The squares add up,
        their degrees of freedom after Welch (1947) and Satterthwaite (1946).
        """
        n, mean = len(self.loss), float(np.mean(self.loss))
        if n < 2:
            return MeanLoss(mean, nan)
        of_simulation = float(np.var(self.loss, ddof=1)) / n
        of_curve = self.error_of_mean() ** 2
        return MeanLoss(mean, *pooled((of_simulation, n - 1), (of_curve, self.degrees)))


def exactly(loss: Floats) -> Prediction:
    """A loss (n,) without an error of a curve: PLS, or 0 where no shard ever goes stale."""
    return Prediction(loss, np.zeros(len(loss)), np.zeros(len(loss), dtype=bool), inf)


# --------------------------------------------------------------------------- of one strategy


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


# --------------------------------------------------------------------------- the curve


@dataclass(frozen=True, eq=False)
class StalenessCurve:
    """Measured responses of one model: its loss under each strategy from stale shards."""

    name: str
    responses: tuple[Response, ...]  # what was measured
    # the section `kernel` that was measured, without its seed; None in the user's own
    kernel: Mapping[str, Any] | None = None
    command: str = ""  # that measured it
    # versions, seeds, number of runs: what made it
    manifest: Mapping[str, Any] = field(default_factory=dict)
    # held-out runs, linearity, differences between strategies: how far it holds
    checks: Mapping[str, Any] = field(default_factory=dict)
    # sentences, why nothing should be decided by it; none where it is fit for use
    unfit: tuple[str, ...] = ()
    # in one line: which file, and what measured it
    origin: str = field(default="", metadata=NOT_STORED)
    notes: tuple[str, ...] = field(default=(), metadata=NOT_STORED)  # what to be careful with

    @property
    def identity(self) -> str | None:
        """Digest of the section `kernel`; None if the measured model is not recorded."""
        return None if self.kernel is None else digest_of(self.kernel)

    @property
    def n_samples(self) -> int | None:
        """Samples of a run, all epochs; None where the file does not say."""
        of_trainer = self.manifest.get("trainer") or {}
        n_samples: int | None = self.manifest.get("n_samples", of_trainer.get("n_samples"))
        return n_samples

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Metrics of the responses, each once."""
        return tuple(dict.fromkeys(response.metric for response in self.responses))

    @property
    def unfit_metrics(self) -> dict[Metric, tuple[str, ...]]:
        """Reasons against decisions by single metrics; only metrics that are unfit."""
        reasons = {m: tuple(self.checks.get(m.value, {}).get(UNFIT, ())) for m in self.metrics}
        return {metric: some for metric, some in reasons.items() if some}

    @property
    def bytes_shares(self) -> dict[str, float]:
        """Bytes of each strategy's saves over those of whole saves; empty if not counted."""
        written = self.checks.get("bytes_written", {}).get("by_strategy", {})
        whole_bytes = written.get(WHOLE)
        return {key: n / whole_bytes for key, n in written.items() if key != WHOLE and whole_bytes}

    def why_unfit(self, metric: Metric) -> tuple[str, ...]:
        """Reasons against decisions by one metric, in sentences."""
        return (*self.unfit, *self.unfit_metrics.get(metric, ()))

    def of(self, strategy: str, metric: Metric) -> Response | None:
        """The response of one of `RESPONSE_KEYS` or of a system, None where it was not measured."""
        by_key = {(response.strategy, response.metric): response for response in self.responses}
        return by_key.get((strategy, metric))

    def of_policy(self, policy: Policy, metric: Metric) -> Response | None:
        """The response of a policy; None if it loses nothing, or if its settings were not measured.

        Priority saving was measured at particular settings (r, number of large tables); a policy
        must have the same ones, if the curve records them.
        """
        key = strategy_key(policy)
        response = None if key is None else self.of(key, metric)
        if response is None or response.settings is None or policy.sub_saves is None:
            return response
        alike = _what_decides(response.settings) == _what_decides(policy.sub_saves)
        return response if alike else None

    def with_bytes(self, sub_saves: SubSaves) -> SubSaves:
        """`sub_saves` with the bytes that the curve counted at these settings, if it did."""
        key = priority_key(sub_saves)
        share = self.bytes_shares.get(key)
        measured = {response.strategy: response.settings for response in self.responses}.get(key)
        if share is None or measured is None:
            return sub_saves
        alike = _what_decides(measured) == _what_decides(sub_saves)
        return replace(sub_saves, bytes_share=share) if alike else sub_saves

    def at_length(self, n_samples: float) -> StalenessCurve:
        """The curve, with a note where the job trains on another number of samples."""
        if self.n_samples is None or abs(n_samples / self.n_samples - 1) <= SAME_LENGTH:
            return self
        note = (
            f"The curve {self.name} was measured on runs of {self.n_samples:,} samples, and this "
            f"job trains on {n_samples:,.0f}: how its losses grow with length is not known "
            "(docs/own-model.md)."
        )
        return replace(self, notes=(*self.notes, note))

    def predict(
        self,
        policy: Policy,
        metric: Metric,
        losses: ShardLoss,
        costs: CostBreakdown,
        useful_h: float,
    ) -> Prediction | None:
        """Predict the loss of each replication under a policy; None if that was not measured."""
        replications = costs.replication
        if strategy_key(policy) is None:
            return exactly(np.zeros(len(replications)))
        response = self.of_policy(policy, metric)
        if response is None:
            return None
        if response.by != BY_PLS:
            if response.by == "degraded" and response.by not in policy.parts:
                raise ParameterError(
                    f"the curve {self.name} prices {response.strategy} by `degraded`, and under "
                    f"{policy.name} the job never works at less than its speed: give another `by`"
                )
            counted, degrees = COUNTED[response.by](costs, useful_h), response.degrees
            return Prediction(*response.predict(counted), counted > response.most_pls, degrees)
        return response.predict_losses(losses, replications, useful_h, policy.interval_h)


def _what_decides(settings: SubSaves) -> tuple[float, int, int | None]:
    """The settings of priority saving that decide which rows are stale."""
    period = settings.sample_period if settings.tracker == "ssu" else None
    return settings.fraction, settings.n_large_tables, period
