"""The dates of LANL's nodes: installed, in production, decommissioned, each a month.

The published file has months as a spreadsheet garbled them: ``Nov-96`` is November 1996, ``2-Mar``
was March 2002.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.lives import NodeLives
from cprsim.failures.outages import Outages
from cprsim.failures.traces.node_file import origin_h
from cprsim.failures.traces.reading import no_row_where, read_csv, trace_error

DATES = ("node install", "node prod", "node decom")
UNDATED = {"current", "before tracking", ""}
MONTH = re.compile(
    r"(?:(?P<name>[A-Z][a-z]{2})-(?P<year>\d\d)|(?P<digit>\d)-(?P<month>[A-Z][a-z]{2}))"
)


def lanl_lives(path: Path, system: int, outages: Outages) -> NodeLives:
    """The lives of one system's nodes, on the clock of its log.

    A node is of age 0 from the month of its installation on, and watched from that of its
    production to the end of the month of its decommissioning. Nodes that never failed are not in
    the file: they are taken to have the dates that most of the system's nodes have.

    Parameters
    ----------
    path : the records
    system : the column ``System``
    outages : of that system, see `lanl.read_lanl`

    Raises
    ------
    TraceError
        for a date that is none, with file and line.
    """
    table = read_csv(path)
    for column in DATES:
        if column not in table:
            raise trace_error(path, 1, "this column of LANL's records is missing", column)
    mine = table[table["System"] == str(system)]
    names = [f"{system}/{number}" for number in mine["nodenumz"].fillna("0")]
    first = ~pd.Series(names).duplicated().to_numpy()
    rows, names = (
        mine[first],
        [name for name, is_first in zip(names, first, strict=True) if is_first],
    )
    zero_h = origin_h(outages)
    installed, production, gone = (
        np.array([_month_h(cell, end=column == DATES[2]) for cell in rows[column].fillna("")])
        for column in DATES
    )
    for column, months in zip(DATES, (installed, production, gone), strict=True):
        no_row_where(months == np.inf, rows, path, column, "{value} is no month such as Nov-96")
    enters_h = np.where(np.isnan(production), -np.inf, production - zero_h)
    born_h = np.where(np.isnan(installed), enters_h, installed - zero_h)
    leaves_h = np.where(np.isnan(gone), np.inf, gone - zero_h)
    enters_h = np.maximum(enters_h, 0.0)
    born_h = np.where(np.isfinite(born_h), born_h, 0.0)  # before tracking: new as the log begins
    n_silent = outages.n_nodes - len(names)
    usual = pd.Series(list(zip(born_h, enters_h, leaves_h, strict=True))).mode()[0]
    silent = np.tile(np.array(usual), (n_silent, 1)).T
    return NodeLives(
        (*names, *(f"{system}/silent-{number}" for number in range(n_silent))),
        *(
            np.append(of, more)
            for of, more in zip((born_h, enters_h, leaves_h), silent, strict=True)
        ),
    )


def _month_h(cell: str, *, end: bool) -> float:
    """A month's begin or end [h since 1970]; NaN where there is no date, inf for what is none."""
    text = cell.strip()
    if text in UNDATED:
        return np.nan
    found = MONTH.fullmatch(text)
    if found is None:
        return np.inf
    year = 2000 + int(found["digit"]) if found["digit"] else _century(int(found["year"]))
    stamp = pd.to_datetime(
        f"{found['name'] or found['month']} {year}", format="%b %Y", errors="coerce", utc=True
    )
    if pd.isna(stamp):
        return np.inf
    return float((stamp + pd.DateOffset(months=1) if end else stamp).value / 3.6e12)


def _century(year: int) -> int:
    return 1900 + year if year >= 70 else 2000 + year
