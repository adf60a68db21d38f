"""What Slurm's commands print with ``-P``: tables between bars, and lists of nodes."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from math import prod
from os import PathLike

import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.logs.files import numbered_lines, trace_error
from cprsim.logs.reading import FIRST_ROW, no_row_where
from cprsim.logs.spec import LogSpec
from cprsim.logs.times import read_times

SACCT = (
    "`sacct -a -X --duplicates -S 2024-01-01 -E now -P -o "
    "JobID,State,Start,End,Elapsed,NNodes,NodeList`"
)
NO_TIME = ("", "unknown", "none")
UNKNOWN_NODE = "failure(s) of jobs on several nodes: the one that failed is not known"
MOST_NODES_OF_LIST = 100_000  # of the lists of one cell
MOST_NODES_OF_LISTS = 5_000_000  # of a log
_LIST = re.compile(r"(?:\[[^\[\]]*\]|[^\[\],\s])+")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?")  # wider ones are no node's


def bar_table(
    log: PathLike[str], needed: tuple[str, ...], command: str, free_text: str = ""
) -> pd.DataFrame:
    """The rows of a table as text, columns in lower case; its index is the line less `FIRST_ROW`.

    Bars within the column `free_text` belong to it.
    """
    header: list[str] = []
    rows: dict[int, list[str]] = {}
    for line, text in numbered_lines(log):
        cells = [cell.strip() for cell in text.split("|")]
        lower = [cell.lower() for cell in cells]
        if not header:
            header = lower
            if missing := [name for name in needed if name not in header]:
                message = f"is missing among the {len(header)} columns; write it with {command}"
                raise trace_error(log, line, message, missing[0])
        elif lower != header:  # which comes again where outputs were put together
            extra = len(cells) - len(header)
            if extra > 0 and free_text and free_text in header:
                at = header.index(free_text)
                cells[at : at + extra + 1] = ["|".join(cells[at : at + extra + 1])]
            if len(cells) != len(header):
                message = f"the row has {len(cells)} cells where the header has {len(header)}"
                raise trace_error(log, line, message)
            rows[line - FIRST_ROW] = cells
    if not header:
        raise trace_error(log, None, "is empty")
    return pd.DataFrame.from_dict(rows, orient="index", columns=header, dtype=object)


def local_hours(
    cells: pd.Series[str], log: PathLike[str], spec: LogSpec, *, required: bool = False
) -> pd.Series[float]:
    """Time stamps as hours since 1970, NaN for ``Unknown``; raises TraceError with the line."""
    none = cells.str.lower().isin(NO_TIME)
    if required:
        no_row_where(none, cells, log, str(cells.name), "{value} is no instant")
    if none.all():
        return pd.Series(float("nan"), cells.index)
    return pd.Series(read_times(cells.mask(none, ""), None, log, tz=spec.tz).hours, cells.index)


def node_lists(
    cells: pd.Series[str], log: PathLike[str], read: Callable[[str], list[str]] | None = None
) -> pd.Series:
    """The names of each list of nodes, by `expanded` or `read`; raises TraceError with the line."""
    lists, n_names = [], 0
    for row, cell in cells.items():
        try:
            lists.append((read or expanded)(cell))
            n_names += len(lists[-1])
            if n_names > MOST_NODES_OF_LISTS:
                message = f"up to here the lists name over {MOST_NODES_OF_LISTS:,} nodes"
                raise ParameterError(f"{message}: give the rows of a part of the log")
        except ParameterError as error:
            line = int(str(row)) + FIRST_ROW
            raise trace_error(log, line, str(error), str(cells.name)) from None
    return pd.Series(lists, cells.index, dtype=object)


def expanded(text: str) -> list[str]:
    """The names in a list of nodes, in its order: ``gpu[001-016,020],login1``."""
    lists = _LIST.findall(text)
    if not lists or _LIST.sub("", text).replace(",", "").strip():
        raise ParameterError(f"'{one_line(text)}' is no list of nodes such as gpu[001-016,020]")
    names: list[str] = []
    for element in lists:
        parts = [[plain] if plain else _numbers(ranges) for ranges, plain in _PART.findall(element)]
        if len(names) + prod(map(len, parts)) > MOST_NODES_OF_LIST:  # counted before they are made
            raise ParameterError(f"'{one_line(text)}' names more than {MOST_NODES_OF_LIST:,} nodes")
        names += ["".join(name) for name in product(*parts)]
    return names


def _numbers(ranges: str) -> list[str]:
    """The numbers in ``001-016,020``, as wide as they are written."""
    numbers: list[str] = []
    for part in ranges.split(","):
        match = _RANGE.fullmatch(part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if match is None or not 0 <= last - first < MOST_NODES_OF_LIST - len(numbers):
            raise ParameterError(f"'[{one_line(ranges)}]' is no range of numbers such as 001-016")
        numbers += [f"{number:0{len(match[1])}d}" for number in range(first, last + 1)]
    return numbers
