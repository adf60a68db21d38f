"""A block of replications of a job under a recovery system, by whichever engine takes each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from threading import local
from time import thread_time
from typing import Any, Protocol, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from cprsim.compiling import Compiled
from cprsim.errors import AccountingError
from cprsim.records import CostBreakdown, Duration, EventLog, Floats, Ints
from cprsim.recovery.giving_up import ROUNDING
from cprsim.simulate.draws import Draws
from cprsim.simulate.fast import batch, replications, state
from cprsim.simulate.fast.loops import Interpreted, Loops
from cprsim.simulate.fast.params import Params, params_of
from cprsim.simulate.job import ReplicationOutcome, ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import (
    FINISHED,
    INTRICATE,
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
from cprsim.simulate.strikes import GivenFailures, ScopedStrikes
from cprsim.simulate.transitions import stream_keys, uniform
from cprsim.workers.beside import both, may_copy

Runner = Callable[[Ints, Loops], Iterator[NDArray[Any]]]  # of some replications

MOST_SAVES_SHOWN = 20_000  # of a job, in the log of a replication that is shown; of more only some
MOST_BY_EVENTS = 64  # replications that SimPy takes sooner than the compiler would
FIRST_INTERPRETED = 4  # replications, of which the time of others is guessed
LONG_S = 1.5  # what is interpreted for longer is compiled for the next process
WORTH_A_COPY_S = 0.1  # of interpreting that is left to each of two processes
TOLD_AFTER_S = 0.02  # of interpreting: too little of it tells nothing of the others' time
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


def loop_of(job: SimulatedJob) -> Compiled:
    """What runs the replications of a job, but for intricate ones."""
    loop: Any = replications.run if params_of(job) is None else batch.run_batch
    return cast(Compiled, loop)


def compile_for(job: SimulatedJob) -> None:
    """Compile what `run_block` is sure to need, if it never was here, and run nothing."""
    nothing = GivenFailures(((),))
    draws = BlockDraws(job, 0, 0, 1, range(1))
    run_block(job, nothing, draws, range(0))


_interpreted: dict[Any, SimulatedJob] = {}  # the latest job, by loop


def interpreted_for_long() -> list[SimulatedJob]:
    """A job of each loop that was interpreted for long, and is not compiled in this process."""
    return [
        job
        for loop, job in _interpreted.items()
        if loop.interpreted_s > LONG_S and not loop.is_there
    ]


class _Block:
    """A block of replications of one job, as far as the compiled engine has run it."""

    def __init__(
        self,
        job: SimulatedJob,
        failures: ScopedFailures,
        draws: BlockDraws,
        hours: Floats,
        counts: Ints,
        keeps: bool,
    ) -> None:
        self._job, self._failures, self._draws = job, failures, draws
        self._hours, self._counts, self._keeps = hours, counts, keeps
        self._numbers, _ = numbers_of(job)
        self._scratch, self._slots = np.zeros(1, state.JOB), state.slots_of(job)

    def run(self, rows: Ints) -> Iterator[NDArray[Any]]:
        """Run some replications; their losses, of some at a time."""
        params = params_of(self._job)
        if params is not None:
            yield from self._by_whom(batch.run_batch, partial(self._run_common, params), rows)
            rows = rows[self._counts[0, rows] == INTRICATE]
        if params is None or len(rows) > MOST_BY_EVENTS:
            yield from self._by_whom(replications.run, self._run_any, rows)
        else:
            self._counts[0, rows] = LEFT

    def _by_whom(self, loop: Any, run: Runner, rows: Ints) -> Iterator[NDArray[Any]]:
        """Run replications by whoever is done sooner: Python, two of it, or machine code.

        The first ones are interpreted if there is no machine code yet, and tell what the others
        would take.
        """
        interpreted = Interpreted(self._numbers, self._scratch, self._slots)
        n_done, n, left_s = 0, FIRST_INTERPRETED, 0.0
        while n_done < len(rows) and not loop.pays(left_s):
            by_two = left_s > WORTH_A_COPY_S and may_copy()
            some = rows[n_done:] if by_two else rows[n_done : n_done + n]
            self._failures.strikes(1)  # to draw them takes the same time whoever runs them
            begin = thread_time()
            yield from (self._by_two(run, some, interpreted) if by_two else run(some, interpreted))
            took_s = thread_time() - begin
            loop.interpreted_s += took_s
            _interpreted[loop] = self._job
            n_done += len(some)
            if took_s < TOLD_AFTER_S:
                n *= 4
            else:
                left_s = took_s / n * (len(rows) - n_done) / (2 if may_copy() else 1)
        if n_done < len(rows) or not len(rows):
            yield from run(rows[n_done:], Loops(self._numbers, self._scratch, self._slots))

    def _by_two(self, run: Runner, rows: Ints, loops: Loops) -> Iterator[NDArray[Any]]:
        """Run some replications here, and as many in a copy of this process."""
        mine, others = rows[: len(rows) // 2], rows[len(rows) // 2 :]

        def found_there() -> tuple[list[NDArray[Any]], Floats, Ints]:
            return list(run(others, loops)), self._hours[:, others], self._counts[:, others]

        losses, there = both(lambda: list(run(mine, loops)), found_there)
        more_losses, self._hours[:, others], self._counts[:, others] = there
        yield from losses + more_losses

    def _run_common(self, params: Params, rows: Ints, loops: Loops) -> Iterator[NDArray[Any]]:
        """Run replications of the common case many abreast, as far as they are of it."""
        n_chunks = 1
        while True:
            strikes = self._failures.strikes(n_chunks)
            one_each = len(strikes.slot) == len(strikes.at_h)
            tallies = params.reloads and not self._keeps and one_each
            unsure = np.empty(len(rows) if tallies else 0, dtype=np.int64)
            n_unsure, losses = self._abreast(params, strikes, rows, unsure, loops)
            yield losses
            if n_unsure:
                again = unsure[:n_unsure]
                yield self._abreast(params, strikes, again, unsure[:0], loops)[1]
            rows = rows[self._counts[0, rows] == WANTS_FAILURES]
            if not len(rows):
                return
            n_chunks += 1

    def _abreast(
        self, params: Params, strikes: ScopedStrikes, rows: Ints, unsure: Ints, loops: Loops
    ) -> tuple[int, NDArray[Any]]:
        """How many are unsure (`run_batch`), and the losses of all where those are not tallied."""
        loses = params.reloads and not len(unsure)
        progress_h, whole_h = np.empty((2, len(strikes.at_h) if loses else 0))
        of_rows, n_strikes = _lined_up.of(strikes, rows, loops)
        n_unsure = loops.run_batch(
            params, strikes, of_rows, n_strikes,
            self._hours, self._counts, unsure, progress_h, whole_h,
        )  # fmt: skip
        if not loses:
            return n_unsure, np.zeros(0, LOSS)
        losses = np.empty(n_struck(strikes, rows) if self._keeps else 0, LOSS)
        n_lost = loops.lose(
            params, strikes, rows, progress_h, whole_h,
            self._hours, self._counts, losses, self._keeps,
        )  # fmt: skip
        return n_unsure, losses[:n_lost]

    def _run_any(self, rows: Ints, loops: Loops) -> Iterator[NDArray[Any]]:
        """Run replications of any job, and draw more of what they turn out to need."""
        draws = self._draws
        n_chunks, n_of_saves, n_of_failures = 1, FIRST_DRAWS, FIRST_DRAWS
        n_room = len(rows) if self._keeps else 0
        while True:
            drawn = state.Drawn(
                draws.tables(draws.of_saves, n_of_saves),
                draws.tables(draws.of_failures, n_of_failures),
                draws.keys,
            )
            strikes = self._failures.strikes(n_chunks)
            losses = np.zeros(n_room, LOSS)
            n_losses = loops.run(
                drawn, strikes, rows, self._hours, self._counts, losses, self._keeps
            )
            yield losses[:n_losses]
            status = self._counts[0, rows]
            n_chunks += bool((status == WANTS_FAILURES).any())
            n_of_saves *= 1 + bool((status == WANTS_SAVES).any())
            n_of_failures *= 1 + bool((status == WANTS_COSTS).any())
            n_room *= 1 + 3 * bool((status == WANTS_ROOM).any())
            rows = rows[status > LEFT]
            if not len(rows):
                return


class _LinedUp(local):
    """The order in which replications are put abreast; kept for the next policy of a block."""

    # by `first` alone, not by all strikes: the failures go when their block does
    last: tuple[Ints, range, Ints] | None = None

    def of(self, strikes: ScopedStrikes, rows: Ints, loops: Loops) -> Ints:
        """As `batch.line_up`, (2, n_rows)."""
        span = range(rows[0], rows[-1] + 1) if len(rows) else range(0)
        whole = len(span) == len(rows)
        if whole and self.last is not None:
            of_first, of_rows, kept = self.last
            if of_first is strikes.first and of_rows == span:
                return kept
        found = np.empty((2, len(rows)), dtype=np.int64)
        loops.line_up(strikes, rows, *found)
        if whole:
            self.last = strikes.first, span, found
        return found


_lined_up = _LinedUp()


def n_struck(strikes: ScopedStrikes, rows: Ints) -> int:
    """How many nodes the failures of some replications strike."""
    if len(rows) == strikes.first.shape[1] - 1:
        return len(strikes.slot)
    first_slot, first = strikes.first_slot, strikes.first
    return int((first_slot[first[:, rows + 1]] - first_slot[first[:, rows]]).sum())


def by_events(
    job: SimulatedJob, failures: ScopedFailures, draws: BlockDraws, replication: int
) -> ReplicationOutcome:
    """One replication by SimPy."""
    from cprsim.simulate.events import replication as simpy_engine

    return simpy_engine.run(
        job, failures.of(replication), draws.of(replication), logged=False
    ).outcome


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
    from cprsim.simulate.events import event_log
    from cprsim.simulate.events import replication as simpy_engine

    n_saves = sum(
        job.useful_h / capture.every_h for capture in job.policy.captures if capture.every_h
    )
    played = simpy_engine.run(
        job,
        failures.of(replication),
        draws.of(replication),
        skips=not whole and n_saves > MOST_SAVES_SHOWN,
    )
    return event_log.event_log(played.log, number)
