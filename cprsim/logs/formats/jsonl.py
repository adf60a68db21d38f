"""An object per outage: JSON lines, or the items of one array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from typing import Any

import pandas as pd

from cprsim.logs.files import read_text, trace_error
from cprsim.logs.log import LogFormat
from cprsim.logs.reading import FIRST_ROW, LIKE_A_TIME, ROWS_AT_ONCE
from cprsim.logs.tables import read_table

EXAMPLE = '{"node": ..., "start": ...}'
MOST_PAGES, MOST_LISTED = 3, 6  # of a log in pages; of their lists
PLAIN_KEY = re.compile(r"(?:\.[^\W\d]+)+")
BETWEEN = re.compile(r"[\s,]*")


def json_pieces(log: PathLike[str]) -> Iterator[pd.DataFrame]:
    """The objects as tables of text, indexed as a CSV's rows; keys within keys as meta.host."""
    objects, any_row = items(log), False
    while some := list(islice(objects, ROWS_AT_ONCE)):
        _require_rows([item for _, item in some if isinstance(item, dict)], log)
        any_row = True
        rows = [dict(flat(require_object(item, line, log, EXAMPLE))) for line, item in some]
        yield pd.DataFrame(rows, [line - FIRST_ROW for line, _ in some], dtype=object)
    if not any_row:
        raise trace_error(log, None, "is empty")


def _require_rows(items: list[dict[str, Any]], log: PathLike[str]) -> None:
    """Raise TraceError for objects that hold lists of rows, or of the cells of columns."""
    lists = [one for item in items[:MOST_PAGES] for one in _lists(item)]
    columns = {path: len(of) for path, of in lists if not isinstance(of[0], dict | list)}
    long = [path for path, n in columns.items() if n > len(items)]
    cells = [cell for item in items[:1] for cell in item.values() if isinstance(cell, str)]
    is_row = any(map(LIKE_A_TIME.match, cells)) or not all(map(PLAIN_KEY.fullmatch, long))
    if len(long) > 1 and not is_row:
        of_each = ", ".join(f'"{path[1:]}": {path}[$k]' for path in long)
        way = f"jq -c 'range({long[0]} | length) as $k | . + {{{of_each}}}' FILE writes rows"
        raise trace_error(log, 1, f"holds the cells of each column, {' and '.join(long)}; {way}")
    rows = [(isinstance(of[0], dict), len(of), path) for path, of in lists if path not in columns]
    if len(items) > MOST_PAGES or not any(n > len(items) for _, n, _ in rows):
        return
    rows = [one for one in rows if PLAIN_KEY.fullmatch(one[-1])]  # others may be no names
    listed = ": " * bool(rows) + ", ".join(f"{path} ({n})" for _, n, path in rows[:MOST_LISTED])
    has_objects, _, longest = max(rows, default=(False, 0, ""))
    way = f"; jq -c '{longest}[]' FILE writes the items of one" if has_objects else ""
    raise trace_error(log, 1, f"is no object such as {EXAMPLE}, but holds lists{listed}{way}")


def _lists(item: dict[str, Any], within: str = "") -> Iterator[tuple[str, list[Any]]]:
    """Path and value of each list in an object that is not empty."""
    for key, value in item.items():
        if isinstance(value, dict):
            yield from _lists(value, f"{within}.{key}")
        elif isinstance(value, list) and value:
            yield f"{within}.{key}", value


def flat(item: dict[str, Any], within: str = "") -> Iterator[tuple[str, str | None]]:
    """Keys and texts of an object; keys within keys, or a list's objects, as meta.host."""
    for key, value in item.items():
        if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            several = {name: [one.get(name) for one in value] for of in value for name in of}
            value = several if len(value) > 1 else value[0]
        if isinstance(value, dict) and value:
            yield from flat(value, f"{within}{key}.")
        elif value in (None, "") or isinstance(value, str):
            yield within + key, value or None
        elif isinstance(value, list) and value and all(isinstance(name, str) for name in value):
            yield within + key, ",".join(value)  # as tables list nodes
        else:
            yield within + key, json.dumps(value, sort_keys=True)


def items(path: PathLike[str]) -> Iterator[tuple[int, Any]]:
    """Line and value of each JSON value of a file; where it is one array, of each of its items."""
    text, decode = read_text(path), json.JSONDecoder().raw_decode
    at, line, counted = len(text) - len(text.lstrip()), 1, 0
    is_array = text.startswith("[", at)
    at += is_array
    while True:
        separator = BETWEEN.match(text, at)
        at = separator.end() if separator else at
        line, counted = line + text.count("\n", counted, at), at
        if at == len(text) or (is_array and text[at] == "]"):
            break
        try:
            value, at = decode(text, at)
        except (ValueError, RecursionError) as error:
            line += text.count("\n", at, getattr(error, "pos", at))
            reason = getattr(error, "msg", "nested too deep, or a number of thousands of digits")
            raise trace_error(path, line, f"is no valid JSON: {reason}") from None
        yield line, value
    if is_array and text[at:].strip() != "]":
        message = "is no valid JSON: the array does not end where the file ends"
        raise trace_error(path, line, message)


def require_object(item: Any, line: int, path: PathLike[str], example: str) -> dict[str, Any]:
    """The item."""
    if not isinstance(item, dict):
        raise trace_error(path, line, f"is no JSON object such as {example}")
    return item


FORMAT = LogFormat(
    looks_like=lambda head: "JSON objects" if re.match(r"\{|\[\s*[\[{]", head) else "",
    read=lambda log, spec: read_table(log, spec, json_pieces),
    order=80,
)
