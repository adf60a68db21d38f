"""An object per outage: JSON lines, or the items of one array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from os import PathLike
from typing import Any

import pandas as pd

from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.reading import FIRST_ROW, ROWS_AT_ONCE
from cprsim.failures.traces.spec import LogFormat
from cprsim.failures.traces.tables import read_table

EXAMPLE = '{"node": ..., "start": ...}'


def json_pieces(path: PathLike[str]) -> Iterator[pd.DataFrame]:
    """The objects as tables of text, with the index that `reading.csv_pieces` gives its rows.

    Keys of an object within an object have its own before them: meta.host.

    Raises TraceError with the line, for what is no JSON object.
    """
    objects, any_row = items(path), False
    while some := list(islice(objects, ROWS_AT_ONCE)):
        any_row = True
        rows = [dict(_flat(require_object(item, line, path, EXAMPLE))) for line, item in some]
        yield pd.DataFrame(rows, [line - FIRST_ROW for line, _ in some], dtype=object)
    if not any_row:
        raise trace_error(path, None, "is empty")


def _flat(item: dict[str, Any], within: str = "") -> Iterator[tuple[str, str | None]]:
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


FORMAT = LogFormat(
    looks_like=lambda head: "JSON objects" if re.match(r"(?:\[\s*)?\{", head.text) else "",
    read=lambda path, asked: read_table(path, asked, json_pieces),
    order=80,
)
