"""Columns of instants: numbers with a unit, or ISO 8601 time stamps."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.failures.traces.reading import FIRST_ROW, no_row_where, trace_error
from cprsim.records import Bools, Floats

HOURS = {"ms": 1 / 3.6e6, "s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
ZONE = r"^[^:]*:.*(?:[zZ]|[+-]\d\d:?(?:\d\d)?)$"  # after a time of day
MICROSECONDS_PER_HOUR = 3.6e9
NEVER_H = 70_380_768.0  # the year 9999: what many systems write where there is no end


class Times(NamedTuple):
    """A column of instants in hours (of 1970, or of the file's own zero), NaN where empty."""

    hours: Floats
    dated: bool  # time stamps; otherwise plain numbers
    zoned: bool = False


def read_times(
    column: pd.Series[str], time_unit: str | None, path: Path, like: Times | None = None
) -> Times:
    """Hours of a text column: all of it numbers, or all of it time stamps of one kind.

    Parameters
    ----------
    column : the cells, with the index that `reading.read_csv` gave them
    time_unit : ms, s, min, h or d, for numbers
    path : for messages
    like : a column that decides what this one has to be; default: what most cells are

    Raises
    ------
    TraceError
        at the first cell that is something else.
    """
    text = column.fillna("").str.strip()
    empty = (text == "").to_numpy(dtype=bool)
    if like is not None and like.dated:
        return _stamps(text, empty, path, like)
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    numeric = np.isfinite(numbers)
    if like is None and (~numeric & ~empty).sum() > numeric.sum():
        return _stamps(text, empty, path, like)
    no_row_where(~numeric & ~empty, text, path, str(column.name), "{value} is no finite number")
    if time_unit not in HOURS:
        known = ", ".join(HOURS)
        message = f"the times are numbers: say in which unit ({known})"
        message += "" if time_unit is None else f", not {time_unit!r}"
        raise trace_error(path, FIRST_ROW, message, "time_unit")
    return Times(np.asarray(numbers * HOURS[time_unit], dtype=np.float64), dated=False)


def _stamps(text: pd.Series[str], empty: Bools, path: Path, like: Times | None) -> Times:
    """Time stamps as hours since 1970; as UTC where none has a zone, an error where some have."""
    key = str(text.name)
    hours = hours_since_1970(pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True))
    no_row_where(
        np.isnan(hours) & ~empty, text, path, key,
        "{value} is no ISO 8601 time stamp, such as 2024-05-01T13:30:00Z",
    )  # fmt: skip
    zones = have_zones(text)
    zoned = bool(zones[~empty][:1].any()) if like is None else like.zoned
    odd = (zones != zoned) & ~empty
    no_row_where(odd, text, path, key, "{value}: either all time stamps have a zone or none")
    return Times(hours, dated=True, zoned=zoned)


def have_zones(text: pd.Series[str]) -> Bools:
    """Which time stamps name their zone, (n,)."""
    found = pc.match_substring_regex(pa.array(text, type=pa.large_string()), ZONE)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=bool)


def hours_since_1970(stamps: pd.Series[pd.Timestamp]) -> Floats:
    """Time stamps, in UTC or without a zone, as hours; NaN where there is none."""
    instants = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    microseconds = instants.to_numpy(dtype="datetime64[us]")
    hours = microseconds.astype(np.int64) / MICROSECONDS_PER_HOUR
    return np.asarray(np.where(np.isnat(microseconds), np.nan, hours), dtype=np.float64)


def written(hours: float) -> str:
    """Hours since 1970 as a time stamp, to the second."""
    return str(np.datetime64(round(hours * 3600), "s"))
