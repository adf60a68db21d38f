"""Reader of a log of saves and loads: a CSV with a row for each."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.cost_fit import Transfers
from cprsim.failures.traces.reading import named_columns, no_row_where, read_csv
from cprsim.failures.traces.times import read_times
from cprsim.records import Floats

COLUMNS = ("kind", "start", "end", "bytes")
KINDS = ("save", "load")


def read_transfers(
    path: Path | str, *, columns: Mapping[str, str] | None = None, time_unit: str | None = None
) -> Transfers:
    """Saves and loads from a CSV with the columns kind (save or load), start, end and bytes.

    Parameters
    ----------
    path : the file
    columns : names of the columns where they are others; ``bytes`` may be absent or empty
    time_unit : ms, s, min, h or d where times are numbers; time stamps are ISO 8601

    Raises
    ------
    TraceError
        with file and line, for anything that can't be read.
    """
    path = Path(path)
    rows = named_columns(read_csv(path), columns or {}, path, COLUMNS, {"bytes"})
    kind = rows["kind"].fillna("").str.strip().str.lower()
    unknown = ~kind.isin(KINDS).to_numpy(dtype=bool)
    no_row_where(unknown, rows, path, "kind", "{value} is neither save nor load")
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    for name, times in (("start", start), ("end", end)):
        no_row_where(np.isnan(times.hours), rows, path, name, f"there is no {name}")
    backwards = end.hours < start.hours
    no_row_where(backwards, rows, path, "end", "{value} lies before the start")
    return Transfers(
        tuple(kind), end.hours - start.hours, _bytes(rows, path), np.asarray(start.hours)
    )


def _bytes(rows: pd.DataFrame, path: Path) -> Floats:
    """Bytes of each row, NaN where it names none."""
    if "bytes" not in rows:
        return np.full(len(rows), np.nan)
    empty = (rows["bytes"].fillna("").str.strip() == "").to_numpy(dtype=bool)
    numbers = pd.to_numeric(rows["bytes"], errors="coerce").to_numpy(dtype=float)
    bad = ~empty & ~(np.isfinite(numbers) & (numbers > 0))
    no_row_where(bad, rows, path, "bytes", "{value} is no number of bytes")
    return np.asarray(np.where(empty, np.nan, numbers), dtype=np.float64)
