"""Tables with a row per outage, or per change of a node's state, whoever wrote them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import ROUNDING_H, Counted, Note
from cprsim.failures.traces.columns import (
    LENGTH,
    ends_of,
    how_read,
    meanings,
    not_read,
    plain,
    require_no_jobs,
    states,
    unit_of,
)
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, joined, paired
from cprsim.failures.traces.names import LEFT_OUT, one_node_each, spellings
from cprsim.failures.traces.node_file import dates_of, node_columns
from cprsim.failures.traces.reading import named_columns, no_row_where
from cprsim.failures.traces.spec import COLUMNS, NODE_COLUMNS, NOTHING, LogSpec
from cprsim.failures.traces.times import Times, read_lengths, read_times, resolution_h
from cprsim.records import Bools, Floats

OPTIONAL = {"end", "cause"}
NO_END = NOTHING - {""} | {
    "ongoing", "open", "still down", "not yet", "present", "active", "pending", "offen",
}  # fmt: skip
ZERO_H = 24.0  # since 1970: what programs write that have no end
MOST_SHOWN = 6
SAME_H = 1 / 60
NEVER_H = 70_380_768.0  # the year 9999: the same
NO_STATE = "row(s) left out whose state is empty"
MOVED = "local time(s) that summer time skips or repeats, taken as the earliest they can be"


def read_table(
    path: PathLike[str], spec: LogSpec, pieces: Callable[[PathLike[str]], Iterator[pd.DataFrame]]
) -> Log:
    """Outages from a table: node, start, end (or duration, or state), cause.

    A time stamp from the year 9999 on is no end. An outage of which
    no end is known lasts to the next failure of its node at most.
    """
    counted, read, dates = Counted(), list[pd.DataFrame](), list[pd.DataFrame]()
    names = {ours: theirs for ours, theirs in spec.names.items() if ours not in NODE_COLUMNS}
    node = names.get("node", "node")
    times: Times | None = None
    found: dict[str, str] | None = None
    has_end, said, unread = False, dict[str, int](), list[str]()
    known_to_h, n_read = 0.0, 0
    for piece in pieces(path):
        table = _with_node(_without_ignored(piece, spec, path, counted), node, spec)
        if found is None:
            require_no_jobs(table, path)
            found = ends_of(table, names, spec)
            has_end = names.get("end", "end") in table and "duration" not in found
        columns = {**names, **found}
        state = columns.pop("state", None)  # which may be the column of causes too
        if spec.has_dates:
            dates.append(node_columns(table, spec, path))
        ours = (*COLUMNS, *(("duration",) if "duration" in columns else ()))
        named_columns(table, columns, path, ours, OPTIONAL)  # are all there
        n_read += len(piece) - len(table) - counted["dropped", LEFT_OUT]
        table = one_node_each(table, node, path, counted)
        n_read += len(table) + counted["dropped", LEFT_OUT]
        rows = named_columns(table, columns, path, ours, OPTIONAL)
        if rows.empty:
            continue
        start = _times(rows["start"], spec, path, times, counted)
        if start.dated:
            is_known_to = resolution_h(rows["start"], spec.date_format)
            known_to_h = is_known_to if times is None else min(known_to_h, is_known_to)
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
        if state is not None:
            of_state = named_columns(table, {}, path, (state,), ())[state]
            said |= meanings(of_state, spec)
            frame = frame.assign(state=states(of_state, said, path))
            counted["dropped", NO_STATE] += int(of_state.isna().sum())
        used = {spec.names.get(one, one) for one in COLUMNS} | set(found.values())
        if spec.has_dates:
            used |= {spec.names.get(one, one) for one in NODE_COLUMNS}
        if has_end:
            frame["end"], lengths = _with_lengths(frame, table, times, spec, path)
            used.add(lengths)
        unread = not_read(table, frame, used, spec, path)
        read.append(frame)
    if times is None or found is None:
        raise trace_error(path, None, "holds no row with a node")
    if said and (wrong := {*map(plain, spec.down_words)} - {*map(plain, said)}):
        message = f"no row has {', '.join(sorted(wrong))!r}; there are: {', '.join(said)}"
        raise trace_error(path, None, message, "down")
    all_rows, looks = _joined(read), dict[str, Any]()
    if "state" in all_rows:
        if same := spellings(all_rows[all_rows["state"] != NEITHER], (), counted):
            node_names = all_rows["node"].astype(object).replace(same)
            all_rows = all_rows.assign(node=pd.Categorical(node_names))
        looks = _watch(all_rows, known_to_h)
        if "duration" in found:
            _require_lengths(all_rows, found["duration"], path)
        all_rows = _of_states(all_rows, found["state"], path, counted)
    notes = [Note("read_as", None, how_read(spec.names, found, has_end, said))]
    if unread:
        more = f" and {len(unread) - MOST_SHOWN} more" if len(unread) > MOST_SHOWN else ""
        listed = ", ".join(unread[:MOST_SHOWN])
        words = f"column(s) not read as node, start, end or cause: {listed}{more}"
        notes.append(Note("dropped", None, words))
    if times.unit and spec.time_unit is None:
        words = f"times taken as {times.unit} since 1970, as no unit was given"
        notes.insert(0, Note("inferred", None, words))
    if dates and len((rows := pd.concat(dates).drop_duplicates()).columns) > 1:
        looks["dates"] = dates_of(rows, path, times, spec, "{value} has other dates in another row")
    return Log(
        all_rows, counted, points=not has_end and not found, times=times, notes=tuple(notes),
        n_read=n_read, resolution_h=known_to_h, **looks,
    )  # fmt: skip


def _with_lengths(
    frame: pd.DataFrame, table: pd.DataFrame, times: Times, spec: LogSpec, path: PathLike[str]
) -> tuple[Floats, str]:
    """Ends [h], missing ones by a column of lengths; and that column, empty where there is none."""
    end_h, start_h = frame["end"].to_numpy(), frame["start"].to_numpy()
    names = [name for name in map(str, table) if LENGTH.fullmatch(name.lower())]
    if len(names) != 1:
        return end_h, ""
    unit = unit_of(names[0]) or (spec.time_unit if times.dated else None)
    until_h = start_h + read_lengths(table[names[0]], unit, path)
    contradicts = _are_apart(end_h, start_h, until_h)
    no_row_where(contradicts, table, path, names[0], "{value} is not from the start to the end")
    return np.where(np.isnan(end_h), until_h, end_h), names[0]


def _are_apart(end_h: Floats, start_h: Floats, until_h: Floats) -> Bools:
    """Where ends are not those that lengths say, which may be rounded."""
    return np.asarray(np.abs(until_h - end_h) > SAME_H + 0.01 * (until_h - start_h))


def _without_ignored(
    table: pd.DataFrame, spec: LogSpec, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """The table without the columns, and the rows with the words, that ``--ignore`` names."""
    for text in spec.ignored:
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


def _with_node(table: pd.DataFrame, node: str, spec: LogSpec) -> pd.DataFrame:
    """With the column of nodes: joined of several (rack+slot), or the one node that is given."""
    parts = node.split("+")
    if node in table or (len(parts) == 1 and (spec.node is None or "node" in spec.names)):
        return table
    if len(parts) == 1:
        return table.assign(**{node: spec.node})
    if not set(parts) <= set(table):
        return table
    joined = table[parts].fillna("").agg("/".join, axis=1)
    return table.drop(columns=parts).assign(**{node: joined})


def _joined(frames: list[pd.DataFrame]) -> pd.DataFrame:
    """All rows, whose texts are categories."""
    texts = {
        name: pd.api.types.union_categoricals([frame.pop(name) for frame in frames])
        for name in ("node", "cause")
    }
    joined_rows = pd.concat(frames)
    frames.clear()  # so that each column is in memory once
    return joined_rows.assign(**texts)


def _watch(rows: pd.DataFrame, known_to_h: float) -> dict[str, Any]:
    """Who was watched, and when, by rows that say when nodes were up.

    Rows that are spans cover the observation; a node that is looked at again and again is watched
    from the first look to the last. Rows that are changes name nodes alone.
    """
    rows = rows[rows["state"] != NEITHER].sort_values(["node", "start"], kind="stable")
    node, is_up, before = rows["node"].astype(object), rows["state"] == END, rows.shift()
    again = node == before["node"].astype(object)
    n_changes = (again & (rows["state"] != before["state"])).sum()
    is_looks = (again & is_up & (before["state"] == END)).sum() > n_changes
    are_spans = bool(rows["end"][is_up].notna().any())
    watch = dict[str, Any](nodes=frozenset(node), evidence={})
    if is_looks or are_spans or len(watch["nodes"]) > node[~is_up].nunique():
        watch["evidence"] = {"n_nodes": "the nodes that it has rows of"}
    if is_looks or are_spans:
        last_h = rows["end"].fillna(rows["start"] + known_to_h)  # a day is one until its end
        watch["watched"] = float(rows["start"].min()), float(last_h.max())
        watch["evidence"] |= {"begins": "its first row", "ends": "its last row"}
    if is_looks and not are_spans:
        looks = pd.DataFrame({"node": node, "entry": rows["start"], "exit": last_h})
        dates = looks.groupby("node").agg({"entry": "min", "exit": "max"}).reset_index()
        watch["dates"] = dates.assign(installed=np.nan)
        watch["step_h"] = float((rows["start"] - before["start"])[again].median())
    return watch


def _require_lengths(rows: pd.DataFrame, column: str, path: PathLike[str]) -> None:
    """Raise TraceError for a length of an outage that is not the time to its node's next row."""
    rows = rows.drop_duplicates(["node", "start", "state"]).sort_values(["node", "start"])
    next_h = rows.groupby("node", observed=True)["start"].shift(-1).to_numpy()
    contradicts = _are_apart(next_h, rows["start"].to_numpy(), rows["end"].to_numpy())
    contradicts &= (rows["state"] == BEGIN).to_numpy()
    complaint = (
        "the outage of {value} lasts until its node's next row by the instants, another time by "
        f"this column; --ignore {quote(column)} takes the instants"
    )
    no_row_where(contradicts, rows["node"].astype(object), path, column, complaint)


