"""Tables with a row per outage, or per change of a node's state, whoever wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from os import PathLike

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.errors import one_line
from cprsim.failures.outages import Counted, Note
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, paired
from cprsim.failures.traces.node_file import dates_of, node_columns
from cprsim.failures.traces.reading import named_columns, no_row_where
from cprsim.failures.traces.slurm import node_lists
from cprsim.failures.traces.spec import COLUMNS, NODE_COLUMNS, OTHERS, LogSpec
from cprsim.failures.traces.times import Times, read_lengths, read_times
from cprsim.records import Floats, Ints

OPTIONAL = {"end", "cause"}
NO_END = {"-", "--", "null", "none", "nan", "nat", "n/a", "unknown"}
ZERO_H = 24.0  # since 1970: what programs write that have no end
NEVER_H = 70_380_768.0  # the year 9999: the same
LIST_OF_NODES = r"^[^\s\[\],]*(?:\[[\d,-]+\][^\s\[\],]*|, ?[^\s\[\],]+)+$"  # gpu[01-16], or a,b
TWICE = "local time(s) in an hour that occurs twice, taken as the first unless that ends too early"
SKIPPED = "local time(s) that summer time skips, taken as when it did"


def read_table(
    path: PathLike[str], spec: LogSpec, pieces: Callable[[PathLike[str]], Iterator[pd.DataFrame]]
) -> Log:
    """Outages from a table: node, start, end (or duration, or state), cause.

    A time stamp from the year 9999 on is no end. An outage of which
    no end is known lasts to the next failure of its node at most.
    """
    counted, read, dates = Counted(), list[pd.DataFrame](), list[pd.DataFrame]()
    names = {
        column: header_name
        for column, header_name in spec.names.items()
        if column not in NODE_COLUMNS
    }
    times: Times | None = None
    ends: dict[str, str] | None = None
    notes: tuple[Note, ...] = ()
    for table in pieces(path):
        if ends is None:
            ends = end_columns(table, names)
            notes = _notes(table, spec, ends)
        columns = {**names, **ends}
        state = columns.pop("state", None)  # which may be the column of causes too
        if spec.has_dates:
            dates.append(node_columns(table, spec, path))
        table = _one_node_each(table, columns.get("node", "node"), path, counted)
        if state is not None:
            says = states(named_columns(table, {}, path, (state,), ())[state])
        duration = ("duration",) if "duration" in columns else ()
        rows = named_columns(table, columns, path, (*COLUMNS, *duration), OPTIONAL)
        if rows.empty:
            continue
        start = _times(rows["start"], spec, path, times, counted)
        times = times or Times(start.hours[:0], start.since_1970, start.unit, start.zone)
        cause = rows["cause"].fillna("") if "cause" in rows else [""] * len(rows)
        frame = pd.DataFrame({
            "node": pd.Categorical(rows["node"].str.strip()),
            "start": start.hours,
            "end": _ends_h(rows, start.hours, times, spec, path, counted, columns),
            "cause": pd.Categorical(cause),
        }, index=rows.index)  # fmt: skip
        nameless = frame["node"].isna() | (frame["node"] == "")
        no_row_where(nameless.to_numpy(), rows, path, "node", "the row names no node")
        no_row_where(np.isnan(start.hours), rows, path, "start", "the outage has no start")
        read.append(frame if state is None else frame.assign(state=says))
    if times is None or ends is None:
        raise trace_error(path, None, "holds no row")
    all_rows = _joined(read)
    if "state" in all_rows:
        all_rows = _of_states(all_rows, path, counted)
    points = not ends and "end" not in names and "end" not in table
    if times.unit and spec.time_unit is None:
        words = f"times taken as {times.unit} since 1970, as no unit was given"
        notes = (Note("inferred", None, words), *notes)
    lives = None
    if dates and len((rows := pd.concat(dates).drop_duplicates()).columns) > 1:
        lives = dates_of(rows, path, times, spec, "{value} has other dates in another row")
    return Log(all_rows, counted, points, times, notes=notes, dates=lives)


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """All rows, whose texts are categories."""
    texts = {
        name: pd.api.types.union_categoricals([frame.pop(name) for frame in frames])
        for name in ("node", "cause")
    }
    joined_rows = pd.concat(frames)
    frames.clear()  # so that each column is in memory once
    return joined_rows.assign(**texts)


def _of_states(rows: pd.DataFrame, path: PathLike[str], counted: Counted) -> pd.DataFrame:
    """Outages of rows that say from when on a node was down, or up."""
    state = rows["state"].to_numpy()
    begin, end_h = paired(
        np.asarray(rows["node"].cat.codes, np.int64), rows["start"].to_numpy(), state
    )
    if not len(begin):
        raise trace_error(path, None, "no row says that a node went down", "state")
    n_other = int((state == NEITHER).sum())
    counted[
        "dropped", "row(s) left out that say neither that a node is down nor that it is up"
    ] += n_other
    n_idle = len(state) - n_other - len(begin) - int(np.isfinite(end_h).sum())
    counted["dropped", "row(s) left out as the node was down, or up, already"] += n_idle
    return rows.iloc[begin].assign(end=end_h)


def _one_node_each(
    table: pd.DataFrame, column: str, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """The rows, those whose cell names several nodes once for each."""
    if column not in table:
        return table
    cells = pa.array(table[column], type=pa.large_string())
    several = pc.match_substring_regex(cells, LIST_OF_NODES).fill_null(False).to_numpy(False)
    if not several.any():
        return table
    counted["read_as", "row(s) that name several nodes, an outage of each"] += int(several.sum())
    lists = table[column].astype(object)
    lists[several] = node_lists(table.loc[several, column], path)
    return table.assign(**{column: lists}).explode(column)


def _times(
    column: pd.Series[str],
    spec: LogSpec,
    path: PathLike[str],
    like: Times | None,
    counted: Counted,
) -> Times:
    times = read_times(column, spec.time_unit, path, like, spec.date_format, spec.tz)
    counted["assumed", SKIPPED] += times.n_skipped
    counted["assumed", TWICE] += (
        0 if times.later_h is None else int(np.isfinite(times.later_h).sum())
    )
    return times


def _ends_h(
    rows: pd.DataFrame,
    start_h: Floats,
    like: Times,
    spec: LogSpec,
    path: PathLike[str],
    counted: Counted,
    columns: Mapping[str, str],
) -> Floats:
    """Ends [h], NaN where there is none; those that stand for none are counted."""
    if "duration" in rows:
        unit = unit_of(columns["duration"]) or spec.time_unit
        lasted_h = read_lengths(rows["duration"].rename(columns["duration"]), unit, path)
        return np.asarray(start_h + lasted_h, dtype=np.float64)
    if "end" not in rows:
        return np.full(len(rows), np.nan)
    none = rows["end"].str.strip().str.lower().isin(NO_END)
    counted["read_as", "end(s) such as NULL or - taken for none"] += int(none.sum())
    ends = _times(rows["end"].mask(none), spec, path, like, counted)
    end_h = ends.hours
    never = like.dated & (end_h >= NEVER_H)
    counted["read_as", "end(s) in the year 9999 taken for none"] += int(never.sum())
    zero = like.since_1970 & (end_h <= ZERO_H)
    counted["read_as", "end(s) such as 0, 1970-01-01 or the year 1 taken for none"] += int(
        zero.sum()
    )
    if ends.later_h is not None:  # an end in the second of two hours, as its start is later
        end_h = np.where((end_h < start_h) & np.isfinite(ends.later_h), ends.later_h, end_h)
    return np.where(never | zero, np.nan, end_h)


# ------------------------------------------------------------------------------- lengths and states

UNIT = re.compile(r"(?:^|[ _(\[])(ms|s|sec|seconds|min|minutes|h|hours|d|days)[)\]]?$")
UNIT_OF = {"sec": "s", "seconds": "s", "minutes": "min", "hours": "h", "days": "d"}
LENGTH = re.compile(
    r"(?:.*\.|outage[ _])?(?:duration|down[ _]?time|repair[ _]?time|elapsed)(?:[ _(\[].*)?"
)
BEGINS = {
    "down", "notready", "nodenotready", "fail", "failed", "failure", "offline", "unreachable",
    "dead", "firing",
}  # fmt: skip
ENDS = {
    "up", "ready", "nodeready", "recovered", "online", "reachable", "alive", "ok", "resolved",
    "repaired",
}  # fmt: skip
ONE = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
MOST_STATES = 30


def unit_of(name: str) -> str | None:
    """The unit that a column's name ends with: downtime_s, Duration (h)."""
    match = UNIT.search(name.lower())
    return UNIT_OF.get(match[1], match[1]) if match else None


