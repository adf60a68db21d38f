"""What Slurm's commands print with ``-P``: tables between bars, and lists of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.traces.asked import LogOptions
from cprsim.failures.traces.reading import FIRST_ROW, numbered_lines, trace_error
from cprsim.failures.traces.times import Style, read_times
from cprsim.foreign import one_line
from cprsim.records import Floats

# ------------------------------------------------------------------------------------------- tables

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
    path: Path, rows: list[BarRow], column: str, asked: LogOptions, *, required: bool
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


# ----------------------------------------------------------------------------------- lists of nodes

MOST_NODES = 100_000
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],\s])+")


def expanded(text: str) -> list[str]:
    """The names in a list of nodes, in its order.

    Raises
    ------
    ParameterError
        for a list that is none, or of more than `MOST_NODES` names.
    """
    items = _ITEM.findall(text)
    between = _ITEM.sub("", text)
    if not items or between.replace(",", "").strip():
        raise ParameterError(f"'{one_line(text)}' is no list of nodes such as gpu[001-016,020]")
    return [name for item in items for name in _names(item)]


def _names(item: str) -> list[str]:
    parts: list[list[str]] = []
    n_names = 1
    for ranges, plain in _PART.findall(item):
        parts.append([plain] if plain else _numbers(ranges))
        n_names *= len(parts[-1])
        if n_names > MOST_NODES:
            raise ParameterError(f"'{one_line(item)}' names more than {MOST_NODES:,} nodes")
    return ["".join(name) for name in product(*parts)]


def _numbers(ranges: str) -> list[str]:
    """The numbers in ``001-016,020``, as wide as they are written."""
    numbers: list[str] = []
    for one in ranges.split(","):
        found = _RANGE.fullmatch(one.strip())
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if last < first:
            raise ParameterError(f"'[{one_line(ranges)}]' is no range of numbers such as 001-016")
        if last - first >= MOST_NODES:
            raise ParameterError(f"'[{one_line(ranges)}]' names more than {MOST_NODES:,} nodes")
        assert found is not None
        numbers += [f"{number:0{len(found[1])}d}" for number in range(first, last + 1)]
    return numbers
