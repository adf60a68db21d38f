"""An embedding server: the rows of a shard, read, updated, chosen for a save, restored from one.

trainer      pull (places) -> rows;  push (places, samples, gradients)
supervisor   sharing (with how many it loads), and what `WorkerRole` has

Optimiser and trackers are the kernel's own, row by row in the order of the batch, so that all
shards together are bit by bit the kernel's table. A tracker's state of a shard is kept here and is
lost with it, except the positions of round robin and the sub-sample, which the job knows.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np

from cprsim.job.model_shape import ModelShape, TableLayout
from cprsim.job.records import Ints, SmallTables, SubSaves
from cprsim.rehearsal.material import Material, rows_of, segments_of
from cprsim.rehearsal.orders import Orders
from cprsim.rehearsal.role import WorkerRole
from cprsim.rehearsal.store import Arrays
from cprsim.rehearsal.worker import Worker
from cprsim.training.kernel.loops import Array
from cprsim.training.kernel.model import Dlrm
from cprsim.training.kernel.optimizers import OPTIMIZERS
from cprsim.training.kernel.shards import Shards
from cprsim.training.kernel.trackers import (
    ABSENT,
    TRACKER_CLASSES,
    RoundRobin,
    SubSampledUsed,
    Tracked,
    Tracker,
)
from cprsim.training.kernel.weights import momentum_of


class Shard:
    """The rows of one server, as they are in the table of all (n_rows, d)."""

    def __init__(
        self, material: Material, server: int, table: Array, sub_saves: SubSaves | None
    ) -> None:
        self.sub_saves = sub_saves
        own = rows_of(material.shards, server)
        n_rows = max(len(own), 1)  # a server may hold none
        shape = ModelShape(TableLayout((n_rows,)), material.shape.dimension, (1,), (1,))
        rows = np.zeros((n_rows, material.shape.dimension), np.float32)
        rows[: len(own)] = table[own]
        self._model = Dlrm(shape, table=rows)
        self._optimizer = OPTIMIZERS[material.plan.optimizer](self._model)
        self._changed = np.zeros(n_rows, np.uint8)  # which the optimiser marks, and nobody reads
        self._gradients = np.zeros((0, 2, material.shape.dimension), np.float32)
        self._pending: tuple[Ints, Array] | None = None  # of a sub-save: rows that it writes
        self._saved = rows[:0]  # a copy of the rows as last saved, where the tracker compares
        self._tracker: Tracker | None = None
        self._small: list[Ints] = [np.arange(n_rows)]  # places of the tables that are saved whole
        if sub_saves is not None:
            self._prioritise(material, server, sub_saves)

    def _prioritise(self, material: Material, server: int, how: SubSaves) -> None:
        """Make the tracker of the large tables; to it the parts of tables that lie here are tables.

        A batch's rows stand in the columns of their tables, so that it counts as the kernel's does.
        """
        parts = segments_of(material.shards, server)
        layout = TableLayout(tuple(part.n_rows for part in parts) or (1,))
        self._column = np.repeat(np.arange(layout.n_tables), layout.rows)
        large = set(material.shape.tables.largest(how.n_large_tables))
        tracked = [number for number, part in enumerate(parts) if part.table in large]
        self._small = [
            np.arange(layout.n_rows)[layout.of(number)]
            for number in range(len(parts))
            if number not in tracked
        ]
        if not tracked:
            return
        if how.tracker == "scar":
            self._saved = self.table.copy()
        segments = Shards(layout, n_servers=1).of_tables(tracked)
        self._tracker = TRACKER_CLASSES[how.tracker](
            Tracked(
                layout, segments, how.fraction, self.table, self._saved, material.plan.seed,
                how.sample_period, tuple(parts[number] for number in tracked),
                momentum_of(self.row_state, self.table),
            )
        )  # fmt: skip

    @property
    def table(self) -> Array:
        return self._model.table

    @property
    def row_state(self) -> Array:
        """Optimiser state per row; of size 0 without one."""
        return self._optimizer.row_state

    def state(self) -> Arrays:
        """Its content in a whole save."""
        return {"table": self.table, "row_state": self.row_state}

    def push(
        self, rows: Array, samples: Array, gradients: Array, rate: float, n_before: int
    ) -> None:
        """One batch's part of this server, in the batch's order."""
        k = len(rows)
        if k > len(self._gradients):
            self._gradients = np.zeros((k, 2, gradients.shape[1]), np.float32)
        d_fields = self._gradients[:k]
        d_fields[:, 1] = gradients
        self._optimizer.update_rows(rows.reshape(k, 1), d_fields, self._changed, rate)
        if self._tracker is not None and k:
            if isinstance(self._tracker, SubSampledUsed):
                self._tracker.go_to(n_before)
            n_parts = int(self._column[-1]) + 1
            accessed = np.full((int(samples[-1]) + 1, n_parts), ABSENT, np.int32)
            accessed[samples, self._column[rows]] = rows
            self._tracker.observe(accessed)

    # ----------------------------------------------------------------- saves

    def start_save(self, ends_interval: bool, number: int) -> Arrays:
        """Fix the content of a save and return it; it has no `rows` where it is whole."""
        if self.sub_saves is None:
            return {name: array.copy() for name, array in self.state().items()}
        chosen: list[Ints] = [np.zeros(0, np.int64)]  # of the large tables, then of the others
        if self._tracker is not None:
            if isinstance(self._tracker, RoundRobin):
                self._tracker.go_to(number)
            chosen.append(self._tracker.choose())
        if ends_interval or self.sub_saves.small_tables is not SmallTables.EACH_INTERVAL:
            chosen += self._small
        rows = np.concatenate(chosen)
        table = self.table[rows]
        self._pending = rows, table
        return {"rows": rows, "table": table, "row_state": self.row_state[rows]}

    def commit(self) -> None:
        if self._pending is not None and self._tracker is not None:
            self._tracker.committed()
            if len(self._saved):
                rows, table = self._pending
                self._saved[rows] = table
        self._pending = None

    def abandon(self) -> None:
        """Abandon the save: its rows are unsaved again."""
        if self._pending is not None and self._tracker is not None:
            self._tracker.abandoned()
        self._pending = None

    def restore(self, image: Arrays) -> None:
        """Restore the last save; the tracker's state is lost."""
        self._pending = None
        self.table[:] = image["table"]
        self.row_state[:] = image["row_state"]
        if len(self._saved):
            self._saved[:] = self.table
        if self._tracker is not None:
            self._tracker.forget(0)


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
