"""A block of replications under one policy: failures and draws in, rows out.

The compiled loop runs them (few are interpreted), or SimPy where that is asked for, which also
writes the event log of one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from time import process_time
from typing import Any
from zlib import crc32

import numpy as np

from cprsim.failures.block import BlockFailures
from cprsim.failures.sources import require_room, stream
from cprsim.records import (
    Cluster,
    CostBreakdown,
    EventLog,
    Floats,
    Ints,
    ShardLoss,
)
from cprsim.recovery.losses import lost_portion
from cprsim.simulate import replications
from cprsim.simulate.job import SimulatedJob, require_sums
from cprsim.simulate.loop_state import JOB, RECOVERY, Drawn, interpreted, slots_of
from cprsim.simulate.numbers import (
    FINISHED,
    N_OF_LOSS,
    OF_JOB,
    STOPPED,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
    numbers_of,
)
from cprsim.simulate.strikes import ScopedBlock, ScopedFailures, ScopeShares
from cprsim.simulate.transitions import stream_keys, uniform

MOST_SAVES_SHOWN = 20_000  # of a job, in the log of a replication that is shown; of more only some
FAILURE_S = 1.5e-4  # of Python, for each failure of a replication, of which there is one at least
FIRST_DRAWS = 16  # of each cost that varies, in each replication
FIRST_RECOVERIES = 16  # that there is room for at first

# --------------------------------------------------------------------------- what varies


class BlockDraws:
    """What varies in a block of replications under one job: costs, and which saves are no good.

    Costs are drawn for the whole block, nth after nth, so that a value depends on (seed, block,
    name, replication, n) alone, not on the strategy or the engine that asks, nor on `rows`.

    Parameters
    ----------
    n_of_block : replications of the whole block
    rows : those that are wanted, numbered within it; they are numbered from 0 on here
    """

    def __init__(
        self, job: SimulatedJob, seed: int, block: int, n_of_block: int, rows: range
    ) -> None:
        _, self.of_saves, self.of_failures = numbers_of(job)
        self._durations = self.of_saves | self.of_failures
        self._n_of_block, self._rows, self.n_rows = n_of_block, rows, len(rows)
        self._rngs = {
            name: stream(seed, block, f"costs/{job.policy.draw_name(name)}")
            for name in self._durations
        }
        self._tables: dict[str, Floats] = dict.fromkeys(self._durations, np.zeros((0, len(rows))))
        tiers = [capture.tier for capture in job.policy.captures]
        numbers = np.arange(rows.start, rows.stop)
        first = [crc32(f"saves/{seed}/{block}/{tier}".encode()) for tier in tiers]
        self.keys: Ints = np.array(
            [stream_keys(number, numbers) for number in first], dtype=np.int64
        ).reshape(len(tiers), self.n_rows)
        self.key_of = dict(zip(tiers, self.keys, strict=True))

    def table(self, name: str, n: int) -> Floats:
        """The first n draws of a cost, and perhaps more, (n_drawn, n_rows) [h]."""
        table = self._tables[name]
        n_before = len(table)
        if n <= n_before:
            return table
        n_now = max(n, 2 * n_before)
        require_room(
            8.0 * self.n_rows * (n_before + n_now),
            f"{n_now} draws of {name} for {self.n_rows} replications",
            "{} times fewer failures or saves would fit",
            fewer_fit=True,
        )
        longer: Floats = np.empty((n_now, self.n_rows))
        longer[:n_before] = table
        for number in range(n_before, n_now):
            drawn_h = self._durations[name].sample(self._rngs[name], self._n_of_block)
            longer[number] = drawn_h[self._rows.start : self._rows.stop]
        self._tables[name] = longer
        return longer

    def tables(self, names: Collection[str], n: int) -> Floats:
        """The first n draws of each, (n_tables, n, n_rows) [h]."""
        if not names:
            return np.zeros((0, 0, self.n_rows))
        return np.stack([self.table(name, n)[:n] for name in names])

    def of(self, replication: int) -> ReplicationDraws:
        return ReplicationDraws(self, replication)


@dataclass(frozen=True, slots=True)
class ReplicationDraws:
    """What varies in one replication of a block.

    Names are ``stall/TIER`` and ``background/TIER`` (n: how many saves of it began before),
    ``detect/SCOPE``, ``load/TIER`` and ``stage/RULE/STAGE``, by number (n: how many failures were
    counted before).
    """

    block: BlockDraws
    replication: int

    def hours(self, name: str, n: int) -> float:
        return float(self.block.table(name, n + 1)[n, self.replication])

    def uniform(self, tier: str, n: int) -> float:
        return float(uniform(int(self.block.key_of[tier][self.replication]), n))


# --------------------------------------------------------------------------- a block


@dataclass(frozen=True, slots=True)
class Rows:
    """What some replications cost, in order of replication."""

    costs: CostBreakdown
    losses: ShardLoss  # none where they are not kept
    stale_h: Floats  # (n_replications,) share x work since the last save, summed over the losses
    stale_net_h: Floats  # (n_replications,) the same since the later of save and own reload


def run_block(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    replications: range,
    first_number: int = 0,
    *,
    simpy_alone: bool = False,
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
    hours: Floats = np.zeros((OF_JOB + len(parts), n))
    counts: Ints = np.zeros((3, n), dtype=np.int64)
    run = _by_simpy if simpy_alone else _by_loop
    keeps = keep_losses or bool(cluster.accesses)
    lost = np.concatenate(list(run(job, failures, draws, rows, hours, counts, keeps)))
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
        hours=hours[OF_JOB:].T,
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


def expect(n_replications: float) -> bool:
    """Have replications compiled if so many are to come; whether they are from now on."""
    run: Any = replications.run
    return bool(run.expect(FAILURE_S * n_replications))


def _by_loop(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws,
    rows: Ints, hours: Floats, counts: Ints, keeps: bool,
) -> Iterator[Floats]:  # fmt: skip
    """Run some replications, and again with more of what they turn out to need; their losses."""
    run: Any = replications.run
    strikes = failures.strikes(1)
    n_failures = max(len(rows), int(np.diff(strikes.first[0])[rows].sum()))
    expected_s = FAILURE_S * n_failures
    by = run if run.pays(expected_s) else partial(interpreted, run.py_func)
    numbers = numbers_of(job)[0]
    scratch, slots = np.zeros(1, JOB), slots_of(job)
    n_of_saves, n_of_failures = FIRST_DRAWS, FIRST_DRAWS
    n_losses, n_recoveries = len(rows) if keeps else 0, FIRST_RECOVERIES
    while len(rows):
        drawn = Drawn(
            draws.tables(draws.of_saves, n_of_saves),
            draws.tables(draws.of_failures, n_of_failures),
            draws.keys,
        )
        losses = np.zeros((n_losses, N_OF_LOSS))
        begin_s = process_time()
        n_lost = by(
            numbers, drawn, strikes, rows, scratch, slots,
            np.zeros(n_recoveries, RECOVERY), hours, counts, losses, keeps,
        )  # fmt: skip
        if by is not run:  # jobs of many saves take longer
            run.python_s += max(0.0, process_time() - begin_s - expected_s)
        yield losses[:n_lost]
        status = counts[0, rows]
        if (status == WANTS_FAILURES).any():
            strikes = failures.strikes(len(strikes.first) + 1)
        n_of_saves *= 1 + bool((status == WANTS_SAVES).any())
        n_of_failures *= 1 + bool((status == WANTS_COSTS).any())
        more_room = 1 + 3 * bool((status == WANTS_ROOM).any())
        n_losses, n_recoveries = more_room * n_losses, more_room * n_recoveries
        rows = rows[status > STOPPED]


def _by_simpy(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws,
    rows: Ints, hours: Floats, counts: Ints, keeps: bool,
) -> Iterator[Floats]:  # fmt: skip
    """Run some replications event by event; their losses."""
    from cprsim.simulate.cluster import run

    for row in rows.tolist():
        outcome = run(job, failures.of(row), draws.of(row))
        status = FINISHED if outcome.finished else STOPPED
        counts[:, row] = status, outcome.n_failures, outcome.n_saves
        lost = np.zeros((len(outcome.stale), N_OF_LOSS))
        for loss, shard in zip(lost, outcome.stale, strict=True):
            since_h = shard.progress_h - shard.content_h, shard.progress_h - shard.fresh_h
            loss[:] = row, shard.slot, shard.progress_h, *since_h
        stale_h = lost[:, 3].sum(), lost[:, 4].sum()
        hours[:, row] = (outcome.wall_h, outcome.useful_h, *stale_h, *outcome.hours)
        yield lost[: len(lost) * keeps]


# --------------------------------------------------------------------------- rows of an experiment


class Block:
    """The failures of a block of replications, the same for all strategies."""

    def __init__(self, failures: BlockFailures, shares: ScopeShares) -> None:
        self.failures = failures
        self.scoped = cache(partial(ScopedBlock, failures, shares))  # by the hours of notice


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs a job under a policy: by the loop, or by SimPy alone where that is asked for."""

    job: SimulatedJob
    simpy_alone: bool = False
    keep_losses: bool = True
    parts: tuple[str, ...] | None = None  # of the rows; None: those of the policy

    def run(self, block: Block, replications: range) -> Rows:
        """Costs and losses of some replications, numbered within the block."""
        first = block.failures.replications.start
        rows = run_block(
            self.job, *self.meets(block), replications, first,
            simpy_alone=self.simpy_alone, keep_losses=self.keep_losses,
        )  # fmt: skip
        return replace(rows, costs=with_parts(rows.costs, self.parts or rows.costs.parts))

    def meets(self, block: Block) -> tuple[ScopedBlock, BlockDraws]:
        """What the replications of a block meet: failures, and costs that vary."""
        listens = any(capture.on_notice for capture in self.job.policy.captures)
        of, notice_h = block.failures, tuple(scope.notice_h for scope in self.job.scopes)
        draws = BlockDraws(self.job, of.seed, of.number, of.n_of_block, of.kept)
        return block.scoped(notice_h if listens and any(notice_h) else ()), draws

    def log(self, block: Block, replication: int, *, all_saves: bool = True) -> EventLog:
        """What happens in one replication; all of its saves, or a few of very many."""
        from cprsim.simulate.cluster import run
        from cprsim.simulate.job import LogLines

        failures, draws = self.meets(block)
        captures = self.job.policy.captures
        n_saves = sum(
            self.job.useful_h / capture.every_h for capture in captures if capture.every_h
        )
        skips = not all_saves and n_saves > MOST_SAVES_SHOWN
        logbook = LogLines()
        run(self.job, failures.of(replication), draws.of(replication), logbook, skips=skips)
        log, number = logbook.log(), block.failures.replications.start + replication
        return replace(log, replication=np.full_like(log.replication, number))


def with_parts(costs: CostBreakdown, parts: tuple[str, ...]) -> CostBreakdown:
    """The same hours in these columns, all those that it has among them."""
    if costs.parts == parts:
        return costs
    none = np.zeros(costs.n_replications)
    hours = [costs.hours_of(part) if part in costs.parts else none for part in parts]
    return replace(costs, parts=parts, hours=np.stack(hours, axis=1))
