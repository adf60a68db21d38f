"""A second file that says of each node when it joined and left."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.outages import NodeLives, Outages
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.reading import csv_pieces, named_columns, no_row_where
from cprsim.failures.traces.times import HOURS, read_times
from cprsim.records import Floats

COLUMNS = ("node", "installed", "entry", "exit")
OPTIONAL = ("installed", "entry", "exit")
ORIGIN = re.compile(r"(-?[\d.e+-]+) h|day (\d+)")


def read_nodes(path: Path, outages: Outages, asked: LogOptions) -> NodeLives:
    """The lives of the nodes of a log, on its clock.

    Raises TraceError with file and line.
    """
    tables = [named_columns(table, {}, path, COLUMNS, OPTIONAL) for table in csv_pieces(path)]
    return _lives(pd.concat(tables), path, outages, asked, "{value} stands in another row too")


def lives_in_log(
    path: Path, pieces: Iterable[pd.DataFrame], outages: Outages, asked: LogOptions
) -> NodeLives:
    """As `read_nodes`, of the columns of the log itself (`pieces`), whose rows agree on each node.

    Nodes that never failed are not in the log: they are taken to have the dates of most.

    Raises ParameterError where the log has no such columns.; TraceError with file and line.
    """
    columns = {"node": asked.columns.get("node", "node")}
    rows = pd.concat(
        named_columns(table, columns, path, COLUMNS, OPTIONAL).drop_duplicates() for table in pieces
    ).drop_duplicates()
    if set(rows) == {"node"}:
        raise ParameterError("the log has no column installed, entry or exit")
    what = "{value} has other dates in another row"
    return and_silent_ones(_lives(rows, path, outages, asked, what), outages.n_nodes)


def and_silent_ones(lives: NodeLives, n_nodes: int) -> NodeLives:
    """With as many nodes more as make `n_nodes`, of the dates that most have."""
    n_silent = max(n_nodes - len(lives.names), 0)
    each = list(zip(lives.born_h, lives.enters_h, lives.leaves_h, strict=True))
    silent = [pd.Series(each).mode()[0]] * n_silent
    names = (*lives.names, *(f"silent-{number}" for number in range(n_silent)))
    return NodeLives(names, *np.array([*each, *silent], dtype=np.float64).T)


def _lives(
    rows: pd.DataFrame, path: Path, outages: Outages, asked: LogOptions, twice_is: str
) -> NodeLives:
    names = rows["node"].fillna("").str.strip()
    no_row_where((names == "").to_numpy(dtype=bool), rows, path, "node", "the row names no node")
    twice = names.duplicated().to_numpy(dtype=bool)
    no_row_where(twice, rows, path, "node", twice_is)
    installed, entry, leaves = (_hours(rows, name, path, outages, asked) for name in OPTIONAL)
    born_h = np.where(np.isnan(installed), np.where(np.isnan(entry), 0.0, entry), installed)
    enters_h = np.where(np.isnan(entry), np.maximum(born_h, 0.0), entry)
    enters_h, leaves_h = np.maximum(enters_h, 0.0), np.where(np.isnan(leaves), np.inf, leaves)
    born_h = np.where(np.isnan(installed) & (born_h < 0), 0.0, born_h)
    no_row_where(
        enters_h < born_h, rows, path, "entry", "{value}: the entry lies before `installed`"
    )
    no_row_where(
        leaves <= np.where(np.isnan(entry), born_h, entry), rows, path, "exit",
        "{value}: the node leaves before it enters",
    )  # fmt: skip
    gone = leaves_h <= 0  # before the observation: any order will do
    enters_h = np.where(gone, np.minimum(enters_h, leaves_h - 1.0), enters_h)
    return NodeLives(tuple(names), np.minimum(born_h, enters_h), enters_h, leaves_h)


def origin_h(outages: Outages) -> float:
    """Time 0 of a log on the clock of its file [h]: since 1970 where it has dates.

    Raises ParameterError where the log does not say it.
    """
    found = ORIGIN.fullmatch(outages.origin)
    if found:
        return float(found[1]) if found[1] else 24.0 * float(found[2])
    stamp = pd.to_datetime(outages.origin, errors="coerce", utc=True)
    if pd.isna(stamp):
        raise ParameterError(f"the log begins at {outages.origin}, which is no instant")
    return float(stamp.value / 3.6e12)


def _hours(
    rows: pd.DataFrame, name: str, path: Path, outages: Outages, asked: LogOptions
) -> Floats:
    """A column of instants on the log's clock [h], (n_nodes,); NaN where it says none."""
    if name not in rows or rows[name].isna().all():
        return np.full(len(rows), np.nan)
    dated = ORIGIN.fullmatch(outages.origin) is None
    unit = asked.time_unit or ("d" if outages.origin.startswith("day") else None)
    if not dated and unit not in HOURS:
        raise trace_error(path, None, "the log's times are numbers: say --time-unit", name)
    times = read_times(rows[name], unit, path, None, asked.date_format, asked.tz)
    if dated != (times.dated or times.since_1970):
        kind = "dates" if dated else "numbers"
        raise trace_error(path, None, f"holds other times than the log, which has {kind}", name)
    return times.hours - origin_h(outages)
