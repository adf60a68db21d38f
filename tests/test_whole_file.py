"""Files are written whole or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from cprsim.whole_file import whole_file, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_is_there_is_replaced(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "first\n")
    write_whole(path, "second\n")
    assert path.read_bytes() == b"second\n"
    assert names(tmp_path) == ["a.txt"]


def test_nobody_sees_half_of_it(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"old")
    with whole_file(path, "wb") as file:
        file.write(b"ne")
        file.flush()
        assert path.read_bytes() == b"old"
        file.write(b"w")
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("failing", ["fsync", "replace"])
def test_what_fails_leaves_the_old_one_and_nothing_else(tmp_path, monkeypatch, failing):
    path = tmp_path / "a.txt"
    write_whole(path, "old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    def write_new() -> None:
        with whole_file(path, put=os.replace if failing == "fsync" else fail) as file:
            file.write("new")

    with monkeypatch.context() as patch:
        if failing == "fsync":
            patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="No space"):
            write_new()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_an_error_of_the_writer_is_its_own(tmp_path):
    with pytest.raises(ZeroDivisionError), whole_file(tmp_path / "a.txt") as file:
        file.write(str(1 / 0))
    assert names(tmp_path) == []


def test_a_full_disk_is_told_with_the_file(tmp_path, monkeypatch):
    """The system says no name where a write or a flush fails."""

    def full(fd):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left") as refused:
        write_whole(tmp_path / "a.txt", "new")
    assert refused.value.filename == str(tmp_path / "a.txt")
