"""From an event log, simulated or measured, to costs and losses: a fold over its events."""

from __future__ import annotations

import numpy as np

from cprsim.errors import AccountingError
from cprsim.job.records import (
    PARTS,
    Activity,
    Bools,
    CostBreakdown,
    EventKind,
    EventLog,
    Floats,
    Ints,
    ShardLoss,
)
from cprsim.simulation.job import TOLERANCE_H, refuse, require_sums

FOLDED = (*PARTS, "degraded")  # what a strategy's hours go into
WORKING = (Activity.USEFUL, Activity.LOST)


def cost_breakdown(log: EventLog, useful_h: float) -> CostBreakdown:
    """Hours of each activity in each replication of the log.

    While the job works, hours that do not become progress are `degraded`: some trainers are away.

    Raises
    ------
    AccountingError
        if a replication's parts do not add up to its wall time, a finished one did not do all its
        useful work, it did not do again exactly what its failures had undone, or anything but
        work made progress
    """
    numbers, row = np.unique(log.replication, return_inverse=True)
    ends = np.append(np.flatnonzero(np.diff(row)), len(row) - 1)
    hours = _hours_by_activity(log, row, ends, len(numbers))
    worked_h, degraded_h = _work(log, row, ends, len(numbers))
    finished = log.kind[ends] == EventKind.FINISHED
    standing_h = hours[:, Activity.SAVE : Activity.OVER]
    breakdown = CostBreakdown(
        replication=numbers,
        finished=finished,
        wall_h=log.at_h[ends],
        useful_h=worked_h[:, 0],
        parts=FOLDED,
        hours=np.column_stack([worked_h[:, 1], standing_h, degraded_h]),
        n_failures=_count_failures(log, row, len(numbers)),
        n_saves=np.bincount(row[log.kind == EventKind.SAVE_COMMITTED], minlength=len(numbers)),
    )
    require_sums(breakdown)
    off = finished & (np.abs(breakdown.useful_h - useful_h) > TOLERANCE_H)
    refuse(breakdown, off, "has finished without its useful work")
    undone_h = _undone_h(log, row, len(numbers))
    off = finished & (np.abs(breakdown.hours_of("lost") - undone_h) > TOLERANCE_H)
    refuse(breakdown, off, "did not do again exactly the work that its failures undid")
    return breakdown


def shard_loss(log: EventLog, n_emb_ps: int) -> ShardLoss:
    """The shards that went back to their last save while the job went on, and how stale they were.

    Parameters
    ----------
    n_emb_ps : embedding servers of the job, each holding an equal share
    """
    reverted = np.flatnonzero(log.kind == EventKind.REVERTED)
    saved_h = _content_of_last_save_h(log)[reverted]
    progress_h = log.progress_h[reverted]
    fresh_at_h = np.maximum(saved_h, _last_reload_h(log, reverted))
    return ShardLoss(
        replication=log.replication[reverted],
        progress_h=progress_h,
        slot=log.slot[reverted],
        since_save_h=progress_h - saved_h,
        since_reload_h=progress_h - fresh_at_h,
        share=np.full(len(reverted), 1.0 / n_emb_ps),
    )


def _hours_by_activity(log: EventLog, row: Ints, ends: Ints, n: int) -> Floats:
    n_activities = len(Activity)
    cell = row * n_activities + log.activity
    return _sum_by(cell, _spent_h(log, ends), n * n_activities).reshape(n, -1)


def _spent_h(log: EventLog, ends: Ints) -> Floats:
    """Hours from each event to the next of its replication."""
    spent_h = np.diff(log.at_h, append=0.0)
    spent_h[ends] = 0.0  # the job is over
    return spent_h


def _work(log: EventLog, row: Ints, ends: Ints, n: int) -> tuple[Floats, Floats]:
    """Progress made as useful and as lost work, (n, 2), and the hours of work that made none."""
    made_h = np.diff(log.progress_h, append=0.0)
    made_h[ends] = 0.0
    goes_back = np.append(log.kind[1:] == EventKind.ROLLED_BACK, False)
    if (goes_back & (np.diff(log.at_h, append=0.0) > 0.0)).any():
        raise AccountingError("the job goes back without a failure")
    made_h[goes_back] = 0.0
    works = np.isin(log.activity, WORKING)
    if (np.abs(made_h[~works]) > TOLERANCE_H).any():
        raise AccountingError("something else than work made progress")
    worked_h = _sum_by(row[works] * 2 + log.activity[works], made_h[works], 2 * n).reshape(n, 2)
    degraded_h = _sum_by(row[works], (_spent_h(log, ends) - made_h)[works], n)
    return worked_h, degraded_h


def _count_failures(log: EventLog, row: Ints, n: int) -> Ints:
    """Failures, not failed nodes: nodes that fail together, one after the other, are one."""
    strikes = np.isin(log.kind, (EventKind.FAILED, EventKind.MISSED))
    continues = np.append(False, (np.diff(log.at_h) == 0) & (np.diff(row) == 0) & strikes[:-1])
    number = np.cumsum(strikes & ~continues)  # of the failure that an event is of
    failed = log.kind == EventKind.FAILED
    _, first = np.unique(number[failed], return_index=True)
    return np.bincount(row[failed][first], minlength=n)


def _undone_h(log: EventLog, row: Ints, n: int) -> Floats:
    """Work that rollbacks undid, in each replication: what re-execution has to make up for."""
    back = np.flatnonzero(log.kind == EventKind.ROLLED_BACK)
    undone_h = log.progress_h[back - 1] - log.progress_h[back]
    return _sum_by(row[back], undone_h, n)


def _content_of_last_save_h(log: EventLog) -> Floats:
    """Content of the last committed save as of each event; 0 before the first."""
    content_h = _carried_on(log.kind == EventKind.SAVE_STARTED, log.progress_h)
    started = log.kind == EventKind.STARTED
    is_known = started | (log.kind == EventKind.SAVE_COMMITTED)
    return _carried_on(is_known, np.where(started, 0.0, content_h))


def _carried_on(is_known: Bools, values: Floats) -> Floats:
    """Each value carried on from the last place where it was known; 0 before the first."""
    last = np.maximum.accumulate(np.where(is_known, np.arange(len(is_known)), -1))
    return np.where(last >= 0, values[last], 0.0)


def _last_reload_h(log: EventLog, reverted: Ints) -> Floats:
    """Progress at which the same shard of the same replication was reverted before; 0 if never."""
    replication, slot = log.replication[reverted], log.slot[reverted]
    order = np.lexsort((np.arange(len(reverted)), slot, replication))
    is_again = (np.diff(replication[order]) == 0) & (np.diff(slot[order]) == 0)
    before = np.zeros(len(reverted))
    before[order[1:][is_again]] = log.progress_h[reverted][order[:-1][is_again]]
    return before


def _sum_by(cell: Ints, values: Floats, n: int) -> Floats:
    return np.bincount(cell, weights=values, minlength=n).astype(np.float64)
