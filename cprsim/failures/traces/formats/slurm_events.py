"""Slurm's accounting of nodes: ``sacctmgr show event`` (run: Slurm 22.05.8)."""

from __future__ import annotations

from collections import Counter
from os import PathLike

import numpy as np
import pandas as pd

from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import Log
from cprsim.failures.traces.slurm import bar_table, local_hours, node_lists, required_hours
from cprsim.failures.traces.spec import LogFormat, LogSpec

NEEDED = ("nodename", "timestart", "timeend", "state")
COMMAND = "sacctmgr show event start=2024-01-01 -P"
FAILED = ("DOWN", "FAIL", "ERROR", "DRAIN", "NO_RESPOND", "UNKNOWN")  # how states begin
STAMP = r"^(?:(.*?)\s*)\[[^\[]*@[^\[]*\]$"  # who wrote a reason and when, at its end


def read_slurm_events(path: PathLike[str], asked: LogSpec) -> Log:
    """Outages from ``sacctmgr show event``: nodes that were down, failing or drained.

    An end ``Unknown`` is none. Events of the whole cluster, and states that are no failure
    (planned, powered down, under maintenance), are left out and counted. The cause is the state
    and the reason that somebody gave. Where one event of a node begins when another ends (a
    drained node that stops responding), they are one outage.

    Raises TraceError with file and line.
    """
    counted = Counter[str]()
    table = bar_table(path, NEEDED, COMMAND, "reason")
    of_nodes = table["nodename"] != ""
    counted["event(s) of the whole cluster left out"] += int((~of_nodes).sum())
    table = table[of_nodes]
    state = table["state"].str.upper()
    failed = state.map(_is_failure).astype(bool)
    for name, n in state[~failed].value_counts().items():
        counted[f"event(s) left out whose state is no failure ({str(name) or 'none'})"] += int(n)
    table = table[failed]
    if table.empty:
        raise trace_error(path, None, "names no node that was down, failing or drained")
    cause = state[failed].str.rstrip("*$~#!%@^-+")
    if "reason" in table:
        reason = table["reason"].str.replace(STAMP, r"\1", regex=True)
        cause = cause.where(reason == "", cause + " / " + reason)
    rows = pd.DataFrame({
        "node": node_lists(table["nodename"], path),
        "start": required_hours(table["timestart"], path, asked),
        "end": local_hours(table["timeend"], path, asked),
        "cause": cause,
    }).explode("node")  # fmt: skip
    return Log(_joined(rows, counted), counted, points=False)


def _is_failure(state: str) -> bool:
    return any(part.startswith(FAILED) for part in state.split("+"))  # IDLE+DRAIN


def _joined(rows: pd.DataFrame, counted: Counter[str]) -> pd.DataFrame:
    """Outages of a node that follow each other without a gap, as one with the first's cause."""
    rows = rows.sort_values(["node", "start"], kind="stable")
    before = rows.shift()
    goes_on = (rows["node"] == before["node"]) & (rows["start"] == before["end"])
    counted["event(s) that go on from the one before, part of its outage"] += int(goes_on.sum())
    is_last = np.append(~goes_on.to_numpy()[1:], True)
    return rows[~goes_on].assign(end=rows["end"].to_numpy()[is_last])


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: "the columns of `sacctmgr show event`" if head.names(*NEEDED) else "",
    read=read_slurm_events,
    order=20,
)
