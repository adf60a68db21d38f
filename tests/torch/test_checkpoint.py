"""Partial checkpoints on the disk hold what the kernel's saver holds in memory."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

from cprsim.errors import CheckpointError
from cprsim.kernel.saving import Saver
from cprsim.kernel.trials import sub_saves_of
from cprsim.torch import PriorityCheckpoint, RowWiseAdagrad
from cprsim.torch.following import Followed

STRATEGIES = ["partial", "mfu", "ssu", "scar", "round-robin", "mfu+"]


class Model(torch.nn.Module):
    """Three tables of two widths; the two largest are watched."""

    def __init__(self) -> None:
        super().__init__()
        self.users = torch.nn.Embedding(300, 4)
        self.items = torch.nn.Embedding(200, 6)
        self.days = torch.nn.Embedding(7, 4)
        self.last = torch.nn.Linear(14, 1)

    def forward(self, rows):
        columns = [t(rows[:, i]) for i, t in enumerate((self.users, self.items, self.days))]
        return self.last(torch.cat(columns, dim=1))[:, 0]


class Loop:
    """A training loop of one's own, with saves in it."""

    def __init__(self) -> None:
        torch.manual_seed(1)
        self.model = Model()
        tables = [self.model.users.weight, self.model.items.weight]
        rest = [p for p in self.model.parameters() if all(p is not t for t in tables)]
        self.optimizers = [RowWiseAdagrad(tables, lr=0.1), torch.optim.Adagrad(rest, lr=0.1)]
        self.rng = np.random.default_rng(2)

    def run(self, n_steps: int, *beside) -> None:
        for _ in range(n_steps):
            skewed = self.rng.random((20, 3)) ** 3 * [300, 200, 7]
            rows = torch.tensor(skewed.astype(np.int64))
            label = (rows[:, 0] % 2 == 0).float()
            for one in self.optimizers:
                one.zero_grad()
            logit = self.model(rows)
            torch.nn.functional.binary_cross_entropy_with_logits(logit, label).backward()
            for one in self.optimizers:
                one.step()
            for one in beside:
                one(20)

    def weights(self) -> list[np.ndarray]:
        return [p.detach().numpy().copy() for p in self.model.parameters()]


def held(checkpoint: PriorityCheckpoint, shard: int) -> list[np.ndarray]:
    """Rows and their state of one shard, as they are now."""
    rows = [np.arange(s.rows.start, s.rows.stop, s.rows.step)
            for s in checkpoint.shards.of_servers([shard])]  # fmt: skip
    return list(checkpoint.followed.weights.read(np.concatenate(rows)))


def same(one, other) -> bool:
    return len(one) == len(other) and all(map(np.array_equal, one, other))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_shards_go_back_to_what_the_savers_memory_holds(strategy, tmp_path) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(
        tmp_path, loop.model, loop.optimizers, strategy=strategy, n_shards=3, n_large_tables=2,
        fraction=0.125, seed=4,
    )  # fmt: skip
    beside = Followed(loop.model, loop.optimizers, seed=4)
    saver = Saver(beside, checkpoint.shards, checkpoint.sub_saves)
    assert (checkpoint.sub_saves is None) == (sub_saves_of(strategy) is None)
    for part in range(1, 21):
        loop.run(3, checkpoint.step, beside.step)
        ends = strategy == "partial" or part % 8 == 0
        checkpoint.save(ends)
        saver.save(ends)
    loop.run(3, checkpoint.step, beside.step)
    late = [held(checkpoint, shard) for shard in range(3)]
    saver.lose([1])
    wanted = held(checkpoint, 1)
    assert not same(wanted, late[1])
    for table in checkpoint.followed.tables.values():  # the shard's memory is gone
        rows = np.arange(table.n_rows)
        if table.n_rows > 7:
            lost = rows[rows % 3 == (1 - checkpoint.shards.layout.first_row[
                list(checkpoint.followed.tables).index(table.name)]) % 3]  # fmt: skip
            table.set_rows(lost, [part * 0 for part in table.get_rows(lost)])
    restored = checkpoint.restore([1])
    assert not restored.dense
    assert not restored.damaged
    assert same(held(checkpoint, 1), wanted)
    assert same(held(checkpoint, 0), late[0])


