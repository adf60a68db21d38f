"""Slurm's accounting of jobs: those that a node took down, from ``sacct`` (run: Slurm 22.05.8)."""

from __future__ import annotations

from math import nan
from os import PathLike

import pandas as pd

from cprsim.failures.outages import Counted
from cprsim.failures.traces.files import has_columns, trace_error
from cprsim.failures.traces.log import Log, LogFormat
from cprsim.failures.traces.slurm import bar_table, local_hours, node_lists
from cprsim.failures.traces.spec import LogSpec

NEEDED = ("jobid", "state", "end", "nodelist")
COMMAND = "sacct -a -X -S 2024-01-01 -E now -s NODE_FAIL -P -o JobID,State,Start,End,NodeList"
LOST = "NODE_FAIL"


def read_slurm_jobs(log: PathLike[str], spec: LogSpec) -> Log:
    """Failures of nodes, instants at the ends of the jobs that they ended.

    Of a job on several nodes the one that failed is known by the column ``FailedNode`` (newer
    versions of Slurm) alone; without it such jobs are counted.
    """
    counted = Counted()
    jobs = bar_table(log, NEEDED, COMMAND)
    jobs = jobs[~jobs["jobid"].str.contains(".", regex=False)]  # steps fail with their jobs
    lost = jobs[jobs["state"].str.upper().str.startswith(LOST)]
    counted["dropped", "job(s) that no node took down left out"] = len(jobs) - len(lost)
    if lost.empty:
        raise trace_error(log, None, f"has no job in the state {LOST}")
    failed_node = lost.get("failednode", pd.Series("", lost.index))
    nodes = node_lists(lost["nodelist"].where(failed_node == "", failed_node), log)
    is_identified = (nodes.map(len) == 1) | (failed_node != "")
    note = "job(s) on several nodes left out: which of them failed is not said"
    counted["dropped", note] = int((~is_identified).sum())
    start = local_hours(lost["end"], log, spec, required=True)
    rows = pd.DataFrame({"node": nodes, "start": start, "end": nan, "cause": LOST})
    return Log(rows[is_identified].explode("node"), counted, points=True)


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: "the columns of `sacct`" if has_columns(head, "jobid", "state") else "",
    read=read_slurm_jobs,
    order=21,
)
