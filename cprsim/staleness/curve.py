"""The staleness curve: the responses of one model, and what they say of simulated losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from cprsim.errors import ParameterError
from cprsim.records import Ints, RecoveryPolicy, ShardLoss, SubSaves
from cprsim.staleness.expected import Prediction, nothing_lost
from cprsim.staleness.metric import Metric
from cprsim.staleness.response import Response
from cprsim.staleness.strategies import priority_key, strategy_key

FEWEST_SEEDS_TO_USE = 8  # of a curve to decide by: benchmarks/coverage_of_curves.py


@dataclass(frozen=True, slots=True, eq=False)
class StalenessCurve:
    """Measured responses of one model: what stale shards cost it under each strategy.

    Raises ParameterError where two responses are of the same strategy and metric.
    """

    name: str
    origin: str  # in one line: which file, and what measured it
    responses: tuple[Response, ...]
    notes: tuple[str, ...] = ()  # sentences: what to be careful with
    unfit: tuple[str, ...] = ()  # sentences: why nothing should be decided by it
    # of the errors of two strategies' responses, where both were measured on the same seeds
    correlations: Mapping[tuple[Metric, str, str], float] = field(default_factory=dict)
    # by strategy: what its sub-saves of an interval write, over what a whole save does
    bytes_shares: Mapping[str, float] = field(default_factory=dict)
    unfit_metrics: Mapping[Metric, tuple[str, ...]] = field(default_factory=dict)

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """Those of the responses, each once."""
        return tuple(dict.fromkeys(one.metric for one in self.responses))

    def why_unfit(self, metric: Metric) -> tuple[str, ...]:
        """Sentences: why nothing should be decided by it in one metric."""
        return (*self.unfit, *self.unfit_metrics.get(metric, ()))

    def __post_init__(self) -> None:
        seen = [(response.strategy, response.metric) for response in self.responses]
        for strategy, metric in seen:
            if seen.count((strategy, metric)) > 1:
                raise ParameterError(f"there are two responses of {strategy} in {metric}")

    def of(self, strategy: str, metric: Metric) -> Response | None:
        """The response of one of `STRATEGIES`, None where it was not measured."""
        found = (one for one in self.responses if (one.strategy, one.metric) == (strategy, metric))
        return next(found, None)

    def correlation(self, metric: Metric, strategy: str, other: str) -> float | None:
        """How far the errors of two responses go together, between -1 and 1; None: not known.

        What one response says twice errs alike: 1.
        """
        if strategy == other:
            return 1.0
        known = self.correlations
        return known.get((metric, strategy, other), known.get((metric, other, strategy)))

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

    def with_bytes(self, sub_saves: SubSaves) -> SubSaves:
        """Priority saving that costs what was counted for it; as it is where nothing was.

        It was counted at settings of its own, which have to be the same.
        """
        key = priority_key(sub_saves)
        share = self.bytes_shares.get(key)
        measured = next((one.settings for one in self.responses if one.strategy == key), None)
        if share is None or measured is None:
            return sub_saves
        same = _what_decides(measured) == _what_decides(sub_saves)
        return replace(sub_saves, bytes_share=share) if same else sub_saves

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
        return response.predict_losses(losses, replications, useful_h, policy.save_interval_h)


def _what_decides(settings: SubSaves) -> tuple[float, int, int | None]:
    """What of the settings of priority saving decides which rows are stale."""
    period = settings.sample_period if settings.tracker == "ssu" else None
    return settings.fraction, settings.n_large_tables, period
