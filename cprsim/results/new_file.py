"""A text put where no file is yet, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

from cprsim.errors import ResultError
from cprsim.whole_file import whole_file


def require_new(path: Path) -> None:
    """Find out before the work whether a file of that name can be made. Raises ResultError."""
    if path.exists() or path.is_symlink():
        raise _there_already(path)
    if not path.parent.is_dir():
        raise ResultError(f"can't write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise ResultError(f"can't write {path}: no permission to write to {path.parent}")


def write_new(path: Path, text: str) -> None:
    """Write a file, on the disk when this returns; one that is there stays as it is.

    Raises
    ------
    ResultError : it is there already, or can't be written; nothing is left behind
    """
    try:
        with whole_file(path, put=_rename_to_new) as file:
            file.write(text)
    except FileExistsError:
        raise _there_already(path) from None
    except OSError as error:
        raise ResultError(f"can't write {path}: {error.strerror or error}") from error


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
