"""What readers make: a frame with a row per outage, and of that the log."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.outages import Causes, Outages, outages_of
from cprsim.failures.traces.asked import Instant, LogOptions, Period
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.reading import FIRST_ROW, no_row_where
from cprsim.failures.traces.times import Times, date_h, read_times, written
from cprsim.records import Floats, Ints

LONGEST_WINDOW_H = 2e6  # over two hundred years: no cluster lasts that long
MOST_NODES = 10_000_000
BEGIN, END, NEITHER = 1, 0, -1  # what a row says of an outage of its node


@dataclass(frozen=True, slots=True)
class Log:
    """Outages as a file says them.

    Parameters
    ----------
    rows : node and cause (texts, or categories of them), start and end [h of the file's clock], NaN
        for no end; its index is the line less `FIRST_ROW`
    counted : what is to be said, with how often
    points : whether outages without an end are instants; otherwise the node was down until its next
        failure
    times : how instants are written; None: as dates
    watched : begin and end of the observation [h] where the file says them
    nodes : names of nodes, also of those that never failed; empty where the file does not say them
    notes : what else is to be said
    """

    rows: pd.DataFrame
    counted: Counter[str]
    points: bool
    times: Times | None = None
    watched: tuple[float | None, float | None] = (None, None)
    nodes: frozenset[str] = frozenset()
    notes: tuple[str, ...] = field(default=())

    @property
    def dated(self) -> bool:
        """Whether hours count from 1970."""
        return self.times is None or self.times.dated or self.times.since_1970


def outages(path: Path, log: Log, asked: LogOptions) -> Outages:
    """The outages of the period. What is left out, closed, assumed or merged is counted.

    Raises TraceError where there is no outage in the period, or one ends before it begins.
    """
    rows = log.rows
    if rows.empty:
        raise trace_error(path, None, "holds no failure of a node")
    backwards = (rows["end"] < rows["start"]).to_numpy(dtype=bool)
    no_row_where(
        backwards, rows["node"], path, "end", "the outage of {value} ends before it begins"
    )
    from_h, to_h = _window(path, log, asked)
    node, names = numbered(rows["node"], log.nodes)
    if asked.period[1] is not None:
        early = (rows["start"] < to_h).to_numpy(dtype=bool)
        log.counted["outage(s) from the end of the period on left out"] += int((~early).sum())
        rows, node = rows[early], node[early]
    causes = Causes(*numbered(rows["cause"]))
    known = _known(log, asked)
    n_known = asked.n_nodes or (len(names) if log.nodes else None)
    none_lasts_h = 0.0 if log.points else None
    found = outages_of(
        node,
        rows["start"].to_numpy() - from_h,
        rows["end"].to_numpy() - from_h,
        causes,
        n_nodes=n_observed(asked.n_nodes, len(names), path),
        window_h=to_h - from_h,
        origin=written(from_h) if log.dated else f"{from_h:g} h",
        node_names=names,
        window_given=(known[0] is not None, known[1] is not None),
        unended_h=none_lasts_h if asked.repair_h is None else asked.repair_h,
        notes=(
            *guesses(n_known, known),
            *log.notes,
            *(f"{n} {what}" for what, n in log.counted.items() if n),
        ),
    )
    return checked(found, path)


def numbered(
    texts: pd.Series[str], more: frozenset[str] = frozenset()
) -> tuple[Ints, tuple[str, ...]]:
    """Each text (n,) as its place in all of them in order, and these; `more` are among them."""
    found = texts.astype("category").cat.remove_unused_categories()
    names = sorted({*found.cat.categories, *more})
    codes = found.cat.set_categories(names).cat.codes
    return np.asarray(codes, dtype=np.int64), tuple(names)


def paired(unit: Ints, at_h: Floats, state: Ints) -> tuple[Ints, Floats]:
    """Outages from rows that say from when on something was down, or up.

    Returns the rows that begin an outage of what was up, (n_outages,), and the instant at which its
    next row ends it [h], NaN where there is none.
    """
    order = np.lexsort((state, at_h, unit))  # at one instant an end comes first
    order = order[state[order] != NEITHER]
    by_unit, begins = unit[order], state[order] == BEGIN
    first = np.append(True, by_unit[1:] != by_unit[:-1])
    changes = np.where(first, begins, np.append(True, begins[1:] != begins[:-1]))
    order = order[changes]
    at = np.flatnonzero(state[order] == BEGIN)
    follows = np.append(order, order[:1])[at + 1]
    ended = (at + 1 < len(order)) & (unit[follows] == unit[order[at]]) & (state[follows] == END)
    return order[at], np.where(ended, at_h[follows], np.nan)


# -------------------------------------------------------------------------------------- the window


def _known(log: Log, asked: LogOptions) -> Period:
    """Begin and end of the observation where the user or the file says them."""
    first, last = (
        said if said is not None else of_file
        for said, of_file in zip(asked.period, log.watched, strict=True)
    )
    return first, last


def _window(path: Path, log: Log, asked: LogOptions) -> tuple[float, float]:
    """Begin and end of the observation [h of the file's clock]."""
    start_h, end_h = log.rows["start"], log.rows["end"]
    from_h, to_h = float(start_h.min()), float(np.fmax(start_h.max(), end_h.max()))
    first, last = log.watched
    from_h, to_h = from_h if first is None else first, to_h if last is None else last
    if asked.period[0] is not None:
        from_h = _instant_h(asked.period[0], log, asked, path)
    if asked.period[1] is not None:
        to_h = _instant_h(asked.period[1], log, asked, path)
    if from_h > to_h or (from_h == to_h and asked.period != (None, None)):
        message = "the period ends before it begins, or before the log"
        raise trace_error(path, None, message, "period")
    return from_h, to_h


def _instant_h(instant: Instant, log: Log, asked: LogOptions, path: Path) -> float:
    """One end of the period: a number as the file has them, or an ISO 8601 date."""
    text, times = str(instant), log.times
    is_date = re.match(r"\d{4}-\d\d-\d\d", text) is not None
    if times is None or times.dated or (times.since_1970 and is_date):
        return date_h(text, path, asked.tz)
    cell = pd.Series([text], name="period", index=[-FIRST_ROW])
    return float(read_times(cell, asked.time_unit, path, times).hours[0])


def guesses(n_nodes: int | None, period: Period) -> tuple[str, ...]:
    """What was taken from the log itself as nobody said it."""
    notes = []
    if None in period:
        notes.append("no whole period given: the log's own first start or last instant bounds it")
    if n_nodes is None:
        notes.append("no number of nodes given: those that never failed are not counted")
    return tuple(notes)


def n_observed(given: int | None, named: int, path: Path) -> int:
    """Nodes observed; raises TraceError where fewer are given than the file names."""
    if given is None:
        return named
    if not 1 <= given <= MOST_NODES:
        raise trace_error(path, None, f"{given:,} nodes can't be observed", "nodes")
    if given < named:
        raise trace_error(path, None, f"{given} nodes given, but the file names {named}", "nodes")
    return given


def checked(found: Outages, path: Path) -> Outages:
    """Raise TraceError where no outage begins within the period, or the period is absurd."""
    if found.window_h > LONGEST_WINDOW_H:
        message = (
            f"the log spans {found.window_h:.3g} h: are its times in another unit? Or is one of "
            "them far off?"
        )
        raise trace_error(path, None, message, "time_unit")
    if not found.in_window.any():
        raise trace_error(path, None, "no outage begins within the period", "period")
    return found
