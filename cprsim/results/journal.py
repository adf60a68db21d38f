"""A journal of finished work: one line of JSON each, on the disk before anybody hears of it.

A process that is killed leaves at most its last line unfinished; that line is cut off by the next
one. A line that is damaged anywhere else is an error: nobody guesses.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from cprsim.errors import ResultError


def read_journal(path: Path) -> list[dict[str, Any]]:
    """The records of a journal, in order; none where there is no journal yet."""
    try:
        lines = _whole(path.read_bytes()).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ResultError(f"{path} can't be read: {error.strerror}") from error
    return [_record(path, number, line) for number, line in enumerate(lines, 1)]


def append_to_journal(path: Path, record: dict[str, Any]) -> None:
    """Write a record; when this returns, it survives the process and the machine.

    One process at a time writes to a journal.
    """
    line = json.dumps(record, allow_nan=False).encode() + b"\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab", buffering=0) as file:
            file.truncate(len(_whole(path.read_bytes())))
            while line:
                line = line[file.write(line) :]
            os.fsync(file.fileno())
    except OSError as error:
        raise ResultError(f"{path} can't be written: {error.strerror}") from error


def _whole(text: bytes) -> bytes:
    """The whole lines, without what stands after the last end of a line."""
    return text[: text.rfind(b"\n") + 1]


def _record(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except (RecursionError, ValueError):
        record = None
    if not isinstance(record, dict):
        raise ResultError(f"{path}:{number}: is damaged; remove this line to run its work again")
    return record
