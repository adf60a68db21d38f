"""Records of the pipeline as tables: one row per replication, loss or event.

What the staleness curve says of a replication stands in its row. A curve errs alike in all, so that
its standard error stays beside each loss and is not averaged away with them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cprsim.records import Activity, Cluster, EventKind, EventLog, Floats, ShardLoss, SubSaves
from cprsim.recovery.policy import Policy
from cprsim.staleness.curve import StalenessCurve
from cprsim.staleness.expected import Prediction, nothing_lost
from cprsim.staleness.names import ALWAYS, Metric, lost_portion, strategy_key

if TYPE_CHECKING:
    from cprsim.experiments.pipeline import Outcome, StrategyOutcome


def replication_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and replication: its hours, failures, saves and PLS.

    Columns: strategy, the columns of CostBreakdown (`useful_h` being the whole job's for those
    that finished), pls, pls_net, and those of `accuracy_columns`. Where there are finite spares, or
    a strategy takes extra nodes: extra_nodes and spare_nodes, which are paid like the job's.
    """
    frames = [pd.DataFrame(columns_of(strategy, outcome)) for strategy in outcome.strategies]
    return pd.concat(frames, ignore_index=True)


def columns_of(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Any]:
    """The replication rows of one strategy, as columns; what is equal in all is a scalar."""
    costs, losses, useful_h = strategy.costs, strategy.losses, outcome.useful_h
    return {
        "strategy": strategy.policy.name,
        **costs.columns(),
        "pls": lost_portion(losses.since_save_h, losses, costs.replication, useful_h),
        "pls_net": lost_portion(losses.since_reload_h, losses, costs.replication, useful_h),
        **accuracy_columns(strategy, outcome),
        **node_columns(strategy, outcome),
    }


def node_columns(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, float]:
    """The nodes that are paid like the job's; none where no strategy has any."""
    n_spares, taxes = outcome.cluster.n_spares, [one.policy.tax for one in outcome.strategies]
    if n_spares is None and not any(tax.nodes for tax in taxes):
        return {}
    return {"extra_nodes": strategy.policy.tax.nodes, "spare_nodes": float(n_spares or 0)}


def loss_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and lost shard: strategy, then the columns of ShardLoss."""
    frames = []
    for strategy in outcome.strategies:
        columns = {f.name: getattr(strategy.losses, f.name) for f in fields(ShardLoss)}
        frame = pd.DataFrame(columns)
        frame.insert(0, "strategy", strategy.policy.name)
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def timeline_rows(logs: Mapping[str, EventLog], cluster: Cluster) -> pd.DataFrame:
    """One row per strategy and event, in words: strategy, the columns of EventLog, node.

    `kind` and `activity` are the lower-case names of EventKind and Activity; `node` names the
    slot within its role (``emb_ps 3``) and is empty where no node is concerned.
    """
    kinds = np.array([kind.name.lower() for kind in EventKind])
    activities = np.array([activity.name.lower() for activity in Activity])
    nodes = np.array([f"{role.name} {i}" for role in cluster.roles for i in range(role.n_nodes)])
    frames = []
    for name, log in logs.items():
        frame = pd.DataFrame({f.name: getattr(log, f.name) for f in fields(EventLog)})
        frame.insert(0, "strategy", name)
        frame["kind"] = kinds[log.kind]
        frame["activity"] = activities[log.activity]
        frame["node"] = np.where(log.slot >= 0, nodes[log.slot], "")
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


# --------------------------------------------------------------------------- what lost samples cost


QUANTITIES = {metric: metric.quantity for metric in ALWAYS}  # which all results have columns of
BEYOND = "beyond_measured"
RESPONSE = "response"

# (quantity, one response, another) -> the correlation of their errors, None where nothing tells
Sharing = Callable[[str, str, str], float | None]
Column = Floats | float | str
Variance = tuple[float, float]  # squared standard error, its degrees of freedom


def priced_by(curve: StalenessCurve | None) -> dict[Metric, str]:
    """The column of each metric's loss: AUC, log-loss, and what else a curve knows."""
    further = () if curve is None else curve.metrics
    return QUANTITIES | {metric: metric.quantity for metric in further}


