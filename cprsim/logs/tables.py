"""Tables with a row per outage, or per change of a node's state, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Counted, Note, n_rows, notes_of
from cprsim.job.records import Floats
from cprsim.logs.columns import (
    BETWEEN,
    FEW,
    MOST_LISTED,
    columns_of,
    forms_of,
    how_read,
    meanings,
    not_read,
    plain,
    require_no_jobs,
    signed,
    states,
    unit_of,
)
from cprsim.logs.files import trace_error
from cprsim.logs.log import MOSTLY, Log
from cprsim.logs.names import one_node_each, spellings
from cprsim.logs.node_file import dates_of, node_columns
from cprsim.logs.reading import no_row_where
from cprsim.logs.spec import NODE_COLUMNS, UNKNOWN_WORDS, LogSpec
from cprsim.logs.states import END, NEITHER, NO_STATE, outages_of_states, watch
from cprsim.logs.times import DAY, DAY_H, MANY, Times, read_lengths, read_times, resolution_h

NO_END = UNKNOWN_WORDS - {""} | {
    "ongoing", "open", "still down", "not yet", "present", "active", "pending", "offen", "laufend",
    "in progress", "#n/a",
}  # fmt: skip
NO_TIME = r"\D+|0000-00-00.*"  # words, or the zero of MySQL
ZERO_H = 24.0  # since 1970: what programs write that have no end
SAME_H = 1 / 60
NEVER_H = 70_380_768.0  # the year 9999: the same
AT_LAST = "outage(s) of several days that end at the last instant of the log: under way still"
MOVED = "local time(s) that summer time skips or repeats, taken as the earliest they can be"


def read_table(
    path: PathLike[str], spec: LogSpec, pieces: Callable[[PathLike[str]], Iterator[pd.DataFrame]]
) -> Log:
    """Outages from a table: node, start, end (or duration, or state), cause.

    A time stamp from the year 9999 on is no end. An outage of which
    no end is known lasts to the next failure of its node at most.
    """
    table = _Table(path, spec)
    return table.log([table.rows_of(piece) for piece in pieces(path)])


def without_ignored(
    table: pd.DataFrame, ignored: Sequence[str], path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """The table without the columns, and the rows with the words, that ``--ignore`` names."""
    for text in ignored:
        name, sign, words = (text, "", "") if text in table else text.partition("=")
        if name not in table:
            raise trace_error(path, 1, f"there is no column {one_line(name)!r}", "ignore")
        if not sign:
            table = table.drop(columns=name)
            continue
        out = table[name].map(plain).isin([plain(word) for word in words.split(",")])
        counted["no_failure", f"row(s) left out by --ignore {one_line(text)}"] += int(out.sum())
        table = table[~out]
    return table


@dataclass(slots=True)
class _Table:
    """A table that is read in pieces, with the findings of the pieces before."""

    path: PathLike[str]
    spec: LogSpec
    counted: Counted = field(default_factory=Counted)
    columns: dict[str, str] = field(default_factory=dict)  # its names, by ours
    times: Times | None = None  # how instants are written
    known_to_h: float = np.inf  # what instants are known to
    said: dict[str, int] = field(default_factory=dict)  # by word of the column of states
    parts: set[str] = field(default_factory=set)  # columns that are joined
    unread: list[str] = field(default_factory=list)
    dates: list[pd.DataFrame] = field(default_factory=list)  # of nodes, as texts

    def rows_of(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows of a piece: node, start, end [h], cause, and perhaps state."""
        spec, path = self.spec, self.path
        table = self._with_joined(without_ignored(table, spec.ignored, path, self.counted))
        if not self.columns:
            require_no_jobs(table, path, spec)
            self.columns = columns_of(table, spec, path)
        if spec.has_dates:
            self.dates.append(node_columns(table, spec, path))
        if (table[self.columns["node"]] != spec.node).any():
            table = one_node_each(table, self.columns["node"], path, self.counted)
        if table.empty:
            return pd.DataFrame()
        node, start = self._cells(table, "node").str.strip(), self._cells(table, "start")
        no_row_where(node.fillna("") == "", node, path, "node", "the row names no node")
        times = self._instants(start)
        way = f"--ignore {quote(self.columns['start'].rpartition('+')[2])}= leaves such rows out"
        no_row_where(np.isnan(times.hours), node, path, "start", f"{{value}} has no start: {way}")
        if times.unit and not times.since_1970 and BETWEEN.search(name := self.columns["start"]):
            raise trace_error(path, None, "tells times between failures: add them up", name)
        if times.dated:
            self.known_to_h = min(
                self.known_to_h, resolution_h(start, spec.date_format, times.hours)
            )
        self.times = self.times or times._replace(hours=times.hours[:0])
        rows = pd.DataFrame({
            "node": pd.Categorical(node),
            "start": times.hours,
            "end": self._ends_h(table, times.hours),
            "cause": pd.Categorical(self._cells(table, "cause").fillna("")),
        }, index=table.index)  # fmt: skip
        if "state" in self.columns:
            of_state = self._cells(table, "state").rename(self.columns["state"])
            self.said |= meanings(of_state, spec)
            rows = rows.assign(state=states(of_state, self.said, path))
            self.counted["dropped", NO_STATE] += int(of_state.isna().sum())
        read = {*self.columns.values()} | self.parts
        read |= {spec.names.get(one, one) for one in NODE_COLUMNS if spec.has_dates}
        self.unread = not_read(table, rows, read, spec, path)
        return rows

    def log(self, pieces: list[pd.DataFrame]) -> Log:
        """The log of all rows."""
        path, spec, times = self.path, self.spec, self.times
        pieces = [rows for rows in pieces if len(rows)]
        if times is None:
            raise trace_error(path, None, "holds no row with a node")
        there = set[str]().union(*map(forms_of, self.said))
        if self.said and (wrong := {*map(signed, spec.down_words)} - there):
            message = f"no row has {', '.join(sorted(wrong))!r}; there are: {', '.join(self.said)}"
            raise trace_error(path, None, message, "down")
        rows, known_to_h = _joined(pieces), self.known_to_h if times.dated else 0.0
        at_last = rows["end"] == rows["end"].max()
        n_days = rows["start"][at_last].floordiv(DAY_H).nunique()
        is_last = rows["end"].max() > rows["start"].max() and "state" not in rows
        if is_last and n_days > FEW and not known_to_h:  # the instant of the export is no end
            self.counted["assumed", AT_LAST] += int(at_last.sum())
            rows = rows.assign(end=rows["end"].mask(at_last), open=at_last)
        n_read = len(rows) + n_rows(notes_of(self.counted)) - self.counted["dropped", NO_STATE]
        looks = dict[str, Any]()
        if "state" in rows:
            if rows["end"].isna().all() and not (rows["state"] == END).any():
                column = self.columns["state"]
                way = f"--ignore {quote(column)} takes each row as a failure"
                way = "write a word in empty cells" if self.counted["dropped", NO_STATE] else way
                message = f"no row says that a node is up again: {way}"
                raise trace_error(path, None, message, column)
            if same := spellings(rows[rows["state"] != NEITHER], (), self.counted):
                names = rows["node"].astype(object).replace(same)
                rows = rows.assign(node=pd.Categorical(names))
            looks = watch(rows, known_to_h)
            rows = outages_of_states(rows, self.counted, are_looks="step_h" in looks)
        if self.dates and len((dates := pd.concat(self.dates).drop_duplicates()).columns) > 1:
            twice = "{value} has other dates in another row"
            looks["dates"] = dates_of(dates, path, times, spec, twice)
        return Log(
            rows, self.counted, points=not self.columns.keys() & {"end", "duration", "state"},
            states_unsaid="state" not in self.columns or not spec.down, times=times,
            notes=self._notes(times), n_read=n_read, resolution_h=known_to_h, **looks,
        )  # fmt: skip

    def _notes(self, times: Times) -> tuple[Note, ...]:
        """How times and rows are read, and which columns are not."""
        notes = [Note("read_as", None, how_read(self.columns, self.said))]
        if times.unit and self.spec.time_unit is None:
            words = f"times taken as {times.unit} since 1970, as no unit was given"
            notes.insert(0, Note("inferred", None, words))
        if unread := self.unread:
            listed = ", ".join(unread[:MOST_LISTED]) + ", ..." * (len(unread) > MOST_LISTED)
            words = f"column(s) not read as node, start, end or cause: {listed}"
            notes.append(Note("dropped", None, words))
        return tuple(notes)

    def _cells(self, table: pd.DataFrame, ours: str) -> pd.Series[str]:
        """Return a column under our name; empty if the table lacks it."""
        name = self.columns.get(ours)
        cells = table[name] if name in table else pd.Series(None, table.index, dtype=object)
        return cells.rename(ours)

    def _with_joined(self, table: pd.DataFrame) -> pd.DataFrame:
        """With columns joined of several (node=rack+slot, start=date+time), or the given node."""
        joined: dict[str, pd.Series[str]] = {}
        names = self.spec.names
        for ours, sign in (("node", "/"), ("start", " "), ("end", " ")):
            parts = (name := names.get(ours, ours)).split("+")
            if len(parts) > 1 and name not in table and set(parts) <= set(table):
                cells = table[parts].fillna("").agg(sign.join, axis=1).str.strip()
                joined[name] = cells.where(table[parts[-1]].notna() | (ours == "node"))
                self.parts |= {*parts}
        if self.spec.node is not None and "node" not in {*table, *names}:
            joined["node"] = pd.Series(self.spec.node, table.index)
        return table.assign(**joined)

    def _instants(self, cells: pd.Series[str]) -> Times:
        """Instants, written as those before."""
        spec = self.spec
        times = read_times(cells, spec.time_unit, self.path, self.times, spec.date_format, spec.tz)
        self.counted["assumed", MOVED] += times.n_moved
        return times

    def _ends_h(self, table: pd.DataFrame, start_h: Floats) -> Floats:
        """Return ends [h], missing ones by a column of durations; NaN if unknown."""
        assert self.times is not None
        end_h, like = np.full(len(table), np.nan), self.times
        if "end" in self.columns:
            cells = self._cells(table, "end")
            text = cells.fillna("").str.strip()
            none = text.str.lower().isin(NO_END).to_numpy(dtype=bool)
            words = text.str.fullmatch(NO_TIME).to_numpy(dtype=bool) & ~none
            no_row_where(words, text, self.path, "end", "{value} is no time: leave such ends empty")
            end_h = self._instants(cells.mask(none)).hours
            none = none | (like.dated & (end_h >= NEVER_H))
            none |= like.since_1970 & (end_h <= ZERO_H)
            note = "end(s) such as NULL, -, 0 or the year 9999 taken for none"
            self.counted["assumed", note] += int(none.sum())
            end_h = np.where(none, np.nan, end_h)
            known, sides = ~np.isnan(end_h) & like.dated, (self._cells(table, "start"), cells)
            days = sorted(of[known].str.strip().str.fullmatch(DAY).mean() for of in sides)
            is_short = known.sum() > FEW and (end_h - start_h)[known].mean() < 10 * DAY_H
            if self.spec.date_format is None and is_short and days[0] < MANY and days[1] == 1:
                message = "one side alone has times of day, so that lengths are wrong: --ignore "
                name = quote(self.columns["end"])
                raise trace_error(self.path, None, f"{message}{name} reads the starts", "end")
        if "duration" not in self.columns:
            return end_h
        name = self.columns["duration"]
        unit = unit_of(name) or (self.spec.time_unit if like.dated else None)
        lasted_h = read_lengths(table[name], unit, self.path)
        if len(none := table[name][lasted_h == 0]) > MOSTLY * len(table):
            option = f"--ignore {quote(f'{name}={none.iloc[0]}')}"
            message = f"{len(none)} of {len(table)} rows last no time: {option} leaves them out"
            raise trace_error(self.path, None, message, name)
        until_h = start_h + lasted_h
        apart = np.abs(until_h - end_h) > SAME_H + 0.01 * (until_h - start_h)  # one may be rounded
        no_row_where(apart, table, self.path, name, "{value} is not from the start to the end")
        return np.where(np.isnan(end_h), until_h, end_h)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """All rows, whose texts are categories."""
    texts = {
        name: pd.api.types.union_categoricals([frame.pop(name) for frame in frames])
        for name in ("node", "cause")
    }
    joined_rows = pd.concat(frames)
    frames.clear()  # so that each column is in memory once
    return joined_rows.assign(**texts)
