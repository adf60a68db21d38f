"""Checkpoints on disk: whole or not there, checked on reading, never unpickled.

One file per checkpoint, named after its position:

    magic, length of the header (8 bytes each)
    header (JSON): whose run it is, its position, name, type and shape of each array
    the arrays, one after the other
    SHA-256 of all that (32 bytes)

It is written under another name, flushed to the disk, and renamed: a process killed at any moment
leaves the checkpoints before it as they were. Reading hashes the whole file before one byte of it
goes into a run, and falls back to the one before where anything is wrong.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.foreign import one_line, parse_json
from cprsim.kernel.loops import Array
from cprsim.whole_file import UNFINISHED, whole_file

MAGIC = b"CPRSIM\x00\x01"  # its last byte is the version of the format
SUFFIX = ".checkpoint"
DIGEST_BYTES = hashlib.sha256().digest_size
CHUNK_BYTES = 1 << 22


@dataclass(frozen=True, slots=True)
class Restored:
    """Which checkpoint a run was restored from, and which ones were passed over, and why."""

    path: Path
    position: int
    damaged: tuple[str, ...]  # a line each

    def __str__(self) -> str:
        passed_over = "".join(f"passed over {line}\n" for line in self.damaged)
        return f"{passed_over}resumed from {self.path} at sample {self.position}"


def write_checkpoint(
    folder: Path, position: int, arrays: Mapping[str, Array], run: Mapping[str, Any], keep: int = 2
) -> Path:
    """Write the state of a run, and remove all but the newest `keep` checkpoints.

    Parameters
    ----------
    folder : where the checkpoints of this run lie; made if missing
    position : samples trained so far
    arrays : the state, as `joint_state` gives it
    run : what tells this run from others (shape, plan, clicks), as JSON can hold it
    keep : checkpoints that stay, this one included; one that is damaged needs another
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{position:015d}{SUFFIX}"
    with whole_file(path, "wb") as file:
        _write(file, _header(position, arrays, run), arrays)
    _sync_folder(folder)
    for old in [*_newest_first(folder)[keep:], *folder.glob(f".*{UNFINISHED}")]:
        old.unlink()
    return path


def write_arrays(
    path: Path, position: int, arrays: Mapping[str, Array], run: Mapping[str, Any]
) -> None:
    """Write one file of this format, whole or not at all, on the disk when this returns."""
    with whole_file(path, "wb") as file:
        _write(file, _header(position, arrays, run), arrays)
    _sync_folder(path.parent)


def read_arrays(path: Path, run: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a file, checked and mapped: read from the disk where they are looked at.

    Raises CheckpointError for a file that is damaged, or of another run.
    """
    try:
        header = _check(path)
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    if header["run"] != json.loads(json.dumps(dict(run))):
        raise CheckpointError(f"{path}: of another run")
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        at = len(MAGIC) + 8 + int.from_bytes(file.read(8), "little")
    arrays: dict[str, Array] = {}
    for one in header["arrays"]:
        dtype, shape = np.dtype(one["dtype"]), tuple(one["shape"])
        n = int(np.prod(shape, dtype=np.int64))
        flat = np.memmap(path, dtype, "r", at, (n,)) if n else np.zeros(0, dtype)
        arrays[one["name"]] = flat.reshape(shape)
        at += n * dtype.itemsize
    return arrays


def _header(position: int, arrays: Mapping[str, Array], run: Mapping[str, Any]) -> bytes:
    listed = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    return json.dumps({"run": run, "position": position, "arrays": listed}).encode()


def _write(file: IO[bytes], header: bytes, arrays: Mapping[str, Array]) -> None:
    digest = hashlib.sha256()
    pieces: list[bytes | memoryview] = [MAGIC, len(header).to_bytes(8, "little"), header]
    for piece in pieces + [_bytes_of(array) for array in arrays.values()]:
        digest.update(piece)
        file.write(piece)
    file.write(digest.digest())


def _bytes_of(array: Array) -> memoryview:
    """The memory of an array, uncopied: a table may be larger than what is free."""
    if not array.flags.c_contiguous:
        raise ValueError("only contiguous arrays can be read back in place")
    return array.reshape(-1).view(np.uint8).data


def _sync_folder(folder: Path) -> None:
    """Make a rename outlive a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}"), reverse=True)


def read_latest(folder: Path, arrays: Mapping[str, Array], run: Mapping[str, Any]) -> Restored:
    """Restore the newest whole checkpoint of this run into its live arrays.

    Raises CheckpointError where the folder holds none that is whole, or where one belongs to
    another run (then nothing is restored: this is the wrong folder, not a damaged file).
    """
    damaged: list[str] = []
    for path in _newest_first(folder):
        try:
            header = _check(path)
        except (ValueError, OSError) as error:
            damaged.append(f"{path}: {error}")
            continue
        _require_same_run(path, header, arrays, run)
        _load(path, arrays)
        return Restored(path, int(header["position"]), tuple(damaged))
    raise CheckpointError("\n".join([f"{folder}: no whole checkpoint", *damaged]))


def _check(path: Path) -> dict[str, Any]:
    """The header of a checkpoint that is whole; ValueError says what is wrong with another."""
    left = path.stat().st_size - DIGEST_BYTES
    digest = hashlib.sha256()
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("not a checkpoint of this version of the format")
        file.seek(0)
        while left > 0:
            chunk = file.read(min(CHUNK_BYTES, left))
            digest.update(chunk)
            left -= len(chunk)
        if digest.digest() != file.read():
            raise ValueError("damaged or cut short: its digest does not match")
        file.seek(len(MAGIC))
        header: dict[str, Any] = parse_json(file.read(int.from_bytes(file.read(8), "little")))
    return header


def _require_same_run(
    path: Path, header: Mapping[str, Any], arrays: Mapping[str, Array], run: Mapping[str, Any]
) -> None:
    ours = json.loads(_header(header["position"], arrays, run))
    for key in sorted(ours["run"].keys() | header["run"].keys()):
        there, here = header["run"].get(key), ours["run"].get(key)
        if there != here:
            raise CheckpointError(
                f"{path}: of another run: `{key}` is {one_line(str(there))}, here {here}"
            )
    if header["arrays"] != ours["arrays"]:
        raise CheckpointError(f"{path}: of another run: it holds other arrays")


def _load(path: Path, arrays: Mapping[str, Array]) -> None:
    """Read the arrays of a checked file straight into the live ones."""
    with path.open("rb") as file:
        file.seek(len(MAGIC))
        file.seek(int.from_bytes(file.read(8), "little"), os.SEEK_CUR)
        for array in arrays.values():
            if file.readinto(_bytes_of(array)) != array.nbytes:
                raise CheckpointError(f"{path}: became shorter while it was read")
