"""Reader of a CSV with a row per outage, whoever wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.reading import (
    FIRST_ROW,
    Instant,
    Period,
    checked,
    n_observed,
    named_columns,
    no_row_where,
    read_csv,
    trace_error,
)
from cprsim.failures.traces.times import ZONE, Times, read_times

COLUMNS = ("node", "start", "end", "cause")
OPTIONAL = {"end", "cause"}


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
    table = named_columns(read_csv(path), columns or {}, path, COLUMNS, OPTIONAL)
    rows = table.drop_duplicates()
    start = read_times(rows["start"], time_unit, path)
    end = start._replace(hours=np.full(len(rows), np.nan))
    if "end" in rows:
        end = read_times(rows["end"], time_unit, path, start)
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


def _check_rows(rows: pd.DataFrame, start: Times, end: Times, path: Path) -> None:
    nameless = (rows["node"].fillna("").str.strip() == "").to_numpy()
    no_row_where(nameless, rows, path, "node", "the row names no node")
    no_row_where(np.isnan(start.hours), rows, path, "start", "the outage has no start")
    before = end.hours < start.hours
    no_row_where(before, rows, path, "end", "{value} ends the outage before it begins")


def _window(
    start: Times, end: Times, period: Period, time_unit: str | None, path: Path
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


def _instant(instant: Instant, time_unit: str | None, path: Path, like: Times) -> float:
    """One end of the period, read as the column of starts is."""
    cell = pd.Series([str(instant)], name="period", index=[-FIRST_ROW])
    if like.dated and like.zoned and not ZONE.search(str(instant)):
        cell += "T00:00Z" if ":" not in str(instant) else "Z"
    return float(read_times(cell, time_unit, path, like).hours[0])


def _written(from_h: float, like: Times) -> str:
    if not like.dated:
        return f"{from_h:g} h"
    return pd.Timestamp(from_h * 3600, unit="s").round("s").isoformat()


def _notes(n_twice: int, n_endless: int) -> tuple[str, ...]:
    notes = {"row(s) said twice, counted once": n_twice, "outage(s) without an end": n_endless}
    return tuple(f"{n} {what}" for what, n in notes.items() if n)
