"""How far a job comes while nothing strikes it: work, and a save at every whole interval."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np

from cprsim.draws import CostDraws, Draws
from cprsim.engine.jobs import Jobs
from cprsim.records import Bools, Floats, Ints, RecoveryPolicy, SubSaves
from cprsim.setting import JobSetting, n_saves_due

NEAR = 1e-9  # of the job: instants nearer than that may change places by rounding
WHOLE = SubSaves("none", fraction=1.0)  # every save is whole


@dataclass(slots=True)
class Stretch:
    """Where jobs are after some hours of working and saving; all columns (n_jobs,).

    Those that are done stand at the end of the job, however many hours were left.
    """

    n_committed: Ints  # saves committed by then, all in all
    beyond_h: Floats  # progress since the last of them
    saving_h: Floats  # hours of the stretch spent saving, the save in hand included
    n_attempts: Ints  # saves begun, all in all
    done: Bools
    doubtful: Bools  # a commit or the end is so near that rounding decides what comes first

    def take(self, places: Ints) -> Stretch:
        """Some of the rows, as copies."""
        return Stretch(
            self.n_committed.take(places), self.beyond_h.take(places), self.saving_h.take(places),
            self.n_attempts.take(places), self.done.take(places), self.doubtful.take(places),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Grid:
    """The whole intervals of a job and what is left of it after the last save."""

    interval_h: float
    n_saves: int
    tail_h: float  # work after the last save
    near_h: float
    n_per_whole: int = 1  # so many make a whole save: 1 unless there are sub-saves

    @classmethod
    def of(cls, policy: RecoveryPolicy, useful_h: float) -> Grid:
        """The instants of `setting.SavePlan`, without their list."""
        parts = policy.sub_saves or WHOLE
        interval_h = parts.fraction * policy.save_interval_h
        n_saves = n_saves_due(interval_h, useful_h)
        interval_h = interval_h if n_saves else inf
        tail_h = max(0.0, useful_h - n_saves * interval_h) if n_saves else useful_h
        return cls(interval_h, n_saves, tail_h, NEAR * useful_h, parts.n_per_interval)

    def n_whole(self, n_committed: Ints) -> Ints:
        """How many whole saves there are among so many."""
        return n_committed if self.n_per_whole == 1 else n_committed // self.n_per_whole

    def content_h(self, n_committed: Ints) -> Floats:
        """Progress that the nth save contains [h]; the state at 0 is a free one."""
        if not self.n_saves:
            return np.zeros(len(n_committed))
        return n_committed * np.float64(self.interval_h)

    def intervals_in(self, hours: Floats, period_h: float) -> Ints:
        """Whole periods in some hours, (n,), as many as saves are left at most."""
        if not self.n_saves:
            return np.zeros(len(hours), dtype=np.int64)
        return np.minimum(np.floor(hours / period_h), self.n_saves).astype(np.int64)

    def room_h(self, n_committed: Ints) -> Floats:
        """Work until the next save is due, or the job is done [h]."""
        if not self.n_saves:
            return np.full(len(n_committed), self.tail_h)
        return np.where(n_committed < self.n_saves, self.interval_h, self.tail_h)

    def to_progress(self, jobs: Jobs, progress_h: Floats) -> tuple[Ints, Floats, Bools, Bools]:
        """Saves committed, progress since, done and doubtful at some progress of the job."""
        n_committed = self.intervals_in(progress_h, self.interval_h)
        rest_h = progress_h - self.content_h(n_committed)
        room_h = self.room_h(n_committed)
        done = (n_committed == self.n_saves) & (rest_h >= room_h)
        doubtful = (rest_h < self.near_h) | (np.abs(rest_h - room_h) < self.near_h)
        return n_committed, np.minimum(rest_h, room_h), done, doubtful


class Saves(Protocol):
    """The course of a job between failures."""

    @property
    def grid(self) -> Grid: ...

    def within(self, jobs: Jobs, hours: Floats) -> Stretch:
        """After so many hours [h] of work and saves, (n_jobs,)."""
        ...

    def to_progress(self, jobs: Jobs, progress_h: Floats) -> Stretch:
        """At this progress [h], (n_jobs,), with the saves due by then."""
        ...


@dataclass(frozen=True, slots=True)
class FixedSaves:
    """Every save stalls the job for the same time: intervals pass with one division."""

    grid: Grid
    stall_h: float

    def within(self, jobs: Jobs, hours: Floats) -> Stretch:
        grid = self.grid
        period_h = grid.interval_h + self.stall_h
        total_h = jobs.beyond_h + hours
        n_committed = jobs.n_committed + grid.intervals_in(total_h, period_h)
        n_committed = np.minimum(n_committed, grid.n_saves)
        n_passed = n_committed - jobs.n_committed
        rest_h = total_h - n_passed * period_h if grid.n_saves else total_h
        room_h = grid.room_h(n_committed)
        last = n_committed == grid.n_saves
        beyond_h = np.minimum(rest_h, room_h)
        in_hand_h = np.where(last, 0.0, rest_h - beyond_h)
        edge_h = room_h + np.where(last, 0.0, self.stall_h)
        near = (rest_h < grid.near_h) | (np.abs(rest_h - edge_h) < grid.near_h)
        return Stretch(
            n_committed,
            beyond_h,
            n_passed * np.float64(self.stall_h) + in_hand_h,
            jobs.n_attempts,
            last & (rest_h >= room_h),
            near & (hours > grid.near_h),
        )

    def to_progress(self, jobs: Jobs, progress_h: Floats) -> Stretch:
        n_committed, beyond_h, done, doubtful = self.grid.to_progress(jobs, progress_h)
        saving_h = (n_committed - jobs.n_committed) * np.float64(self.stall_h)
        return Stretch(n_committed, beyond_h, saving_h, jobs.n_attempts, done, doubtful)


@dataclass(frozen=True, slots=True)
class VaryingSaves:
    """Each save takes its own draw: how many pass is found by bisection over their sums."""

    grid: Grid
    stall: Draws
    fraction: float  # of a draw, that each save takes
    extra_h: float  # on top

    def within(self, jobs: Jobs, hours: Floats) -> Stretch:
        grid = self.grid
        n_passed = self._n_passed(jobs, hours)
        n_committed = jobs.n_committed + n_passed
        passed_h = self._hours_of(jobs, n_passed)
        saving_h = self._saving_h(jobs, n_passed)
        total_h = jobs.beyond_h + hours
        rest_h = total_h - n_passed * grid.interval_h - saving_h if grid.n_saves else total_h
        room_h = grid.room_h(n_committed)
        last = n_committed == grid.n_saves
        beyond_h = np.minimum(rest_h, room_h)
        in_hand = ~last & (rest_h >= room_h)
        n_attempts = jobs.n_attempts + n_passed
        stall_h = self.fraction * self.stall.of(jobs.row, n_attempts) + self.extra_h
        edge_h = room_h + np.where(last, 0.0, stall_h)
        near = (hours - passed_h < grid.near_h) & (n_passed > 0)
        near |= (np.abs(rest_h - edge_h) < grid.near_h) | (np.abs(rest_h - room_h) < grid.near_h)
        return Stretch(
            n_committed,
            beyond_h,
            saving_h + np.where(in_hand, rest_h - beyond_h, 0.0),
            n_attempts + in_hand,
            last & (rest_h >= room_h),
            near & (hours > grid.near_h),
        )

    def to_progress(self, jobs: Jobs, progress_h: Floats) -> Stretch:
        n_committed, beyond_h, done, doubtful = self.grid.to_progress(jobs, progress_h)
        n_passed = n_committed - jobs.n_committed
        saving_h = self._saving_h(jobs, n_passed)
        n_attempts = jobs.n_attempts + n_passed
        return Stretch(n_committed, beyond_h, saving_h, n_attempts, done, doubtful)

    def _n_passed(self, jobs: Jobs, hours: Floats) -> Ints:
        """Saves that commit within some hours: the most whose end is not beyond them."""
        fits = np.zeros(len(jobs), dtype=np.int64)
        too_many = self.grid.n_saves - jobs.n_committed + 1
        while (open_ := too_many - fits > 1).any():
            middle = np.where(open_, (fits + too_many) // 2, fits)
            ends = self._hours_of(jobs, middle) <= hours
            fits = np.where(open_ & ends, middle, fits)
            too_many = np.where(open_ & ~ends, middle, too_many)
        return fits

    def _hours_of(self, jobs: Jobs, n_passed: Ints) -> Floats:
        """Hours until so many saves have committed; 0 for none."""
        if not self.grid.n_saves:
            return np.zeros(len(jobs))
        work_h = n_passed * self.grid.interval_h - jobs.beyond_h
        return np.where(n_passed > 0, work_h + self._saving_h(jobs, n_passed), 0.0)

    def _saving_h(self, jobs: Jobs, n_passed: Ints) -> Floats:
        before = self.stall.sum_before(jobs.row, jobs.n_attempts)
        drawn_h = self.stall.sum_before(jobs.row, jobs.n_attempts + n_passed) - before
        return self.fraction * drawn_h + n_passed * self.extra_h


def saves_of(policy: RecoveryPolicy, setting: JobSetting, costs: CostDraws) -> Saves:
    """The saves of a job under a policy."""
    grid = Grid.of(policy, setting.useful_h)
    parts = policy.sub_saves or WHOLE
    stall = costs.save_stall
    if isinstance(stall, Draws) and stall.fixed_h is None:
        return VaryingSaves(grid, stall, parts.fraction, parts.extra_h)
    stall_h = setting.costs.mean_h(setting.costs.save_stall, setting.cluster.n_emb_ps)
    return FixedSaves(grid, parts.fraction * stall_h + parts.extra_h)
