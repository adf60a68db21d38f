"""A block of replications of a job under a recovery system, by whichever engine takes each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from time import thread_time
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cprsim.errors import AccountingError
from cprsim.records import CostBreakdown, Duration, EventLog, Floats, Ints
from cprsim.recovery.giving_up import ROUNDING
from cprsim.simulate.draws import Draws
from cprsim.simulate.fast import replications, state
from cprsim.simulate.fast.interpreting import interpreted
from cprsim.simulate.job import ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import (
    FINISHED,
    LEFT,
    LOSS,
    OF_JOB,
    STOPPED,
    WANTS_COSTS,
    WANTS_FAILURES,
    WANTS_ROOM,
    WANTS_SAVES,
    numbers_of,
)
from cprsim.simulate.strikes import ScopedStrikes
from cprsim.simulate.transitions import stream_keys, uniform

MOST_SAVES_SHOWN = 20_000  # of a job, in the log of a replication that is shown; of more only some
FIRST_INTERPRETED = 4  # replications, of which the time of others is guessed
INTERPRETED_S = 1.5e-4  # a replication takes interpreted, until the first ones tell
TOLERANCE_H = 1e-6  # of the sums over one replication
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
    Replications in which a failure falls within 1e-11 of the job of another instant, so that
    rounding decides which comes first, and those in which loads over a shared link overlap, or very
    many recoveries do, are left to SimPy. Its rows are the same up to rounding.
    """
    n = failures.n_replications
    if replications.stop > n:  # compiled loops check no bounds
        raise ValueError(f"a block of {n} replications has no {replications}")
    rows = np.arange(replications.start, replications.stop)
    hours: Floats = np.zeros((OF_JOB + len(job.policy.parts), n))
    counts: Ints = np.full((3, n), LEFT, dtype=np.int64)
    losses: list[NDArray[Any]] = []
    if not simpy_alone:
        block = _Block(job, failures, draws, hours, counts, keep_losses)
        losses += block.run(rows)
    left = rows[counts[0, rows] == LEFT]
    for row in left.tolist():
        outcome = by_events(job, failures, draws, row)
        counts[:, row] = (
            FINISHED if outcome.finished else STOPPED, outcome.n_failures, outcome.n_saves
        )  # fmt: skip
        hours[OF_JOB:, row] = outcome.hours
        lost = losses_of(outcome, row)
        stale_h, net_h = lost["since_save_h"].sum(), lost["since_reload_h"].sum()
        hours[:OF_JOB, row] = outcome.wall_h, outcome.useful_h, stale_h, net_h
        losses += [lost] if keep_losses else []
    within = slice(replications.start, replications.stop)
    costs = CostBreakdown(
        replication=rows + first_number,
        finished=counts[0, within] == FINISHED,
        wall_h=hours[0, within],
        useful_h=hours[1, within],
        parts=job.policy.parts,
        hours=hours[OF_JOB:, within].T,
        n_failures=counts[1, within],
        n_saves=counts[2, within],
    )
    require_sums(costs)
    return SystemRan(costs, hours[2, within], hours[3, within], _in_order(losses), len(left))


def require_sums(costs: CostBreakdown) -> None:
    """Raise AccountingError where the parts of a replication do not add up to its wall time."""
    off_h = np.abs(costs.useful_h + costs.hours.sum(axis=1) - costs.wall_h)
    (off,) = np.nonzero(off_h > TOLERANCE_H + ROUNDING * costs.wall_h)
    if len(off):
        number, hours = costs.replication[off[0]], off_h[off[0]]
        raise AccountingError(f"replication {number} does not add up: {hours:.3g} h are missing")


def _in_order(losses: list[NDArray[Any]]) -> NDArray[Any]:
    """Losses of all replications, one replication after the other."""
    lost = np.concatenate(losses) if losses else np.zeros(0, LOSS)
    if len(losses) > 1:
        lost = lost[np.argsort(lost["replication"], kind="stable")]
    return lost


def losses_of(outcome: ReplicationOutcome, row: int) -> NDArray[Any]:
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


def pays(n: float) -> bool:
    """Whether so many more replications take longer to interpret than the loop to compile."""
    loop: Any = replications.run
    return bool(loop.pays(INTERPRETED_S * n))


class _Block:
    """A block of replications of one job, as far as the compiled loop has run it."""

    def __init__(
        self,
        job: SimulatedJob,
        failures: ScopedFailures,
        draws: BlockDraws,
        hours: Floats,
        counts: Ints,
        keeps: bool,
    ) -> None:
        self._failures, self._draws = failures, draws
        self._hours, self._counts, self._keeps = hours, counts, keeps
        self._numbers, _ = numbers_of(job)
        self._scratch, self._slots = np.zeros(1, state.JOB), state.slots_of(job)

    def run(self, rows: Ints) -> Iterator[NDArray[Any]]:
        """Run some replications; their losses, of some at a time.

        Few are interpreted; the first ones tell how long the others would take.
        """
        loop: Any = replications.run
        n, each_s = FIRST_INTERPRETED, INTERPRETED_S
        self._failures.strikes(1)  # to draw them takes the same time whoever runs them
        while len(rows) and not loop.pays(each_s * len(rows)):
            begin, some = thread_time(), rows[:n]
            yield from self._by(interpreted, some)
            each_s = (thread_time() - begin) / len(some)
            loop.interpreted_s += each_s * len(some)
            rows, n = rows[n:], 4 * n
        if len(rows):
            yield from self._by(loop, rows)

    def _by(self, loop: Callable[..., int], rows: Ints) -> Iterator[NDArray[Any]]:
        """Run some replications, and draw more of what they turn out to need."""
        draws = self._draws
        n_chunks, n_of_saves, n_of_failures = 1, FIRST_DRAWS, FIRST_DRAWS
        n_room = len(rows) if self._keeps else 0
        while len(rows):
            drawn = state.Drawn(
                draws.tables(draws.of_saves, n_of_saves),
                draws.tables(draws.of_failures, n_of_failures),
                draws.keys,
            )
            losses = np.zeros(n_room, LOSS)
            n_losses = loop(
                self._numbers, drawn, self._failures.strikes(n_chunks), rows, self._scratch,
                self._slots, self._hours, self._counts, losses, self._keeps,
            )  # fmt: skip
            yield losses[:n_losses]
            status = self._counts[0, rows]
            n_chunks += bool((status == WANTS_FAILURES).any())
            n_of_saves *= 1 + bool((status == WANTS_SAVES).any())
            n_of_failures *= 1 + bool((status == WANTS_COSTS).any())
            n_room *= 1 + 3 * bool((status == WANTS_ROOM).any())
            rows = rows[status > LEFT]


def by_events(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws, replication: int
) -> ReplicationOutcome:
    """One replication by SimPy."""
    from cprsim.simulate.cluster import run

    return run(job, failures.of(replication), draws.of(replication), logged=False).outcome


def logged(
    job: SimulatedJob,
    failures: ScopedFailures,
    draws: BlockDraws,
    replication: int,
    number: int,
    *,
    whole: bool = True,
) -> EventLog:
    """The event log of one replication; its rows carry `number`.

    Parameters
    ----------
    whole : whether all saves are in it, were they very many; else only some
    """
    from cprsim.simulate.cluster import run

    n_saves = sum(
        job.useful_h / capture.every_h for capture in job.policy.captures if capture.every_h
    )
    skips = not whole and n_saves > MOST_SAVES_SHOWN
    log = run(job, failures.of(replication), draws.of(replication), skips=skips).log
    return replace(log, replication=np.full_like(log.replication, number))
