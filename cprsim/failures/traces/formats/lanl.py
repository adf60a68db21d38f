"""Reader of the failure records that Los Alamos published (LA-UR-05-7318, 1996 to 2005).

The published file has months as a spreadsheet garbled them: ``Nov-96`` is November 1996, ``2-Mar``
was March 2002.
"""

from __future__ import annotations

from collections import Counter
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import LONGEST_WINDOW_H, Log
from cprsim.failures.traces.reading import no_row_where, read_csv
from cprsim.failures.traces.spec import LogFormat, LogSpec
from cprsim.failures.traces.times import hours_since_1970
from cprsim.records import Floats, Ints

CAUSES = ("Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software")
NUMBERS = ("System", "nodes", "nodenumz", "Down Time")
STARTED = "Prob Started"
TIME = "%m/%d/%Y %H:%M"
SYSTEM_FACTOR = 1_000_000  # above any number of nodes: one key per system and node


def read_lanl(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from the failure records of Los Alamos (LA-UR-05-7318).

    One lasts its ``Down Time``, as the written instants know no summer time. A system was watched
    from its first record to the last one of the file.

    Raises TraceError with file and line; ParameterError where nobody says which system.
    """
    if spec.system is None and spec.format is None:
        raise ParameterError(
            f"{one_line(str(Path(log)))}: these are LANL's records, of which `system` has to be "
            "said (--system 2), or --format lanl for all systems together"
        )
    table = read_csv(log)
    hours, numbers = _columns(table, log)
    mine = np.ones(len(table), dtype=bool)
    if spec.system is not None:
        mine = numbers["System"] == spec.system
    if not mine.any():
        known = ", ".join(str(number) for number in np.unique(numbers["System"]))
        raise trace_error(
            log, None, f"there is no system {spec.system}; there are {known}", "system"
        )
    keys = (numbers["System"] * SYSTEM_FACTOR + numbers["nodenumz"])[mine]
    found, node = np.unique(keys, return_inverse=True)
    names = [f"{key // SYSTEM_FACTOR}/{key % SYSTEM_FACTOR}" for key in found]
    rows = pd.DataFrame({
        "node": pd.Categorical(np.array(names)[node], names, ordered=True),
        "start": hours[mine],
        "end": hours[mine] + numbers["Down Time"][mine] / 60,
            "lasted": numbers["Down Time"][mine] / 60,
        "cause": _causes(table[mine]),
    }, index=table.index[mine])  # fmt: skip
    return Log(
        rows, Counter(), points=False, watched=(float(hours[mine].min()), float(hours.max())),
        n_nodes=_n_installed(numbers, spec.system), known={"n_nodes": "column nodes"},
        dates=_dates(table[mine], log) if spec.has_dates else None, records_alone=True,
    )  # fmt: skip


def _columns(table: pd.DataFrame, path: PathLike[str]) -> tuple[Floats, dict[str, Ints]]:
    """Start of each outage in hours since 1970, and the whole numbers by column."""
    _require(table, (*NUMBERS, STARTED, *CAUSES), path)
    start = pd.to_datetime(table[STARTED], format=TIME, errors="coerce")
    no_row_where(start.isna().to_numpy(), table, path, STARTED, "{value} is no m/d/Y H:M")
    return hours_since_1970(start), {column: _whole(table, column, path) for column in NUMBERS}


def _require(table: pd.DataFrame, columns: tuple[str, ...], path: PathLike[str]) -> None:
    for column in columns:
        if column not in table:
            raise trace_error(path, 1, "this column of LANL's records is missing", column)


def _whole(table: pd.DataFrame, column: str, path: PathLike[str]) -> Ints:
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


def _causes(table: pd.DataFrame) -> tuple[str, ...]:
    """The cause column that is filled in; empty where none is."""
    named = table[list(CAUSES)].notna()
    return tuple(named.idxmax(axis=1).where(named.any(axis=1), ""))


# ----------------------------------------------------------------------------------- dates of nodes

MONTHS = {"installed": "node install", "entry": "node prod", "exit": "node decom"}
UNDATED = ("current", "before tracking", "")


def _dates(table: pd.DataFrame, log: PathLike[str]) -> pd.DataFrame:
    """When each node joined and left [h].

    A node is of age 0 from the month of its installation on, and watched from that of its
    production to the end of the month of its decommissioning. Nodes that never failed are not in
    the file.
    """
    _require(table, tuple(MONTHS.values()), log)
    rows = table.fillna({"nodenumz": "0"}).drop_duplicates("nodenumz")
    hours = {
        ours: _months_h(rows[theirs].fillna(""), log, end=ours == "exit")
        for ours, theirs in MONTHS.items()
    }
    hours["installed"] = np.where(np.isnan(hours["installed"]), hours["entry"], hours["installed"])
    return pd.DataFrame({"node": rows["System"] + "/" + rows["nodenumz"], **hours})


def _months_h(cells: pd.Series[str], path: PathLike[str], *, end: bool) -> Floats:
    """Each month's begin or end [h since 1970], (n,); NaN where there is no date."""
    text = cells.str.strip()
    turned = text.str.replace(r"^(\d)-(\w{3})$", r"\2-0\1", regex=True)
    months = pd.to_datetime(turned, format="%b-%y", errors="coerce")
    bad = (months.isna() & ~text.isin(UNDATED)).to_numpy(dtype=bool)
    no_row_where(bad, cells, path, str(cells.name), "{value} is no month such as Nov-96")
    return hours_since_1970(months + pd.DateOffset(months=1) if end else months)


FORMAT = LogFormat(
    options=frozenset({"--system", "--period"}),
    looks_like=lambda head: (
        "the columns of LANL's records"
        if head.names("Prob Started", "Down Time", "nodenumz", separator=",")
        else ""
    ),
    read=read_lanl,
    order=10,
    source="LANL's failure records LA-UR-05-7318: the Computer Failure Data Repository (CFDR)",
)
