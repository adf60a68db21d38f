"""Columns of instants: numbers with a unit, or ISO 8601 time stamps."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.failures.traces.reading import FIRST_ROW, no_row_where, trace_error
from cprsim.records import Bools, Floats

HOURS = {"ms": 1 / 3.6e6, "s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
ZONE = re.compile(r"^[^:]*:.*(?:[zZ]|[+-]\d\d:?(?:\d\d)?)$")  # after a time of day


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
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=float)
    numeric = np.isfinite(numbers)
    dated = bool((~numeric & ~empty).sum() > numeric.sum()) if like is None else like.dated
    if dated:
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
    stamps = pd.to_datetime(text, format="ISO8601", errors="coerce", utc=True)
    no_row_where(
        stamps.isna().to_numpy() & ~empty, text, path, key,
        "{value} is no ISO 8601 time stamp, such as 2024-05-01T13:30:00Z",
    )  # fmt: skip
    zones = text.map(lambda cell: ZONE.search(cell) is not None).to_numpy(dtype=bool)
    zoned = bool(zones[~empty][:1].any()) if like is None else like.zoned
    odd = (zones != zoned) & ~empty
    no_row_where(odd, text, path, key, "{value}: either all time stamps have a zone or none")
    hours = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(hours=1)
    return Times(np.asarray(hours, dtype=np.float64), dated=True, zoned=zoned)
