"""Both engines on the same failures and draws, side by side."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprsim.failures.block import BlockFailures
from cprsim.records import CostBreakdown, RecoveryPolicy, ShardLoss, in_order, stacked
from cprsim.simulate.blocks import Rows
from tests.simulate.building import JobSetting, block_of, engine, ran
from tests.simulate.folding import cost_breakdown, shard_loss

OneOf = TypeVar("OneOf", CostBreakdown, ShardLoss)
CLOSE = 1e-9  # relative, or in hours
N_BY_SIMPY = 150  # replications that SimPy runs
N_LOGS = 15  # replications whose event logs are folded


def both_ways(
    job: JobSetting, how: RecoveryPolicy, failing: BlockFailures, n: int
) -> tuple[Rows, Rows]:
    """The first n replications of a block: compiled, and by SimPy alone."""
    fast = ran(job, how, failing, range(n))
    return fast, ran(job, how, failing, range(n), simpy_alone=True)


def assert_both_agree(job: JobSetting, how: RecoveryPolicy, failing: BlockFailures, n: int) -> Rows:
    """Rows by both engines, and the first event logs; returns all compiled rows."""
    fast, simpy = both_ways(job, how, failing, min(n, N_BY_SIMPY))
    assert_rows_agree(fast, simpy)
    assert_logs_agree(job, how, failing, simpy, min(n, N_LOGS))
    return ran(job, how, failing, range(n))


def assert_rows_agree(ours: Rows, theirs: Rows) -> None:
    """All columns of the costs and of the losses, and the sums of these."""
    assert_same(ours.costs, theirs.costs)
    assert_same(ours.losses, theirs.losses)
    for rows in (ours, theirs):
        row = np.searchsorted(rows.costs.replication, rows.losses.replication)
        for summed_h, each_h in (
            (rows.stale_h, rows.losses.since_save_h),
            (rows.stale_net_h, rows.losses.since_reload_h),
        ):
            found = np.bincount(row, each_h * rows.losses.share, rows.costs.n_replications)
            np.testing.assert_allclose(summed_h, found, rtol=CLOSE, atol=CLOSE)


def assert_logs_agree(
    job: JobSetting, how: RecoveryPolicy, failing: BlockFailures, theirs: Rows, n: int
) -> None:
    """The event logs of the first n replications fold to their rows."""
    runs, block = engine(job, how), block_of(job, failing)
    logs = [runs.log(block, replication) for replication in range(n)]
    costs = stacked([cost_breakdown(log, job.useful_h) for log in logs])
    losses = stacked([shard_loss(log, job.cluster.n_emb_ps) for log in logs])
    assert_same(costs, first_of(theirs.costs, costs.replication[-1]))
    assert_same(losses, first_of(theirs.losses, costs.replication[-1]))


def assert_same(ours: OneOf, theirs: OneOf) -> None:
    """All columns are equal to rounding, numbers and flags exactly."""
    theirs_by_name = columns_of(theirs)
    for name, a in columns_of(ours).items():
        b = theirs_by_name[name]
        assert a.shape == b.shape, name
        same = a == b
        if a.dtype.kind == "f" and not same.all():
            same |= np.isclose(a, b, rtol=CLOSE, atol=CLOSE)
        off = np.flatnonzero(~same)
        assert not len(off), (name, ours.replication[off[:3]], a[off[:3]], b[off[:3]])


def columns_of(record: CostBreakdown | ShardLoss) -> dict[str, NDArray[Any]]:
    """A record's columns by name."""
    if isinstance(record, CostBreakdown):
        return record.columns()
    return {column.name: getattr(record, column.name) for column in fields(record)}


def first_of(rows: OneOf, last: int) -> OneOf:
    """The rows of the replications up to this one."""
    return in_order(rows, np.flatnonzero(rows.replication <= last))
