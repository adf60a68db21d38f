"""Files of arrays: checked on reading, never unpickled.

    magic, length of the header (8 bytes each)
    header (JSON): whose arrays these are, a position, name, type and shape of each array
    the arrays, one after the other
    SHA-256 of all that (32 bytes)

`write_arrays` leaves a file that is whole and on the disk, or none. `pieces` gives the bytes of a
file one by one, for a writer that limits its bandwidth.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.files import whole_file
from cprsim.kernel.loops import Array

MAGIC = b"CPRSIM\x00\x01"  # its last byte is the version of the format
LENGTH_BYTES = 8
DIGEST_BYTES = hashlib.sha256().digest_size
CHUNK_BYTES = 1 << 22


def pieces(
    arrays: Mapping[str, Array],
    run: Mapping[str, Any],
    position: int = 0,
    most_bytes: int | None = None,
) -> Iterator[bytes | memoryview]:
    """The bytes of a file, in order, none of them empty."""
    digest = hashlib.sha256()
    for part in _parts(_head(arrays, run, position), arrays, most_bytes):
        digest.update(part)
        yield part
    yield digest.digest()


def _parts(
    head: bytes, arrays: Mapping[str, Array], most_bytes: int | None
) -> Iterator[memoryview]:
    """Header and arrays, without the digest."""
    for piece in (memoryview(head), *map(_memory, arrays.values())):
        size = most_bytes or max(len(piece), 1)
        for first in range(0, len(piece), size):
            yield piece[first : first + size]


def _head(arrays: Mapping[str, Array], run: Mapping[str, Any], position: int) -> bytes:
    listed = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    header = json.dumps({"run": run, "position": position, "arrays": listed}).encode()
    return MAGIC + len(header).to_bytes(LENGTH_BYTES, "little") + header


def _memory(array: Array) -> memoryview:
    """The memory of an array, uncopied: a table may be larger than what is free."""
    if not array.flags.c_contiguous:
        raise ValueError("only contiguous arrays can be read back in place")
    return array.reshape(-1).view(np.uint8).data


def write_arrays(
    path: Path, position: int, arrays: Mapping[str, Array], run: Mapping[str, Any]
) -> None:
    """Write one file of this format, whole or not at all, on the disk when this returns."""
    digest = hashlib.sha256()
    with ThreadPoolExecutor(1) as beside, whole_file(path, "wb") as file:
        for part in _parts(_head(arrays, run, position), arrays, CHUNK_BYTES):
            hashing = beside.submit(digest.update, part)  # while it is written
            file.write(part)
            hashing.result()
        file.write(digest.digest())
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # makes the rename outlive a power cut
    finally:
        os.close(folder)


def read_arrays(path: Path, run: Mapping[str, Any]) -> dict[str, Array]:
    """The arrays of a file, checked and mapped: read from the disk where they are looked at."""
    try:
        _check(path)
        whole = np.memmap(path, np.uint8, "c")
    except (ValueError, OSError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    header, arrays = _parsed(whole.data)
    if header["run"] != json.loads(json.dumps(dict(run))):
        raise CheckpointError(f"{path}: of another run")
    return arrays


def arrays_in(data: bytes, name: str) -> dict[str, Array]:
    """The arrays of a file that was read as a whole; `name` is the file's, for the error."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise CheckpointError(f"{name} is torn or damaged: its digest does not match")
    return _parsed(memoryview(data))[1]


def _check(path: Path) -> None:
    """Hash a file; ValueError says what is wrong with it."""
    left = path.stat().st_size - DIGEST_BYTES
    digest, hashing = hashlib.sha256(), None
    with ThreadPoolExecutor(1) as beside, path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError("not a checkpoint of this version of the format")
        file.seek(0)
        while left > 0:
            chunk = file.read(min(CHUNK_BYTES, left))
            left -= len(chunk)
            if hashing is not None:
                hashing.result()
            hashing = beside.submit(digest.update, chunk)  # while the next is read
        if hashing is not None:
            hashing.result()
        if digest.digest() != file.read():
            raise ValueError("damaged or cut short: its digest does not match")


def _parsed(whole: memoryview) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a checked file; the arrays share its memory."""
    first = len(MAGIC) + LENGTH_BYTES
    at = first + int.from_bytes(whole[len(MAGIC) : first], "little")
    header: dict[str, Any] = json.loads(bytes(whole[first:at]))
    arrays: dict[str, Array] = {}
    for listed in header["arrays"]:
        dtype, shape = np.dtype(listed["dtype"]), tuple(listed["shape"])
        n = int(np.prod(shape, dtype=np.int64))
        arrays[listed["name"]] = np.frombuffer(whole, dtype, n, at).reshape(shape)
        at += n * dtype.itemsize
    return header, arrays
