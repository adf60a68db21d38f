"""Files of arrays: checked on reading, never unpickled.

    magic, length of the header (8 bytes each)
    header (JSON): owner of the arrays, a position, name, type and shape of each array
    the arrays, one after the other
    SHA-256 of everything before it (32 bytes)

`pieces` gives the bytes of a file one by one, for a writer that limits its bandwidth.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cprsim.errors import CheckpointError
from cprsim.training.kernel.loops import Array

MAGIC = b"CPRSIM\x00\x01"  # its last byte is the version of the format
LENGTH_BYTES = 8
DIGEST_BYTES = hashlib.sha256().digest_size


def pieces(
    arrays: Mapping[str, Array],
    run: Mapping[str, Any],
    position: int = 0,
    most_bytes: int | None = None,
) -> Iterator[bytes | memoryview]:
    """The bytes of a file, in order, none of them empty."""
    listed = [
        {"name": name, "dtype": array.dtype.str, "shape": list(array.shape)}
        for name, array in arrays.items()
    ]
    header = json.dumps({"run": run, "position": position, "arrays": listed}).encode()
    head = MAGIC + len(header).to_bytes(LENGTH_BYTES, "little") + header
    digest = hashlib.sha256()
    for piece in (memoryview(head), *map(_memory, arrays.values())):
        size = most_bytes or max(len(piece), 1)
        for first in range(0, len(piece), size):
            part = piece[first : first + size]
            digest.update(part)
            yield part
    yield digest.digest()


def _memory(array: Array) -> memoryview:
    """The memory of an array, not copied: a table may exceed the free memory."""
    if not array.flags.c_contiguous:
        raise ValueError("only contiguous arrays can be read back in place")
    return array.reshape(-1).view(np.uint8).data


def arrays_in(data: bytes, name: str) -> dict[str, Array]:
    """The arrays of a file, which share its memory; `name` is the file's, for the error."""
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if not body.startswith(MAGIC) or hashlib.sha256(body).digest() != digest:
        raise CheckpointError(f"{name} is torn or damaged: its digest does not match")
    first = len(MAGIC) + LENGTH_BYTES
    at = first + int.from_bytes(data[len(MAGIC) : first], "little")
    header: dict[str, Any] = json.loads(data[first:at])
    arrays: dict[str, Array] = {}
    for listed in header["arrays"]:
        dtype, shape = np.dtype(listed["dtype"]), tuple(listed["shape"])
        n = int(np.prod(shape, dtype=np.int64))
        arrays[listed["name"]] = np.frombuffer(data, dtype, n, at).reshape(shape)
        at += n * dtype.itemsize
    return arrays
