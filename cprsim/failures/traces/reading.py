"""What all readers share: text in, checked cells out, every complaint with its file and line."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd

from cprsim.budget import how_to_raise, memory_bytes
from cprsim.errors import BudgetError, Place, Problem, TraceError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.bounded import (
    LONGEST_LINE_BYTES,
    Counted,
    Extent,
    extent_of,
    opened,
    read_bytes,
)
from cprsim.foreign import one_line
from cprsim.records import Bools

LONGEST_WINDOW_H = 2e6  # over two hundred years: no cluster lasts that long
# columns that only LANL's records have
LANLS = frozenset({"Prob Started", "Down Time", "nodenumz"})
FIRST_ROW = 2  # line of a CSV's first row, below the header
CELLS_AT_ONCE = 400_000
LONGEST_HEADER = 100_000  # characters that are looked through for columns of one name
SEPARATORS = (",", ";", "\t", "|")
PIECE_OF_MEMORY = 1 / 8  # that the text of so many cells may take
TABLE_OF_MEMORY = 1 / 16  # that the text of a table may take which is held whole, as objects
TEXT_OF_MEMORY = 1 / 8  # that a text may take which is parsed at once
BYTES_PER_NODE = 200  # that a node takes in what is computed of its outages

Instant = str | float
Period = tuple[Instant | None, Instant | None]  # from (included), to (excluded); None: all there is


def read_csv(path: Path) -> pd.DataFrame:
    """All cells as text, empty ones missing; a row's index is its line less `FIRST_ROW`.

    Raises
    ------
    TraceError
        for a file that is missing, damaged, empty, or whose rows differ in length.
    BudgetError
        where the memory budget allows no table of its size.
    """
    most_bytes = TABLE_OF_MEMORY * memory_bytes()
    if (n_bytes := extent_of(path).n_bytes) > most_bytes:
        raise BudgetError(
            f"{path}: holds {n_bytes / 1e6:.4g} MB of text, more than {most_bytes / 1e6:.4g} MB: "
            f"{how_to_raise()}"
        )
    return pd.concat(list(csv_pieces(path, ",")))


def separator_of(line: str) -> str:
    """What separates the cells of a header: the most frequent of comma, semicolon, tab and bar."""
    return max(SEPARATORS, key=line.count)


def _header(path: Path) -> str:
    """The first line that is not blank."""
    with opened(path) as file:
        head = file.read(LONGEST_LINE_BYTES).decode("utf-8-sig", errors="replace")
    return next((line for line in head.splitlines() if line.strip()), "")


def csv_pieces(path: Path, separator: str | None = None) -> Iterator[pd.DataFrame]:
    """As `read_csv`, some rows after the other, so that a log of any length takes little memory.

    Parameters
    ----------
    path : the file
    separator : of cells; None: what the header has most of, of comma, semicolon, tab and bar

    Raises
    ------
    TraceError, BudgetError
        as `read_csv`; for a log of more rows or text than may be streamed, too.
    """
    header = _header(path)
    separator = separator or separator_of(header)
    extent = extent_of(path, separator.encode())
    _require_whole(extent, separator, path)
    cells = next(csv.reader([header[:LONGEST_HEADER]], delimiter=separator), [])
    names = Counter(cell.strip() for cell in cells)
    if twice := [name for name, n in names.items() if name and n > 1]:
        raise trace_error(path, 1, "two columns have this name: rename one of them", twice[0])
    n_rows = max(1, CELLS_AT_ONCE // extent.n_columns)
    any_row = False
    with opened(path) as file:
        counted = Counted(file, path, PIECE_OF_MEMORY * memory_bytes())
        for piece in _parsed(counted, n_rows, path, separator):
            counted.n_since = 0
            rows = _not_blank(piece.rename(columns=lambda name: str(name).strip()))
            any_row = any_row or not rows.empty
            yield rows
    if not any_row:
        raise trace_error(path, None, "holds no row below the header")


def _require_whole(extent: Extent, separator: str, path: Path) -> None:
    """Raise TraceError where a file ends within a row: with no end of line, and cells too few."""
    n_cells = extent.unended.count(separator.encode()) + 1
    if extent.unended.strip() and n_cells < extent.n_columns and extent.n_lines > 1:
        message = (
            f"the file ends within this row, which has {n_cells} cells where the header has "
            f"{extent.n_columns}: is it cut off?"
        )
        raise trace_error(path, extent.n_lines, message)


def _not_blank(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that hold more than blanks in their first cell."""
    rows = table.dropna(how="all")
    alone = rows.iloc[:, 1:].isna().all(axis=1)
    if not alone.any():
        return rows
    return rows[~alone | (rows.iloc[:, 0].str.strip() != "")]


