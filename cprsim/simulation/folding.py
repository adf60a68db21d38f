"""From the event log of a replication, simulated or measured, to its costs and losses: a fold."""

from __future__ import annotations

import numpy as np

from cprsim.errors import AccountingError
from cprsim.job.records import PARTS, Activity, CostBreakdown, EventKind, EventLog, ShardLoss
from cprsim.simulation.job import TOLERANCE_H, refuse, require_sums

FOLDED = (*PARTS, "degraded")  # what a strategy's hours go into
WORKING = (Activity.USEFUL, Activity.LOST)


def cost_breakdown(log: EventLog, useful_h: float) -> CostBreakdown:
    """Hours of each activity of a replication.

    While the job works, hours that do not become progress are `degraded`: some trainers are away.

    Raises
    ------
    AccountingError
        if the parts do not add up to the wall time, a finished replication did not do all its
        useful work, it did not do again exactly what its failures had undone, or anything but
        work made progress
    """
    spent_h = np.diff(log.at_h, append=log.at_h[-1])  # from each event to the next
    made_h = np.diff(log.progress_h, append=log.progress_h[-1])
    goes_back = np.append(log.kind[1:] == EventKind.ROLLED_BACK, False)
    if (goes_back & (spent_h > 0.0)).any():
        raise AccountingError("the job goes back without a failure")
    undone_h = -made_h[goes_back].sum()
    made_h[goes_back] = 0.0
    works = np.isin(log.activity, WORKING)
    if (np.abs(made_h[~works]) > TOLERANCE_H).any():
        raise AccountingError("something else than work made progress")
    hours = np.bincount(log.activity, spent_h, len(Activity))
    useful, lost = np.bincount(log.activity[works], made_h[works], len(WORKING))
    degraded = (spent_h - made_h)[works].sum()
    breakdown = CostBreakdown(
        replication=log.replication[:1],
        finished=log.kind[-1:] == EventKind.FINISHED,
        wall_h=log.at_h[-1:],
        useful_h=np.array([useful]),
        parts=FOLDED,
        hours=np.array([[lost, *hours[Activity.SAVE : Activity.OVER], degraded]]),
        n_failures=np.array([_n_failures(log)]),
        n_saves=np.array([np.count_nonzero(log.kind == EventKind.SAVE_COMMITTED)]),
    )
    require_sums(breakdown)
    off = breakdown.finished & (abs(useful - useful_h) > TOLERANCE_H)
    refuse(breakdown, off, "has finished without its useful work")
    off = breakdown.finished & (abs(lost - undone_h) > TOLERANCE_H)
    refuse(breakdown, off, "did not do again exactly the work that its failures undid")
    return breakdown


def _n_failures(log: EventLog) -> int:
    """Failures, not failed nodes: nodes that fail together, one after the other, are one."""
    strikes = np.isin(log.kind, (EventKind.FAILED, EventKind.MISSED))
    continues = np.append(False, (np.diff(log.at_h) == 0) & strikes[:-1])
    number = np.cumsum(strikes & ~continues)  # of the failure that an event is of
    return len(np.unique(number[log.kind == EventKind.FAILED]))


def shard_loss(log: EventLog, n_emb_ps: int) -> ShardLoss:
    """The shards that went back to their last save while the job went on, and how stale they were.

    Parameters
    ----------
    n_emb_ps : embedding servers of the job, each holding an equal share
    """
    begun_h = saved_h = 0.0  # progress at the last save that began, and in the last committed one
    reloaded_h = dict[int, float]()
    rows = list[tuple[float, int, float, float]]()
    columns = log.kind.tolist(), log.progress_h.tolist(), log.slot.tolist()
    for kind, progress_h, slot in zip(*columns, strict=True):
        if kind == EventKind.SAVE_STARTED:
            begun_h = progress_h
        elif kind == EventKind.SAVE_COMMITTED:
            saved_h = begun_h
        elif kind == EventKind.REVERTED:
            fresh_h = max(saved_h, reloaded_h.get(slot, 0.0))
            rows.append((progress_h, slot, progress_h - saved_h, progress_h - fresh_h))
            reloaded_h[slot] = progress_h
    progress, slots, since_save, since_reload = np.array(rows).reshape(-1, 4).T
    return ShardLoss(
        replication=log.replication[: len(rows)],
        progress_h=progress,
        slot=slots.astype(np.int64),
        since_save_h=since_save,
        since_reload_h=since_reload,
        share=np.full(len(rows), 1.0 / n_emb_ps),
    )