def _meaning(cell: object, column: str) -> int:
    """What a cell says of the node; 0 and 1 by the name of their column."""
    text = re.sub(r"[^a-z0-9]", "", str(cell).lower().removesuffix(".0"))
    name = re.sub(r"[^a-z]", "", column.lower())
    if text in ONE and name in BEGINS | ENDS:
        return BEGIN if ONE[text] == (name in BEGINS) else END
    return BEGIN if text in BEGINS else END if text in ENDS else NEITHER


def states(column: pd.Series[str]) -> Ints:
    """What each cell says of its node, (n_rows,): `BEGIN`, `END` or `NEITHER` of an outage."""
    place, distinct = pd.factorize(column.fillna(""))
    meaning = np.array([_meaning(cell, str(column.name)) for cell in distinct], dtype=np.int64)
    return np.asarray(meaning[place], dtype=np.int64)


def _holds_states(column: pd.Series[str]) -> bool:
    """Whether every cell begins or ends an outage, and some do either."""
    distinct = column.fillna("").unique()
    if len(distinct) > MOST_STATES:
        return False
    return {_meaning(cell, str(column.name)) for cell in distinct} == {BEGIN, END}


def end_columns(table: pd.DataFrame, columns: Mapping[str, str]) -> dict[str, str]:
    """The column that says when outages end where none is called so: ``duration`` or ``state``."""
    declared = {name: columns[name] for name in OTHERS if name in columns}
    if declared or "end" in columns or "end" in table:
        return declared
    used = {columns.get(name, name) for name in ("node", "start")}
    names = [str(name) for name in table if name not in used]
    if lengths := [name for name in names if LENGTH.fullmatch(name.lower())]:
        return {"duration": lengths[0]}
    of_states = [name for name in names if _holds_states(table[name])]
    return {"state": of_states[0]} if of_states else {}


def _notes(table: pd.DataFrame, spec: LogSpec, ends: Mapping[str, str]) -> tuple[Note, ...]:
    """From which column ends are known, where none is called so; which columns are not read."""
    sentences = {
        "duration": "outages last as the column '{}' says",
        "state": "a node is down from a row to its next, as the column '{}' says",
    }
    notes = [
        Note("inferred", None, sentences[name].format(one_line(column)))
        for name, column in ends.items()
    ]
    column_names = (*COLUMNS, *(NODE_COLUMNS if spec.has_dates else ()))
    read = {*(spec.names.get(name, name) for name in column_names), *ends.values()}
    names = [str(name) for name in table if name not in read]
    names = [one_line(name) for name in names if not re.fullmatch(r"Unnamed: \d+", name)]
    if names:
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        words = f"column(s) not read as node, start, end or cause: {', '.join(names[:6])}{more}"
        notes.append(Note("dropped", None, words))
    return tuple(notes)
