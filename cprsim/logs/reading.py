"""Tables as text, checked cell by cell: every complaint with its file and line."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from os import PathLike
from shlex import quote
from typing import IO, Any

import numpy as np
import pandas as pd

from cprsim.errors import TraceError, one_line
from cprsim.job.records import Bools
from cprsim.logs.files import HEAD_BYTES, head_of, numbered_lines, opened, trace_error

MOST_ABOVE = 50  # lines above a header
FIRST_ROW = 2  # line of a CSV's first row, below the header
ROWS_AT_ONCE = 100_000
MOST_ROWS = 20_000_000  # of a table: about 1.5 GB of memory
POINTS_ARE_OPEN = "points may group"  # of a table between other signs than commas
PRINTED = {  # tables that are none of ours, by their beginnings
    r"[^\n]*\|[^\n]*\n *[|+:-][-|+: =]*\n|\+[-=+]+\+\n *\|": (
        "that psql, MySQL or Markdown prints: `psql --csv` or `mysql --batch` writes one that can "
        "be read, or "
        r"sed -nE 's/^ *\|//; s/ *\| *$//; /^[-|+: =]*$|^\([0-9]+ rows?\)/d; s/ *\| */|/gp' FILE"
    ),
    r" *\w+(?: \w+)*(?: {2,}\w+(?: \w+)*)+ *\n(?: *[-= ]+\n)? *[^ \n,;|\t]+(?: [^ \n]+)* {2,}\S": (
        "whose columns have a fixed width: separate them by semicolons, for example by "
        "sed -E 's/^ +//; /^[-= ]*$/d; s/ {2,}/;/g' FILE"
    ),
}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


def read_csv(path: PathLike[str]) -> pd.DataFrame:
    """All cells as text, empty ones missing; a row's index is its line less `FIRST_ROW`."""
    return pd.concat(list(csv_pieces(path)))


def separator_of(line: str) -> str:
    """What separates the cells of a header: the most frequent of comma, semicolon, tab and bar."""
    return max(SEPARATORS, key=line.count)


def csv_pieces(path: PathLike[str]) -> Iterator[pd.DataFrame]:
    """As `read_csv`, some rows after the other, so that a log of any length takes little memory."""
    require_no_print(path)
    above, header = _header(path)
    separator = separator_of(header)
    names = Counter(cell.strip() for cell in _cells(header, separator, path, above + 1))
    if twice := [name for name, n in names.items() if name and n > 1]:
        message = "two columns have this name: rename one of them"
        shown = twice[0] if all(map(A_NAME.fullmatch, names)) else "columns"  # it may be no header
        raise trace_error(path, above + 1, message, shown)
    rows = pd.DataFrame()
    with opened(path) as file:
        for _ in range(above):
            file.readline()
        for piece in _parsed(file, path, separator):
            if piece.index.max() >= MOST_ROWS:  # false where it is empty
                message = f"has more than {MOST_ROWS:,} rows: split it, or keep those of failures"
                raise trace_error(path, None, message)
            piece.index += above
            not_blank = _not_blank(piece.rename(columns=lambda name: str(name).strip(" #")))
            rows = rows if not_blank.empty else not_blank
            not_blank.attrs[POINTS_ARE_OPEN] = separator != ","  # which is decimal where they do
            yield not_blank
    if rows.empty:
        raise trace_error(path, None, "holds no row below the header")
    if rows.iloc[-1:, -1].isna().any():
        _require_whole(path, separator, sum(names.values()))


def require_no_print(path: PathLike[str]) -> None:
    """Raise TraceError for a table as programs print it for people."""
    head = head_of(path)
    for beginning, advice in PRINTED.items():
        if re.match(beginning, head):
            raise trace_error(path, None, f"is a table {advice}")


def _header(path: PathLike[str]) -> tuple[int, str]:
    """How many lines stand above the header, and the header: the first of as many cells as most.

    Above it are comments and titles; a comment is the header if a row follows it.
    """
    with opened(path) as file:
        lines = file.read(HEAD_BYTES).decode("utf-8-sig", errors="replace").splitlines()
    cells = [
        _cells(line, separator_of(line), path, 1 + k) for k, line in enumerate(lines[:MOST_ABOVE])
    ]
    filled = [[cell.strip() for cell in row if cell.strip(" #")] for row in cells]
    places = [k for k, row in enumerate(filled) if row and not lines[k].startswith("#")]
    several, n = [k for k in places if len(filled[k]) > 1], [len(cells[k]) for k in places]
    usual = [k for k in several if len(cells[k]) == max(n, key=n.count)]
    usual = [k for k in usual if not any(map(LIKE_A_TIME.match, filled[k]))]
    first = (usual or several or places or [0])[0]
    above = filled[first - 1] if first else []
    if above and len(above) == len(filled[first]) and any(map(LIKE_A_TIME.match, filled[first])):
        first -= 1
    return first, lines[first] if lines else ""


def _require_whole(path: PathLike[str], separator: str, n_columns: int) -> None:
    """Raise TraceError where a file ends within a row: with no end of line, and cells too few."""
    last, number = b"", 0
    with opened(path) as file:
        for number, last in enumerate(file, 1):  # noqa: B007 - the last one counts
            pass
    text = last.decode("utf-8", errors="replace")
    n_cells = len(_cells(text, separator, path, number))
    if text.strip() and not text.endswith(("\n", "\r")) and n_cells < n_columns:
        message = f"the file ends within this row: {n_cells} cells, the header has {n_columns}"
        raise trace_error(path, number, message)


