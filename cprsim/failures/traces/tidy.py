"""Reader of a CSV with a row per outage, whoever wrote it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.budget import how_to_raise, memory_bytes
from cprsim.errors import BudgetError, ParameterError
from cprsim.failures.outages import Causes, Outages, outages_of
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.bounded import BYTES_PER_ROW
from cprsim.failures.traces.other_columns import (
    NEITHER,
    alike,
    ends_told,
    not_read,
    outages_between,
    require_no_matrix,
    require_whole_instants,
    states,
    unit_of,
)
from cprsim.failures.traces.reading import (
    FIRST_ROW,
    Instant,
    checked,
    guesses,
    n_observed,
    named_columns,
    no_row_where,
    trace_error,
)
from cprsim.failures.traces.slurm import expanded
from cprsim.failures.traces.times import (
    NEVER_H,
    Style,
    Times,
    date_h,
    read_lengths,
    read_times,
    written,
)
from cprsim.foreign import one_line
from cprsim.records import Bools, Floats, Ints

# ----------------------------------------------------------------------------------- rows as arrays

NAMES_OF_MEMORY = 1 / 4  # that the different texts of one column may take
BYTES_PER_NAME = 200  # of a text as an object, in a table and in its list, less its characters


class TextNumbers:
    """The different texts of one column, numbered as they come."""

    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key
        self._number: dict[str, int] = {}
        self._n_bytes = 0
        self._most_bytes = NAMES_OF_MEMORY * memory_bytes()

    def numbers(self, column: pd.Series[str]) -> Ints:
        """The number of each cell's text, (n_rows,). Raises BudgetError for too many texts."""
        place, found = pd.factorize(column)
        numbers = np.array([self._number_of(text) for text in found], dtype=np.int64)
        return np.asarray(numbers[place], dtype=np.int64)

    def _number_of(self, text: str) -> int:
        number = self._number.setdefault(text, len(self._number))
        if number == len(self._number) - 1:
            self._n_bytes += BYTES_PER_NAME + len(text)
            if self._n_bytes > self._most_bytes:
                message = f"more than {len(self._number):,} different texts: {how_to_raise()}"
                raise BudgetError(f"{self._path}: {self._key}: {message}")
        return number

    def in_order(self, numbers: Ints) -> tuple[Ints, tuple[str, ...]]:
        """The numbers (n_rows,) as places in the sorted texts of those rows, and these texts."""
        used = np.unique(numbers)
        texts = list(self._number)
        names = sorted(texts[number] for number in used.tolist())
        place = np.zeros(len(self._number), dtype=np.int64)
        place[[self._number[name] for name in names]] = np.arange(len(names))
        return place[numbers], tuple(names)


# --------------------------------------------------------------------------------------- the reader

COLUMNS = ("node", "start", "end", "cause")
OPTIONAL = {"end", "cause"}
TABLE_OPTIONS = frozenset(
    {"--from and --to", "--column", "--time-unit", "--date-format", "--tz", "--repair"}
)
NO_END = frozenset("- -- null none nil nat n/a unknown ongoing open now".split())  # noqa: SIM905 - words
ZERO_H = 24.0  # since 1970: what programs write that have no end
TWICE = "local time(s) in an hour that occurs twice, taken as the first unless that ends too early"


class _LogRows(NamedTuple):
    """The rows of a log, or of a piece of it, as arrays; each (n_rows,)."""

    node: Ints  # number of a name
    start_h: Floats
    end_h: Floats  # NaN where there is none
    cause: Ints  # number of a name
    state: Ints  # what the row says of its node; (0,) where rows are outages

    def taken(self, index: Ints | Bools) -> _LogRows:
        """The rows of these numbers, or that a mask (n_rows,) keeps."""
        return _LogRows(
            self.node[index],
            self.start_h[index],
            self.end_h[index],
            self.cause[index],
            self.state[index] if len(self.state) else self.state,
        )


