"""A block of replications of a job under a recovery system, by whichever engine takes each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cprsim.draws import Draws
from cprsim.records import CostBreakdown, Duration, EventLog, Floats, Ints
from cprsim.simulate.job import Outcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import (
    FINISHED,
    LEFT,
    LOSS,
    NONE,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
    numbers_of,
)
from cprsim.simulate.strikes import GivenFailures, ScopedStrikes
from cprsim.simulate.transitions import stream_keys, uniform

MOST_SAVES_SHOWN = 2000  # of a job, in the log of a replication; of more only some
FIRST_DRAWS = 16  # of each cost that varies, in each replication


class ScopedFailures(Protocol):
    """The failures of a block of replications, with what each of them kills."""

    @property
    def n_replications(self) -> int: ...

    def strikes(self, n_chunks: int) -> ScopedStrikes: ...

    def of(self, replication: int) -> Iterator[ScopedFailure]: ...


@dataclass(frozen=True, slots=True)
class SystemRan:
    """What the replications of a block cost under a system."""

    costs: CostBreakdown
    stale_h: Floats  # (n_replications,) staleness summed over the shards that went back ...
    stale_net_h: Floats  # (n_replications,) ... since the later of that and their own last reload
    losses: NDArray[Any]  # (n_losses,) of LOSS, in order of replication; none where not kept
    n_by_events: int  # replications that the fast engine left to SimPy


class BlockDraws:
    """What varies in a block of replications under one job: costs, and which saves are no good.

    Parameters
    ----------
    n_of_block : replications of the whole block
    kept : those that are wanted, numbered within it; they are numbered from 0 on here
    """

    def __init__(
        self, job: SimulatedJob, seed: int, block: int, n_of_block: int, kept: range
    ) -> None:
        _, tables = numbers_of(job)
        renamed = dict(job.renamed)

        def draws(costs: tuple[tuple[str, Duration], ...]) -> dict[str, Draws]:
            return {
                name: Draws(
                    duration, seed, block, f"costs/{renamed.get(name, name)}", n_of_block, kept
                )
                for name, duration in costs
            }

        self.n_kept = len(kept)
        self.of_saves = draws(tables.of_saves)
        self.of_failures = draws(tables.of_failures)
        tiers = [capture.tier for capture in job.policy.captures]
        rows = np.arange(kept.start, kept.stop)
        first = [crc32(f"saves/{seed}/{block}/{tier}".encode()) for tier in tiers]
        self.keys: Ints = np.array(
            [stream_keys(number, rows) for number in first], dtype=np.int64
        ).reshape(len(tiers), self.n_kept)
        self._key_of = dict(zip(tiers, self.keys, strict=True))

    def tables(self, of: dict[str, Draws], n: int) -> Floats:
        """The first n draws of each, (n_tables, n or more, n_replications) [h]."""
        for draws in of.values():
            draws.reach(n - 1)
        if not of:
            return np.zeros((0, 0, self.n_kept))
        return np.stack([draws.table[:n] for draws in of.values()])

    def of(self, replication: int) -> ReplicationOf:
        return ReplicationOf(self, replication)

    def hours(self, name: str, replication: int, n: int) -> float:
        found = self.of_saves.get(name) or self.of_failures[name]
        return found.hours(replication, n)

    def uniform(self, tier: str, replication: int, n: int) -> float:
        return float(uniform(int(self._key_of[tier][replication]), n))


@dataclass(frozen=True, slots=True)
class ReplicationOf:
    """The draws of one replication of a block (`job.ReplicationDraws`)."""

    block: BlockDraws
    replication: int

    def hours(self, name: str, n: int) -> float:
        return self.block.hours(name, self.replication, n)

    def uniform(self, tier: str, n: int) -> float:
        return self.block.uniform(tier, self.replication, n)


def run_block(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    replications: range,
    first_number: int = 0,
    *,
    simpy_alone: bool = False,
    keep_losses: bool = False,
) -> SystemRan:
    """Run some replications of a block.

    Parameters
    ----------
    replications : numbers among those that are kept of the block
    first_number : number of the block's first kept replication among all

    Notes
    -----
    Replications in which a failure falls within a billionth of the job of another instant, so that
    rounding decides which comes first, and those in which very many recoveries overlap, are left
    to SimPy. Its rows are the same up to rounding.
    """
    n = failures.n_replications
    if replications.stop > n:  # compiled loops check no bounds
        raise ValueError(f"a block of {n} replications has no {replications}")
    rows = np.arange(replications.start, replications.stop)
    hours, of_job = np.zeros((n, len(job.policy.parts))), np.zeros((n, 4))
    counts: Ints = np.full((n, 3), LEFT, dtype=np.int64)
    losses: list[NDArray[Any]] = []
    if not simpy_alone:
        losses += _run_fast(job, failures, draws, rows, hours, of_job, counts, keep_losses)
    finished = counts[:, 0] == FINISHED
    left = rows[counts[rows, 0] == LEFT]
    for row in left.tolist():
        outcome = by_events(job, failures, draws, row)
        finished[row] = outcome.finished
        hours[row] = outcome.hours
        lost = losses_of(outcome, row)
        stale_h, net_h = lost["since_save_h"].sum(), lost["since_reload_h"].sum()
        of_job[row] = outcome.wall_h, outcome.useful_h, stale_h, net_h
        losses += [lost] if keep_losses else []
        counts[row, 1:] = outcome.n_failures, outcome.n_saves
    costs = CostBreakdown(
        replication=rows + first_number,
        finished=finished[rows],
        wall_h=of_job[rows, 0],
        useful_h=of_job[rows, 1],
        parts=job.policy.parts,
        hours=hours[rows],
        n_failures=counts[rows, 1],
        n_saves=counts[rows, 2],
    )
    kept = np.concatenate(losses) if losses else np.zeros(0, LOSS)
    kept = kept[np.argsort(kept["replication"], kind="stable")]
    return SystemRan(costs, of_job[rows, 2], of_job[rows, 3], kept, len(left))


def losses_of(outcome: Outcome, row: int) -> NDArray[Any]:
    """The shards that went back in one replication, (n_losses,) of LOSS."""
    return np.array(
        [
            (
                row,
                shard.progress_h,
                shard.slot,
                shard.progress_h - shard.content_h,
                shard.progress_h - shard.fresh_h,
            )
            for shard in outcome.stale
        ],
        LOSS,
    )


def compile_for(job: SimulatedJob) -> None:
    """Compile the fast engine, if it never was here, and run nothing."""
    nothing = GivenFailures(((),))
    draws = BlockDraws(job, 0, 0, 1, range(1))
    run_block(job, nothing, draws, range(0))


def _run_fast(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    rows: Ints,
    hours: Floats,
    of_job: Floats,
    counts: Ints,
    keep_losses: bool,
) -> Iterator[NDArray[Any]]:
    """Run replications by the compiled engine, and draw more of what they turn out to need.

    Yields losses, of some replications at a time.
    """
    from cprsim.simulate import fast  # numba takes a third of a second to import

    numbers, _ = numbers_of(job)
    slots = np.zeros(job.cluster.n_nodes + (job.cluster.n_spares or 0), fast.SLOTS)
    slots["recovery"] = NONE
    scratch = np.zeros(1, fast.JOB)
    n_chunks, n_of_saves, n_of_failures = 1, FIRST_DRAWS, FIRST_DRAWS
    n_room = len(rows) if keep_losses else 0
    while True:
        drawn = fast.Drawn(
            draws.tables(draws.of_saves, n_of_saves),
            draws.tables(draws.of_failures, n_of_failures),
            draws.keys,
        )
        strikes = failures.strikes(n_chunks)
        losses = np.zeros(n_room, LOSS)
        n_losses = fast.run(
            numbers, drawn, strikes, rows, scratch, slots, hours, of_job, counts,
            losses, keep_losses,
        )  # fmt: skip
        yield losses[:n_losses]
        status = counts[rows, 0]
        n_chunks += bool((status == WANTS_FAILURES).any())
        n_of_saves *= 1 + bool((status == WANTS_SAVES).any())
        n_of_failures *= 1 + bool((status == WANTS_COSTS).any())
        n_room *= 1 + 3 * bool((status == WANTS_ROOM).any())
        rows = rows[status > LEFT]
        if not len(rows):
            return


def by_events(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws, replication: int
) -> Outcome:
    """One replication by SimPy."""
    from cprsim.simulate import events

    return events.run(job, failures.of(replication), draws.of(replication), logged=False).outcome


def logged(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws, replication: int, number: int
) -> EventLog:
    """The event log of one replication; its rows carry `number`."""
    from cprsim.simulate import events, log

    n_saves = sum(
        job.useful_h / capture.every_h for capture in job.policy.captures if capture.every_h
    )
    played = events.run(
        job, failures.of(replication), draws.of(replication), skips=n_saves > MOST_SAVES_SHOWN
    )
    return log.event_log(played.log, number)
