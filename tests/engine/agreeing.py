"""Both engines on the same failures and draws, side by side."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprsim import engine
from cprsim.cluster import Block, JobSetting, cost_breakdown, shard_loss
from cprsim.draws import CostDraws
from cprsim.failures.block import BlockFailures
from cprsim.records import CostBreakdown, Ints, RecoveryPolicy, ShardLoss, in_order

OneOf = TypeVar("OneOf", CostBreakdown, ShardLoss)
CLOSE = 1e-9  # relative, or in hours


def both(
    setting: JobSetting, policy: RecoveryPolicy, failures: BlockFailures, n: int
) -> tuple[engine.Ran, CostBreakdown, ShardLoss]:
    """What the engine gives, and the cluster, of the first n replications of a block."""
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    ran = engine.simulate(setting, policy, failures, costs, range(n))
    log = Block(setting, 0, failures, costs).simulate(policy, range(n))
    return ran, cost_breakdown(log, setting.useful_h), shard_loss(log, setting.cluster.n_emb_ps)


def assert_agree(ran: engine.Ran, costs: CostBreakdown, losses: ShardLoss) -> None:
    """Every row of the replications that the engine did not leave, every column."""
    assert_same(ran.costs, _but(costs, ran.left))
    assert_same(ran.losses, _but(losses, ran.left))


def assert_same(ours: OneOf, theirs: OneOf) -> None:
    """All columns are equal to rounding, numbers and flags exactly."""
    theirs_by_name = columns_of(theirs)
    for name, a in columns_of(ours).items():
        b = theirs_by_name[name]
        assert a.shape == b.shape, name
        exact = a.dtype.kind != "f"
        same = a == b if exact else np.isclose(a, b, rtol=CLOSE, atol=CLOSE)
        off = np.flatnonzero(~same)
        assert not len(off), (name, ours.replication[off[:3]], a[off[:3]], b[off[:3]])


def columns_of(record: CostBreakdown | ShardLoss) -> dict[str, NDArray[Any]]:
    """A record's columns by name."""
    if isinstance(record, CostBreakdown):
        return record.columns()
    return {column.name: getattr(record, column.name) for column in fields(record)}


def _but(rows: OneOf, left: Ints) -> OneOf:
    return in_order(rows, np.flatnonzero(~np.isin(rows.replication, left)))
