"""All shards together are the kernel's table, its saves and its trackers, bit by bit."""

import numpy as np
import pytest

from cprsim.job.records import ShardBy, SmallTables, SubSaves
from cprsim.rehearsal.material import Material, fresh_model, places, rows_of
from cprsim.rehearsal.server import Shard
from cprsim.rehearsal.store import Arrays
from cprsim.training.kernel.saving import Saver
from cprsim.training.kernel.trackers import TRACKER_CLASSES
from cprsim.training.kernel.training import ProxyTrainer
from tests.rehearsal.making import N_SERVERS, material


class Shards:
    """Servers without processes: what a trainer pushes goes to all of them."""

    def __init__(self, what: Material, sub_saves: SubSaves | None) -> None:
        self.what, self.sub_saves = what, sub_saves
        self.shards = [self.fresh(server) for server in range(N_SERVERS)]
        self.images = [
            {name: array.copy() for name, array in shard.state().items()} for shard in self.shards
        ]
        self.n_committed = 0

    def fresh(self, server: int) -> Shard:
        return Shard(self.what, server, fresh_model(self.what).table, self.sub_saves)

    def one_batch(self, trainer: ProxyTrainer) -> None:
        """The kernel's step, and the gradients that it made to the shards."""
        first = trainer.position
        rate = trainer.optimizer.row_rate(trainer.plan.rate * (1.0 - first / trainer.n_samples))
        trainer.run(first + trainer.plan.batch)
        rows = trainer.clicks.rows[first : trainer.position]
        flat = rows.ravel()
        gradients = trainer._workspace(len(rows)).d_fields[:, 1:].reshape(rows.size, -1)
        server_of, place_of = places(self.what.shards)
        for server, shard in enumerate(self.shards):
            (mine,) = np.nonzero(server_of[flat] == server)
            samples = mine // rows.shape[1]
            shard.push(place_of[flat[mine]], samples, gradients[mine], rate, first)

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


SUB_SAVES = [
    SubSaves(tracker, 0.25, n_large_tables=5, small_tables=small)
    for tracker in TRACKER_CLASSES
    for small in SmallTables
]


@pytest.mark.parametrize("sub_saves", [None, *SUB_SAVES])
@pytest.mark.parametrize("how", [("adagrad", ShardBy.ROWS), ("adam", ShardBy.TABLES)])
def test_shards_do_what_the_kernel_does(
    how: tuple[str, ShardBy], sub_saves: SubSaves | None
) -> None:
    what = material(2_000, *how)
    trainer = ProxyTrainer(what.shape, what.clicks, what.plan)
    saver, ours = Saver(trainer, what.shards, sub_saves), Shards(what, sub_saves)
    rng = np.random.default_rng(5)
    for step in range(12):
        ours.one_batch(trainer)
        if step % 2:
            ends = sub_saves is None or step % 8 == 7
            saver.start(ends)
            contents = [shard.start_save(ends, ours.n_committed) for shard in ours.shards]
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
        table = trainer.model.table
        for server, shard in enumerate(ours.shards):
            rows = rows_of(what.shards, server)
            assert shard.table[: len(rows)].tobytes() == table[rows].tobytes(), f"after step {step}"
