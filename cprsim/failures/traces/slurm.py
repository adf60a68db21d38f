"""What Slurm's commands print with ``-P``: tables between bars, and lists of nodes."""

from __future__ import annotations

import re
from itertools import product
from os import PathLike

import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.traces.files import numbered_lines, trace_error
from cprsim.failures.traces.reading import FIRST_ROW, no_row_where
from cprsim.failures.traces.spec import LogSpec
from cprsim.failures.traces.times import read_times

# ------------------------------------------------------------------------------------------- tables

NO_TIME = ("unknown", "none")


def bar_table(
    path: PathLike[str], needed: tuple[str, ...], command: str, free_text: str = ""
) -> pd.DataFrame:
    """The rows of a table as text, columns in lower case; its index is the line less `FIRST_ROW`.

    Raises TraceError with the line, for a missing column or a row of another length.
    """
    header: list[str] = []
    rows: dict[int, list[str]] = {}
    for line, text in numbered_lines(path):
        cells = [cell.strip() for cell in text.split("|")]
        lower = [cell.lower() for cell in cells]
        if lower == header:
            continue  # two outputs, one after the other
        if not header:
            header = lower
            if missing := [name for name in needed if name not in header]:
                message = f"is missing among the {len(header)} columns; write it with {command}"
                raise trace_error(path, line, message, missing[0])
            continue
        if (extra := len(cells) - len(header)) > 0 and free_text in header:
            at = header.index(free_text)
            cells[at : at + extra + 1] = ["|".join(cells[at : at + extra + 1])]
        if len(cells) != len(header):
            message = f"the row has {len(cells)} cells where the header has {len(header)}"
            raise trace_error(path, line, message)
        rows[line - FIRST_ROW] = cells
    if not header:
        raise trace_error(path, None, "is empty")
    return pd.DataFrame.from_dict(rows, orient="index", columns=header, dtype=object)


def local_hours(cells: pd.Series[str], path: PathLike[str], asked: LogSpec) -> pd.Series[float]:
    """Time stamps as hours since 1970, NaN for ``Unknown``; raises TraceError with the line."""
    known = cells.mask(cells.str.lower().isin(NO_TIME), "")
    if not (known != "").any():
        return pd.Series(float("nan"), cells.index)
    return pd.Series(read_times(known, None, path, tz=asked.tz).hours, cells.index)


def required_hours(cells: pd.Series[str], path: PathLike[str], asked: LogSpec) -> pd.Series[float]:
    """As `local_hours`; raises TraceError for a cell without an instant."""
    hours = local_hours(cells, path, asked)
    no_row_where(hours.isna().to_numpy(), cells, path, str(cells.name), "{value} is no instant")
    return hours


# ----------------------------------------------------------------------------------- lists of nodes

MOST_NODES = 100_000
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\],\s]+)")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],\s])+")


def node_lists(cells: pd.Series[str], path: PathLike[str]) -> pd.Series:
    """The names of each list of nodes; raises TraceError with the line."""
    lists = []
    for row, cell in cells.items():
        try:
            lists.append(expanded(cell))
        except ParameterError as error:
            raise trace_error(
                path, int(str(row)) + FIRST_ROW, str(error), str(cells.name)
            ) from None
    return pd.Series(lists, cells.index, dtype=object)


def expanded(text: str) -> list[str]:
    """The names in a list of nodes, in its order.

    Raises ParameterError for a list that is none, or of more than `MOST_NODES` names.
    """
    items = _ITEM.findall(text)
    if not items or _ITEM.sub("", text).replace(",", "").strip():
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
        if found is None or not 0 <= last - first < MOST_NODES:
            raise ParameterError(f"'[{one_line(ranges)}]' is no range of numbers such as 001-016")
        numbers += [f"{number:0{len(found[1])}d}" for number in range(first, last + 1)]
    return numbers
