"""What the engine hands back: the two records, and which replications it left to others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.engine.jobs import Jobs
from cprsim.engine.strikes import Strikes
from cprsim.records import Bools, CostBreakdown, Floats, Ints, ShardLoss
from cprsim.setting import JobSetting


@dataclass(frozen=True, slots=True)
class Ran:
    """Costs and losses of the replications that the engine ran, in order of replication.

    `left` are those, within the block, whose path is too intricate for it; they have no rows.
    """

    costs: CostBreakdown
    losses: ShardLoss
    left: Ints


class Rows:
    """Collects the rows of one block while its jobs end in any order."""

    def __init__(self, n_replications: int, n_emb_ps: int) -> None:
        self._n_emb_ps = n_emb_ps
        self._ended: list[tuple[Jobs, Floats, bool]] = []  # jobs, wall time, whether finished
        self._left = np.zeros(n_replications, dtype=bool)
        self._lost: list[tuple[Ints, Ints, Floats, Floats]] = []  # replication, slot, now, saved

    @classmethod
    def of(cls, setting: JobSetting, n_replications: int) -> Rows:
        """Room for the rows of a block of so many replications of a job."""
        return cls(n_replications, setting.cluster.n_emb_ps)

    def leave(self, jobs: Jobs) -> None:
        """Take note of jobs that somebody else has to run, from their start."""
        self._left[jobs.row] = True

    def end(self, jobs: Jobs, wall_h: Floats, *, finished: bool) -> None:
        """Take note of jobs that are over; their columns are complete."""
        if len(jobs):
            self._ended.append((jobs, wall_h, finished))

    def lose(
        self, strikes: Strikes, failures: Ints, all_lost: Bools, row: Ints,
        progress_h: Floats, saved_h: Floats,
    ) -> None:  # fmt: skip
        """Take note of failures that made shards go back to the last save."""
        place, slot = strikes.slots_reverted(failures, all_lost)
        self._lost.append((row[place], slot, progress_h[place], saved_h[place]))

    def ran(self, replications: range, first_number: int) -> Ran:
        """The rows of these replications, numbered from `first_number` on."""
        return Ran(self._costs(first_number), self._losses(first_number), self._who(replications))

    def _who(self, replications: range) -> Ints:
        return np.flatnonzero(self._left[replications.start : replications.stop]) + (
            replications.start
        )

    def _costs(self, first_number: int) -> CostBreakdown:
        jobs = Jobs.together([jobs for jobs, _, _ in self._ended] or [_none()])
        wall_h = np.concatenate([wall_h for _, wall_h, _ in self._ended] or [np.zeros(0)])
        finished = np.repeat(
            [finished for _, _, finished in self._ended], [len(jobs) for jobs, _, _ in self._ended]
        ).astype(bool)
        order = np.argsort(jobs.row, kind="stable")
        jobs = jobs.take(order)
        return CostBreakdown(
            replication=jobs.row + first_number,
            finished=finished[order],
            wall_h=wall_h[order],
            useful_h=jobs.frontier_h,
            lost_h=jobs.worked_h - jobs.frontier_h,
            save_h=jobs.save_h,
            detect_h=jobs.detect_h,
            wait_h=np.zeros(len(jobs)),
            reschedule_h=jobs.reschedule_h,
            load_h=jobs.load_h,
            n_failures=jobs.n_failures,
            n_saves=jobs.n_saves,
        )

    def _losses(self, first_number: int) -> ShardLoss:
        none = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0)
        columns = zip(*(self._lost or [none]), strict=True)
        replication, slot, progress_h, saved_h = (np.concatenate(column) for column in columns)
        order = np.argsort(replication, kind="stable")
        order = order[~self._left[replication[order]]]
        replication, slot, progress_h = replication[order], slot[order], progress_h[order]
        saved_h = saved_h[order]
        fresh_at_h = np.maximum(saved_h, _reverted_before_h(replication, slot, progress_h))
        return ShardLoss(
            replication=replication + first_number,
            progress_h=progress_h,
            slot=slot,
            since_save_h=progress_h - saved_h,
            since_reload_h=progress_h - fresh_at_h,
            share=np.full(len(slot), 1.0 / max(self._n_emb_ps, 1)),
        )


def _none() -> Jobs:
    return Jobs.new(np.zeros(0, dtype=np.int64))


def _reverted_before_h(replication: Ints, slot: Ints, progress_h: Floats) -> Floats:
    """Progress at which the same shard of the same replication went back before; 0 if never."""
    order = np.lexsort((np.arange(len(slot)), slot, replication))
    same = (np.diff(replication[order]) == 0) & (np.diff(slot[order]) == 0)
    before_h = np.zeros(len(slot))
    before_h[order[1:][same]] = progress_h[order[:-1][same]]
    return before_h
