"""The training job, as a process: it works, saves, and recovers from what strikes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import simpy
from simpy.events import Timeout

from cprsim.budget import require_room
from cprsim.cluster.beside import Beside
from cprsim.cluster.clock import FailureClock
from cprsim.cluster.log import NO_SLOT, pack
from cprsim.cluster.recovering import Recovery, Steps
from cprsim.cluster.scheduler import Scheduler
from cprsim.cluster.storage import SharedStorage
from cprsim.draws import CostDraws, Draws
from cprsim.records import Activity, EventKind, Failure, OnFailure, RecoveryPolicy, Transfer
from cprsim.setting import (
    HARDLY_AFTER,
    HARDLY_TIMES,
    HOPELESS_AFTER,
    NO_WORK_H,
    JobSetting,
    SavePlan,
)

# Members by name: to look one up in its enum takes as long as a tenth of an event.
RESTART, ROLL_BACK, RELOAD = tuple(OnFailure)[:3]
USEFUL, LOST, SAVE, DETECT, WAIT, RESCHEDULE, LOAD, OVER = tuple(Activity)[:8]
(
    STARTED,
    SAVE_DUE,
    SAVE_STARTED,
    SAVE_RESUMED,
    SAVE_COMMITTED,
    SAVE_ABANDONED,
    FAILED,
    MISSED,
    REVERTED,
    ROLLED_BACK,
    STAGE,
    RESUMED,
    CAUGHT_UP,
    FINISHED,
    STOPPED,
    SUB_SAVE_STARTED,
    SUB_SAVE_COMMITTED,
    REPLACED,
) = EventKind


EVENTS_OF_ONE_SHARE = 0.02  # of the budget, for one replication: a timeline takes 10 times that

FEW_BYTES = 2**16  # of events: those of most replications, which nobody has to look at


class HopelessError(Exception):
    """The job gets no further, or hardly: failure follows failure with little work between."""


class Job:
    """One replication of one job under one recovery policy.

    working --a save is due--> saving --committed--> working
    working, saving, recovering --a failure strikes--> recovering --all recovered--> working
    working --all useful work done--> finished
    """

    def __init__(
        self,
        env: simpy.Environment,
        setting: JobSetting,
        policy: RecoveryPolicy,
        saves: SavePlan,
        costs: CostDraws,
        failures: Iterator[Failure],
        replication: int,
        row_number: int,
    ) -> None:
        # At most 30 attributes: CPython looks those of a larger object up the slow way
        self.rows = bytearray()  # of the event log
        self._env = env
        self._setting = setting
        self._policy = policy
        self._costs = costs
        self._replication = replication  # within its block
        self._row_number = row_number  # of the replication among all
        self._activity = USEFUL
        self._scheduler = Scheduler(env, setting.cluster.n_spares)
        storage = setting.costs.storage
        self._storage = SharedStorage(env, storage) if storage is not None else None
        self._ages_in = setting.ages_in
        self._clock = FailureClock(env, failures, self._interrupt)

        self._saves = saves
        self._progress_h = 0.0  # as of the start of the work in hand
        self._working_since_h: float | None = None
        self._frontier_h = 0.0  # the furthest that the job has ever been
        self._saved_h = 0.0  # content of the last committed save; the state at 0 is a free one
        self._due_h, self._due_whole = self._saves.due_after(0.0)
        self._saving_whole = True
        self._fixed_stall_h = self._fixed_stall()
        self._saving_h: float | None = None  # content of the save that is being written
        self._writer: simpy.Process | None = None  # its part in the background
        self._n_saves = 0  # attempted
        self._n_failures = 0
        self._recoveries: list[Recovery] = []
        goes_on = setting.beside and policy.on_failure is RELOAD
        self._beside = Beside(env, setting) if goes_on else None
        self._frontier_at_failure_h = -1.0
        self._n_failures_without_progress = 0

        self.process = env.process(self._run())

    # ----------------------------------------------------------------- the course of the job

    def _run(self) -> Steps:
        self._log(STARTED, USEFUL)
        while True:
            try:
                while self._recoveries:
                    yield self._recoveries[0].process
                yield from self._train()
                break
            except simpy.Interrupt as interrupt:
                try:
                    self._suffer(interrupt.cause)
                except HopelessError:
                    return self.stop()
        if self._writer is not None:
            self._abandon_save(OVER)  # nobody needs it any more
        self._log(FINISHED, OVER)

    def stop(self) -> None:
        """Give the job up where it stands."""
        self._settle()
        self._log(STOPPED, OVER)

    def _train(self) -> Steps:
        useful_h = self._setting.useful_h
        while True:
            if self._beside is not None:
                yield from self._catch_up_with_others(self._beside)
            if self._progress_h >= self._due_h:
                if self._writer is not None:
                    yield from self._await_commit()
                self._begin_save()
                if self._fixed_stall_h is not None:
                    yield Timeout(self._env, self._fixed_stall_h)
                else:
                    yield from self._hold_save(self._costs.save_stall, self._saves.extra_h)
                self._end_stall()
            if self._progress_h >= useful_h:
                break
            stop_h = min(self._due_h, useful_h)
            if self._progress_h < self._frontier_h:  # work done again: to where the job had been
                stop_h = min(stop_h, self._frontier_h)
            self._working_since_h = self._env.now
            yield Timeout(self._env, stop_h - self._progress_h)
            self._working_since_h = None
            again, self._progress_h = self._progress_h < self._frontier_h, stop_h
            if not again:
                self._frontier_h = stop_h
            elif stop_h == self._frontier_h:
                self._log(CAUGHT_UP, USEFUL)
        if self._writer is not None and self._saving_h == useful_h:
            yield from self._await_commit()

    def _catch_up_with_others(self, beside: Beside) -> Steps:
        """Make up for what lost trainers did not do while the others went on."""
        beside.settle(self._activity)
        if not beside.owed_h:
            return
        self._log(STAGE, RESCHEDULE)
        began_h = self._env.now
        try:
            yield Timeout(self._env, beside.owed_h)
        finally:  # a failure may cut it short
            beside.owed_h = max(0.0, beside.owed_h - (self._env.now - began_h))
        beside.owed_h = 0.0
        self._log(RESUMED, self._activity_of_work())

    # ----------------------------------------------------------------- saves

    def _begin_save(self) -> None:
        self._saving_h, self._saving_whole = self._progress_h, self._due_whole
        self._due_h, self._due_whole = self._saves.due_after(self._progress_h)
        self._n_saves += 1
        self._log(SAVE_STARTED if self._saving_whole else SUB_SAVE_STARTED, SAVE)

    def _end_stall(self) -> None:
        if self._costs.save_background is None:
            self._commit(self._activity_of_work())
        else:
            self._log(SAVE_RESUMED, self._activity_of_work())
            self._writer = self._env.process(self._write_behind())

    def _await_commit(self) -> Steps:
        assert self._writer is not None
        self._log(SAVE_DUE, SAVE)
        yield self._writer

    def _write_behind(self) -> Steps:
        assert self._costs.save_background is not None
        try:
            yield from self._hold_save(self._costs.save_background)
        except simpy.Interrupt:
            return
        self._writer = None
        self._commit(self._activity)  # in the background: the job's activity stays as it is

    def _hold_save(self, cost: Draws | Transfer, extra_h: float = 0.0) -> Steps:
        if isinstance(cost, Draws):
            hours = self._saves.fraction * cost.hours(self._replication, self._n_saves - 1)
            yield self._env.timeout(hours + extra_h)
            return
        assert self._storage is not None, "assembly sees to it that a transfer has a storage"
        flows = self._storage.start(len(self._setting.shards), self._saves.fraction)
        yield from self._storage.wait_for(flows)
        yield self._env.timeout(extra_h)

    def _commit(self, activity: Activity) -> None:
        assert self._saving_h is not None
        self._saved_h, self._saving_h = self._saving_h, None
        self._log(SAVE_COMMITTED if self._saving_whole else SUB_SAVE_COMMITTED, activity)

    def _fixed_stall(self) -> float | None:
        """Hours that every save stalls the job, None where they vary."""
        stall = self._costs.save_stall
        if not isinstance(stall, Draws) or stall.fixed_h is None:
            return None
        return self._saves.fraction * stall.fixed_h + self._saves.extra_h

    def _try_again(self) -> None:
        """Save as soon as the job goes on: once, also where the next save is due by then."""
        next_is_due = self._progress_h >= self._due_h
        self._due_whole = self._saving_whole or (next_is_due and self._due_whole)
        self._due_h = self._progress_h

    def _abandon_save(self, activity: Activity) -> None:
        self._saving_h = None
        if self._writer is not None:
            self._writer.interrupt()
            self._writer = None
        self._log(SAVE_ABANDONED, activity)

    # ----------------------------------------------------------------- failures

    def _interrupt(self, failure: Failure) -> None:
        if len(self.rows) > FEW_BYTES:
            require_room(
                len(self.rows),
                f"the events of one replication, {self._clock.n_struck} failures among them,",
                "an MTBF {} times as long would fit",
                share=EVENTS_OF_ONE_SHARE,
            )
        goes_on = self._beside is not None and self._beside.covers(failure.slots)
        if goes_on and not self._hardly_gets_further():
            assert self._beside is not None
            self._go_on_without(self._beside, failure)
        else:
            self.process.interrupt(failure)

    def _go_on_without(self, beside: Beside, failure: Failure) -> None:
        """Nodes fail that nobody waits for: nothing stalls, no save is abandoned."""
        struck = self._struck(failure)
        if not struck:
            return
        self._lose_nodes(failure, struck, self._activity)
        beside.hand_over(struck)
        beside.add(self._recovery(struck, frozenset(), lambda: None, self._on_replaced))

    def _on_replaced(self, recovery: Recovery) -> None:
        assert self._beside is not None
        for slot in sorted(recovery.slots):
            self._log(REPLACED, self._activity, slot)
        self._beside.remove(recovery)

    def _suffer(self, failure: object) -> None:
        """What a failure does, at the instant when it strikes."""
        assert isinstance(failure, Failure)
        self._settle()
        if self._hardly_gets_further():
            raise HopelessError
        struck = self._struck(failure)
        if not struck:
            return
        self._give_up_if_hopeless()
        if self._saving_h is not None:
            self._abandon_save(DETECT)
            if self._policy.on_failure is RELOAD:
                self._try_again()
        self._lose_nodes(failure, struck, DETECT)
        if self._policy.on_failure is RELOAD:
            self._recover_the_failed(struck)
        else:
            self._recover_all(struck)

    def _struck(self, failure: Failure) -> set[int]:
        """The slots of a failure that have a node to lose."""
        struck = {slot for slot in failure.slots if not self._scheduler.waits(slot)}
        for slot in failure.slots:
            if slot not in struck:
                self._log(MISSED, self._activity, slot)
        return struck

    def _lose_nodes(self, failure: Failure, struck: set[int], activity: Activity) -> None:
        for slot, repair_h in zip(failure.slots, failure.repair_h, strict=True):
            if slot in struck:
                self._scheduler.lose(slot, repair_h)
                self._log(FAILED, activity, slot)

    def _recover_the_failed(self, struck: set[int]) -> None:
        """Partial recovery: the failed shards go back, beside recoveries that are under way."""
        reverted = (
            self._setting.shards
            if self._all_replicas_lost(struck)
            else self._setting.shards & struck
        )
        for slot in sorted(reverted):
            self._log(REVERTED, DETECT, slot)
        if self._beside is not None:
            self._beside.hand_over(struck)
        for recovery in self._recoveries:
            recovery.hand_over(struck, reverted)
        self._recoveries = [recovery for recovery in self._recoveries if recovery.slots]
        self._start_recovery(struck, loading=reverted)

    def _all_replicas_lost(self, struck: set[int]) -> bool:
        if not self._setting.replicas & struck:
            return False
        down = struck.union(*(recovery.slots for recovery in self._recoveries))
        if self._beside is not None:
            down |= self._beside.out
        central = self._setting.central
        if central and central.isdisjoint(down):
            return False  # the sync servers have a copy
        return self._setting.replicas <= down

    def _recover_all(self, struck: set[int]) -> None:
        """Full recovery, or none: everybody goes back, and a recovery under way starts again."""
        for recovery in self._recoveries:
            struck |= recovery.slots
            recovery.cancel()
        self._recoveries.clear()
        from_scratch = self._policy.on_failure is RESTART
        self._progress_h = 0.0 if from_scratch else self._saved_h
        self._due_h, self._due_whole = self._saves.due_after(self._progress_h)
        self._log(ROLLED_BACK, DETECT)
        loading: frozenset[int] = frozenset() if from_scratch else self._setting.shards
        self._start_recovery(struck, loading)

    def _start_recovery(self, slots: set[int], loading: frozenset[int]) -> None:
        recovery = self._recovery(slots, loading, self._on_stage, self._on_recovered)
        self._recoveries.append(recovery)

    def _recovery(
        self,
        slots: set[int],
        loading: frozenset[int],
        on_stage: Callable[[], None],
        on_done: Callable[[Recovery], None],
    ) -> Recovery:
        self._n_failures += 1
        return Recovery(
            self._env,
            self._scheduler,
            self._storage,
            self._costs,
            replication=self._replication,
            number=self._n_failures - 1,
            slots=slots,
            loading=loading,
            on_stage=on_stage,
            on_done=on_done,
        )

    def _on_stage(self) -> None:
        """Log where recovery is: the least advanced of those under way holds the job up."""
        stage = self._recoveries[0].stage
        for recovery in self._recoveries[1:]:
            stage = min(stage, recovery.stage)
        if stage is not self._activity:
            self._log(STAGE, stage)

    def _on_recovered(self, recovery: Recovery) -> None:
        self._recoveries.remove(recovery)
        if self._recoveries:
            self._on_stage()
        else:
            self._log(RESUMED, self._activity_of_work())

    def _hardly_gets_further(self) -> bool:
        """Whether very many failures have left the job with little first-time work."""
        if self._clock.n_struck <= HARDLY_AFTER:
            return False
        progress_h = self._progress_h
        if self._working_since_h is not None:
            progress_h += self._env.now - self._working_since_h
        return bool(self._env.now > HARDLY_TIMES * max(self._frontier_h, progress_h))

    def _give_up_if_hopeless(self) -> None:
        if self._frontier_h > self._frontier_at_failure_h + NO_WORK_H:
            self._frontier_at_failure_h = self._frontier_h
            self._n_failures_without_progress = 0
        self._n_failures_without_progress += 1
        if self._n_failures_without_progress > HOPELESS_AFTER:
            raise HopelessError

    # ----------------------------------------------------------------- progress and the log

    def _settle(self) -> None:
        """Book the work in hand up to now: it was cut short."""
        if self._working_since_h is not None:
            self._progress_h += self._env.now - self._working_since_h
            self._working_since_h = None
            self._frontier_h = max(self._frontier_h, self._progress_h)

    def _activity_of_work(self) -> Activity:
        return LOST if self._progress_h < self._frontier_h else USEFUL

    def _log(self, kind: EventKind, activity: Activity, slot: int = NO_SLOT) -> None:
        now_h, progress_h = self._env.now, self._progress_h
        if self._working_since_h is not None:
            progress_h += now_h - self._working_since_h
        if self._beside is not None:
            self._beside.settle(self._activity)
        self.rows += pack(self._row_number, now_h, kind, activity, progress_h, slot)
        if self._ages_in[activity] is not self._clock.running:
            self._clock.toggle()
        self._activity = activity
