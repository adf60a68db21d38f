"""Which engine runs a block of replications, and the rows that come out, whichever it was."""

from __future__ import annotations

from dataclasses import fields
from typing import Protocol, TypeVar

import numpy as np

from cprsim import engine
from cprsim.cluster import Block, cost_breakdown, shard_loss
from cprsim.records import CostBreakdown, EventLog, RecoveryPolicy, ShardLoss, stacked

Rows = tuple[CostBreakdown, ShardLoss]
OneOf = TypeVar("OneOf", CostBreakdown, ShardLoss)


class Engine(Protocol):
    """Runs replications of one block after another under one policy, in order."""

    def run(self, block: Block, replications: range) -> Rows:
        """Costs and losses of some replications, numbered within the block."""
        ...


class Events:
    """Event by event: the cluster in SimPy, which can do all there is."""

    def __init__(self, policy: RecoveryPolicy) -> None:
        self._policy = policy

    def run(self, block: Block, replications: range) -> Rows:
        return folded(block.simulate(self._policy, replications), block)


class Arrays:
    """The fast path; what it leaves of a block is run event by event.

    It runs ahead to the end of the block, and hands out what is asked for. Before it does so for
    the first time it shows the first few replications alone: they may tell that none finishes.
    """

    def __init__(self, policy: RecoveryPolicy) -> None:
        self._policy = policy
        self._ran: engine.Ran | None = None
        self._reach = (-1, 0)  # block, and end of the replications that it has run of it

    def run(self, block: Block, replications: range) -> Rows:
        number, end = self._reach
        if self._ran is None or number != block.number or replications.start >= end:
            self._run_ahead(block, replications)
        assert self._ran is not None
        first = block.number * block.failures.n_replications
        asked = range(first + replications.start, first + replications.stop)
        rows = _between(self._ran.costs, asked), _between(self._ran.losses, asked)
        left = [n for n in self._ran.left.tolist() if n in replications]
        if not left:
            return rows
        by_events = folded(block.simulate(self._policy, left), block)
        return _merged(rows[0], by_events[0]), _merged(rows[1], by_events[1])

    def _run_ahead(self, block: Block, replications: range) -> None:
        n = block.failures.n_replications
        end = replications.stop if self._ran is None else n
        self._ran = engine.simulate(
            block.setting, self._policy, block.failures, block.costs,
            range(replications.start, end), block.number * n,
        )  # fmt: skip
        self._reach = block.number, end


def folded(log: EventLog, block: Block) -> Rows:
    """Costs and losses of an event log of this block."""
    return (
        cost_breakdown(log, block.setting.useful_h),
        shard_loss(log, block.setting.cluster.n_emb_ps),
    )


def _between(rows: OneOf, replications: range) -> OneOf:
    bounds = np.searchsorted(rows.replication, [replications.start, replications.stop])
    return type(rows)(*(getattr(rows, f.name)[slice(*bounds)] for f in fields(rows)))


def _merged(some: OneOf, others: OneOf) -> OneOf:
    both = stacked([some, others])
    order = np.argsort(both.replication, kind="stable")
    return type(both)(*(getattr(both, f.name)[order] for f in fields(both)))
