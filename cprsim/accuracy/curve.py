"""The staleness curve: the responses of one model, and losses of accuracy predicted from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from cprsim.accuracy.expected import Prediction, nothing_lost
from cprsim.accuracy.response import BY_PLS, COUNTED, Response
from cprsim.errors import ParameterError
from cprsim.files import NOT_STORED, digest_of
from cprsim.job.losses import WHOLE, Metric, priority_key, strategy_key
from cprsim.job.policy import Policy
from cprsim.job.records import CostBreakdown, ShardLoss, SubSaves

SAME_LENGTH = 0.01  # by which lengths of training may differ and count as one
FEWEST_SEEDS_TO_USE = 8  # of a curve to decide by: benchmarks/held_out.py
UNFIT = "unfit"  # in the checks of one metric: why nothing should be decided by it


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
            return nothing_lost(len(replications))
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