def read_table(
    path: Path, asked: LogOptions, pieces: Callable[[Path], Iterator[pd.DataFrame]]
) -> Outages:
    """Outages from a table with a row per outage: node, start, end, cause.

    Parameters
    ----------
    path : the file
    asked : what the user says of it; names of columns where they are others (the last two may be
        absent), and how long outages last of which the file names no end [h]: else, where there is
        no column of ends, they have no length; where there is one and its cell is empty, the node
        was down until its next failure, or still at the end of the period
    pieces : makes tables of text of it, one after the other

    Returns
    -------
    Outages of the period. A time stamp from the year 9999 on is no end. An outage of which no end
    is known lasts to the next failure of its node at most. What was left out, closed, assumed or
    merged is counted in the notes.

    Raises
    ------
    TraceError
        with file and line, for anything that can't be read.
    BudgetError
        for a log of more rows, nodes or causes than the memory budget allows.
    """
    nodes, causes = TextNumbers(path, "node"), TextNumbers(path, "cause")
    n_nodes, period, repair_h = asked.n_nodes, asked.period, asked.repair_h
    rows, like, has_ends, counted, notes_of_ends = _read(pieces(path), path, asked, nodes, causes)
    rows = _paired(rows, counted, path)
    from_h, to_h = _window(rows, asked, path, like)
    node, node_names = nodes.in_order(rows.node)
    late = rows.start_h >= to_h if period[1] is not None else np.zeros(len(node), dtype=bool)
    if n_late := int(late.sum()):
        rows, node = rows.taken(~late), node[~late]
    start_h, end_h, causes_of = rows.start_h - from_h, rows.end_h - from_h, rows.cause
    del rows, late  # long columns, each in memory once
    outages = outages_of(
        node,
        start_h,
        end_h,
        Causes(*causes.in_order(causes_of)),
        n_nodes=n_observed(n_nodes, len(node_names), path),
        window_h=to_h - from_h,
        origin=written(from_h) if like.dated or like.since_1970 else f"{from_h:g} h",
        node_names=node_names,
        window_given=(period[0] is not None, period[1] is not None),
        unended_h=repair_h if has_ends or repair_h is not None else 0.0,
        notes=guesses(n_nodes, period)
        + _of_times(like, asked)
        + notes_of_ends
        + alike(node_names)
        + _notes(
            {
                "outage(s) from the end of the period on left out": n_late,
                **counted,
            }
        ),
    )
    return checked(outages, path)


def _read(
    pieces: Iterator[pd.DataFrame],
    path: Path,
    asked: LogOptions,
    nodes: TextNumbers,
    causes: TextNumbers,
) -> tuple[_LogRows, Times, bool, Counter[str], tuple[str, ...]]:
    """All rows; how times are written; whether ends are told; what is counted; what is said."""
    read: list[_LogRows] = []
    like: Times | None = None
    columns: dict[str, str] | None = None
    state: str | None = None
    has_ends, counted = False, Counter[str]()
    said: tuple[str, ...] = ()
    for table in pieces:
        if columns is None:
            require_no_matrix(table, asked.columns, path)
            ends = ends_told(table, asked.columns)
            state = ends.pop("state", None)  # which may be the column of causes too
            columns = {name: asked.columns[name] for name in asked.columns if name != "state"}
            columns |= ends
        table = _one_node_each(table, columns.get("node", "node"), path, counted)
        rows = named_columns(table, columns, path, (*COLUMNS, *ends), OPTIONAL)
        theirs = {name: columns.get(name, name) for name in map(str, rows)}
        if state is not None:
            theirs["state"] = named_columns(table, {}, path, (state,), ()).columns[0]
        has_ends = not {"end", "duration", "state"}.isdisjoint(theirs)
        if rows.empty:
            continue
        if like is None:
            said = (*_of_ends(theirs), *not_read(table, theirs))
        start = _times(rows["start"], asked, path, like, theirs["start"])
        if like is None:
            require_whole_instants(table, theirs, start, path)
            said = (*_of_unit(start, theirs, asked, path), *said)
        like = like or start.like()
        counted["local time(s) that summer time skips, taken as when it did"] += start.n_skipped
        counted[TWICE] += start.n_twice
        end_h = _ends_h(rows, start.hours, like, asked, path, counted, theirs)
        _check_rows(rows, start.hours, end_h, path)
        cause = rows["cause"].fillna("") if "cause" in rows else pd.Series("", index=rows.index)
        read.append(
            _LogRows(
                nodes.numbers(rows["node"].str.strip()),
                start.hours,
                end_h,
                causes.numbers(cause),
                NO_STATES if state is None else states(table[state]),
            )
        )
    if like is None:
        raise trace_error(path, None, "holds no row")
    return _joined(read), like, has_ends, counted, said


