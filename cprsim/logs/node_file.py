"""When each node joined and left: columns of the log, or a second table."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Lives, Note
from cprsim.job.records import Floats
from cprsim.logs.columns import is_read
from cprsim.logs.files import trace_error
from cprsim.logs.reading import header_line, named_columns, no_row_where, read_csv
from cprsim.logs.spec import NODE_COLUMNS, UNKNOWN_WORDS, LogSpec
from cprsim.logs.times import Times, read_times


def node_columns(table: pd.DataFrame, spec: LogSpec, path: PathLike[str]) -> pd.DataFrame:
    """The cells of a table that say when nodes joined and left, those of each node once."""
    names = spec.names
    columns = {column: names[column] for column in NODE_COLUMNS if column in names}
    if names.get("node") in table:
        columns["node"] = names["node"]
    cells = named_columns(table, columns, path, ("node", *NODE_COLUMNS), NODE_COLUMNS)
    return cells.drop_duplicates()


def read_nodes(path: Path, times: Times, spec: LogSpec) -> tuple[pd.DataFrame, list[Note]]:
    """The dates of nodes in a table [h of the log's clock], and what of it was not read."""
    table = read_csv(path)
    rows = node_columns(table, spec, path)
    others = [name for name in table if name not in {*rows, *spec.names.values()}]
    for name in others:
        cells = table[name].mask(table[name].str.strip().str.lower().isin(UNKNOWN_WORDS)).dropna()
        varies = cells.nunique() > 1 and len(rows.columns) == 1  # else numbers may be anything
        is_told = len(cells) > 0 if times.dated else varies
        if is_told and is_read(read_times, cells, None, path, times, spec.date_format, spec.tz):
            message = "may say when nodes joined or left: --column entry=NAME or exit=NAME reads it"
            message += "; else take it out of the table"
            raise trace_error(path, header_line(table), message, str(name))
    unread = [one_line(str(name)) for name in others]
    words = f"column(s) of {one_line(path.name)} not read: {', '.join(unread[:6])}"
    notes = [Note("dropped", None, words)]
    how = "{value} stands in another row too"
    return dates_of(rows, path, times, spec, how), notes if unread else []


def dates_of(
    rows: pd.DataFrame, path: PathLike[str], times: Times, spec: LogSpec, twice_is: str
) -> pd.DataFrame:
    """Dates of nodes as text, as hours of the log's clock."""
    names = rows["node"].fillna("").str.strip()
    no_row_where(names == "", rows, path, "node", "the row names no node")
    no_row_where(names.duplicated(), rows, path, "node", twice_is)
    hours = {name: _hours(rows, name, path, times, spec) for name in NODE_COLUMNS}
    installed, entry, leaves = hours.values()
    backwards = entry < installed
    no_row_where(backwards, rows, path, "entry", "{value}: the entry lies before `installed`")
    early = leaves <= np.where(np.isnan(entry), installed, entry)
    no_row_where(early, rows, path, "exit", "{value}: the node leaves before it enters")
    return pd.DataFrame({"node": names.to_numpy(), **hours})


def _hours(
    rows: pd.DataFrame, name: str, path: PathLike[str], like: Times, spec: LogSpec
) -> Floats:
    cells = rows.get(name, pd.Series(None, rows.index, dtype=str))
    cells = cells.mask(cells.str.strip().str.lower().isin(UNKNOWN_WORDS))
    if cells.isna().all():
        return np.full(len(rows), np.nan)
    unit = spec.time_unit or (None if like.since_1970 else like.unit)
    times = read_times(cells, unit, path, None, spec.date_format, spec.tz)
    if like.since_1970 != times.since_1970:
        kind = "dates" if like.since_1970 else "numbers"
        raise trace_error(path, None, f"holds other times than the log, which has {kind}", name)
    return times.hours


def lives_of(dates: pd.DataFrame, from_h: float, n_nodes: int = 0) -> tuple[tuple[str, ...], Lives]:
    """The names and lives of nodes on the clock of the observation, which begins at `from_h`.

    Where there are `n_nodes`, nodes that the dates do not name are taken to have those of most.
    """
    installed, entry, leaves = (dates[name] - from_h for name in NODE_COLUMNS)
    enters = entry.fillna(installed).fillna(0.0).clip(lower=0.0)
    born = np.minimum(installed.fillna(entry.clip(lower=0.0)).fillna(0.0), enters)
    lives = pd.DataFrame({"born": born, "enters": enters, "leaves": leaves.fillna(np.inf)})
    if n_silent := max(n_nodes - len(lives), 0):
        most = lives.groupby(list(lives)).size().idxmax()
        lives = pd.concat([lives, pd.DataFrame([most] * n_silent, columns=list(lives))])
    names = (*dates["node"], *(f"silent-{number}" for number in range(n_silent)))
    born_h, enters_h, leaves_h = lives.to_numpy().T
    return names, (born_h, enters_h, leaves_h)
