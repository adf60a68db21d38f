"""The failure records that Los Alamos published (LA-UR-05-7318, 1996 to 2005).

The published file has months as a spreadsheet garbled them: ``Nov-96`` is November 1996, ``2-Mar``
was March 2002.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError, one_line
from cprsim.failures.outages import Counted
from cprsim.logs.files import has_columns, trace_error
from cprsim.logs.log import LONGEST_WINDOW_H, Log, LogFormat
from cprsim.logs.reading import no_row_where, read_csv
from cprsim.logs.spec import LogSpec
from cprsim.logs.times import hours_since_1970

STARTED, LASTED = "Prob Started", "Down Time"
CAUSES = ["Facilities", "Hardware", "Human Error", "Network", "Undetermined", "Software"]
HIGHEST = {"System": 999, "nodes": 999_999, "nodenumz": 999_999, LASTED: LONGEST_WINDOW_H * 60}
SYSTEM_FACTOR = 1_000_000  # above any number of nodes: one key per system and node
MONTHS = {"installed": "node install", "entry": "node prod", "exit": "node decom"}
UNDATED = ("current", "before tracking", "")


def read_lanl(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from the failure records of Los Alamos (LA-UR-05-7318).

    One lasts its ``Down Time``, as the written instants know no summer time. A system was watched
    from its first record to the last one of the file.
    """
    if spec.system is None and spec.format is None:
        raise ParameterError(
            f"{one_line(str(Path(log)))}: these are LANL's records, of which `system` has to be "
            "said (--system 2), or --format lanl for all systems together"
        )
    table = read_csv(log)
    needed = (*HIGHEST, STARTED, *CAUSES, *(MONTHS.values() if spec.has_dates else ()))
    if missing := [name for name in needed if name not in table]:
        raise trace_error(log, 1, "this column of LANL's records is missing", missing[0])
    table = table.fillna({"nodes": "0", "nodenumz": "0"})  # system 17 tells no nodes apart
    start = pd.to_datetime(table[STARTED], format="%m/%d/%Y %H:%M", errors="coerce")
    no_row_where(start.isna(), table, log, STARTED, "{value} is no m/d/Y H:M")
    table["start"] = hours_since_1970(start)
    for name, most in HIGHEST.items():
        numbers = pd.to_numeric(table[name], errors="coerce").to_numpy(dtype=float)
        is_valid = (numbers >= 0) & (numbers <= most) & (numbers == np.floor(numbers))
        complaint = f"{{value}} is no whole number from 0 to {most:,.0f}"
        no_row_where(~is_valid, table, log, name, complaint)
        table[name] = numbers.astype(np.int64)
    last_h, systems = float(table["start"].max()), sorted(table["System"].unique())
    n_read, counted = len(table), Counted()
    if spec.system is not None:
        table = table[table["System"] == spec.system]
    if table.empty:
        message = f"there is no system {spec.system}; there are {', '.join(map(str, systems))}"
        raise trace_error(log, None, message, "system")
    counted["no_failure", "record(s) of other systems"] = n_read - len(table)
    keys = np.asarray(table["System"] * SYSTEM_FACTOR + table["nodenumz"], dtype=np.int64)
    unique, node = np.unique(keys, return_inverse=True)
    names = pd.Index([f"{key // SYSTEM_FACTOR}/{key % SYSTEM_FACTOR}" for key in unique.tolist()])
    marked = table[CAUSES].notna()
    rows = pd.DataFrame({
        "node": pd.Categorical.from_codes(node, names, ordered=True),
        "start": table["start"],
        "end": table["start"] + table[LASTED] / 60,
        "lasted": table[LASTED] / 60,
        "cause": marked.idxmax(axis=1).where(marked.any(axis=1), ""),
    })  # fmt: skip
    return Log(
        rows, counted, points=False, n_read=n_read, watched=(float(rows["start"].min()), last_h),
        n_nodes=int(table.groupby("System")["nodes"].max().sum()),
        evidence={"n_nodes": "column nodes"}, records_alone=True,
        dates=_dates(table.assign(node=rows["node"]), log) if spec.has_dates else None,
    )  # fmt: skip


def _dates(table: pd.DataFrame, log: PathLike[str]) -> pd.DataFrame:
    """When each node joined and left [h].

    A node is of age 0 from the month of its installation on, and watched from that of its
    production to the end of the month of its decommissioning. Nodes that never failed are not in
    the file.
    """
    rows = table.drop_duplicates("node")
    dates = pd.DataFrame({"node": rows["node"].astype(str)})
    for date, column in MONTHS.items():
        text = rows[column].fillna("").str.strip()
        turned = text.str.replace(r"^(\d)-(\w{3})$", r"\2-0\1", regex=True)
        months = pd.to_datetime(turned, format="%b-%y", errors="coerce")
        bad = months.isna() & ~text.isin(UNDATED)
        no_row_where(bad, rows, log, column, "{value} is no month such as Nov-96")
        dates[date] = hours_since_1970(months + pd.DateOffset(months=date == "exit"))
    return dates.assign(installed=dates["installed"].fillna(dates["entry"]))


FORMAT = LogFormat(
    options=frozenset({"--system", "--period"}),
    looks_like=lambda head: (
        "the columns of LANL's records" if has_columns(head, STARTED, LASTED, separator=",") else ""
    ),
    read=read_lanl,
    order=10,
    source="LANL's failure records LA-UR-05-7318: the Computer Failure Data Repository (CFDR)",
)
