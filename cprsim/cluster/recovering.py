"""One failure on its way back to work: detected, staffed, rescheduled, loaded."""

from __future__ import annotations

from collections.abc import Callable, Generator

import simpy

from cprsim.cluster.scheduler import Scheduler
from cprsim.cluster.storage import Flows, SharedStorage
from cprsim.draws import CostDraws, Draws
from cprsim.records import Activity, Transfer

# by name, for the same reason as in job.py
DETECT, WAIT, RESCHEDULE, LOAD = (
    Activity.DETECT,
    Activity.WAIT,
    Activity.RESCHEDULE,
    Activity.LOAD,
)

Steps = Generator[simpy.Event, None, None]


class Recovery:
    """The recovery from one failure, as a process.

    detecting -> [waiting for spares] -> rescheduling -> [loading] -> done
    cancelled from any of them when a further failure makes it start again or takes its last slot
    """

    def __init__(
        self,
        env: simpy.Environment,
        scheduler: Scheduler,
        storage: SharedStorage | None,
        costs: CostDraws,
        *,
        replication: int,
        number: int,
        slots: set[int],
        loading: frozenset[int],
        on_stage: Callable[[], None],
        on_done: Callable[[Recovery], None],
    ) -> None:
        self.slots = slots
        self.loading = loading  # the shards that it has to load, of its own slots or of all
        self.stage = DETECT
        self._env = env
        self._scheduler = scheduler
        self._storage = storage
        self._costs = costs
        self._replication = replication
        self._number = number  # of the failure within the replication, from 0
        self._on_stage = on_stage
        self._on_done = on_done
        self._flows: Flows | None = None  # of the load, where it is a transfer
        self.process = env.process(self._run())

    def cancel(self) -> None:
        """Stop here; the spares that it was given stay with their slots."""
        if self.process.is_alive:
            self.process.interrupt()

    def hand_over(self, slots: set[int], loading: frozenset[int]) -> None:
        """Leave these slots and shards to a later recovery; without any slot left, stop."""
        self.slots -= slots
        if self._storage is not None and self._flows is not None:
            self._storage.drop(self._flows, len(self.loading & loading))
        self.loading -= loading
        if not self.slots:
            self.cancel()

    def _run(self) -> Steps:
        try:
            if hours := self._costs.detect.hours(self._replication, self._number):
                yield self._env.timeout(hours)
            if waiting_for := self._scheduler.request(sorted(self.slots)):
                self._enter(WAIT)
                yield self._env.all_of(waiting_for)
            if hours := self._costs.reschedule.hours(self._replication, self._number):
                self._enter(RESCHEDULE)
                yield self._env.timeout(hours)
            if self.loading:
                yield from self._load(self._costs.load)
        except simpy.Interrupt:
            return
        self._on_done(self)

    def _load(self, cost: Draws | Transfer) -> Steps:
        if isinstance(cost, Draws):
            if hours := cost.hours(self._replication, self._number):
                self._enter(LOAD)
                yield self._env.timeout(hours)
            return
        assert self._storage is not None, "assembly sees to it that a transfer has a storage"
        self._enter(LOAD)
        self._flows = self._storage.start(len(self.loading))
        yield from self._storage.wait_for(self._flows)

    def _enter(self, stage: Activity) -> None:
        self.stage = stage
        self._on_stage()
