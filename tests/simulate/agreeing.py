"""All ways to run a job on the same failures and draws, side by side."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from cprsim.failures.block import BlockFailures
from cprsim.records import CostBreakdown, RecoveryPolicy, ShardLoss, in_order, stacked
from cprsim.simulate import blocks
from cprsim.simulate.engines import FAST, Rows
from cprsim.simulate.fast.params import params_of
from tests.simulate.building import JobSetting, block_of, engine, ran, simulated
from tests.simulate.folding import cost_breakdown, shard_loss

OneOf = TypeVar("OneOf", CostBreakdown, ShardLoss)
CLOSE = 1e-9  # relative, or in hours
N_BY_SIMPY = 150  # replications that SimPy runs
N_LOGS = 15  # replications whose event logs are folded


@dataclass(frozen=True, slots=True)
class Ways:
    """What some replications cost: compiled, by the general loop alone, and by SimPy."""

    fast: Rows  # in the common case many abreast, and the rest by the general loop
    general: Rows
    simpy: Rows

    @property
    def compiled(self) -> list[Rows]:
        """Those of the compiled loops; one where no replication is of the common case."""
        return [self.fast] if self.general is self.fast else [self.fast, self.general]

    @property
    def different(self) -> list[Rows]:
        return [*self.compiled, self.simpy]


def compiled_ways(
    job: JobSetting,
    how: RecoveryPolicy,
    failing: BlockFailures,
    n: int,
    *,
    keep_losses: bool = True,
) -> tuple[Rows, Rows]:
    """The first n replications of a block as they are run, and by the general loop alone.

    SimPy gets none but those that the loops leave to it, however few they are.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "MOST_BY_EVENTS", 0)
        fast = ran(job, how, failing, range(n), keep_losses=keep_losses)
        if params_of(simulated(job, how)) is None:
            return fast, fast
        patch.setattr(blocks, "params_of", lambda _: None)
        return fast, ran(job, how, failing, range(n), keep_losses=keep_losses)


def all_ways(job: JobSetting, how: RecoveryPolicy, failing: BlockFailures, n: int) -> Ways:
    """The first n replications of a block, in all ways."""
    fast, general = compiled_ways(job, how, failing, n)
    return Ways(fast, general, ran(job, how, failing, range(n), simpy_alone=True))


def assert_both_agree(job: JobSetting, how: RecoveryPolicy, failing: BlockFailures, n: int) -> Rows:
    """Every row and column by both loops, the first ones by SimPy; and the first event logs.

    Returns the compiled rows.
    """
    ways = all_ways(job, how, failing, min(n, N_BY_SIMPY))
    for rows in ways.compiled:
        assert_rows_agree(rows, ways.simpy)
        assert FAST in rows.engines
    assert_logs_agree(job, how, failing, ways.simpy, min(n, N_LOGS))
    fast, general = compiled_ways(job, how, failing, n)
    if general is not fast:
        assert_rows_agree(fast, general)
    return fast


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