NO_STATES = np.zeros(0, dtype=np.int64)
LIST_OF_NODES = r"^[^\s\[\],]*(?:\[[\d,-]+\][^\s\[\],]*|, ?[^\s\[\],]+)+$"  # gpu[01-16], or a,b


def _one_node_each(
    table: pd.DataFrame, column: str, path: Path, counted: Counter[str]
) -> pd.DataFrame:
    """The rows, those whose cell names several nodes once for each."""
    if column not in table:
        return table
    found = pc.match_substring_regex(pa.array(table[column], type=pa.large_string()), r"[\[,]")
    several = pd.Series(found.fill_null(False).to_pandas().to_numpy(dtype=bool), table.index)
    if not several.any():
        return table
    several &= table[column].str.match(LIST_OF_NODES, na=False)
    if not several.any():
        return table
    counted["row(s) that name several nodes, an outage of each"] += int(several.sum())
    names = [_nodes_of(cell, row, path, column) for row, cell in table.loc[several, column].items()]
    if len(table) + sum(map(len, names)) > (most := int(memory_bytes() / BYTES_PER_ROW)):
        raise BudgetError(f"{path}: {column}: more than {most:,} outages: {how_to_raise()}")
    lists = table[column].astype(object)
    lists[several] = pd.Series(names, index=lists.index[several], dtype=object)
    return table.assign(**{column: lists}).explode(column)


def _nodes_of(cell: str, row: Any, path: Path, column: str) -> list[str]:
    try:
        return expanded(cell)
    except ParameterError as error:
        raise trace_error(path, int(row) + FIRST_ROW, str(error), column) from None


def _of_ends(ends: Mapping[str, str]) -> tuple[str, ...]:
    """From which column ends are known, where none is called so."""
    said = {
        "duration": "outages last as the column '{}' says",
        "state": "a node is down from a row to its next, as the column '{}' says",
    }
    return tuple(said[name].format(one_line(ends[name])) for name in said if name in ends)


def _paired(rows: _LogRows, counted: Counter[str], path: Path) -> _LogRows:
    """Outages of rows that say from when on a node was down, or up."""
    if not len(rows.state):
        return rows
    begin, end_h = outages_between(rows.node, rows.start_h, rows.state)
    if not len(begin):
        raise trace_error(path, None, "no row says that a node went down", "state")
    n_other = int((rows.state == NEITHER).sum())
    counted["row(s) left out that say neither that a node is down nor that it is up"] += n_other
    n_idle = len(rows.state) - n_other - len(begin) - int(np.isfinite(end_h).sum())
    counted["row(s) left out as the node was down, or up, already"] += n_idle
    kept = rows._replace(state=NO_STATES).taken(begin)
    return kept._replace(end_h=end_h)


def _times(
    column: pd.Series[str], asked: LogOptions, path: Path, like: Times | None, named: str = ""
) -> Times:
    unit = asked.time_unit or unit_of(named)
    return read_times(column, unit, path, like, Style(asked.date_format, asked.tz))


def _of_unit(
    start: Times, theirs: Mapping[str, str], asked: LogOptions, path: Path
) -> tuple[str, ...]:
    """That the unit of numbers is in their column's name.

    Raises TraceError where the names, or a name and the user, say two different ones.
    """
    named = [(theirs[name], unit_of(theirs[name])) for name in ("start", "end") if name in theirs]
    named = [(name, unit) for name, unit in named if unit is not None]
    if start.dated or not named or start.since_1970:
        return ()
    for name, unit in named:
        if unit != start.unit:
            message = (
                f"times would be read in {start.unit}, but are in {unit} by the name of the "
                f"column '{one_line(name)}': rename it, or change the unit"
            )
            raise trace_error(path, 1, message, "time_unit")
    if asked.time_unit is not None:
        return ()
    return (f"times taken in {start.unit}, as the column '{one_line(named[0][0])}' says",)


