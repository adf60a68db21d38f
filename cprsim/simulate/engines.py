"""A block of replications under one strategy: who runs it, and the rows that come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.failures.block import BlockFailures
from cprsim.records import (
    Cluster,
    CostBreakdown,
    EventLog,
    Floats,
    ShardLoss,
    in_order,
    stacked,
)
from cprsim.simulate.blocks import BlockDraws, logged, run_block
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.strikes import ScopedBlock, ScopeShares
from cprsim.staleness import lost_portion

FAST, SIMPY = "fast", "simpy"


@dataclass(frozen=True, slots=True)
class Rows:
    """What some replications cost, in order of replication, and who ran them."""

    costs: CostBreakdown
    losses: ShardLoss  # none where they are not kept
    stale_h: Floats  # (n_replications,) share x work since the last save, summed over the losses
    stale_net_h: Floats  # (n_replications,) the same since the later of save and own reload
    engines: frozenset[str]


class Block:
    """The failures of a block of replications, the same for all strategies."""

    def __init__(
        self, number: int, failures: BlockFailures, seed: int, shares: ScopeShares
    ) -> None:
        self.number = number
        self.failures = failures
        self._seed, self._shares = seed, shares
        self._scoped: dict[tuple[float, ...], ScopedBlock] = {}

    def scoped(self, notice_h: tuple[float, ...]) -> ScopedBlock:
        """The failures with what each of them kills, announced by so much for those who listen."""
        if notice_h not in self._scoped:
            self._scoped[notice_h] = ScopedBlock(
                self.failures, self._shares, self._seed, self.number, notice_h
            )
        return self._scoped[notice_h]


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs a job under a recovery system: compiled, or by SimPy alone where that is asked for."""

    seed: int
    job: SimulatedJob
    simpy_alone: bool = False
    keep_losses: bool = True
    parts: tuple[str, ...] | None = None  # of the rows; None: those of the system

    def run(self, block: Block, replications: range) -> Rows:
        """Costs and losses of some replications, numbered within the block."""
        first = block.failures.replications.start
        ran = run_block(
            self.job, self._failures(block), self._draws(block), replications, first,
            simpy_alone=self.simpy_alone,
            keep_losses=self.keep_losses or bool(self.job.cluster.accesses),
        )  # fmt: skip
        cluster = self.job.cluster
        took_part = {SIMPY: ran.n_by_events > 0, FAST: ran.n_by_events < len(replications)}
        engines = frozenset(name for name, took in took_part.items() if took)
        losses = _shard_loss(ran.losses, first, cluster)
        costs = ran.costs if self.parts is None else with_parts(ran.costs, self.parts)
        stale_h, net_h = (one / max(cluster.n_emb_ps, 1) for one in (ran.stale_h, ran.stale_net_h))
        if cluster.accesses:
            stale_h, net_h = (
                lost_portion(since_h, losses, costs.replication, 1.0)
                for since_h in (losses.since_save_h, losses.since_reload_h)
            )
        kept = losses if self.keep_losses else in_order(losses, np.zeros(0, dtype=np.int64))
        return Rows(costs, kept, stale_h, net_h, engines)

    def given(self, block: Block) -> tuple[ScopedBlock, BlockDraws]:
        """What the replications of a block meet: failures, and costs that vary."""
        return self._failures(block), self._draws(block)

    def log(self, block: Block, replication: int, *, whole: bool = True) -> EventLog:
        """What happens in one replication, event by event; all saves are in it if `whole`."""
        number = block.failures.replications.start + replication
        failures, draws = self.given(block)
        return logged(self.job, failures, draws, replication, number, whole=whole)

    def _failures(self, block: Block) -> ScopedBlock:
        listens = any(capture.on_notice for capture in self.job.policy.captures)
        notice_h = tuple(scope.notice_h for scope in self.job.scopes) if listens else ()
        return block.scoped(notice_h if any(notice_h) else ())

    def _draws(self, block: Block) -> BlockDraws:
        of = block.failures
        return BlockDraws(self.job, self.seed, block.number, of.n_of_block, of.kept)


def with_parts(costs: CostBreakdown, parts: tuple[str, ...]) -> CostBreakdown:
    """The same hours in these columns, all those that it has among them."""
    if costs.parts == parts:
        return costs
    none = np.zeros(costs.n_replications)
    hours = [costs.hours_of(part) if part in costs.parts else none for part in parts]
    return replace(costs, parts=parts, hours=np.stack(hours, axis=1))


def _shard_loss(lost: NDArray[Any], first_number: int, cluster: Cluster) -> ShardLoss:
    """Losses as a record; their replications are numbered among all."""
    return ShardLoss(
        replication=lost["replication"] + first_number,
        progress_h=np.ascontiguousarray(lost["progress_h"]),
        slot=np.ascontiguousarray(lost["slot"]),
        since_save_h=np.ascontiguousarray(lost["since_save_h"]),
        since_reload_h=np.ascontiguousarray(lost["since_reload_h"]),
        share=cluster.shares(lost["slot"]),
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
