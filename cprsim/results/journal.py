"""A journal of finished work: one line of JSON each, on the disk before anybody hears of it.

A process that is killed leaves at most its last line unfinished; that line is cut off when the
journal is opened again. A line that is damaged anywhere else is an error: nobody guesses.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cprsim.errors import ResultError


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records of a journal, in order; none where there is no journal yet."""
    try:
        whole, _ = _split(path.read_bytes())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror}") from error
    return [_record(path, number, line) for number, line in enumerate(whole.splitlines(), 1)]


def _split(text: bytes) -> tuple[bytes, bytes]:
    """Whole lines, and what stands after the last end of a line."""
    end = text.rfind(b"\n") + 1
    return text[:end], text[end:]


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (RecursionError, ValueError):
        record = None
    if not isinstance(record, dict):
        raise ResultError(f"{path}:{number}: is damaged; remove this line to run its work again")
    return record


class Journal:
    """Appends to one journal; one process at a time writes to it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            with path.open("rb") as file:
                whole, _ = _split(file.read())
            os.ftruncate(self._file, len(whole))
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise ResultError(f"{path} can't be written: {error.strerror}") from error

    def append(self, record: dict[str, Any]) -> None:
        """Write a record; when this returns, it survives the process and the machine."""
        line = json.dumps(record, allow_nan=False).encode() + b"\n"
        try:
            while line:
                line = line[os.write(self._file, line) :]
            os.fsync(self._file)
        except OSError as error:
            raise ResultError(f"{self.path} can't be written: {error.strerror}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._file)
