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
    states,
    unit_of,
)
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.job_tables import (
    HOW,
    NUMBER,
    at_their_ends,
    lost_jobs,
    states_of_jobs,
)
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, joined, paired
from cprsim.failures.traces.names import LEFT_OUT, one_node_each, spellings
from cprsim.failures.traces.node_file import dates_of, node_columns
from cprsim.failures.traces.reading import named_columns, no_row_where
from cprsim.failures.traces.spec import COLUMNS, NODE_COLUMNS, LogSpec
from cprsim.failures.traces.times import Times, read_lengths, read_times, resolution_h
from cprsim.records import Floats, Ints

OPTIONAL = {"end", "cause"}
NO_END = {
    "-", "--", "null", "none", "nan", "nat", "n/a", "unknown", "ongoing", "open", "tbd", "?",
    "still down", "not yet", "present", "active", "pending", "offen",
}  # fmt: skip
ZERO_H = 24.0  # since 1970: what programs write that have no end
MOST_SHOWN = 6
NEVER_H = 70_380_768.0  # the year 9999: the same
NO_STATE = "row(s) left out whose state is empty"
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
    names = {ours: theirs for ours, theirs in spec.names.items() if ours not in NODE_COLUMNS}
    node = names.get("node", "node")
    times: Times | None = None
    found: dict[str, str] | None = None
    has_end, said, unread, jobs = False, dict[str, int](), list[str](), None
    known_to_h, n_read, nodes = 0.0, 0, set[str]()
    for piece in pieces(path):
        table = _with_node(_without_ignored(piece, spec, path, counted), node, spec)
        if found is None:
            found, jobs = ends_of(table, names, spec), states_of_jobs(table)
            found = {ours: one for ours, one in found.items() if one != jobs}
            has_end = names.get("end", "end") in table and "duration" not in found
        columns = {**names, **found}
        if columns.get("state") == jobs:
            columns.pop("state", None)
        state = columns.pop("state", None)  # which may be the column of causes too
        if spec.has_dates:
            dates.append(node_columns(table, spec, path))
        duration = ("duration",) if "duration" in columns else ()
        named_columns(table, columns, path, (*COLUMNS, *duration), OPTIONAL)  # are all there
        if jobs is not None:
            table = table.assign(**{NUMBER: np.arange(len(table))})
        n_read += len(piece) - len(table) - counted["dropped", LEFT_OUT]
        table = one_node_each(table, node, path, counted)
        n_read += len(table) + counted["dropped", LEFT_OUT]
        if jobs is not None:
            nodes.update(table[node].dropna())
            table = lost_jobs(table, jobs, counted)
        rows = named_columns(table, columns, path, (*COLUMNS, *duration), OPTIONAL)
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
            frame = frame.assign(state=states(of_state, spec, path))
            said |= meanings(of_state, spec)
            counted["dropped", NO_STATE] += int(of_state.isna().sum())
        ours = (*COLUMNS, *(NODE_COLUMNS if spec.has_dates else ()))
        used = {
            *(spec.names.get(one, one) for one in ours),
            *found.values(),
            jobs or "node",
            NUMBER,
        }
        lengths = ""
        if has_end:
            frame["end"], lengths = _with_lengths(frame, table, spec, path)
        unread = [one for one in not_read(table, frame, used, spec, path) if one not in lengths]
        read.append(
            frame if jobs is None else at_their_ends(frame, table[NUMBER].to_numpy(), path, counted)
        )
    if times is None or found is None:
        why = "row with a node" if jobs is None else "job in the state NODE_FAIL"
        raise trace_error(path, None, f"holds no {why}")
    if said and (wrong := {*map(plain, spec.down_words)} - {*map(plain, said)}):
        message = f"no row has {', '.join(sorted(wrong))!r}; there are: {', '.join(said)}"
        raise trace_error(path, None, message, "down")
    all_rows, points = _joined(read), jobs is not None or (not has_end and not found)
    looks = dict[str, Any]()
    if nodes > set(all_rows["node"].cat.categories):
        looks = {"nodes": frozenset(nodes), "evidence": {"n_nodes": "the nodes of all jobs"}}
    if "state" in all_rows:
        looks = _looks(all_rows, known_to_h)
        all_rows = _of_states(all_rows, found["state"], path, counted)
    how = HOW.format(jobs) if jobs else how_read(spec.names, found, has_end, said)
    notes = [Note("read_as", None, how)]
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
        all_rows, counted, points, times, notes=tuple(notes), n_read=n_read,
        resolution_h=known_to_h, **looks,
    )  # fmt: skip