def _of_states(
    rows: pd.DataFrame, column: str, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """Outages of rows that say from when on, or until when, a node was down, or up."""
    state, end_h = rows["state"].to_numpy(), rows["end"].to_numpy()
    has_end = bool(np.isfinite(end_h).any())
    is_down = state == BEGIN
    if not is_down.any():
        raise trace_error(path, None, "no row says that a node went down", column)
    if not (has_end or (state == END).any()):
        message = "no row says that a node is up again: nothing ends an outage"
        how = f"--ignore {quote(column)} takes each row as a failure"
        raise trace_error(path, None, f"{message}; {how}", column)

    node = np.asarray(rows["node"].cat.codes, np.int64)
    begin, until_h = paired(node, rows["start"].to_numpy(), state)
    n_other = int((state == NEITHER).sum())
    n_empty = counted["dropped", NO_STATE]
    counted["no_failure", "row(s) of planned work"] += n_other - n_empty
    if not has_end:
        n_more = len(rows) - n_other - len(begin)
        counted["merged", "row(s) that say that a node is up, or down still"] += n_more
        return rows.iloc[begin].assign(end=until_h, open=True)
    next_h = np.full(len(rows), np.nan)
    next_h[begin] = until_h
    down = rows.assign(end=np.where(np.isnan(end_h), next_h, end_h), open=True)[is_down]
    counted["no_failure", "row(s) of nodes that are up"] += int((state == END).sum())
    return joined(down, ROUNDING_H, "span(s) go on from the one before of their node", counted)


def _times(
    column: pd.Series[str],
    spec: LogSpec,
    path: PathLike[str],
    like: Times | None,
    counted: Counted,
) -> Times:
    times = read_times(column, spec.time_unit, path, like, spec.date_format, spec.tz)
    counted["assumed", MOVED] += times.n_moved
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
        unit = unit_of(columns["duration"]) or (spec.time_unit if like.dated else None)
        lasted_h = read_lengths(rows["duration"].rename(columns["duration"]), unit, path)
        return np.asarray(start_h + lasted_h, dtype=np.float64)
    if "end" not in rows:
        return np.full(len(rows), np.nan)
    none = rows["end"].str.strip().str.lower().isin(NO_END)
    end_h = _times(rows["end"].mask(none), spec, path, like, counted).hours
    none |= (like.dated & (end_h >= NEVER_H)) | (like.since_1970 & (end_h <= ZERO_H))
    counted["assumed", "end(s) such as NULL, -, 0 or the year 9999 taken for none"] += int(
        none.sum()
    )
    return np.where(none, np.nan, end_h)