def _parsed(counted: Counted, n_rows: int, path: Path, separator: str) -> Iterator[pd.DataFrame]:
    """Pieces of a CSV as pandas parses them; its complaints with file and line."""
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            yield from pd.read_csv(
                BufferedReader(counted), sep=separator, dtype=str, skip_blank_lines=False,
                index_col=False, encoding="utf-8-sig", keep_default_na=False, na_values=[""],
                on_bad_lines="error", chunksize=n_rows,
            )  # fmt: skip
    except pd.errors.ParserWarning:
        raise trace_error(path, None, "has rows with more cells than the header") from None
    except pd.errors.EmptyDataError:
        raise trace_error(path, None, "is empty") from None
    except pd.errors.ParserError as error:
        raise counted.refusal or _no_csv(path, error) from None
    except UnicodeDecodeError:
        raise _no_utf8(path) from None


def _no_utf8(path: Path) -> TraceError:
    """Where the first byte is that is no UTF-8."""
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return _no_utf8_in(path, number, line, error)
    return trace_error(path, None, f"can't be read: it is no UTF-8 text{LATIN_1}")


LATIN_1 = "; if it is Latin-1: iconv -f LATIN1 -t UTF-8 FILE > log.csv"


def _no_utf8_in(path: Path, number: int, line: bytes, error: UnicodeDecodeError) -> TraceError:
    byte = f"byte {error.start + 1} of the line (0x{line[error.start]:02x})"
    return trace_error(path, number, f"can't be read: {byte} is no UTF-8{LATIN_1}")


def row_budget_error(path: Path, n_rows: int) -> BudgetError:
    """What is said of a log of more rows than the memory budget allows."""
    return BudgetError(f"{path}: holds {n_rows:,} rows, too many: {how_to_raise()}")


def _no_csv(path: Path, error: pd.errors.ParserError) -> TraceError:
    line = re.search(r"line (\d+)", str(error))
    cells = re.search(r"Expected (\d+) fields in line \d+, saw (\d+)", str(error))
    row = re.search(r"at row (\d+)", str(error))  # from 0, the header included
    number = int(line[1]) if line else int(row[1]) + 1 if row else None
    reason = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. C error: ")
    if cells:
        reason = f"it has {cells[2]} cells where the header has {cells[1]}"
    return trace_error(path, number, f"can't be read as a CSV: {reason}")


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
    found: dict[str, str] = {}
    for name in ours:
        theirs = columns.get(name, name)
        if theirs in found:
            message = f"the column {theirs!r} stands for {found[theirs]!r} already: say which one"
            raise trace_error(path, 1, f"{message} is {name!r}, for example {name}=...", name)
        if theirs in table:
            found[theirs] = name
        elif name not in optional or name in columns:
            near = get_close_matches(theirs, [str(column) for column in table.columns], 1)
            hint = _perhaps(name, table, columns) if name not in columns else ""
            if f"{name}=" not in hint.replace("=NAME", "") and near:
                hint = f"; did you mean {near[0]!r}?"
            n_columns = len(table.columns)  # their names are not told: it may be no log at all
            if n_columns == 1 and re.search(r"[;\t|]", str(table.columns[0])):
                hint = "; separate columns by commas"
            if set(table.columns) >= LANLS:
                hint = ": these are LANL's records, of which `system` has to be said (--system 2)"
            message = f"there is no column {theirs!r} among the {n_columns} of the header{hint}"
            raise trace_error(path, 1, message, name)
    return table[list(found)].rename(columns=found)


LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d+([.,]\d+)?$|\d\d?[/.]\d\d?[/.]\d{4}|.*\d\d:\d\d:\d\d")
OFTEN_CALLED = {  # without capitals and signs
    "node": "host hostname nodename nodeid machine server servername instance instanceid computer "
    "vm vmname name system device series servicename knoten rechner",
    "start": "begin began starttime started startsat startedat timestart time timestamp date "
    "datetime dateandtime at down downat failedat failuretime tstart from occurred created "
    "createdat createdon opened openedat eventtime statetime notbefore realtimetimestamp ts "
    "lasttimestamp beginn anfang zeit zeitpunkt",
    "end": "finish finished endtime ended endsat endedat timeend up upat repairedat resolved "
    "resolvedat resolvedon recoverytime recovered recoveredat closed closedat tend to ende",
    "cause": "reason category type error failuretype fault problem eventtype ursache grund",
}


def often_called(table: pd.DataFrame, columns: Mapping[str, str]) -> list[str]:
    """Options for columns that others call what ours mean, keys of JSON by their last part."""
    theirs = [str(one) for one in reversed(list(table.columns))]
    lower = {_bare(one.removesuffix(".$date").rsplit(".", 1)[-1]): one for one in theirs}
    lower |= {_bare(one): one for one in theirs}
    taken = set(columns.values())
    return [
        f"--column {quote(f'{name}={lower[called]}')}"
        for name, names in OFTEN_CALLED.items()
        if name not in table and name not in columns
        for called in [next((one for one in (name, *names.split()) if one in lower), None)]
        if called is not None and lower[called] not in taken
    ]


def _bare(name: str) -> str:
    """A column's name without capitals, signs, and what is in brackets: Start time (UTC)."""
    return re.sub(r"\([^)]*\)|\[[^]]*\]|[\W_]", "", name.lower())


def _perhaps(name: str, table: pd.DataFrame, columns: Mapping[str, str]) -> str:
    """What columns may be meant; no other name of the file is told."""
    if any(LIKE_A_TIME.match(str(column)) for column in table.columns):
        return "; is the first line no header? Put one above it, such as node,start,end"
    options = often_called(table, columns)
    if not options:
        return f"; say which it is with --column {name}=NAME, or write node,start,end as CSV"
    return f"; perhaps {' '.join(options)}"


def read_text(path: Path) -> str:
    """The whole file. Raises TraceError where it is missing or damaged, BudgetError if too long."""
    try:
        return read_bytes(path, TEXT_OF_MEMORY * memory_bytes()).decode("utf-8-sig")
    except UnicodeError as error:
        raise trace_error(path, None, f"can't be read: {error}") from None


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
    message = what.replace("{value}", f"'{one_line(str(value))}'") + more
    raise trace_error(path, line if line > 0 else None, message, key)


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
    most = int(memory_bytes() / BYTES_PER_NODE)
    if max(given or 0, named) > most:
        message = f"{max(given or 0, named):,} nodes are more than {most:,}: {how_to_raise()}"
        raise BudgetError(f"{path}: nodes: {message}")
    if given is None:
        return named
    if given < 1:
        raise trace_error(path, None, f"{given} nodes can't be observed", "nodes")
    if given < named:
        raise trace_error(path, None, f"{given} nodes given, but the file names {named}", "nodes")
    return given


def checked(outages: Outages, path: Path) -> Outages:
    """Raise TraceError where no outage begins within the period, or the period is absurd."""
    if outages.window_h > LONGEST_WINDOW_H:
        message = (
            f"the log spans {outages.window_h:.3g} h: are its times in another unit? Or is one of "
            "them far off?"
        )
        raise trace_error(path, None, message, "time_unit")
    if not outages.in_window.any():
        raise trace_error(path, None, "no outage begins within the period", "period")
    return outages


def trace_error(path: Path, line: int | None, message: str, key: str = "") -> TraceError:
    """One complaint about one place."""
    return TraceError([Problem(Place(path, line), key, message)])


# -------------------------------------------------------------------------------------------- lines


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number (from 1) and text of each line that is not blank.

    Raises
    ------
    TraceError
        with line and byte, for what is no UTF-8; BudgetError for a log beyond the budget.
    """
    extent_of(path)
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise _no_utf8_in(path, number, line, error) from None
            if text.strip():
                yield number, text.rstrip("\r\n")
