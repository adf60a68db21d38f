"""Records of the pipeline as tables, and back: one row per replication, loss or event."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from cprsim.records import Activity, Cluster, EventKind, EventLog, ShardLoss
from cprsim.recovery.policy import Policy
from cprsim.results.accuracy_rows import accuracy_columns
from cprsim.staleness import lost_portion

if TYPE_CHECKING:
    from cprsim.experiments.pipeline import Outcome, StrategyOutcome


def replication_rows(outcome: Outcome) -> pd.DataFrame:
    """One row per strategy and replication: its hours, failures, saves and PLS.

    Columns: strategy, the columns of CostBreakdown (`useful_h` being the whole job's for those
    that finished), pls, pls_net, and those of `accuracy_columns`. Where there are finite spares, or
    a strategy takes extra nodes: extra_nodes and spare_nodes, which are paid like the job's.
    """
    frames = [_rows_of(strategy, outcome) for strategy in outcome.strategies]
    policies = [strategy.policy for strategy in outcome.strategies]
    if outcome.cluster.n_spares is not None or any(policy.tax.nodes for policy in policies):
        frames = [
            frame.assign(**beside_the_job(policy, outcome.cluster))
            for frame, policy in zip(frames, policies, strict=True)
        ]
    return pd.concat(frames, ignore_index=True)


def beside_the_job(policy: Policy, cluster: Cluster) -> dict[str, float]:
    """Nodes that are paid beside the job's own: those of the strategy, and finite spares."""
    return {"extra_nodes": policy.tax.nodes, "spare_nodes": float(cluster.n_spares or 0)}


def _rows_of(strategy: StrategyOutcome, outcome: Outcome) -> pd.DataFrame:
    costs, losses, useful_h = strategy.costs, strategy.losses, outcome.useful_h
    rows = pd.DataFrame(costs.columns())
    rows.insert(0, "strategy", strategy.policy.name)
    rows["pls"] = lost_portion(losses.since_save_h, losses, costs.replication, useful_h)
    rows["pls_net"] = lost_portion(losses.since_reload_h, losses, costs.replication, useful_h)
    return rows.assign(**accuracy_columns(strategy, outcome))


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
