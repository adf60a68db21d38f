"""Slurm's accounting of nodes: ``sacctmgr show event`` (run: Slurm 22.05.8)."""

from __future__ import annotations

from os import PathLike

import pandas as pd

from cprsim.failures.outages import Counted
from cprsim.logs.files import has_columns, trace_error
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.slurm import bar_table, local_hours, node_lists
from cprsim.logs.spec import LogSpec
from cprsim.logs.states import joined

NEEDED = ("nodename", "timestart", "timeend", "state")
SACCTMGR = "sacctmgr show event start=2024-01-01 -P"
FAILED = r"(?:^|\+)(?:DOWN|FAIL|ERROR|DRAIN|NOT?_RESPOND|UNKNOWN|INVAL)|\*$"  # IDLE+DRAIN, IDLE*
STAMP = r"^(?:(.*?)\s*)\[[^\[]*@[^\[]*\]$"  # who wrote a reason and when, at its end


def read_slurm_events(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages of nodes that were down, failing or drained; the cause is the state and the reason.

    Events of the whole cluster, and states that are no failure, are counted. A drained node that
    stops responding is one outage.
    """
    counted = Counted()
    table = bar_table(log, NEEDED, SACCTMGR, "reason")
    of_nodes = table["nodename"] != ""
    n_read = len(table)
    counted["no_failure", "event(s) of the whole cluster left out"] = int((~of_nodes).sum())
    table = table[of_nodes].assign(state=table["state"].str.upper())
    failed = table["state"].str.contains(FAILED)
    for name, n in table["state"][~failed].value_counts().items():
        words = f"event(s) left out whose state is no failure ({str(name) or 'none'})"
        counted["no_failure", words] = int(n)
    table = table[failed]
    if table.empty:
        raise trace_error(log, None, "names no node that was down, failing or drained")
    cause = table["state"].str.rstrip("*$~#!%@^-+")
    if "reason" in table:
        reason = table["reason"].str.replace(STAMP, r"\1", regex=True)
        cause = cause.where(reason == "", cause + " / " + reason)
    rows = pd.DataFrame({
        "node": node_lists(table["nodename"], log),
        "start": local_hours(table["timestart"], log, spec, required=True),
        "end": local_hours(table["timeend"], log, spec),
        "cause": cause, "open": True,
    }).explode("node")  # fmt: skip
    n_read += len(rows) - len(table)
    rows = joined(rows, 0, "event(s) continue the one before, part of its outage", counted)
    return Log(rows, counted, points=False, n_read=n_read)


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: (
        "the columns of `sacctmgr show event`" if has_columns(head, *NEEDED) else ""
    ),
    read=read_slurm_events,
    order=20,
)
