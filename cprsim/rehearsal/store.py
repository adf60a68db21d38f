"""Saves in files: written through a throttle, complete once renamed, valid once committed.

    image-WHO            the last save of a shard (or of the layers), whole
    part-WHO-ID          a save's part of it; counts where commit-ID exists
    commit-ID            all processes had written the save's parts
    *.unfinished         being written; its writer may be dead

Every file is an NPZ archive and its SHA-256: a torn file is never loaded. After the commit each
part is installed into its image by its server; the parts of a dead server are installed by its
successor. Files are not flushed to the disk: processes die here, the machine does not. Files that
do not count stay until the session's folder is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np

from cprsim.errors import ResultError
from cprsim.files import UNFINISHED
from cprsim.training.kernel.loops import Array

CHUNKS = 32  # of a transfer, at least: so often it sees who shares the bandwidth
MOST_CHUNK_BYTES = 1 << 20
DIGEST_BYTES = sha256().digest_size

Arrays = dict[str, Array]


class SaveFiles:
    """The files of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def image(self, who: str) -> Path:
        return self.folder / f"image-{who}"

    def part(self, who: str, number: int) -> Path:
        return self.folder / f"part-{who}-{number}"

    def _commit(self, number: int) -> Path:
        return self.folder / f"commit-{number}"

    def commit(self, number: int) -> None:
        self._commit(number).touch()

    def install(self, who: str) -> None:
        """Update an image to the last commit."""
        parts = {path.name.rpartition("-")[2]: path for path in self.folder.glob(f"part-{who}-*")}
        for number in sorted(int(number) for number in parts if number.isdigit()):
            if self._commit(number).exists():
                self._install(who, parts[str(number)])

    def _install(self, who: str, path: Path) -> None:
        arrays = read(path)
        if "rows" not in arrays:
            path.rename(self.image(who))
            return
        image = read(self.image(who))
        rows = arrays.pop("rows")
        for name, array in arrays.items():
            image[name][rows] = array
        write(self.image(who), image)
        path.unlink()


def chunk_bytes(n_bytes: int) -> int:
    """Bytes of a piece of a transfer of `n_bytes`."""
    return max(1, min(MOST_CHUNK_BYTES, n_bytes // CHUNKS + 1))


def written(path: Path, arrays: Arrays) -> Iterator[int]:
    """Write a file piece by piece under another name, and rename it at the end.

    Yields the bytes of each piece.
    """
    unfinished, content = path.with_name(path.name + UNFINISHED), BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # no array is named allow_pickle
    content.write(sha256(content.getbuffer()).digest())
    size = chunk_bytes(content.tell())
    content.seek(0)
    with unfinished.open("wb") as file:
        while piece := content.read(size):
            yield file.write(piece)
    unfinished.rename(path)


def write(path: Path, arrays: Arrays) -> None:
    """Write a whole file in one call."""
    for _ in written(path, arrays):
        pass


def reading(path: Path, into: Arrays) -> Iterator[int]:
    """Read a file piece by piece, yielding the bytes of each; `into` gets its arrays at the end.

    Raises ResultError, with `into` left empty, where the file is torn or damaged.
    """
    data = bytearray()
    try:
        size = chunk_bytes(path.stat().st_size)
        with path.open("rb") as file:
            while piece := file.read(size):
                data += piece
                yield len(piece)
    except OSError as error:
        raise ResultError(f"{path.name} can't be read: {error.strerror}") from error
    body, digest = data[:-DIGEST_BYTES], data[-DIGEST_BYTES:]
    if sha256(body).digest() != digest:
        raise ResultError(f"{path.name} is torn or damaged: its digest does not match")
    into.update(np.load(BytesIO(body)))  # never unpickled


def read(path: Path) -> Arrays:
    """Read a whole file in one call. Raises ResultError where it is torn or damaged."""
    into: Arrays = {}
    for _ in reading(path, into):
        pass
    return into