def _ends_h(
    rows: pd.DataFrame,
    start_h: Floats,
    like: Times,
    asked: LogOptions,
    path: Path,
    said: Counter[str],
    theirs: Mapping[str, str],
) -> Floats:
    """Ends [h], NaN where there is none; what the year 9999 and summer time did is counted."""
    if "duration" in rows:
        unit = unit_of(theirs["duration"]) or asked.time_unit
        lasted_h = read_lengths(rows["duration"].rename(theirs["duration"]), unit, path)
        return np.asarray(start_h + lasted_h, dtype=np.float64)
    if "end" not in rows:
        return np.full(len(rows), np.nan)
    none = rows["end"].str.strip().str.lower().isin(NO_END)
    said["end(s) such as NULL or - taken for none"] += int(none.sum())
    ends = _times(rows["end"].mask(none), asked, path, like)
    end_h = ends.hours
    never = like.dated & (end_h >= NEVER_H)
    said["end(s) in the year 9999 taken for none"] += int(never.sum())
    zero = (like.dated | like.since_1970) & (end_h <= ZERO_H)
    said["end(s) such as 0, 1970-01-01 or the year 1 taken for none"] += int(zero.sum())
    said["local time(s) that summer time skips, taken as when it did"] += ends.n_skipped
    said[TWICE] += ends.n_twice
    if ends.later_h is not None:  # an end in the second of two hours, as its start is later
        end_h = np.where((end_h < start_h) & np.isfinite(ends.later_h), ends.later_h, end_h)
    return np.where(never | zero, np.nan, end_h)


def _of_times(like: Times, asked: LogOptions) -> tuple[str, ...]:
    """How times were read, where nobody said so."""
    notes = []
    if like.guessed:
        notes.append(f"times taken as {like.unit} since 1970, as no unit was given")
    if like.comma:
        notes.append("numbers read with a decimal comma")
    if like.form and not asked.date_format:
        notes.append(f"dates read in the form {like.form}")
    if asked.tz and like.zoned:
        notes.append(f"the time stamps name their zones: --tz {asked.tz} was not needed")
    return tuple(notes)


def _joined(pieces: list[_LogRows]) -> _LogRows:
    """All pieces as one."""
    columns = [list(column) for column in zip(*pieces, strict=True)]
    pieces.clear()  # so that each column is in memory once
    whole = []
    while columns:
        whole.append(np.concatenate(columns.pop(0)))
    return _LogRows(*whole)


def _check_rows(rows: pd.DataFrame, start_h: Floats, end_h: Floats, path: Path) -> None:
    nameless = (rows["node"].fillna("").str.strip() == "").to_numpy(dtype=bool)
    no_row_where(nameless, rows, path, "node", "the row names no node")
    no_row_where(np.isnan(start_h), rows, path, "start", "the outage has no start")
    before = end_h < start_h
    end_column = "end" if "end" in rows else "duration"
    no_row_where(before, rows, path, end_column, "{value} ends the outage before it begins")


def _window(rows: _LogRows, asked: LogOptions, path: Path, like: Times) -> tuple[float, float]:
    """Where the observation begins and ends, in hours as in the columns."""
    period = asked.period
    from_h = float(rows.start_h.min())
    to_h = float(np.nanmax([rows.start_h.max(), np.fmax.reduce(rows.end_h)]))
    if period[0] is not None:
        from_h = instant_h(period[0], asked, path, like)
    if period[1] is not None:
        to_h = instant_h(period[1], asked, path, like)
    if from_h > to_h or (from_h == to_h and period != (None, None)):
        raise trace_error(
            path, None, "the period ends before it begins, or before the log", "period"
        )
    return from_h, to_h


def instant_h(instant: Instant, asked: LogOptions, path: Path, like: Times) -> float:
    """One end of the period, read as the column of starts is; dates are ISO 8601 in any case."""
    text = str(instant)
    dated = like.dated or (like.since_1970 and re.match(r"\d{4}-\d\d-\d\d", text) is not None)
    if not dated:
        cell = pd.Series([text], name="period", index=[-FIRST_ROW])
        return float(_times(cell, asked, path, like).hours[0])
    return date_h(text, path, asked.tz)


def _notes(counted: Mapping[str, int]) -> tuple[str, ...]:
    return tuple(f"{n} {what}" for what, n in counted.items() if n)
