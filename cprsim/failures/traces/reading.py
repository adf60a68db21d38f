"""What all readers share: text in, checked cells out, every complaint with its file and line."""

from __future__ import annotations

import bz2
import gzip
import lzma
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from io import FileIO
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from cprsim.errors import Place, Problem, TraceError
from cprsim.failures.outages import Outages
from cprsim.foreign import one_line
from cprsim.records import Bools

UNREADABLE = (
    OSError,
    EOFError,
    UnicodeError,
    BadZipFile,
    lzma.LZMAError,
    zlib.error,
    pd.errors.ParserError,
)
LONGEST_WINDOW_H = 2e6  # over two hundred years: no cluster lasts that long
FIRST_ROW = 2  # line of a CSV's first row, below the header

Instant = str | float
Period = tuple[Instant | None, Instant | None]  # from (included), to (excluded); None: all there is


def read_csv(path: Path) -> pd.DataFrame:
    """All cells as text, empty ones missing; a row's index is its line less `FIRST_ROW`.

    Raises
    ------
    TraceError
        for a file that is missing, damaged, empty, or whose rows differ in length.
    """
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            table = pd.read_csv(
                path, dtype=str, skip_blank_lines=False, index_col=False, encoding="utf-8-sig",
                keep_default_na=False, na_values=[""], on_bad_lines="error",
            )  # fmt: skip
    except pd.errors.ParserWarning:
        raise trace_error(path, None, "has rows with more cells than the header") from None
    except pd.errors.EmptyDataError:
        raise trace_error(path, None, "is empty") from None
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    table = table.rename(columns=lambda name: str(name).strip()).dropna(how="all")
    if table.empty:
        raise trace_error(path, None, "holds no row below the header")
    return table


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".xz": lzma.LZMAFile,
    ".gz": gzip.GzipFile,
    ".bz2": bz2.BZ2File,
}


def named_columns(
    table: pd.DataFrame,
    columns: Mapping[str, str],
    path: Path,
    ours: tuple[str, ...],
    optional: Collection[str],
) -> pd.DataFrame:
    """The columns that are there, under our names.

    Parameters
    ----------
    table, path : as read, and from where
    columns : the file's names of those columns that it calls something else
    ours : our names
    optional : those that may be absent

    Raises
    ------
    TraceError
        for a column that has to be there and is not, or a name that is none of ours.
    """
    if unknown := sorted(set(columns) - set(ours)):
        message = f"there is no such column; known are {', '.join(ours)}"
        raise trace_error(path, None, message, f"columns.{unknown[0]}")
    found = {}
    for name in ours:
        theirs = columns.get(name, name)
        if theirs in table:
            found[theirs] = name
        elif name not in optional or name in columns:
            near = get_close_matches(theirs, [str(column) for column in table.columns], 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            n_columns = len(table.columns)  # their names are not told: it may be no log at all
            if n_columns == 1 and re.search(r"[;\t|]", str(table.columns[0])):
                hint = "; separate columns by commas"
            message = f"there is no column {theirs!r}{hint} (the header has {n_columns})"
            raise trace_error(path, 1, message, name)
    return table[list(found)].rename(columns=found)


def read_text(path: Path) -> str:
    """The whole file. Raises TraceError where it is missing or damaged."""
    try:
        with OPENERS.get(path.suffix, FileIO)(path) as file:
            content: bytes = file.read()
            return content.decode("utf-8-sig")
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: BaseException) -> TraceError:
    line = re.search(r"line (\d+)", str(error))
    row = re.search(r"at row (\d+)", str(error))  # from 0, the header included
    reason = getattr(error, "strerror", None) or (str(error).strip() or "damaged").splitlines()[-1]
    number = int(line[1]) if line else int(row[1]) + 1 if row else None
    return trace_error(path, number, f"can't be read: {one_line(reason, 200)}")


def no_row_where(
    bad: Bools, rows: pd.DataFrame | pd.Series[str], path: Path, key: str, what: str
) -> None:
    """Raise TraceError at the first row that is bad.

    Parameters
    ----------
    bad : (n_rows,) which rows are
    rows : the table or the column, with the index that `read_csv` gave it
    path, key : file and column for the message
    what : the complaint; ``{value}`` stands for the cell
    """
    if not bad.any():
        return
    first = int(np.flatnonzero(bad)[0])
    cells = rows[key] if isinstance(rows, pd.DataFrame) else rows
    cell = cells.iloc[first]
    value: Any = "" if pd.isna(cell) else cell
    more = f" (and {int(bad.sum()) - 1} more such rows)" if bad.sum() > 1 else ""
    line = int(rows.index[first]) + FIRST_ROW
    raise trace_error(path, line, what.replace("{value}", f"'{one_line(str(value))}'") + more, key)


def n_observed(given: int | None, named: int, path: Path) -> int:
    """Nodes observed; raises TraceError where fewer are given than the file names."""
    if given is None:
        return named
    if given < named:
        raise trace_error(path, None, f"{given} nodes given, but the file names {named}", "nodes")
    return given


def checked(outages: Outages, path: Path) -> Outages:
    """Raise TraceError where no outage begins within the period, or the period is absurd."""
    if outages.window_h > LONGEST_WINDOW_H:
        message = f"the log spans {outages.window_h:.3g} h: are its times in another unit?"
        raise trace_error(path, None, message, "time_unit")
    if not outages.in_window.any():
        raise trace_error(path, None, "no outage begins within the period", "period")
    return outages


def trace_error(path: Path, line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place."""
    return TraceError([Problem(Place(path, line), key, message)])
