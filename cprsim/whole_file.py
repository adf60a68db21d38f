"""A file that is written whole or not at all: beside its place first, then renamed.

`write_whole` replaces a file that is there; `write_new` leaves it as it is and says so.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from cprsim.errors import ResultError

UNFINISHED = ".unfinished"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """What the system refuses within the block is of this file or folder, if it names no other."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


@contextmanager
def whole_file(
    path: Path, mode: str = "w", put: Callable[[Path, Path], object] = os.replace
) -> Iterator[IO[Any]]:
    """A file to write to: what was written is on the disk, under `path`, after the block.

    Whatever goes wrong, `path` stays as it was and nothing is left beside it.
    """
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    try:
        with naming(path), unfinished.open(mode, **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        put(unfinished, path)
    finally:
        with suppress(OSError):
            unfinished.unlink()


@contextmanager
def writes(what: object) -> Iterator[None]:
    """Raise ResultError where the system can't write `what`, which the block does."""
    try:
        yield
    except OSError as error:
        raise ResultError(f"can't write {what}: {error.strerror or error}") from error


def write_whole(path: Path, text: str) -> None:
    """Write a text, replacing a file that is there. Raises OSError."""
    with whole_file(path) as file:
        file.write(text)


def write_over(path: Path, text: str) -> None:
    """Write a text as `write_whole` does. Raises ResultError where it can't be written."""
    with writes(path):
        write_whole(path, text)


def require_new(path: Path) -> None:
    """Find out before the work whether a file of that name can be made. Raises ResultError."""
    if path.exists() or path.is_symlink():
        raise _there_already(path)
    if not path.parent.is_dir():
        raise ResultError(f"can't write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ResultError(f"can't write {path}: no permission to write to {path.parent}")


def write_new(path: Path, text: str) -> None:
    """Write a file, on the disk when this returns; one that is there stays as it is."""
    with writes(path):
        try:
            with whole_file(path, put=_rename_to_new) as file:
                file.write(text)
        except FileExistsError:
            raise _there_already(path) from None


def _rename_to_new(unfinished: Path, path: Path) -> None:
    """Rename, unless there is a file: a link is made only where there is none."""
    try:
        os.link(unfinished, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        require_new(path)
        unfinished.replace(path)


def _there_already(path: Path) -> ResultError:
    return ResultError(f"{path} is there already, and stays: name another file, or delete it")
