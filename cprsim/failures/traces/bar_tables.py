"""Tables of Slurm's commands with ``-P``: a header, cells between bars, local time stamps."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.failures.traces.asked import Asked
from cprsim.failures.traces.reading import FIRST_ROW, trace_error
from cprsim.failures.traces.text_lines import numbered_lines
from cprsim.failures.traces.times import Style, read_times
from cprsim.foreign import one_line
from cprsim.records import Floats

NO_TIME = {"unknown", "none", ""}


class BarRow(NamedTuple):
    """One row below the header."""

    line: int
    cells: dict[str, str]  # by the column's name in lower case


def bar_rows(
    path: Path, needed: tuple[str, ...], command: str, free_text: str = ""
) -> Iterator[BarRow]:
    """The rows of a table.

    Parameters
    ----------
    path : the file
    needed : columns that have to be there, in lower case
    command : that writes such a table, for messages
    free_text : the column whose cells may hold bars themselves, as people write them

    Raises
    ------
    TraceError
        with the line, for a missing column or a row of another length.
    """
    header: list[str] = []
    for line, text in numbered_lines(path):
        cells = [cell.strip() for cell in text.split("|")]
        if [cell.lower() for cell in cells] == header:
            continue  # two outputs, one after the other
        if not header:
            header = [cell.lower() for cell in cells]
            for name in needed:
                if name not in header:
                    message = f"is missing among the {len(header)} columns; write it with {command}"
                    raise trace_error(path, line, message, name)
            continue
        cells = _joined(cells, header, free_text)
        if len(cells) != len(header):
            message = f"the row has {len(cells)} cells where the header has {len(header)}"
            raise trace_error(path, line, message)
        yield BarRow(line, dict(zip(header, cells, strict=True)))
    if not header:
        raise trace_error(path, None, "is empty")


def _joined(cells: list[str], header: list[str], free_text: str) -> list[str]:
    """The cells, with those joined that bars within a free text made."""
    extra = len(cells) - len(header)
    if extra <= 0 or free_text not in header:
        return cells
    at = header.index(free_text)
    return [*cells[:at], "|".join(cells[at : at + extra + 1]), *cells[at + extra + 1 :]]


def local_hours(
    path: Path, rows: list[BarRow], column: str, asked: Asked, *, required: bool
) -> Floats:
    """A column's time stamps as hours since 1970, (n_rows,); NaN for ``Unknown``.

    Raises
    ------
    TraceError
        with the line, for what is no time stamp, or none where one is `required`.
    """
    cells = [row.cells[column] for row in rows]
    known = ["" if cell.lower() in NO_TIME else cell for cell in cells]
    index = [row.line - FIRST_ROW for row in rows]
    if not any(known):
        hours = np.full(len(rows), np.nan)
    else:
        text = pd.Series(known, index=index, name=column, dtype=object)
        hours = read_times(text, None, path, None, Style(None, asked.tz)).hours
    if required and np.isnan(hours).any():
        at = int(np.flatnonzero(np.isnan(hours))[0])
        message = f"'{one_line(cells[at])}' is no instant"
        raise trace_error(path, rows[at].line, message, column)
    return hours