def _cells(text: str, separator: str, path: PathLike[str], line: int) -> list[str]:
    """The cells of one line. Raises TraceError where it is no row."""
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error as error:  # of a cell of more than 131,072 characters
        raise trace_error(path, line, f"can't be read as a CSV: {error}") from None


def _not_blank(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that hold more than blanks in their first cell, and are not the header again."""
    rows = table.dropna(how="all")
    if (rows.iloc[:, 0] == rows.columns[0]).any():
        rows = rows[~(rows == rows.columns).all(axis=1)]
    is_single = rows.iloc[:, 1:].isna().all(axis=1)
    return rows[~is_single | (rows.iloc[:, 0].str.strip() != "")] if is_single.any() else rows


def _parsed(file: IO[bytes], path: PathLike[str], separator: str) -> Iterator[pd.DataFrame]:
    """Pieces of a CSV as pandas parses them; its complaints with file and line."""
    try:
        with warnings.catch_warnings(action="error", category=pd.errors.ParserWarning):
            yield from pd.read_csv(
                file, sep=separator, dtype=str, skip_blank_lines=False, index_col=False,
                encoding="utf-8-sig", keep_default_na=False, na_values=[""], on_bad_lines="error",
                chunksize=ROWS_AT_ONCE,
            )  # fmt: skip
    except pd.errors.ParserWarning:
        raise trace_error(path, 1, "rows have more cells than this header") from None
    except pd.errors.EmptyDataError:
        raise trace_error(path, None, "is empty") from None
    except pd.errors.ParserError as error:
        raise _no_csv(path, error) from None
    except UnicodeDecodeError as error:
        for _ in numbered_lines(path):  # says which line it is
            pass
        raise trace_error(path, None, f"can't be read: {error}") from None


def _no_csv(path: PathLike[str], error: pd.errors.ParserError) -> TraceError:
    line = re.search(r"line (\d+)", str(error))
    row = re.search(r"at row (\d+)", str(error))  # from 0, the header included
    number = int(line[1]) if line else int(row[1]) + 1 if row else None
    reason = str(error).strip().splitlines()[-1].removeprefix("Error tokenizing data. C error: ")
    return trace_error(path, number, f"can't be read as a CSV: {reason}")


# ----------------------------------------------------------------------------------------- columns

MOST_CELLS_SHOWN = 12  # of a header
A_NAME = re.compile(r"[^\W\d]+(?:[ .-][^\W\d]+)*")
LIKE_A_TIME = re.compile(r"\d{4}-\d\d-\d\d|\d+([.,]\d+)?$|.*(?<!\d)\d\d:\d\d(?!\d)")


def named_columns(
    table: pd.DataFrame,
    columns: Mapping[str, str],
    path: PathLike[str],
    names: tuple[str, ...],
    optional: Collection[str],
) -> pd.DataFrame:
    """Return the columns of the table, under our names."""
    if unknown := sorted(set(columns) - set(names)):
        message = f"there is no such column; known are {', '.join(names)}"
        raise trace_error(path, None, message, f"columns.{unknown[0]}")
    renamed: dict[str, str] = {}
    for name in names:
        header = columns.get(name, name)
        if header in renamed:
            message = f"the column {header!r} stands for {renamed[header]!r} already: say which one"
            message += f" is {name!r}, for example {name}=..."
            raise trace_error(path, header_line(table), message, name)
        if header in table:
            renamed[header] = name
        elif name not in optional or name in columns:
            hint = _hint(name, [str(column) for column in table.columns])
            message = f"there is no column {header!r} among the {len(table.columns)} of the header"
            raise trace_error(path, header_line(table), message + hint, name)
    return table[list(renamed)].rename(columns=renamed)


def header_line(table: pd.DataFrame) -> int:
    """The line of the header above a table's first rows."""
    return max(int(table.index[0]) + FIRST_ROW - 1, 1) if len(table) else 1


def _hint(name: str, header: list[str]) -> str:
    """Return the columns found, unless the line may be no header, and the option to write."""
    if any(LIKE_A_TIME.match(cell) for cell in header):
        return "; is the first line no header? Put one above it, such as node,start,end"
    if len(header) == 1:
        return f"; separate columns by {', '.join(SEPARATORS.values())}"
    one = {"node": ", or --node NAME that all are of one; a column for each node is not read",
           "end": ", --column duration=NAME how long it took"}.get(name, "")  # fmt: skip
    are_names = len(header) > 1 and all(A_NAME.fullmatch(cell) for cell in header)
    listed = ", ".join(quote(cell) for cell in header[:MOST_CELLS_SHOWN])
    there = f" ({listed})" if are_names else ""
    return f"{there}; --column {quote(name)}=NAME says which it is{one}"


def no_row_where(
    is_bad: Bools | pd.Series[bool], rows: pd.DataFrame | pd.Series[str], path: PathLike[str],
    key: str, complaint: str,
) -> None:  # fmt: skip
    """Raise TraceError at the first row that is bad."""
    bad = np.flatnonzero(np.asarray(is_bad, dtype=bool))
    if not len(bad):
        return
    first = int(bad[0])
    cells = rows[key] if isinstance(rows, pd.DataFrame) else rows
    cell = cells.iloc[first]
    value: Any = "" if pd.isna(cell) else cell
    more = f" (and {len(bad) - 1} more such rows)" if len(bad) > 1 else ""
    line = int(rows.index[first]) + FIRST_ROW
    message = complaint.replace("{value}", f"'{one_line(str(value))}'") + more
    raise trace_error(path, line if line > 0 else None, message, key)
