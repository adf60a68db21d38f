"""Reader of a CSV of how many nodes there were: nodes that leave, come back and are added.

A row per change: ``time,nodes`` says how many there are from then on, ``time,change`` how many come
(+2) or leave (-3), beginning with none. The last row ends the observation.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.reading import (
    LONGEST_WINDOW_H,
    Period,
    csv_pieces,
    n_observed,
    named_columns,
    no_row_where,
    trace_error,
)
from cprsim.failures.traces.tidy import instant_h
from cprsim.failures.traces.times import Times, read_times, written
from cprsim.records import Floats, Ints

BEFORE_H = -1.0  # start of the absence of a node that is away as the observation begins
MOST_MOVES = 10_000_000  # of single nodes


def read_counts(
    path: Path | str, *, time_unit: str | None = None, period: Period = (None, None)
) -> Outages:
    """Absences of nodes from a CSV of their number.

    Parameters
    ----------
    path : the file, with the columns ``time`` and ``nodes``, or ``time`` and ``change``
    time_unit : ms, s, min, h or d where times are numbers; time stamps are ISO 8601
    period : observed from (included) and to (excluded); default: from the first to the last row

    Returns
    -------
    Outages of as many nodes as there ever were. The file does not say which nodes leave, and who
    comes back: those that left first do. A node that is there later for the first time is away
    until then, and so begins with an outage under way.

    Raises
    ------
    TraceError
        with file and line: times that go back, numbers that are no numbers of nodes, no change.
    """
    path = Path(path)
    rows = pd.concat(list(csv_pieces(path)))
    key = "nodes" if "nodes" in rows else "change"
    rows = named_columns(rows, {}, path, ("time", key), ())
    times = read_times(rows["time"], time_unit, path)
    at_h, number = times.hours, _numbers(rows, times.hours, key, path)
    asked = LogOptions(time_unit=time_unit, period=period)
    from_h, to_h = (
        default if instant is None else instant_h(instant, asked, path, times.like())
        for instant, default in zip(period, (float(at_h[0]), float(at_h[-1])), strict=True)
    )
    _require_window(from_h, to_h, float(at_h[0]), path)
    seen = at_h < to_h
    node, start_h, end_h, n_nodes = _absences(at_h[seen] - from_h, number[seen], path)
    return outages_of(
        node,
        start_h,
        end_h,
        [""] * len(node),
        n_nodes=n_observed(None, n_nodes, path),
        window_h=to_h - from_h,
        origin=_origin(times, from_h),
        node_names=tuple(f"n{number}" for number in range(n_nodes)),
        window_given=(period[0] is not None, period[1] is not None),
        notes=("which nodes leave is not said: those come back first that left first",),
    )


def _numbers(rows: pd.DataFrame, at_h: Floats, key: str, path: Path) -> Ints:
    """How many nodes there are from each row on, (n_rows,)."""
    no_row_where(np.isnan(at_h), rows, path, "time", "the row has no time")
    back = np.append(False, np.diff(at_h) < 0)
    no_row_where(back, rows, path, "time", "{value} lies before the row above")
    numbers = pd.to_numeric(rows[key], errors="coerce").to_numpy(dtype=float)
    bad = ~np.isfinite(numbers) | (numbers != np.round(numbers)) | (np.abs(numbers) > MOST_MOVES)
    no_row_where(bad, rows, path, key, "{value} is no number of nodes")
    number = numbers.astype(np.int64) if key == "nodes" else np.cumsum(numbers.astype(np.int64))
    no_row_where(number < 0, rows, path, key, "{value} leaves fewer than no node")
    if key == "nodes":
        twice = np.append(False, np.diff(at_h) == 0)
        no_row_where(twice, rows, path, "time", "{value} is said twice: give a row per instant")
    return number


def _require_window(from_h: float, to_h: float, first_h: float, path: Path) -> None:
    if from_h < first_h:
        message = "the period begins before the first row: how many nodes were there?"
        raise trace_error(path, None, message, "period")
    if not 0 < to_h - from_h <= LONGEST_WINDOW_H:
        message = f"the observation takes {to_h - from_h:.3g} h: are the times in another unit?"
        raise trace_error(path, None, message, "period")


def _absences(at_h: Floats, number: Ints, path: Path) -> tuple[Ints, Floats, Floats, int]:
    """Node, start and end (NaN: not seen) of each absence, and how many nodes there ever were.

    Parameters
    ----------
    at_h, number : (n_rows,) how many nodes there are from an instant on, 0 the period's beginning
    """
    last = np.append(at_h[1:] != at_h[:-1], True)  # of the rows of one instant
    at_h, number = np.maximum(at_h[last], 0.0), number[last]
    last = np.append(at_h[1:] != at_h[:-1], True)  # of those up to the period's beginning
    at_h, number = at_h[last], number[last]
    most = int(number.max())
    if int(np.abs(np.diff(number)).sum()) + most > MOST_MOVES:
        raise trace_error(path, None, f"more than {MOST_MOVES:,} nodes come and leave", "nodes")
    if most == int(number.min()):
        raise trace_error(path, None, f"there are {most} nodes all the time: nothing to replay")
    here = list(range(int(number[0])))
    away = deque((node, BEFORE_H) for node in range(int(number[0]), most))
    rows: list[tuple[int, float, float]] = []
    for now_h, there in zip(at_h[1:].tolist(), number[1:].tolist(), strict=True):
        while len(here) > there:
            away.append((here.pop(), now_h))
        while len(here) < there:
            node, since_h = away.popleft()
            rows.append((node, since_h, now_h))
            here.append(node)
    rows += [(node, since_h, float("nan")) for node, since_h in away]
    nodes, start_h, end_h = (np.array(column) for column in zip(*rows, strict=True))
    return nodes.astype(np.int64), start_h.astype(float), end_h.astype(float), most


def _origin(times: Times, from_h: float) -> str:
    return written(from_h) if times.dated or times.since_1970 else f"{from_h:g} h"
