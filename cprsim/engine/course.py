"""Runs the replications of a block, and draws more of what they turn out to need."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from threading import local
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cprsim.draws import CostDraws, Draws
from cprsim.engine.rows import LOSS, Losses, Ran, losses_of
from cprsim.engine.terms import Plan, drawn_of, plan_of
from cprsim.failures.block import Strikes
from cprsim.records import PARTS, CostBreakdown, Floats, Ints, RecoveryPolicy
from cprsim.setting import JobSetting

MOST_SHARED = 2**20  # failures, to whose tables one thread holds on


class Failures(Protocol):
    """The failures of a block (failures.block.BlockFailures)."""

    n_replications: int

    def strikes(self, n_chunks: int) -> Strikes: ...


def simulate(
    setting: JobSetting,
    policy: RecoveryPolicy,
    failures: Failures,
    costs: CostDraws,
    replications: range,
    first_number: int = 0,
    *,
    keep_losses: bool = True,
) -> Ran:
    """Run some replications of a block under one policy.

    Parameters
    ----------
    replications : numbers within the block
    first_number : number of the block's first replication among all
    keep_losses : whether each shard that goes back gets its row; their sums are there anyhow

    Notes
    -----
    Left to the cluster, one by one and with the same rows up to rounding, are replications

    - in which a failure falls within a billionth of the job of a commit or of the end, so that
      rounding decides which comes first (failures placed by hand do, random ones do not);
    - under partial recovery, in which loads that share the storage's bandwidth overlap.
    """
    if replications.stop > failures.n_replications:  # compiled loops check no bounds
        raise ValueError(f"a block of {failures.n_replications} replications has no {replications}")
    run = _Run(plan_of(setting, policy), setting, failures, costs, keep_losses)
    rows = np.arange(replications.start, replications.stop)
    while len(rows):
        rows = run.go_on(rows)
    return run.ran(replications, first_number)


def is_compiled(setting: JobSetting, policy: RecoveryPolicy) -> bool:
    """Whether there is machine code of the engine beside its source, be it of an older one."""
    name = "steady.hurry" if plan_of(setting, policy).is_common else "loops.run"
    return any((Path(__file__).parent / "__pycache__").glob(f"{name}-*.nbi"))


def compile_now(
    setting: JobSetting, policy: RecoveryPolicy, failures: Failures, costs: CostDraws
) -> None:
    """Compile what `simulate` is sure to need, and run nothing."""
    run = _Run(plan_of(setting, policy), setting, failures, costs, keeps=False)
    run.go_on(np.zeros(0, dtype=np.int64))


def n_struck(strikes: Strikes, rows: Ints) -> int:
    """How many nodes the failures of some replications strike."""
    if len(rows) == strikes.first.shape[1] - 1:
        return len(strikes.slot)
    first_slot, first = strikes.first_slot, strikes.first
    return int((first_slot[first[:, rows + 1]] - first_slot[first[:, rows]]).sum())


class _Tables(local):
    """Tables to write to, one set for each thread: a new one costs more than a short run."""

    def __init__(self) -> None:
        from cprsim.engine.standing import DESK, SLOT

        self._slots, self._desks = np.zeros(0, SLOT), np.zeros(1, DESK)
        self._of_failures: Floats = np.empty((2, 0))
        # by `Strikes.first`, not by all of it: the failures go when their block does
        self._lined_up: tuple[Ints, range, Ints] | None = None

    def of_failures(self, n: int) -> Floats:
        """Two columns for so many failures, (2, n); what they hold does not matter."""
        if n > MOST_SHARED:
            return np.empty((2, n))
        if n > self._of_failures.shape[1]:
            self._of_failures = np.empty((2, n + n // 4))
        return self._of_failures[:, :n]

    def lined_up(self, strikes: Strikes, rows: Ints) -> Ints:
        """As `steady.line_up`, (2, n_rows); the last one is kept for further policies."""
        from cprsim.engine.steady import line_up

        span = range(rows[0], rows[-1] + 1) if len(rows) else range(0)
        whole = len(span) == len(rows)
        if whole and self._lined_up is not None:
            of_first, of_rows, kept = self._lined_up
            if of_first is strikes.first and of_rows == span:
                return kept
        found = np.empty((2, len(rows)), dtype=np.int64)
        line_up(strikes, rows, *found)
        if whole:
            self._lined_up = strikes.first, span, found
        return found

    def of_slots(self, n_slots: int) -> tuple[NDArray[Any], NDArray[Any]]:
        if n_slots > len(self._slots):
            self._slots = np.zeros(n_slots, self._slots.dtype)
        return self._slots[:n_slots], self._desks


@cache
def _tables() -> _Tables:
    return _Tables()


class _Run:
    """The replications of a block under one policy, as far as they have come."""

    def __init__(
        self, plan: Plan, setting: JobSetting, failures: Failures, costs: CostDraws, keeps: bool
    ) -> None:
        # numba takes a third of a second to import: only who simulates waits for it
        from cprsim.engine import loops, standing, steady

        self._loops, self._steady, self._standing = loops, steady, standing
        self._is_common = plan.is_common
        self._plan = plan
        self._setting = setting
        self._failures = failures
        self._costs = costs
        self._keeps = keeps
        self._n_chunks = 1
        self._n_losses = 0  # that there is room for, beyond one per struck node
        self._lost: list[Losses] = []
        n = failures.n_replications
        self._hours: Floats = np.empty((len(standing.HOURS), n))
        self._hours[standing.WAIT_H] = 0.0
        self._counts: Ints = np.empty((len(standing.COUNTS), n), dtype=np.int64)

    def go_on(self, rows: Ints) -> Ints:
        """Run these replications; those that want more than is drawn, which then is there."""
        strikes = self._failures.strikes(self._n_chunks)
        if not self._is_common:
            self._run(strikes, rows)
            return self._wanting(rows)
        rows = self._hurry(strikes, rows)
        intricate = rows[self._counts[0, rows] == self._standing.INTRICATE]
        if len(intricate):
            self._run(strikes, intricate)
        return self._wanting(rows)

    def _hurry(self, strikes: Strikes, rows: Ints) -> Ints:
        """Run these replications as far as all is steady; those that are not over."""
        one_each = len(strikes.slot) == len(strikes.at_h)
        tallies = self._plan.reloads and not self._keeps and one_each
        unsure = np.empty(len(rows) if tallies else 0, dtype=np.int64)
        n_left, n_unsure = self._abreast(strikes, rows, unsure)
        if n_unsure:
            self._abreast(strikes, unsure[:n_unsure], unsure[:0])
        return rows[self._counts[0, rows] != self._standing.FINISHED] if n_left else rows[:0]

    def _abreast(self, strikes: Strikes, rows: Ints, unsure: Ints) -> tuple[int, int]:
        """As `steady.hurry`, with the rows of losses or their sums where those are not tallied."""
        plan, steady = self._plan, self._steady
        loses = plan.reloads and not len(unsure)
        progress_h, whole_h = _tables().of_failures(len(strikes.at_h) if loses else 0)
        n_left, n_unsure = steady.hurry(
            plan, strikes, *_tables().lined_up(strikes, rows),
            self._hours, self._counts, unsure, progress_h, whole_h,
        )  # fmt: skip
        if loses:
            losses: Losses = np.empty(n_struck(strikes, rows) if self._keeps else 0, LOSS)
            n_lost = steady.lose(
                plan, strikes, rows, progress_h, whole_h,
                self._hours, self._counts, losses, self._keeps, *_tables().of_slots(plan.n_slots),
            )  # fmt: skip
            self._lost += [losses[:n_lost]] if n_lost else []
        return n_left, n_unsure

    def _run(self, strikes: Strikes, rows: Ints) -> None:
        """Run these replications, whatever comes."""
        loops, drawn = self._loops, drawn_of(self._costs)
        keeps = self._keeps and self._plan.reloads
        room = n_struck(strikes, rows) + self._n_losses if keeps else 0
        losses: Losses = np.empty(room, LOSS)
        n_lost = loops.run(
            self._plan, drawn, strikes, rows, self._hours, self._counts, losses, self._keeps,
            *_tables().of_slots(self._plan.n_slots if self._plan.reloads else 0),
        )  # fmt: skip
        self._lost += [losses[:n_lost]] if n_lost else []

    def _wanting(self, rows: Ints) -> Ints:
        """Those of some replications that want more; draws it."""
        if not len(rows):
            return rows
        standing = self._standing
        status, n_failures, n_saves = self._counts.take(rows, axis=1)
        if (status == standing.WANTS_FAILURES).any():
            self._n_chunks += 1
        if (status == standing.WANTS_ROOM).any():
            self._n_losses = 2 * self._n_losses + self._plan.n_shards
        if (wants := status == standing.WANTS_COSTS).any():
            self._draw_costs(int(n_failures[wants].max()), int(n_saves[wants].max()))
        wanting: Ints = rows[status > standing.LEFT]
        return wanting

    def _draw_costs(self, n_failures: int, n_saves: int) -> None:
        costs = self._costs
        for cost in (costs.save_stall, costs.save_background):
            if isinstance(cost, Draws):
                cost.reach(max(self._plan.n_saves, n_saves))
        for cost in (costs.detect, costs.reschedule, costs.load):
            if isinstance(cost, Draws):
                cost.reach(n_failures)

    def ran(self, replications: range, first_number: int) -> Ran:
        """The rows of these replications, now that all of them are over."""
        within = slice(replications.start, replications.stop)
        hours, counts = self._hours[:, within], self._counts[:, within]
        number = np.arange(first_number + replications.start, first_number + replications.stop)
        finished = counts[0] == self._standing.FINISHED
        left = number[:0]
        if not finished.all() and (is_left := counts[0] == self._standing.LEFT).any():
            left, number = number[is_left] - first_number, number[~is_left]
            hours, counts, finished = hours[:, ~is_left], counts[:, ~is_left], finished[~is_left]
        wall_h, useful_h, *_, stale_h, net_h = hours
        n_emb_ps = self._setting.cluster.n_emb_ps
        if self._plan.reloads:
            stale_h, net_h = stale_h / max(n_emb_ps, 1), net_h / max(n_emb_ps, 1)
        costs = CostBreakdown(
            replication=number,
            finished=finished,
            wall_h=wall_h,
            useful_h=useful_h,
            parts=PARTS,
            hours=hours[2:-2].T,
            n_failures=counts[1],
            n_saves=counts[2],
        )
        return Ran(
            costs,
            losses_of(self._lost, first_number, n_emb_ps),
            stale_h,
            net_h,
            left,
        )
