"""A table with a row per outage, separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

from pathlib import Path

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.reading import csv_pieces, separator_of
from cprsim.failures.traces.tidy import TABLE_OPTIONS, read_table

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def _looks_like(head: Head) -> str:
    line = head.first_line
    if line.startswith(("{", "[")) or "\0" in head.text:
        return ""
    return f"a table separated by {SEPARATORS[separator_of(line)]}"


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_table(path, asked, csv_pieces)


FORMAT = LogFormat(
    name="tidy",
    what="CSV with node, start, end, cause; any delimiter, decimal comma, dates in many forms",
    commands=(),
    provenance="any table",
    options=TABLE_OPTIONS,
    looks_like=_looks_like,
    read=_read,
    order=90,
)
