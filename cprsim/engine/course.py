"""From failure to failure: all replications of a block in step, until each is over."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import Protocol

import numpy as np

from cprsim.draws import CostDraws, Draws
from cprsim.engine.jobs import Jobs
from cprsim.engine.recovering import book_recovery, take_back
from cprsim.engine.rows import Ran, Rows
from cprsim.engine.saves import Saves, Stretch, saves_of
from cprsim.engine.strikes import Strikes, no_more
from cprsim.records import (
    STOPPED_BEYOND,
    Bools,
    Clock,
    FailureTrace,
    Floats,
    Ints,
    OnFailure,
    RecoveryPolicy,
)
from cprsim.setting import HOPELESS_AFTER, JobSetting


class Chunks(Protocol):
    """The failures of a block, chunk by chunk (failures.block.BlockFailures)."""

    n_replications: int

    def chunk(self, number: int) -> FailureTrace | None: ...


def simulate(
    setting: JobSetting,
    policy: RecoveryPolicy,
    failures: Chunks,
    costs: CostDraws,
    replications: range,
    first_number: int = 0,
) -> Ran:
    """Run some replications of a block under one policy.

    Parameters
    ----------
    replications : numbers within the block
    first_number : number of the block's first replication among all

    Notes
    -----
    Left to the cluster, one by one and with the same rows up to rounding, are replications

    - in which a failure falls within a billionth of the job of a commit or of the end, so that
      rounding decides which comes first (failures placed by hand do, random ones do not);
    - under partial recovery, in which a failure strikes during a recovery and either recovery times
      vary or loads share the storage's bandwidth, or it may take the last trainer.
    """
    course = _Course(
        setting,
        policy,
        costs,
        saves_of(policy, setting, costs),
        Rows.of(setting, failures.n_replications),
    )
    jobs = Jobs.new(np.arange(replications.start, replications.stop))
    for number in count():
        chunk = failures.chunk(number)
        strikes = course.strikes(chunk, failures.n_replications)
        jobs = course.through(jobs, strikes)
        if not len(jobs):
            return course.rows.ran(replications, first_number)
    raise AssertionError("chunks do not end")


@dataclass(frozen=True, slots=True)
class _Course:
    """What takes the jobs of one block from failure to failure under one policy."""

    setting: JobSetting
    policy: RecoveryPolicy
    costs: CostDraws
    saves: Saves
    rows: Rows

    def strikes(self, chunk: FailureTrace | None, n_replications: int) -> Strikes:
        """The failures of a chunk; none, for ever, after the last one."""
        if chunk is None:
            return no_more(n_replications)
        cluster = self.setting.cluster
        return Strikes.of(chunk, n_replications, cluster.shard_slots, cluster.replica_slots)

    def through(self, jobs: Jobs, strikes: Strikes) -> Jobs:
        """Take jobs through the failures of one chunk; those that are not over by its end."""
        waiting = []
        for number in count():
            failure = strikes.first[jobs.row] + number
            struck = failure < strikes.first[jobs.row + 1]
            if not struck.all():
                waiting.append(self._end_before(jobs.take(_where(~struck)), strikes.until_h))
                jobs, failure = jobs.take(_where(struck)), failure[struck]
            if not len(jobs):
                return Jobs.together([*waiting, jobs])
            jobs = self._meet(jobs, strikes, failure)
        raise AssertionError("failures of a chunk do not end")

    # ----------------------------------------------------------------- one step of all jobs

    def _meet(self, jobs: Jobs, strikes: Strikes, failure: Ints) -> Jobs:
        """One failure each, `failure` (n_jobs,) in the chunk: the jobs that go on after it."""
        at_h = strikes.at_h[failure]
        stretch = self._until(jobs, at_h)
        going = self._settle(jobs, stretch, at_h)
        if going is not None:
            jobs, stretch = jobs.take(going), stretch.take(going)
            failure, at_h = failure[going], at_h[going]
        early = _where(at_h < jobs.resumes_at_h)
        struck_at_h = self._wall_h(jobs, stretch, at_h)
        if len(early):
            take_back(jobs, early, at_h[early], self.costs)
            stretch.n_attempts[early] = jobs.n_attempts[early]
        self._book(jobs, stretch)
        if len(jobs) and jobs.n_failures.max() >= HOPELESS_AFTER:
            hopeful = self._give_up(jobs, struck_at_h)
            jobs, failure, at_h = jobs.take(hopeful), failure[hopeful], at_h[hopeful]
            struck_at_h = struck_at_h[hopeful]
        return self._recover(jobs, strikes, failure, at_h, struck_at_h)

    def _until(self, jobs: Jobs, at_h: Floats) -> Stretch:
        """Where jobs are when the clock on which failures age shows `at_h` [h]."""
        if self.setting.clock is Clock.PROGRESS:
            return self.saves.to_progress(jobs, at_h)
        return self.saves.within(jobs, np.maximum(at_h - jobs.resumes_at_h, 0.0))

    def _wall_h(self, jobs: Jobs, stretch: Stretch, at_h: Floats) -> Floats:
        """Wall time at the end of a stretch that a failure may have kept from beginning [h]."""
        wall_h = jobs.wall_h + self._worked_h(jobs, stretch) + stretch.saving_h
        if self.setting.clock is Clock.WALL:
            return np.where(at_h < jobs.resumes_at_h, at_h, wall_h)
        return wall_h

    def _worked_h(self, jobs: Jobs, stretch: Stretch) -> Floats:
        content_h = self.saves.grid.content_h(stretch.n_committed - jobs.n_committed)
        return content_h + stretch.beyond_h - jobs.beyond_h

    def _settle(self, jobs: Jobs, stretch: Stretch, at_h: Floats) -> Ints | None:
        """End the jobs that are over by `at_h`; the places of the others, None for all."""
        over = self._wall_h(jobs, stretch, at_h) > self._deadline_h
        out = stretch.done | stretch.doubtful | over
        if not out.any():
            return None
        self._stop(jobs.take(_where(over)))
        self.rows.leave(jobs.take(_where(stretch.doubtful & ~over)))
        finished = _where(stretch.done & ~stretch.doubtful & ~over)
        self._finish(jobs.take(finished), stretch.take(finished))
        return _where(~out)

    def _end_before(self, jobs: Jobs, until_h: float) -> Jobs:
        """End the jobs that are over before an instant of the clock; the others as they were."""
        at_h = np.full(len(jobs), until_h)
        stretch = self._until(jobs, at_h)
        stretch.done &= ~stretch.doubtful
        stretch.doubtful[:] = False
        going = self._settle(jobs, stretch, at_h)
        return jobs if going is None else jobs.take(going)

    # ----------------------------------------------------------------- the end of jobs

    @property
    def _deadline_h(self) -> float:
        return STOPPED_BEYOND * self.setting.useful_h

    def _finish(self, jobs: Jobs, stretch: Stretch) -> None:
        wall_h = jobs.wall_h + self._worked_h(jobs, stretch) + stretch.saving_h
        self._book(jobs, stretch)
        jobs.frontier_h[:] = self.setting.useful_h
        self.rows.end(jobs, wall_h, finished=True)

    def _stop(self, jobs: Jobs) -> None:
        """Stop jobs at the deadline, which they pass before anything else happens to them."""
        if not len(jobs):
            return
        left_h = self._deadline_h - jobs.wall_h
        stretch = self.saves.within(jobs, np.maximum(left_h, 0.0))
        early = _where(left_h < 0.0)
        take_back(jobs, early, jobs.resumes_at_h[early] + left_h[early], self.costs)
        self._book(jobs, stretch)
        self.rows.end(jobs, np.full(len(jobs), self._deadline_h), finished=False)

    def _give_up(self, jobs: Jobs, struck_at_h: Floats) -> Ints:
        """Stop the hopeless ones where they stand; the places of the others."""
        hopeless = jobs.n_failures - jobs.fruitless_since >= HOPELESS_AFTER
        stopped = _where(hopeless)
        self.rows.end(jobs.take(stopped), struck_at_h[stopped], finished=False)
        return _where(~hopeless)

    # ----------------------------------------------------------------- books

    def _book(self, jobs: Jobs, stretch: Stretch) -> None:
        """Add a stretch to the jobs, in place, up to the instant at which it ends."""
        n_whole = self.saves.grid.n_whole
        n_passed = n_whole(stretch.n_committed) - n_whole(jobs.n_committed)
        jobs.worked_h += self._worked_h(jobs, stretch)
        jobs.save_h += stretch.saving_h
        jobs.n_saves += n_passed
        jobs.n_committed, jobs.beyond_h = stretch.n_committed, stretch.beyond_h
        jobs.n_attempts = stretch.n_attempts
        progress_h = self.saves.grid.content_h(jobs.n_committed) + jobs.beyond_h
        jobs.frontier_h = np.maximum(jobs.frontier_h, progress_h)
        further = jobs.frontier_h > jobs.frontier_at_failure_h
        jobs.fruitless_since = np.where(further, jobs.n_failures, jobs.fruitless_since)
        jobs.frontier_at_failure_h = jobs.frontier_h

    def _recover(
        self, jobs: Jobs, strikes: Strikes, failure: Ints, at_h: Floats, struck_at_h: Floats
    ) -> Jobs:
        """What a failure does to the state, and the hours until the jobs work on."""
        grid = self.saves.grid
        if self.policy.on_failure is OnFailure.RELOAD:
            all_lost, unclear = self._trainers(jobs, strikes, failure, at_h)
            n_loading = np.where(all_lost, self.setting.cluster.n_emb_ps, strikes.n_shards[failure])
            lost = _where((n_loading > 0) & ~unclear)
            n_committed = jobs.n_committed[lost]
            progress_h = grid.content_h(n_committed) + jobs.beyond_h[lost]
            saved_h = grid.content_h(grid.n_whole(n_committed) * grid.n_per_whole)
            self.rows.lose(
                strikes, failure[lost], all_lost[lost], jobs.row[lost], progress_h, saved_h
            )
        else:
            unclear = np.zeros(len(jobs), dtype=bool)
            jobs.beyond_h = np.zeros(len(jobs))
            rolls_back = self.policy.on_failure is OnFailure.ROLL_BACK
            if not rolls_back:
                jobs.n_committed = np.zeros(len(jobs), dtype=np.int64)
            n_loading = np.full(len(jobs), self.setting.cluster.n_emb_ps if rolls_back else 0)
        overlaps = self.policy.on_failure is OnFailure.RELOAD
        book_recovery(jobs, self.setting, self.costs, n_loading, at_h, struck_at_h, overlaps)
        jobs.n_failures += 1
        if not unclear.any():
            return jobs
        self.rows.leave(jobs.take(_where(unclear)))
        return jobs.take(_where(~unclear))

    def _trainers(
        self, jobs: Jobs, strikes: Strikes, failure: Ints, at_h: Floats
    ) -> tuple[Bools, Bools]:
        """Whether the last trainer is lost, and where only the cluster can tell what happens."""
        early = at_h < jobs.resumes_at_h
        n_struck = strikes.n_replicas[failure]
        n_trainers = len(self.setting.replicas)
        jobs.replicas_down = np.where(early, jobs.replicas_down, 0) + n_struck
        all_lost = (n_struck > 0) & (jobs.replicas_down >= n_trainers)
        return all_lost, early & (all_lost | _recoveries_interact(self.costs))


def _recoveries_interact(costs: CostDraws) -> bool:
    """Whether the end of a recovery depends on others that are under way, or on its own draws."""
    parts = (costs.detect, costs.reschedule, costs.load)
    return not all(isinstance(part, Draws) and part.fixed_h is not None for part in parts)


def _where(mask: Bools) -> Ints:
    return np.flatnonzero(mask)
