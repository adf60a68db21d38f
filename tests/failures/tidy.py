"""A CSV with a row per outage, read as the format `tidy` reads it, with options as keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.reading import csv_pieces
from cprsim.failures.traces.tables import read_table


def read_tidy(path: Path | str, *, columns: dict[str, str] | None = None, **said: Any) -> Outages:
    """The outages of a file; `said` are further fields of `LogOptions`."""
    return read_table(Path(path), LogOptions(columns=columns or {}, **said), csv_pieces)
