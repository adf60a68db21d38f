"""An object per outage: JSON lines, or the items of one array."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.failures.traces.asked import LogFormat
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.reading import FIRST_ROW, ROWS_AT_ONCE
from cprsim.failures.traces.tables import TABLE_OPTIONS, read_table

EXAMPLE = '{"node": ..., "start": ...}'


def json_pieces(path: Path) -> Iterator[pd.DataFrame]:
    """The objects as tables of text, indexed as a CSV's rows; keys within keys as meta.host."""
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
        elif value in (None, "") or isinstance(value, str):
            yield within + key, value or None
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield within + key, ",".join(value)  # as tables list nodes
        else:
            yield within + key, json.dumps(value, sort_keys=True)


FORMAT = LogFormat(
    name="jsonl",
    options=TABLE_OPTIONS,
    looks_like=lambda head: "JSON objects" if re.match(r"(?:\[\s*)?\{", head.text) else "",
    read=lambda path, asked: read_table(path, asked, json_pieces),
    order=80,
    pieces=json_pieces,
)
