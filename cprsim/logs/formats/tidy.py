"""A table with a row per outage, separated by commas, semicolons, tabs or bars."""

from __future__ import annotations

from cprsim.logs.log import LogFormat
from cprsim.logs.reading import SEPARATORS, csv_pieces, separator_of
from cprsim.logs.tables import read_table

FORMAT = LogFormat(
    looks_like=lambda head: (
        "a table separated by " + SEPARATORS[separator_of(head.partition("\n")[0])]
    ),
    read=lambda log, spec: read_table(log, spec, csv_pieces),
    order=90,
)