def _with_lengths(
    frame: pd.DataFrame, table: pd.DataFrame, spec: LogSpec, path: PathLike[str]
) -> tuple[Floats, str]:
    """Ends [h], missing ones by a column of lengths; and that column, empty where none is read."""
    end_h = frame["end"].to_numpy()
    none, names = np.isnan(end_h), [str(one) for one in table if LENGTH.fullmatch(str(one).lower())]
    if len(names) != 1 or not none.any() or table[names[0]][none].isna().all():
        return end_h, ""
    unit = unit_of(names[0]) or spec.time_unit
    lasted_h = read_lengths(table[names[0]].where(none), unit, path)
    return np.where(none, frame["start"].to_numpy() + lasted_h, end_h), one_line(names[0])


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


def _looks(rows: pd.DataFrame, known_to_h: float) -> dict[str, Any]:
    """Who was watched, and when, by a log that says again and again that nodes are up."""
    rows = rows[["node", "start", "state"]].sort_values(["node", "start"], kind="stable")
    before = rows.shift()
    again = (rows["node"].astype(object) == before["node"].astype(object)).to_numpy()
    still_up = again & (rows["state"] == END).to_numpy() & (before["state"] == END).to_numpy()
    changes = again & (rows["state"] != before["state"]).to_numpy()
    if still_up.sum() <= changes.sum():
        return {}
    stays = rows.groupby("node", observed=True)["start"].agg(entry="min", exit="max").reset_index()
    stays = stays.assign(node=stays["node"].astype(object), installed=np.nan)
    step_h = float((rows["start"] - before["start"])[again].median())
    stays["exit"] += known_to_h  # a day is looked at until its end
    return {
        "nodes": frozenset(stays["node"]), "dates": stays, "step_h": step_h,
        "watched": (float(stays["entry"].min()), float(stays["exit"].max())),
        "evidence": {"n_nodes": "the nodes that it has rows of", "begins": "its first row",
                     "ends": "its last row"},
    }  # fmt: skip


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

    def changes() -> tuple[Ints, Floats]:
        node = np.asarray(rows["node"].cat.codes, np.int64)
        return paired(node, rows["start"].to_numpy(), state)

    begin, until_h = changes()
    if same := spellings(rows.iloc[begin].assign(end=until_h), (), counted):
        rows = rows.assign(node=pd.Categorical(rows["node"].astype(object).replace(same)))
        begin, until_h = changes()
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
    counted["assumed", "end(s) such as NULL or - taken for none"] += int(none.sum())
    ends = _times(rows["end"].mask(none), spec, path, like, counted)
    end_h = ends.hours
    never = like.dated & (end_h >= NEVER_H)
    counted["assumed", "end(s) in the year 9999 taken for none"] += int(never.sum())
    zero = like.since_1970 & (end_h <= ZERO_H)
    counted["assumed", "end(s) such as 0, 1970-01-01 or the year 1 taken for none"] += int(
        zero.sum()
    )
    if ends.later_h is not None:  # an end in the second of two hours, as its start is later
        end_h = np.where((end_h < start_h) & np.isfinite(ends.later_h), ends.later_h, end_h)
    return np.where(never | zero, np.nan, end_h)
