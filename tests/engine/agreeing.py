"""Both engines on the same failures and draws, side by side."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from cprsim import engine
from cprsim.cluster import Block, JobSetting, cost_breakdown, shard_loss
from cprsim.draws import CostDraws
from cprsim.failures.block import BlockFailures
from cprsim.records import CostBreakdown, RecoveryPolicy, ShardLoss

CLOSE_H = 1e-9


def both(
    setting: JobSetting, policy: RecoveryPolicy, failures: BlockFailures, seed: int = 3
) -> tuple[engine.Ran, CostBreakdown, ShardLoss]:
    """What the engine gives, and the cluster, of all replications of one block."""
    n = failures.n_replications
    costs = CostDraws.of(setting.costs, seed, 0, n)
    ran = engine.simulate(setting, policy, failures, costs, range(n))
    log = Block(setting, 0, failures, costs).simulate(policy, range(n))
    return ran, cost_breakdown(log, setting.useful_h), shard_loss(log, setting.cluster.n_emb_ps)


def assert_agree(ran: engine.Ran, costs: CostBreakdown, losses: ShardLoss) -> None:
    """Every row of the replications that the engine did not leave, every column."""
    _assert_same(ran.costs, costs, ~np.isin(costs.replication, ran.left))
    _assert_same(ran.losses, losses, ~np.isin(losses.replication, ran.left))


def _assert_same(
    ours: CostBreakdown | ShardLoss, theirs: CostBreakdown | ShardLoss, mine: np.ndarray
) -> None:  # type: ignore[type-arg]
    for column in fields(ours):
        a, b = getattr(ours, column.name), getattr(theirs, column.name)[mine]
        assert a.shape == b.shape, column.name
        off = np.flatnonzero(~np.isclose(a, b, rtol=CLOSE_H, atol=CLOSE_H))
        assert not len(off), (column.name, off[:3], a[off[:3]], b[off[:3]])
