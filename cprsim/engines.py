"""Which engine runs a block of replications, and the rows that come out, whichever it was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cprsim import engine
from cprsim.cluster import Block, cost_breakdown, shard_loss
from cprsim.records import (
    CostBreakdown,
    EventLog,
    Floats,
    RecoveryPolicy,
    ShardLoss,
    in_order,
    stacked,
)
from cprsim.simulate.course import BlockDraws, compile_for, logged, run_block
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.strikes import ScopedBlock, ScopeShares

OneOf = TypeVar("OneOf", CostBreakdown, ShardLoss)
FAST, SIMPY = "fast", "simpy"


@dataclass(frozen=True, slots=True)
class Rows:
    """What some replications cost, in order of replication, and who ran them."""

    costs: CostBreakdown
    losses: ShardLoss  # none where they are not kept
    stale_h: Floats  # (n_replications,) share x work since the last save, summed over the losses
    stale_net_h: Floats  # (n_replications,) the same since the later of save and own reload
    engines: frozenset[str]


class Engine(Protocol):
    """Runs replications of one block after another under one policy."""

    def run(self, block: Block, replications: range) -> Rows:
        """Costs and losses of some replications, numbered within the block."""
        ...


@dataclass(frozen=True, slots=True)
class Events:
    """Event by event: the cluster in SimPy, which can do all there is."""

    policy: RecoveryPolicy

    def run(self, block: Block, replications: Iterable[int]) -> Rows:
        logs = block.simulate_in_parts(self.policy, replications)
        return joined([folded(log, block) for log in logs])


@dataclass(frozen=True, slots=True)
class Arrays:
    """The fast path; what it leaves of a block is run event by event."""

    policy: RecoveryPolicy
    keep_losses: bool = True

    def run(self, block: Block, replications: range) -> Rows:
        ran = engine.simulate(
            block.setting, self.policy, block.failures, block.costs, replications,
            block.failures.replications.start, keep_losses=self.keep_losses,
        )  # fmt: skip
        rows = Rows(ran.costs, ran.losses, ran.stale_h, ran.stale_net_h, frozenset({FAST}))
        if not len(ran.left):
            return rows
        left = Events(self.policy).run(block, ran.left.tolist())
        return left if len(ran.left) == len(replications) else _merged(rows, left)


@dataclass(frozen=True, slots=True)
class ByRules:
    """A recovery system: the compiled engine, or SimPy alone where that is asked for."""

    seed: int
    scopes: ScopeShares
    job: SimulatedJob
    simpy_alone: bool = False
    keep_losses: bool = True
    parts: tuple[str, ...] | None = None  # of the rows; None: those of the system

    def run(self, block: Block, replications: range) -> Rows:
        first = block.failures.replications.start
        ran = run_block(
            self.job, *self.parts_of(block), replications, first,
            simpy_alone=self.simpy_alone, keep_losses=self.keep_losses,
        )  # fmt: skip
        n_shards = max(block.setting.cluster.n_emb_ps, 1)
        took_part = {SIMPY: ran.n_by_events > 0, FAST: ran.n_by_events < len(replications)}
        engines = frozenset(name for name, took in took_part.items() if took)
        losses = _shard_loss(ran.losses, first, n_shards)
        costs = ran.costs if self.parts is None else with_parts(ran.costs, self.parts)
        return Rows(costs, losses, ran.stale_h / n_shards, ran.stale_net_h / n_shards, engines)

    def compile_now(self) -> None:
        """Compile what `run` is sure to need, if it never was here, and run nothing."""
        compile_for(self.job)

    def log(self, block: Block, replication: int) -> EventLog:
        """What happens in one replication, event by event."""
        number = block.failures.replications.start + replication
        return logged(self.job, *self.parts_of(block), replication, number)

    def parts_of(self, block: Block) -> tuple[ScopedBlock, BlockDraws]:
        """The failures of a block with their scopes, and what else varies in it."""
        failures = block.failures
        listens = any(capture.on_notice for capture in self.job.policy.captures)
        notice_h = tuple(scope.notice_h for scope in self.job.scopes) if listens else ()
        return (
            ScopedBlock(failures, self.scopes, self.seed, block.number, notice_h),
            BlockDraws(self.job, self.seed, block.number, failures.n_of_block, failures.kept),
        )


def with_parts(costs: CostBreakdown, parts: tuple[str, ...]) -> CostBreakdown:
    """The same hours in these columns, all those that it has among them."""
    none = np.zeros(costs.n_replications)
    hours = [costs.hours_of(part) if part in costs.parts else none for part in parts]
    return replace(costs, parts=parts, hours=np.stack(hours, axis=1))


def _shard_loss(lost: NDArray[Any], first_number: int, n_shards: int) -> ShardLoss:
    """Losses as a record; their replications are numbered among all."""
    return ShardLoss(
        replication=lost["replication"] + first_number,
        progress_h=np.ascontiguousarray(lost["progress_h"]),
        slot=np.ascontiguousarray(lost["slot"]),
        since_save_h=np.ascontiguousarray(lost["since_save_h"]),
        since_reload_h=np.ascontiguousarray(lost["since_reload_h"]),
        share=np.full(len(lost), 1.0 / n_shards),
    )


def folded(log: EventLog, block: Block) -> Rows:
    """Costs and losses of an event log of this block."""
    costs = cost_breakdown(log, block.setting.useful_h)
    losses = shard_loss(log, block.setting.cluster.n_emb_ps)
    return Rows(
        costs,
        losses,
        _by_replication(losses.since_save_h, losses, costs),
        _by_replication(losses.since_reload_h, losses, costs),
        frozenset({SIMPY}),
    )


def joined(some: Sequence[Rows]) -> Rows:
    """The rows of some replications and of those after them."""
    if len(some) == 1:
        return some[0]
    return Rows(
        stacked([one.costs for one in some]),
        stacked([one.losses for one in some]),
        np.concatenate([one.stale_h for one in some]),
        np.concatenate([one.stale_net_h for one in some]),
        frozenset().union(*(one.engines for one in some)),
    )


def _by_replication(staleness_h: Floats, losses: ShardLoss, costs: CostBreakdown) -> Floats:
    row = np.searchsorted(costs.replication, losses.replication)
    weights = staleness_h * losses.share
    return np.bincount(row, weights=weights, minlength=costs.n_replications).astype(np.float64)


def _merged(some: Rows, others: Rows) -> Rows:
    order = np.argsort(np.append(some.costs.replication, others.costs.replication), kind="stable")
    return Rows(
        _by_order(some.costs, others.costs),
        _by_order(some.losses, others.losses),
        np.append(some.stale_h, others.stale_h)[order],
        np.append(some.stale_net_h, others.stale_net_h)[order],
        some.engines | others.engines,
    )


def _by_order(some: OneOf, others: OneOf) -> OneOf:
    both = stacked([some, others])
    return in_order(both, np.argsort(both.replication, kind="stable"))
