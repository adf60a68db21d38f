"""What is torn is never loaded, what is not committed does not count."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import CheckpointError
from cprsim.rehearsal.store import UNFINISHED, Arrays, SaveFiles, read, write, written


def whole(path: Path, **arrays: object) -> None:
    write(path, {name: np.asarray(array) for name, array in arrays.items()})


def image(value: float) -> Arrays:
    return {"table": np.full((4, 2), value, np.float32), "row_state": np.zeros(0, np.float32)}


@pytest.fixture
def store(tmp_path: Path) -> SaveFiles:
    store = SaveFiles(tmp_path)
    whole(store.image("1"), **image(0))
    return store


def test_a_part_counts_from_its_commit_on(store: SaveFiles) -> None:
    whole(store.part("1", 1), **image(1))
    whole(store.part("1", 2), **image(2))
    store.commit(1)
    store.install("1")
    assert (read(store.image("1"))["table"] == 1).all()


def test_rows_of_a_part_go_over_the_image_in_the_order_of_the_commits(store: SaveFiles) -> None:
    empty = np.zeros(0, np.float32)
    for number, row in ((1, 2), (2, 2), (3, 0)):
        table = np.full((1, 2), number, np.float32)
        whole(store.part("1", number), rows=np.array([row]), table=table, row_state=empty)
        store.commit(number)
    store.install("1")
    assert read(store.image("1"))["table"][:, 0].tolist() == [3, 0, 2, 0]


def test_what_a_dead_server_left_unfinished_does_not_count(store: SaveFiles) -> None:
    writing = written(store.part("1", 5), image(7))
    next(writing)
    writing.close()
    store.commit(5)
    store.install("1")
    assert (read(store.image("1"))["table"] == 0).all()


@pytest.mark.parametrize(
    ("n", "wrong_at"), [(n, None) for n in (0, 1, 30, 100)] + [(None, at) for at in (0, 9, 40, -1)]
)
def test_a_file_that_is_cut_short_or_has_a_wrong_byte_is_not_loaded(
    store: SaveFiles, n: int | None, wrong_at: int | None
) -> None:
    path = store.image("1")
    data = bytearray(path.read_bytes())[:n]
    if wrong_at is not None:
        data[wrong_at] ^= 1
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="image-1 is torn or damaged"):
        read(path)


def test_a_full_disk_raises_and_leaves_the_image(store: SaveFiles) -> None:
    path = store.part("1", 1)
    path.with_name(path.name + UNFINISHED).symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        whole(path, **image(1))
    store.install("1")
    assert (read(store.image("1"))["table"] == 0).all()
