"""A file that is written whole or not at all: beside its place first, then renamed."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

UNFINISHED = ".unfinished"


@contextmanager
def whole_file(
    path: Path, mode: str = "w", put: Callable[[Path, Path], object] = os.replace
) -> Iterator[IO[Any]]:
    """A file to write to: what was written is on the disk, under `path`, after the block.

    Whatever goes wrong, `path` stays as it was and nothing is left beside it.

    Parameters
    ----------
    mode : "w" for text, "wb" for bytes
    put : renames the written file to `path`; a file that is there is replaced unless it refuses

    Raises
    ------
    OSError : it can't be written
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with unfinished.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        put(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink()


def write_whole(path: Path, text: str) -> None:
    """Write a text, replacing a file that is there. Raises OSError."""
    with whole_file(path) as file:
        file.write(text)
