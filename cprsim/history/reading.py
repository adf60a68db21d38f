"""Logs of any kind that is known to events: which reader a file is for shows in its first lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from cprsim.errors import Place, TraceError
from cprsim.history.attempts import NOTE, attempt_events
from cprsim.history.json_lines import TYPES, Collected, event_of, read_json_lines
from cprsim.history.table import Events
from cprsim.history.torch_lines import HINTS, torch_events

LOOKED_AT_BYTES = 1 << 18


def read_logs(paths: Sequence[Path], time_unit: str | None = None) -> Events:
    """The events of all files.

    Parameters
    ----------
    paths : files; of a folder, all that it holds
    time_unit : of tables of attempts whose times are numbers

    Raises
    ------
    TraceError : a file can't be read, or is of no known kind
    """
    into = Collected()
    files = [file for path in paths for file in _files(path)]
    for file in files:
        kind = _kind(file)
        if kind == "json":
            read_json_lines(file, into)
        elif kind == "torch":
            _add(torch_events(file), file, into)
        else:
            _add(attempt_events(file, time_unit), file, into)
            if NOTE not in into.notes:
                into.notes.append(NOTE)
    return into.events()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    if not inside:
        raise TraceError.at(Place(path), "the folder holds no file")
    return inside


def _kind(path: Path) -> str:
    if not path.is_file():
        raise TraceError.at(Place(path), "there is no such file")
    try:
        with path.open("rb") as file:
            text = file.read(LOOKED_AT_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise TraceError.at(Place(path), f"can't be read: {error.strerror or error}") from error
    lines = text.splitlines()
    if any(hint in text for hint in HINTS):
        return "torch"
    if lines and {"start", "end", "last_step"} <= {cell.strip() for cell in lines[0].split(",")}:
        return "attempts"
    if any(event_of(line) is not None for line in lines):
        return "json"
    raise TraceError.at(
        Place(path),
        "is no log that can be read: no events of docs/events.md, no output of torchrun, and no "
        "CSV of attempts with the columns start, end and last_step",
    )


def _add(events: Iterable[dict[str, Any]], path: Path, into: Collected) -> None:
    found = [event_of(json.dumps(event)) for event in events]
    rows = [event for event in found if event is not None]
    if not rows:
        raise TraceError.at(Place(path), "holds no event of a job")
    table = pa.table(
        {name: pa.array([row.get(name) for row in rows], kind) for name, kind in TYPES.items()}
    )
    into.add(table, path.stem)
