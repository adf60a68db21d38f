"""Records of the pipeline as tables: one row per replication, loss or event.

The row of a replication includes its loss by the staleness curve. The curve's error is common to
all rows, so each loss keeps its standard error, which averaging does not reduce.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from cprsim.job.losses import ALWAYS, Metric, lost_portion, strategy_key
from cprsim.job.policy import Policy
from cprsim.job.records import Activity, Cluster, EventKind, EventLog, Floats, ShardLoss, SubSaves

if TYPE_CHECKING:
    from cprsim.accuracy.curve import StalenessCurve
    from cprsim.results.pipeline import Outcome, StrategyOutcome


def replication_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and replication: its hours, failures, saves and PLS.

    Columns: strategy, the columns of CostBreakdown (`useful_h` being the whole job's for those
    that finished), pls, pls_net, and those of `accuracy_columns`. Where there are finite spares, or
    a strategy takes extra nodes: extra_nodes and spare_nodes, which are paid like the job's.
    """
    return _one_table({s.policy.name: columns_of(s, outcome) for s in outcome.strategies})


def _one_table(columns: Mapping[str, Mapping[str, Any]]) -> pd.DataFrame:
    """One table of those of several strategies, whose names come first."""
    frames = [pd.DataFrame({"strategy": name, **mine}) for name, mine in columns.items()]
    return pd.concat(frames or [pd.DataFrame({"strategy": []})], ignore_index=True)


def columns_of(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Any]:
    """The replication rows of one strategy, as columns; a value equal in all is a scalar.

    Without the single losses there are no columns of accuracy.
    """
    costs, losses, useful_h = strategy.costs, strategy.losses, outcome.useful_h
    if strategy.stale_h is None:
        pls, net = (
            lost_portion(since_h, losses, costs.replication, useful_h)
            for since_h in (losses.since_save_h, losses.since_reload_h)
        )
        accuracy = accuracy_columns(strategy, outcome)
    else:
        pls, net = (stale_h / useful_h for stale_h in strategy.stale_h)
        accuracy = {RESPONSE: ""}
    columns = {**costs.columns(), "pls": pls, "pls_net": net, **accuracy}
    n_spares, extra = outcome.cluster.n_spares, [s.policy.tax.nodes for s in outcome.strategies]
    if n_spares is not None or any(extra):  # nodes that are paid like the job's
        columns |= {"extra_nodes": strategy.policy.tax.nodes, "spare_nodes": float(n_spares or 0)}
    return columns


def loss_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and lost shard: strategy, then the columns of ShardLoss."""
    return _one_table({s.policy.name: _fields(s.losses) for s in outcome.strategies})


def timeline_rows(logs: Mapping[str, EventLog], cluster: Cluster) -> pd.DataFrame:
    """One row per strategy and event, in words: strategy, the columns of EventLog, node.

    `kind` and `activity` are the lower-case names of EventKind and Activity; `node` names the
    slot within its role (``emb_ps 3``) and is empty where no node is concerned.
    """
    kinds = np.array([kind.name.lower() for kind in EventKind])
    activities = np.array([activity.part for activity in Activity])
    nodes = np.array([f"{role.name} {i}" for role in cluster.roles for i in range(role.n_nodes)])
    return _one_table(
        {
            name: {
                **_fields(log),
                "kind": kinds[log.kind],
                "activity": activities[log.activity],
                "node": np.where(log.slot >= 0, nodes[log.slot], ""),
            }
            for name, log in logs.items()
        }
    )


def _fields(record: ShardLoss | EventLog) -> dict[str, Any]:
    return {column.name: getattr(record, column.name) for column in fields(record)}


# --------------------------------------------------------------------------- what lost samples cost


ALWAYS_NAMED = {metric: metric.quantity for metric in ALWAYS}  # which all results have columns of
BEYOND = "beyond_measured"
RESPONSE = "response"

Column = Floats | float | str


def further_losses(columns: Iterable[Any]) -> tuple[str, ...]:
    """Columns of losses in other metrics than AUC and log-loss."""
    names = map(str, columns)
    return tuple(n for n in names if n not in ALWAYS_NAMED.values() and has_measured_error(n))


def accuracy_columns(strategy: StrategyOutcome, outcome: Outcome) -> dict[str, Column]:
    """The columns of one strategy's rows: see docs/concepts.md. NaN where nothing is known."""
    policy, costs, curve = strategy.policy, strategy.costs, outcome.curve
    columns: dict[str, Column] = {RESPONSE: strategy_key(policy) or ""}
    if curve is None:  # nothing is known, or nothing lost
        loss, degrees = (np.nan, np.nan) if columns[RESPONSE] else (0.0, inf)
        for name in ALWAYS_NAMED.values():
            columns |= {name: loss, f"{name}_se": loss, f"{name}_degrees": degrees}
        return columns | {BEYOND: loss}
    beyond = np.full(costs.n_replications, np.nan)
    for metric in dict.fromkeys([*ALWAYS, *curve.metrics]):
        name = metric.quantity
        predicted = curve.predict(policy, metric, strategy.losses, costs, outcome.useful_h)
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
        measured, used = _settings(response.settings), _settings(policy.sub_saves)
        return f"it was measured with sub-saves of {measured}, here they are of {used}"
    if curve.of(key, Metric.LOG_LOSS) is not None:
        return f"the response of `{key}` is in log-loss alone, not in AUC"
    priced = ", ".join(r.strategy for r in curve.responses if r.metric == Metric.AUC)
    return f"it has no response of `{key}` in AUC; it has: {priced or 'none'}"


def _settings(sub_saves: SubSaves) -> str:
    every = f", one sample in {sub_saves.sample_period}" if sub_saves.tracker == "ssu" else ""
    return f"{100 * sub_saves.fraction:g} % of {sub_saves.n_large_tables} large tables{every}"


def has_measured_error(quantity: str) -> bool:
    """Whether a metric carries the error of a curve beside that of the simulation."""
    return Metric.of_quantity(quantity) is not None
