"""Reader of a CSV with a row per outage, whoever wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.reading import (
    FIRST_ROW,
    Instant,
    Period,
    checked,
    n_observed,
    no_row_where,
    read_csv,
    trace_error,
)
from cprsim.records import Bools, Floats

HOURS = {"ms": 1 / 3.6e6, "s": 1 / 3600, "min": 1 / 60, "h": 1.0, "d": 24.0}
ZONE = re.compile(r":.*(?:[zZ]|[+-]\d\d:?(?:\d\d)?)$")  # after a time of day
COLUMNS = ("node", "start", "end", "cause")
OPTIONAL = {"end", "cause"}


class _Times(NamedTuple):
    """A column of instants in hours (of 1970, or of the file's own zero), NaN where empty."""

    hours: Floats
    dated: bool  # time stamps; otherwise plain numbers
    zoned: bool = False


def read_tidy(
    path: Path | str,
    *,
    columns: Mapping[str, str] | None = None,
    time_unit: str | None = None,
    n_nodes: int | None = None,
    period: Period = (None, None),
) -> Outages:
    """Outages from a CSV with a row per outage.

    Parameters
    ----------
    path : the file
    columns : names of the columns where they are not ``node``, ``start``, ``end``, ``cause``; the
        last two may be absent
    time_unit : ms, s, min, h or d where times are numbers; time stamps are ISO 8601
    n_nodes : nodes observed, also those that never failed; default: those that the file names
    period : observed from and to, written as in the file; default: from the first start to the
        last instant that the file names

    Returns
    -------
    Outages of the period. Rows that say the same twice count once; an empty end means that the
    node was still down at the end of the period.

    Raises
    ------
    TraceError
        with file and line, for anything that can't be read.
    """
    path = Path(path)
    table = _named_columns(read_csv(path), dict(columns or {}), path)
    rows = table.drop_duplicates()
    start = _times(rows["start"], time_unit, path)
    end = start._replace(hours=np.full(len(rows), np.nan))
    if "end" in rows:
        end = _times(rows["end"], time_unit, path, start)
    _check_rows(rows, start, end, path)
    from_h, to_h = _window(start, end, period, time_unit, path)
    inside = (start.hours < to_h) if period[1] is not None else np.ones(len(rows), dtype=bool)
    names, node = np.unique(rows["node"].str.strip().to_numpy(dtype=str), return_inverse=True)
    cause = rows["cause"].fillna("") if "cause" in rows else pd.Series("", index=rows.index)
    outages = outages_of(
        node[inside].astype(np.int64),
        start.hours[inside] - from_h,
        end.hours[inside] - from_h,
        tuple(cause[inside]),
        n_nodes=n_observed(n_nodes, len(names), path),
        window_h=to_h - from_h,
        origin=_written(from_h, start),
        node_names=tuple(names.tolist()),
        notes=_notes(len(table) - len(rows), int(np.isnan(end.hours).sum())),
    )
    return checked(outages, path)


def _named_columns(table: pd.DataFrame, columns: dict[str, str], path: Path) -> pd.DataFrame:
    """The columns that are there, under our names."""
    if unknown := sorted(set(columns) - set(COLUMNS)):
        message = f"there is no such column; known are {', '.join(COLUMNS)}"
        raise trace_error(path, None, message, f"columns.{unknown[0]}")
    found = {}
    for ours in COLUMNS:
        theirs = columns.get(ours, ours)
        if theirs in table:
            found[theirs] = ours
        elif ours not in OPTIONAL or ours in columns:
            near = get_close_matches(theirs, [str(name) for name in table.columns], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            there = ", ".join(str(name) for name in table.columns)
            message = f"there is no column {theirs!r}{hint} (there are: {there})"
            raise trace_error(path, 1, message, ours)
    return table[list(found)].rename(columns=found)


def _check_rows(rows: pd.DataFrame, start: _Times, end: _Times, path: Path) -> None:
    nameless = (rows["node"].fillna("").str.strip() == "").to_numpy()
    no_row_where(nameless, rows, path, "node", "the row names no node")
    no_row_where(np.isnan(start.hours), rows, path, "start", "the outage has no start")
    before = end.hours < start.hours
    no_row_where(before, rows, path, "end", "{value} ends the outage before it begins")


def _window(
    start: _Times, end: _Times, period: Period, time_unit: str | None, path: Path
) -> tuple[float, float]:
    """Where the observation begins and ends, in hours as in the columns."""
    from_h = float(np.nanmin(start.hours))
    to_h = float(np.nanmax(np.append(start.hours, end.hours)))
    if period[0] is not None:
        from_h = _instant(period[0], time_unit, path, start)
    if period[1] is not None:
        to_h = _instant(period[1], time_unit, path, start)
    if from_h > to_h or (from_h == to_h and period != (None, None)):
        raise trace_error(
            path, None, "the period ends before it begins, or before the log", "period"
        )
    return from_h, to_h


def _instant(instant: Instant, time_unit: str | None, path: Path, like: _Times) -> float:
    """One end of the period, read as the column of starts is."""
    cell = pd.Series([str(instant)], name="period", index=[-FIRST_ROW])
    if like.dated and like.zoned and not ZONE.search(str(instant)):
        cell += "T00:00Z" if ":" not in str(instant) else "Z"
    return float(_times(cell, time_unit, path, like).hours[0])


def _times(
    column: pd.Series[str], time_unit: str | None, path: Path, like: _Times | None = None
) -> _Times:
    """Hours of a text column: all of it numbers, or all of it time stamps of one kind."""
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
        message = f"the times are numbers: say in which unit ({known}), not {time_unit!r}"
        raise trace_error(path, FIRST_ROW, message, "time_unit")
    return _Times(np.asarray(numbers * HOURS[time_unit], dtype=np.float64), dated=False)


def _stamps(text: pd.Series[str], empty: Bools, path: Path, like: _Times | None) -> _Times:
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
    return _Times(np.asarray(hours, dtype=np.float64), dated=True, zoned=zoned)


def _written(from_h: float, like: _Times) -> str:
    if not like.dated:
        return f"{from_h:g} h"
    return pd.Timestamp(from_h * 3600, unit="s").round("s").isoformat()


def _notes(n_twice: int, n_endless: int) -> tuple[str, ...]:
    notes = {"row(s) said twice, counted once": n_twice, "outage(s) without an end": n_endless}
    return tuple(f"{n} {what}" for what, n in notes.items() if n)
