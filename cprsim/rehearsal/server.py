"""An embedding server: a shard in memory for trainers.

trainer      pull (places) -> rows;  push (places, samples, gradients)
supervisor   sharing (with how many it loads), and what `WorkerRole` has
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from cprsim.rehearsal.orders import Orders
from cprsim.rehearsal.role import WorkerRole
from cprsim.rehearsal.shard import Shard
from cprsim.rehearsal.store import Arrays
from cprsim.rehearsal.worker import Worker
from cprsim.training.kernel.loops import Array


class Server(WorkerRole):
    """The work of an embedding server."""

    def __init__(
        self, worker: Worker, *, slot: int, store: Path, position: int, orders: Orders
    ) -> None:
        self.shard = Shard(worker.material, slot, worker.start.table, orders.sub_saves)
        super().__init__(str(slot), store, position, self.shard.state)
        self._speeds = orders.speeds
        self._n_loading = 1  # servers that share the bandwidth now
        self._early: list[tuple[asyncio.Future[Array], Array, int]] = []

    # ----------------------------------------------------------------- trainers

    def do_pull(self, places: Array, position: int) -> Array | asyncio.Future[Array]:
        """Rows; a trainer that is a batch ahead of another trainer's updates has to wait."""
        if position <= self.position:
            rows: Array = self.shard.table[places]
            return rows
        early: asyncio.Future[Array] = asyncio.get_running_loop().create_future()
        self._early.append((early, places, position))
        return early

    def do_push(
        self, places: Array, samples: Array, gradients: Array, rate: float, n_before: int,
        position: int,
    ) -> None:  # fmt: skip
        """Apply a batch once: trainers in step send it again if the other trainer may have died."""
        if position <= self.position:
            return
        self.shard.push(places, samples, gradients, rate, n_before)
        self.position = position
        early, self._early = self._early, []
        for future, at, since in early:
            if since > position:
                self._early.append((future, at, since))
            else:
                future.set_result(self.shard.table[at])

    # ----------------------------------------------------------------- saves and loads

    def _content(self, ends_interval: bool, n_before: int) -> Arrays:
        return self.shard.start_save(ends_interval, n_before)

    def do_commit(self, save: int, to_peers: bool) -> None:
        self.shard.commit()
        super().do_commit(save, to_peers)

    def do_abandon(self, save: int) -> None:
        super().do_abandon(save)
        self.shard.abandon()

    def do_sharing(self, n: int) -> None:
        self._n_loading = n

    def _load_rate(self) -> float:
        """An even share of the common bandwidth, up to that of its link."""
        return min(self._speeds.load_alone, self._speeds.load_together / self._n_loading)

    def _go_back(self, image: Arrays, position: int) -> None:
        self.shard.restore(image)
        self.position = position
