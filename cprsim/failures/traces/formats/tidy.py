"""A table with a row per outage, separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

from cprsim.failures.traces.asked import LogFormat
from cprsim.failures.traces.reading import SEPARATORS, csv_pieces, separator_of
from cprsim.failures.traces.tables import TABLE_OPTIONS, read_table

FORMAT = LogFormat(
    name="tidy",
    options=TABLE_OPTIONS,
    looks_like=lambda head: f"a table separated by {SEPARATORS[separator_of(head.first_line)]}",
    read=lambda path, asked: read_table(path, asked, csv_pieces),
    order=90,
    pieces=csv_pieces,
)
