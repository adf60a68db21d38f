"""All shards together are the kernel's table, its saves and its trackers, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.kernel.saving import Saver
from cprsim.kernel.trackers import TRACKERS
from cprsim.kernel.training import ProxyTrainer
from cprsim.records import ShardBy, SmallTables, SubSaves
from cprsim.rehearsal.material import Material, fresh_model, places, rows_of
from cprsim.rehearsal.shard import Shard, initial_rows
from cprsim.rehearsal.store import Arrays
from tests.rehearsal.making import N_SERVERS, material


def test_every_row_has_one_place(what: Material) -> None:
    server_of, place_of = places(what.shards)
    for server in range(N_SERVERS):
        rows = rows_of(what.shards, server)
        assert (server_of[rows] == server).all()
        assert (place_of[rows] == np.arange(len(rows))).all()
    assert sum(len(rows_of(what.shards, s)) for s in range(N_SERVERS)) == what.shape.tables.n_rows


@pytest.fixture(params=[("adagrad", ShardBy.ROWS), ("adam", ShardBy.TABLES)])
def what(request: pytest.FixtureRequest) -> Material:
    return material(2_000, *request.param)


class Shards:
    """Servers without processes: what a trainer pushes goes to all of them."""

    def __init__(self, what: Material, sub_saves: SubSaves | None) -> None:
        self.what, self.sub_saves = what, sub_saves
        self._table = fresh_model(what).table
        self.server_of, self.place_of = places(what.shards)
        self.shards = [self.fresh(server) for server in range(N_SERVERS)]
        self.images = [
            {name: array.copy() for name, array in shard.state().items()} for shard in self.shards
        ]
        self.n_committed = 0

    def fresh(self, server: int) -> Shard:
        rows = initial_rows(self.what, self._table, server)
        return Shard(self.what, server, rows, self.sub_saves)

    def push(self, rows: np.ndarray, gradients: np.ndarray, rate: float, n_before: int) -> None:
        flat, grads = rows.ravel(), gradients.reshape(rows.size, -1)
        for server, shard in enumerate(self.shards):
            (mine,) = np.nonzero(self.server_of[flat] == server)
            samples = mine // rows.shape[1]
            shard.push(self.place_of[flat[mine]], samples, grads[mine], rate, n_before)

    def start(self, ends: bool) -> list[Arrays]:
        return [shard.start_save(ends, self.n_committed) for shard in self.shards]

    def commit(self, contents: list[Arrays]) -> None:
        for shard, content, image in zip(self.shards, contents, self.images, strict=True):
            shard.commit()
            rows = content.get("rows", np.arange(len(image["table"])))
            image["table"][rows] = content["table"]
            image["row_state"][rows] = content["row_state"]
        self.n_committed += 1

    def lose(self, server: int) -> None:
        self.shards[server] = self.fresh(server)
        self.shards[server].restore(self.images[server])

    @property
    def table(self) -> np.ndarray:
        whole = np.zeros_like(self._table)
        for server, shard in enumerate(self.shards):
            rows = rows_of(self.what.shards, server)
            whole[rows] = shard.table[: len(rows)]
        return whole


@pytest.mark.parametrize("tracker", [None, *TRACKERS])
@pytest.mark.parametrize("small", list(SmallTables))
def test_shards_do_what_the_kernel_does(
    what: Material, tracker: str | None, small: SmallTables
) -> None:
    if tracker is None and small is SmallTables.EACH_SUB_SAVE:
        return
    sub_saves = (
        None if tracker is None else SubSaves(tracker, 0.25, n_large_tables=5, small_tables=small)
    )
    trainer = ProxyTrainer(what.shape, what.clicks, what.plan)
    saver, ours = Saver(trainer, what.shards, sub_saves), Shards(what, sub_saves)
    rng, n = np.random.default_rng(5), 0
    for step in range(12):
        n += one_batch(trainer, ours)
        if step % 2:
            ends = tracker is None or step % 8 == 7
            saver.start(ends)
            contents = ours.start(ends)
            if step == 5:  # struck: it does not count
                saver.abandon()
                for shard in ours.shards:
                    shard.abandon()
            else:
                saver.commit()
                ours.commit(contents)
        if step in (3, 6, 9):
            server = int(rng.integers(N_SERVERS))
            saver.lose([server])
            ours.lose(server)
        assert ours.table.tobytes() == trainer.model.table.tobytes(), f"after step {step}"


def one_batch(trainer: ProxyTrainer, ours: Shards) -> int:
    """The kernel's step, and the gradients that it made to the shards."""
    first = trainer.position
    rate = trainer.optimizer.row_rate(trainer.plan.rate * (1.0 - first / trainer.n_samples))
    trainer.run(first + trainer.plan.batch)
    rows = trainer.clicks.rows[first : trainer.position]
    work = trainer._workspaces[len(rows)]
    ours.push(rows, work.d_fields[:, 1:], rate, first)
    return len(rows)
