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
from cprsim.failures.traces.log import LogFormat
from cprsim.failures.traces.reading import FIRST_ROW, ROWS_AT_ONCE
from cprsim.failures.traces.tables import read_table

EXAMPLE = '{"node": ..., "start": ...}'


def json_pieces(log: PathLike[str]) -> Iterator[pd.DataFrame]:
    """The objects as tables of text, indexed as a CSV's rows; keys within keys as meta.host."""
    objects, any_row = items(log), False
    while some := list(islice(objects, ROWS_AT_ONCE)):
        any_row = True
        rows = [dict(flat(require_object(item, line, log, EXAMPLE))) for line, item in some]
        yield pd.DataFrame(rows, [line - FIRST_ROW for line, _ in some], dtype=object)
    if not any_row:
        raise trace_error(log, None, "is empty")


def flat(item: dict[str, Any], within: str = "") -> Iterator[tuple[str, str | None]]:
    """Keys and texts of an object; keys within keys as meta.host."""
    for key, value in item.items():
        if isinstance(value, dict) and value:
            yield from flat(value, f"{within}{key}.")
        elif value in (None, "") or isinstance(value, str):
            yield within + key, value or None
        elif isinstance(value, list) and value and all(isinstance(one, str) for one in value):
            yield within + key, ",".join(value)  # as tables list nodes
        else:
            yield within + key, json.dumps(value, sort_keys=True)


FORMAT = LogFormat(
    looks_like=lambda head: "JSON objects" if re.match(r"(?:\[\s*)?\{", head.text) else "",
    read=lambda log, spec: read_table(log, spec, json_pieces),
    order=80,
)