def further_losses(columns: Iterable[Any]) -> tuple[str, ...]:
    """Columns of losses in other metrics than AUC and log-loss."""
    names = map(str, columns)
    return tuple(n for n in names if n not in QUANTITIES.values() and has_measured_error(n))


def accuracy_columns(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Column]:
    """The columns of one strategy's rows: see docs/metrics.md. NaN where nothing is known."""
    columns: dict[str, Column] = {RESPONSE: strategy_key(strategy.policy) or ""}
    beyond = np.full(strategy.costs.n_replications, np.nan)
    for metric, name in priced_by(outcome.curve).items():
        predicted = _predicted(strategy, outcome, metric)
        if predicted is None:
            columns |= {name: np.nan, f"{name}_se": np.nan, f"{name}_degrees": np.nan}
            continue
        columns |= {name: predicted.loss, f"{name}_se": predicted.standard_error}
        columns[f"{name}_degrees"] = predicted.degrees
        beyond = np.fmax(beyond, predicted.beyond)
    return columns | {BEYOND: beyond}


def why_unpriced(curve: StalenessCurve, policy: Policy) -> str:
    """Why a curve does not say what AUC a policy loses; empty where it does, or nothing is lost."""
    key = strategy_key(policy)
    if key is None or curve.of_policy(policy, Metric.AUC) is not None:
        return ""
    response = curve.of(key, Metric.AUC)
    if response is not None and response.settings is not None and policy.sub_saves is not None:
        measured, here = _settings(response.settings), _settings(policy.sub_saves)
        return f"it was measured with sub-saves of {measured}, here they are of {here}"
    if curve.of(key, Metric.LOG_LOSS) is not None:
        return f"the response of `{key}` is in log-loss alone, not in AUC"
    known = ", ".join(one.strategy for one in curve.responses if one.metric == Metric.AUC)
    return f"it has no response of `{key}` in AUC; it has: {known or 'none'}"


def _settings(sub_saves: SubSaves) -> str:
    every = f", every {sub_saves.sample_period}th sample" if sub_saves.tracker == "ssu" else ""
    return f"{100 * sub_saves.fraction:g} % of {sub_saves.n_large_tables} large tables{every}"


def _predicted(strategy: StrategyOutcome, outcome: Outcome, metric: Metric) -> Prediction | None:
    if outcome.curve is None:
        loses_nothing = strategy_key(strategy.policy) is None
        return nothing_lost(strategy.costs.n_replications) if loses_nothing else None
    return outcome.curve.predict(
        strategy.policy, metric, strategy.losses, strategy.costs, outcome.useful_h
    )


def shared_by(curve: StalenessCurve) -> Sharing:
    """How far the errors of losses go together that one curve prices."""

    def correlation(quantity: str, a: str, b: str) -> float | None:
        metric = Metric.of_quantity(quantity)
        return None if metric is None else curve.correlation(metric, a, b)

    return correlation


def not_shared(quantity: str, a: str, b: str) -> None:
    """Errors of two curves: nothing tells how they go together."""


def has_measured_error(quantity: str) -> bool:
    """Whether a metric carries the error of a curve beside that of the simulation."""
    return Metric.of_quantity(quantity) is not None


def of_difference(
    a: tuple[float, float], b: tuple[float, float], correlation: float | None
) -> tuple[Variance, ...]:
    """Variances of a difference of two losses that come from measurement."""
    (error_a, degrees_a), (error_b, degrees_b) = a, b
    if correlation is not None:
        together = error_a**2 + error_b**2 - 2.0 * correlation * error_a * error_b
        return ((max(together, 0.0), min(degrees_a, degrees_b)),)
    return ((error_a**2, degrees_a), (error_b**2, degrees_b))
