"""A block of replications under one policy: failures and draws in, rows out.

They are compiled; the event log of one comes from the SimPy cluster.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from cprsim.failures.block import BlockFailures
from cprsim.job.losses import lost_portion
from cprsim.job.policy import Policy
from cprsim.job.records import PARTS, Cluster, CostBreakdown, EventLog, Floats, Ints, ShardLoss
from cprsim.simulation.cluster import run_one
from cprsim.simulation.draws import BlockDraws
from cprsim.simulation.job import SimulatedJob, require_sums
from cprsim.simulation.replications import Results, run
from cprsim.simulation.spec import COLUMNS, FINISHED, OF_JOB, STOPPED, WANTS_FAILURES, WANTS_MORE
from cprsim.simulation.state import N_OF_LOSS, records_of
from cprsim.simulation.strikes import ScopedBlock, ScopedFailures, ScopeShares

MOST_SAVES_SHOWN = 20_000  # of a job, in the log of a replication that is shown; of more only some
FIRST_DRAWS_OF_REPLICATION = 32  # of each cost that varies, in each replication
FIRST_RECOVERIES = 16  # that there is room for at first

# --------------------------------------------------------------------------- a block


@dataclass(frozen=True, slots=True)
class Rows:
    """What some replications cost, in order of replication."""

    costs: CostBreakdown
    losses: ShardLoss  # none where they are not kept
    stale_h: Floats  # (n_replications,) share x work since the last save, summed over the losses
    stale_since_reload_h: (
        Floats  # (n_replications,) the same since the later of save and own reload
    )


def run_block(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    replications: range,
    first_number: int = 0,
    *,
    keep_losses: bool = False,
) -> Rows:
    """Run some replications of a block.

    Parameters
    ----------
    replications : numbers among those that are kept of the block
    first_number : number of the block's first kept replication among all
    """
    n, cluster, parts = failures.n_replications, job.cluster, job.policy.parts
    if replications.stop > n:  # compiled loops check no bounds
        raise ValueError(f"a block of {n} replications has no {replications}")
    rows = np.arange(replications.start, replications.stop)
    hours: Floats = np.zeros((OF_JOB + len(COLUMNS), n))
    counts: Ints = np.zeros((3, n), dtype=np.int64)
    keeps = keep_losses or bool(cluster.accesses)
    compiled = _compiled(job, failures, draws, rows, Results(hours, counts), keeps)
    lost = np.concatenate(list(compiled))
    lost = lost[np.argsort(lost[:, 0], kind="stable")]
    within = slice(replications.start, replications.stop)
    hours, counts = hours[:, within], counts[:, within]
    wall_h, useful_h, stale_h, net_h = hours[:OF_JOB]
    costs = CostBreakdown(
        replication=rows + first_number,
        finished=counts[0] == FINISHED,
        wall_h=wall_h,
        useful_h=useful_h,
        parts=parts,
        hours=hours[[OF_JOB + COLUMNS.index(part) for part in parts]].T,
        n_failures=counts[1],
        n_saves=counts[2],
    )
    require_sums(costs)
    losses = _shard_loss(lost, first_number, cluster)
    if cluster.accesses:
        stale_h, net_h = (
            lost_portion(since_h, losses, costs.replication, 1.0)
            for since_h in (losses.since_save_h, losses.since_reload_h)
        )
    else:
        stale_h, net_h = (summed_h / max(cluster.n_emb_ps, 1) for summed_h in (stale_h, net_h))
    if not keep_losses:
        losses = _shard_loss(lost[:0], first_number, cluster)
    return Rows(costs, losses, stale_h, net_h)


def _shard_loss(lost: Floats, first_number: int, cluster: Cluster) -> ShardLoss:
    """Losses as a record; their replications are numbered among all."""
    replication, slot = lost[:, :2].T.astype(np.int64)
    progress_h, save_h, reload_h = np.ascontiguousarray(lost[:, 2:].T)
    shares = cluster.shares(slot)
    return ShardLoss(replication + first_number, progress_h, slot, save_h, reload_h, shares)


def _compiled(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    rows: Ints,
    out: Results,
    keeps: bool,
) -> Iterator[Floats]:
    """Run replications, rerun those that need more draws or room, and yield their losses."""
    strikes = failures.strikes(1)
    n_draws, n_recoveries = FIRST_DRAWS_OF_REPLICATION, FIRST_RECOVERIES
    n_losses = (len(rows) + 2 * job.cluster.n_nodes) * keeps
    while len(rows):
        losses = np.zeros((n_losses, N_OF_LOSS))
        sim = records_of(job, n_recoveries, draws.first(n_draws), losses)
        yield losses[: run(sim, strikes, rows, out)]
        status = out.counts[0, rows]
        if (status == WANTS_FAILURES).any():
            strikes = failures.strikes(len(strikes.first) + 1)
        if (status == WANTS_MORE).any():
            n_draws, n_recoveries, n_losses = 2 * n_draws, 4 * n_recoveries, 4 * n_losses
        rows = rows[status > STOPPED]


# --------------------------------------------------------------------------- rows of an experiment


class Block:
    """The failures of a block of replications, the same for all strategies."""

    def __init__(self, failures: BlockFailures, shares: ScopeShares) -> None:
        self.failures = failures
        self.scoped = cache(partial(ScopedBlock, failures, shares))  # by the hours of notice

    def meets(self, job: SimulatedJob) -> tuple[ScopedBlock, BlockDraws]:
        """Return the failures and the cost draws of a job's replications."""
        listens = any(capture.on_notice for capture in job.policy.captures)
        of, notice_h = self.failures, tuple(scope.notice_h for scope in job.scopes)
        draws = BlockDraws(job, of.seed, of.number, of.n_of_block, of.kept)
        return self.scoped(notice_h if listens and any(notice_h) else ()), draws

    def run(self, job: SimulatedJob, replications: range, *, keep_losses: bool = True) -> Rows:
        """Costs and losses of some replications, numbered within the block."""
        first = self.failures.replications.start
        rows = run_block(job, *self.meets(job), replications, first, keep_losses=keep_losses)
        return replace(rows, costs=with_parts(rows.costs, row_parts(job.policy)))

    def log(self, job: SimulatedJob, replication: int, *, all_saves: bool = True) -> EventLog:
        """Event log of one replication; without `all_saves` it skips most if they are many."""
        every_h = [capture.every_h for capture in job.policy.captures if capture.every_h]
        skips = not all_saves and sum(job.useful_h / h for h in every_h) > MOST_SAVES_SHOWN
        _, log = run_one(job, *self.meets(job), replication, skips=skips)
        number = self.failures.replications.start + replication
        return replace(log, replication=np.full_like(log.replication, number))


def row_parts(policy: Policy) -> tuple[str, ...]:
    """The parts of a policy's rows: a strategy has all of the paper's, be they 0."""
    first = PARTS if policy.from_cpr_paper else ()
    return tuple(dict.fromkeys((*first, *policy.parts)))


def with_parts(costs: CostBreakdown, parts: tuple[str, ...]) -> CostBreakdown:
    """The same hours in these columns, all those that it has among them."""
    if costs.parts == parts:
        return costs
    none = np.zeros(costs.n_replications)
    hours = [costs.hours_of(part) if part in costs.parts else none for part in parts]
    return replace(costs, parts=parts, hours=np.stack(hours, axis=1))
