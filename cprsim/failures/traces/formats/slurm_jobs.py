"""Slurm's accounting of jobs: those that a node took down, from ``sacct`` (run: Slurm 22.05.8)."""

from __future__ import annotations

from collections import Counter
from math import nan
from os import PathLike

import pandas as pd

from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.log import Log
from cprsim.failures.traces.slurm import bar_table, node_lists, required_hours
from cprsim.failures.traces.spec import LogFormat, LogSpec

NEEDED = ("jobid", "state", "end", "nodelist")
COMMAND = "sacct -a -X -S 2024-01-01 -E now -s NODE_FAIL -P -o JobID,State,Start,End,NodeList"
LOST = "NODE_FAIL"


def read_slurm_jobs(path: PathLike[str], asked: LogSpec) -> Log:
    """Failures of nodes from the jobs that they ended, instants at the jobs' ends.

    Which node of a job failed is known where it had one, or where there is a column
    ``FailedNode`` (newer versions of Slurm); the others are left out and counted. Idle nodes that
    failed ended no job: `sacctmgr show event` has them, this has not. Jobs of one node that end
    together are one failure.

    Raises TraceError with file and line.
    """
    counted = Counter[str]()
    jobs = bar_table(path, NEEDED, COMMAND)
    jobs = jobs[~jobs["jobid"].str.contains(".", regex=False)]  # steps fail with their jobs
    lost = jobs[jobs["state"].str.upper().str.startswith(LOST)]
    counted["job(s) that no node took down left out"] = len(jobs) - len(lost)
    if lost.empty:
        raise trace_error(path, None, f"has no job in the state {LOST}")
    named = lost.get("failednode", pd.Series("", lost.index))
    nodes = node_lists(lost["nodelist"].where(named == "", named), path)
    known = (nodes.map(len) == 1) | (named != "")
    what = "job(s) on several nodes left out: which of them failed is not said"
    counted[what] = int((~known).sum())
    rows = pd.DataFrame({
        "node": nodes, "start": required_hours(lost["end"], path, asked), "end": nan, "cause": LOST,
    })  # fmt: skip
    rows = rows[known].explode("node").drop_duplicates(["node", "start"])
    return Log(rows, counted, points=True)


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: "the columns of `sacct`" if head.names("jobid", "state") else "",
    read=read_slurm_jobs,
    order=21,
)
