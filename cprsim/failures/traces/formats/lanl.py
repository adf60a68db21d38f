"""Reader of the failure records that Los Alamos published (LA-UR-05-7318, 1996 to 2005).

The published file has months as a spreadsheet garbled them: ``Nov-96`` is November 1996, ``2-Mar``
was March 2002.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.outages import NodeLives, Outages, outages_of
from cprsim.failures.traces.asked import LogFormat, LogOptions, Period
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import LONGEST_WINDOW_H, checked, n_observed
from cprsim.failures.traces.node_file import and_silent_ones, origin_h
from cprsim.failures.traces.reading import no_row_where, read_csv
from cprsim.failures.traces.times import date_h, hours_since_1970, written
from cprsim.records import Floats, Ints

CAUSES = ("Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software")
NUMBERS = ("System", "nodes", "nodenumz", "Down Time")
STARTED = "Prob Started"
TIME = "%m/%d/%Y %H:%M"
SYSTEM_FACTOR = 1_000_000  # above any number of nodes: one key per system and node


def read_lanl(
    path: Path | str,
    *,
    system: int | None = None,
    period: Period = (None, None),
    n_nodes: int | None = None,
) -> Outages:
    """Outages from the failure records of Los Alamos (LA-UR-05-7318).

    Returns Outages; one lasts its ``Down Time``, as the written instants know no summer time.

    Raises TraceError with file and line.
    """
    path = Path(path)
    table = read_csv(path)
    hours, numbers = _columns(table, path)
    mine = np.ones(len(table), dtype=bool)
    if system is not None:
        mine = numbers["System"] == system
    if not mine.any():
        known = ", ".join(str(number) for number in np.unique(numbers["System"]))
        raise trace_error(path, None, f"there is no system {system}; there are {known}", "system")
    from_h, to_h = _window(hours[mine].min(), hours.max(), period, path)
    if period[1] is not None:
        mine &= (hours < to_h) | (to_h == hours.max())
    keys = numbers["System"] * SYSTEM_FACTOR + numbers["nodenumz"]
    names, node = np.unique(keys[mine], return_inverse=True)
    begin_h = hours[mine] - from_h
    outages = outages_of(
        node.astype(np.int64),
        begin_h,
        begin_h + numbers["Down Time"][mine] / 60,
        _causes(table[mine]),
        n_nodes=n_observed(
            max(_n_installed(numbers, system), len(names)) if n_nodes is None else n_nodes,
            len(names),
            path,
        ),
        window_h=to_h - from_h,
        origin=written(from_h),
        node_names=tuple(f"{key // SYSTEM_FACTOR}/{key % SYSTEM_FACTOR}" for key in names),
    )
    return checked(outages, path)


def _columns(table: pd.DataFrame, path: Path) -> tuple[Floats, dict[str, Ints]]:
    """Start of each outage in hours since 1970, and the whole numbers by column."""
    _require(table, (*NUMBERS, STARTED, *CAUSES), path)
    start = pd.to_datetime(table[STARTED], format=TIME, errors="coerce")
    no_row_where(start.isna().to_numpy(), table, path, STARTED, "{value} is no m/d/Y H:M")
    return hours_since_1970(start), {column: _whole(table, column, path) for column in NUMBERS}


def _require(table: pd.DataFrame, columns: tuple[str, ...], path: Path) -> None:
    for column in columns:
        if column not in table:
            raise trace_error(path, 1, "this column of LANL's records is missing", column)


def _whole(table: pd.DataFrame, column: str, path: Path) -> Ints:
    cells = table[column]
    if column in ("nodes", "nodenumz"):
        cells = cells.fillna("0")  # system 17 tells no nodes apart
    numbers = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=float)
    most = SYSTEM_FACTOR - 1 if column != "Down Time" else LONGEST_WINDOW_H * 60
    whole = (numbers >= 0) & (numbers <= most) & (numbers == np.floor(numbers))
    no_row_where(~whole, table, path, column, f"{{value}} is no whole number from 0 to {most:,.0f}")
    return numbers.astype(np.int64)


def _n_installed(numbers: dict[str, Ints], system: int | None) -> int:
    """Nodes of the system, or of all systems together."""
    systems = np.unique(numbers["System"]) if system is None else [system]
    return int(sum(numbers["nodes"][numbers["System"] == one].max() for one in systems))


def _window(first_h: float, last_h: float, period: Period, path: Path) -> tuple[float, float]:
    """The observed part of the period, in hours since 1970."""
    from_h = first_h if period[0] is None else max(first_h, date_h(str(period[0]), path, None))
    to_h = last_h if period[1] is None else min(last_h, date_h(str(period[1]), path, None))
    if from_h >= to_h:
        raise trace_error(path, None, f"no record within {period[0]} to {period[1]}", "period")
    return float(from_h), float(to_h)


def _causes(table: pd.DataFrame) -> tuple[str, ...]:
    """The cause column that is filled in; empty where none is."""
    named = table[list(CAUSES)].notna()
    return tuple(named.idxmax(axis=1).where(named.any(axis=1), ""))


# ----------------------------------------------------------------------------------- dates of nodes

DATES = ("node install", "node prod", "node decom")
UNDATED = ("current", "before tracking", "")


def lanl_lives(path: Path, system: int, outages: Outages) -> NodeLives:
    """The lives of one system's nodes, on the clock of its log.

    A node is of age 0 from the month of its installation on, and watched from that of its
    production to the end of the month of its decommissioning. Nodes that never failed are not in
    the file: they are taken to have the dates that most of the system's nodes have.

    Raises TraceError for a date that is none, with file and line.
    """
    table = read_csv(path)
    _require(table, DATES, path)
    mine = table[table["System"] == str(system)].fillna({"nodenumz": "0"})
    rows = mine.drop_duplicates("nodenumz")
    zero_h = origin_h(outages)
    installed, production, gone = (
        _months_h(rows[column].fillna(""), path, end=column == DATES[2]) - zero_h
        for column in DATES
    )
    enters_h = np.where(np.isnan(production), -np.inf, production)
    born_h = np.where(np.isnan(installed), enters_h, installed)
    leaves_h = np.where(np.isnan(gone), np.inf, gone)
    enters_h = np.maximum(enters_h, 0.0)
    born_h = np.where(np.isfinite(born_h), born_h, 0.0)  # before tracking: new as the log begins
    names = tuple(f"{system}/{number}" for number in rows["nodenumz"])
    return and_silent_ones(NodeLives(names, born_h, enters_h, leaves_h), outages.n_nodes)


def _months_h(cells: pd.Series[str], path: Path, *, end: bool) -> Floats:
    """Each month's begin or end [h since 1970], (n,); NaN where there is no date."""
    text = cells.str.strip()
    turned = text.str.replace(r"^(\d)-(\w{3})$", r"\2-0\1", regex=True)
    months = pd.to_datetime(turned, format="%b-%y", errors="coerce")
    bad = (months.isna() & ~text.isin(UNDATED)).to_numpy(dtype=bool)
    no_row_where(bad, cells, path, str(cells.name), "{value} is no month such as Nov-96")
    return hours_since_1970(months + pd.DateOffset(months=1) if end else months)


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_lanl(path, system=asked.system, period=asked.period, n_nodes=asked.n_nodes)


FORMAT = LogFormat(
    name="lanl",
    options=frozenset({"--system", "--period"}),
    looks_like=lambda head: (
        "the columns of LANL's records"
        if head.names("Prob Started", "Down Time", "nodenumz", separator=",")
        else ""
    ),
    read=_read,
    order=10,
)
