"""Reader of a log of saves and loads: a CSV with a row for each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.traces.reading import named_columns, no_row_where, read_csv
from cprsim.failures.traces.times import HOURS, Times, read_times
from cprsim.fitting.cost_fit import KINDS, Transfers, count
from cprsim.records import Bools, Floats
from cprsim.units import SIZE

COLUMNS = ("kind", "start", "end", "bytes")
FINEST_H = 1e-6 / 3600  # hours since 1970 are no finer as floats
_TIME_OF_DAY = re.compile(r"\d\d(?P<minute>:?\d\d(?P<second>:?\d\d(?P<fraction>[.,]\d+)?)?)?")


def read_transfers(
    path: Path | str, *, columns: Mapping[str, str] | None = None, time_unit: str | None = None
) -> Transfers:
    """Saves and loads (also detections and reschedulings) from a CSV with a row for each.

    Parameters
    ----------
    path : the file
    columns : names of the columns where they are not ``kind``, ``start``, ``end``, ``bytes``; the
        last may be absent or empty, and holds numbers or sizes such as ``50 GB``
    time_unit : ms, s, min, h or d where times are numbers; time stamps are ISO 8601

    Returns
    -------
    Rows that are the same from end to end count once; those without an end are left out.

    Raises
    ------
    TraceError
        with file and line, for anything that can't be read.
    """
    path = Path(path)
    table = read_csv(path)
    rows = named_columns(table.drop_duplicates(), columns or {}, path, COLUMNS, {"bytes"})
    kind = rows["kind"].fillna("").str.strip().str.lower()
    unknown = ~kind.isin(KINDS).to_numpy(dtype=bool)
    no_row_where(unknown, rows, path, "kind", "{value} is none of " + ", ".join(KINDS))
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    zone = "" if start.zoned or not start.dated else " (is it local time that was put back?)"
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start" + zone)
    ended = ~np.isnan(end.hours)
    return Transfers(
        tuple(kind[ended]),
        (end.hours - start.hours)[ended],
        _bytes(rows, path)[ended],
        start.hours[ended],
        _resolution_h(rows, start, time_unit)[ended],
        _notes(len(table) - len(rows), ended, kind),
    )


def _bytes(rows: pd.DataFrame, path: Path) -> Floats:
    """Bytes of each row, NaN where it names none."""
    if "bytes" not in rows:
        return np.full(len(rows), np.nan)
    text = rows["bytes"].fillna("").str.strip()
    empty = (text == "").to_numpy(dtype=bool)
    numbers = np.array([_size(cell) for cell in text])
    bad = ~empty & ~(np.isfinite(numbers) & (numbers > 0))
    no_row_where(bad, rows, path, "bytes", "{value} is no number of bytes above 0")
    return numbers


def _size(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        pass
    try:
        return SIZE.parse(cell)
    except ParameterError:
        return float("nan")


def _resolution_h(rows: pd.DataFrame, times: Times, time_unit: str | None) -> Floats:
    """How finely each row writes its times [h]: the finer of start and end."""
    step = _step_of_stamp_h if times.dated else _step_of_number_h
    unit_h = 1.0 if time_unit is None else HOURS[time_unit]
    both = [
        np.array([step(cell.strip(), unit_h) for cell in rows[key].fillna("")])
        for key in ("start", "end")
    ]
    return np.asarray(np.maximum(np.minimum(*both), FINEST_H), dtype=np.float64)


def _step_of_number_h(cell: str, unit_h: float) -> float:
    try:
        exponent = Decimal(cell).as_tuple().exponent
    except InvalidOperation:
        return unit_h
    return unit_h * 10.0 ** min(int(exponent), 0) if isinstance(exponent, int) else unit_h


def _step_of_stamp_h(cell: str, unit_h: float) -> float:
    time_of_day = _TIME_OF_DAY.match(re.split(r"[T ]", cell, maxsplit=1)[-1])
    if len(re.split(r"[T ]", cell)) == 1 or time_of_day is None:
        return 24.0 * unit_h  # a day alone
    if time_of_day["fraction"]:
        return unit_h / 3600 * 10.0 ** (1 - len(time_of_day["fraction"]))
    return unit_h / (3600 if time_of_day["second"] else 60 if time_of_day["minute"] else 1)


def _notes(n_twice: int, ended: Bools, kind: pd.Series[str]) -> tuple[str, ...]:
    notes = [f"{count(n_twice, 'row')} said twice, counted once"] if n_twice else []
    for name in KINDS:
        n_endless = int((~ended & (kind == name).to_numpy()).sum())
        if n_endless:
            notes.append(
                f"{count(n_endless, name)} without an end left out: if failures struck them, long "
                "ones are missing more often and the cost comes out too low"
            )
    return tuple(notes)
