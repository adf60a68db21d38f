"""One failure on its way back to work: detected, staffed, rescheduled, loaded."""

from __future__ import annotations

from collections.abc import Callable, Generator

import simpy

from cprsim.cluster.draws import CostDraws, Draws
from cprsim.cluster.scheduler import Scheduler
from cprsim.cluster.storage import SharedStorage
from cprsim.records import Activity, Transfer

Steps = Generator[simpy.Event, None, None]


def hold(
    env: simpy.Environment,
    storage: SharedStorage | None,
    cost: Draws | Transfer,
    replication: int,
    n: int,
    n_servers: int,
) -> Steps:
    """Spend the nth draw of a cost, or the time that `n_servers` take to move their shards.

    An interrupt on the way cancels the transfer and goes on to whoever called.
    """
    if isinstance(cost, Draws):
        hours = cost.hours(replication, n)
        if hours > 0:
            yield env.timeout(hours)
        return
    assert storage is not None, "assembly sees to it that a transfer has a storage"
    flows = storage.transfer(n_servers)
    try:
        yield flows
    except simpy.Interrupt:
        storage.cancel(flows)
        raise


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
        loading: set[int],
        on_stage: Callable[[], None],
        on_done: Callable[[Recovery], None],
    ) -> None:
        self.slots = slots
        self.loading = loading  # the shards that it has to load, of its own slots or of all
        self.stage = Activity.DETECT
        self._env = env
        self._scheduler = scheduler
        self._storage = storage
        self._costs = costs
        self._replication = replication
        self._number = number  # of the failure within the replication, from 0
        self._on_stage = on_stage
        self._on_done = on_done
        self._process = env.process(self._run())

    def cancel(self) -> None:
        """Stop here; the spares that it was given stay with their slots."""
        if self._process.is_alive:
            self._process.interrupt()

    def hand_over(self, slots: set[int], loading: set[int]) -> None:
        """Leave these slots and shards to a later recovery; without any slot left, stop."""
        self.slots -= slots
        self.loading -= loading
        if not self.slots:
            self.cancel()

    def _run(self) -> Steps:
        try:
            yield from self._spend(self._costs.detect)
            waiting_for = self._scheduler.request(sorted(self.slots))
            if waiting_for:
                self._enter(Activity.WAIT)
                yield self._env.all_of(waiting_for)
            self._enter(Activity.RESCHEDULE)
            yield from self._spend(self._costs.reschedule)
            if self.loading:
                self._enter(Activity.LOAD)
                yield from self._spend(self._costs.load)
        except simpy.Interrupt:
            return
        self._on_done(self)

    def _enter(self, stage: Activity) -> None:
        self.stage = stage
        self._on_stage()

    def _spend(self, cost: Draws | Transfer) -> Steps:
        n_servers = len(self.loading)
        yield from hold(self._env, self._storage, cost, self._replication, self._number, n_servers)