def test_a_new_process_goes_on_from_the_folder_also_after_compaction(tmp_path) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(tmp_path, loop.model, loop.optimizers, strategy="partial")
    for _ in range(4):
        loop.run(4, checkpoint.step)
        checkpoint.save()
    saved = loop.weights()
    loop.run(5, checkpoint.step)
    assert not same(loop.weights(), saved)
    checkpoint.compact()
    assert [path.name[:4] for path in sorted(tmp_path.iterdir())] == ["base"]
    new = Loop()
    again = PriorityCheckpoint(tmp_path, new.model, new.optimizers, strategy="partial")
    assert again.restore_all().dense
    assert same(new.weights(), saved)


def test_files_do_not_grow_for_ever(tmp_path) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(tmp_path, loop.model, loop.optimizers, n_large_tables=2)
    base = sum(path.stat().st_size for path in tmp_path.iterdir())
    for part in range(1, 65):
        loop.run(2, checkpoint.step)
        checkpoint.save(part % 8 == 0)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 4 * base
    assert checkpoint.bytes_written > 4 * base


def test_a_save_that_fails_leaves_what_was_saved(tmp_path, monkeypatch) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(tmp_path, loop.model, loop.optimizers, n_large_tables=2)
    loop.run(3, checkpoint.step)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(CheckpointError, match=r"rows-.*\.cpr can't be written: No space"):
            checkpoint.save(False)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert checkpoint.save(False) > 0  # its rows still count as unsaved
    restored = checkpoint.restore_all()
    assert restored.n_rows > 507


def test_a_damaged_file_is_passed_over_and_named(tmp_path) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(tmp_path, loop.model, loop.optimizers, strategy="partial")
    for _ in range(2):
        loop.run(3, checkpoint.step)
        checkpoint.save()
    files = sorted(tmp_path.glob("rows-*"))
    text = bytearray(files[0].read_bytes())
    text[-100] ^= 1
    files[0].write_bytes(text)
    restored = checkpoint.restore_all()
    assert len(restored.damaged) == 1
    assert files[0].name in restored.damaged[0]
    base = next(tmp_path.glob("base-*"))
    base.write_bytes(base.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match="damaged or cut short"):
        checkpoint.restore_all()


def test_after_a_damaged_file_a_compaction_saves_every_row_anew(tmp_path) -> None:
    loop = Loop()
    checkpoint = PriorityCheckpoint(tmp_path, loop.model, loop.optimizers, strategy="partial")
    for _ in range(2):
        loop.run(3, checkpoint.step)
        checkpoint.save()
    damaged = min(tmp_path.glob("rows-*"))
    damaged.write_bytes(damaged.read_bytes()[:-1])

    def save_until_compacted() -> None:
        while damaged.exists():
            loop.run(3, checkpoint.step)
            checkpoint.save()

    with pytest.warns(UserWarning, match=rf"{damaged.name}: damaged.*every row is saved anew"):
        save_until_compacted()
    saved = loop.weights()
    loop.run(3, checkpoint.step)
    assert not checkpoint.restore_all().damaged
    assert same(loop.weights(), saved)
    checkpoint.save()


def test_a_folder_of_other_tables_is_refused(tmp_path) -> None:
    loop = Loop()
    PriorityCheckpoint(tmp_path, loop.model, loop.optimizers)
    other = torch.nn.Embedding(9, 2)
    checkpoint = PriorityCheckpoint(tmp_path, other, torch.optim.SGD(other.parameters(), lr=1.0))
    with pytest.raises(CheckpointError, match="of another run"):
        checkpoint.restore_all()
