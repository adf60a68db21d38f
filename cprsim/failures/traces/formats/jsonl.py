"""An object per outage: JSON lines, or the items of one array."""

from __future__ import annotations

import json
import re
from codecs import BOM_UTF8
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.errors import TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import HEAD_BYTES, Head, LogFormat, LogOptions
from cprsim.failures.traces.bounded import opened
from cprsim.failures.traces.json_values import items_of_array
from cprsim.failures.traces.reading import FIRST_ROW, numbered_lines, trace_error
from cprsim.failures.traces.tidy import TABLE_OPTIONS, read_table
from cprsim.foreign import one_line, parse_json

LINES_AT_ONCE = 20_000
NO_OBJECT = 'is no JSON object such as {"node": ..., "start": ...}'
A_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d{9}")


def json_line_pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The objects as tables of text, with the index that `reading.csv_pieces` gives its rows.

    Raises
    ------
    TraceError
        with the line, for what is no JSON object; BudgetError for a long array.
    """
    objects: list[dict[str, Any]] = []
    lines: list[int] = []
    any_row = False
    for number, item in _objects(path):
        objects.append(item)
        _require_flat(item, number, path)
        lines.append(number - FIRST_ROW)
        if len(lines) >= LINES_AT_ONCE:
            any_row = True
            yield _table(objects, lines)
            objects, lines = [], []
    if not any_row and not lines:
        raise trace_error(path, None, "is empty")
    if lines:
        yield _table(objects, lines)


def _objects(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    with opened(path) as file:
        begins = file.read(HEAD_BYTES).removeprefix(BOM_UTF8).lstrip()
    if not begins.startswith(b"["):
        yield from ((number, _object(line, number, path)) for number, line in numbered_lines(path))
        return
    for number, item in items_of_array(path):
        if not isinstance(item, dict):
            raise trace_error(path, number, NO_OBJECT)
        yield number, item


def _object(line: str, number: int, path: Path) -> dict[str, Any]:
    try:
        item = parse_json(line)
    except ValueError as error:
        reason = getattr(error, "msg", None) or str(error)
        raise trace_error(path, number, f"is no JSON object: {reason}") from None
    if not isinstance(item, dict):
        raise trace_error(path, number, NO_OBJECT)
    return item


def _require_flat(item: dict[str, Any], number: int, path: Path) -> None:
    """Raise TraceError where the outages are a list within one object, which names no time."""
    where = next(_lists_within(item), None)
    if where is not None and not any(A_TIME.match(text or "") for _, text in _flat(item)):
        raise trace_error(
            path, number,
            f"is an object with a list of objects, not one per line: jq -c '{one_line(where)}[]' "
            "FILE > log.jsonl makes JSON lines of that list",
        )  # fmt: skip


def _lists_within(item: dict[str, Any], within: str = "") -> Iterator[str]:
    """Where lists of objects are: .hits.hits."""
    for key, value in item.items():
        if isinstance(value, dict):
            yield from _lists_within(value, f"{within}.{key}")
        elif isinstance(value, list) and any(isinstance(one, dict) for one in value[:1]):
            yield f"{within}.{key}"


def _table(objects: list[dict[str, Any]], lines: list[int]) -> pd.DataFrame:
    rows = [dict(_flat(item)) for item in objects]
    return pd.DataFrame(rows, index=lines, dtype=object)


def _flat(item: dict[str, Any], within: str = "") -> Iterator[tuple[str, str | None]]:
    """Keys and texts; keys of an object within have its own before them: meta.host."""
    for key, value in item.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{within}{key}.")
        else:
            yield within + key, _text(value)


def _text(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return ",".join(value)  # as tables list nodes
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def _looks_like(head: Head) -> str:
    if re.match(r"\s*\[\s*\{", head.text.lstrip("\ufeff")):
        return "a JSON array of objects"
    line = head.first_line
    if not line.lstrip().startswith("{"):
        return ""
    try:
        _object(line, 1, Path(head.name))
    except TraceError:
        return ""
    return "a JSON object on a line of its own"


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_table(path, asked, json_line_pieces)


FORMAT = LogFormat(
    name="jsonl",
    what="JSON lines, or an array of objects, with node, start, end, cause",
    commands=(),
    provenance="any table",
    options=TABLE_OPTIONS,
    looks_like=_looks_like,
    read=_read,
    order=80,
)
