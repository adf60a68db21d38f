"""Slurm's accounting of jobs: those that a node took down, from ``sacct`` (run: Slurm 22.05.8)."""

from __future__ import annotations

from math import nan
from os import PathLike
from typing import Any

import pandas as pd

from cprsim.failures.outages import Counted
from cprsim.logs.files import has_columns, trace_error
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.slurm import SACCT, UNKNOWN_NODE, bar_table, local_hours, node_lists
from cprsim.logs.spec import UNKNOWN_WORDS, LogSpec

NEEDED_OF_JOBS = ("jobid", "state", "end", "nodelist")
BY_NODE = ("NODE_FAIL", "BOOT_FAIL")


def read_slurm_jobs(log: PathLike[str], spec: LogSpec) -> Log:
    """Failures of nodes, instants at the ends of the jobs that they ended.

    Of a job on several nodes the one that failed is known by the column ``FailedNode`` (newer
    versions of Slurm) alone; without it the failure is one of any of them.
    """
    counted = Counted()
    table = bar_table(log, NEEDED_OF_JOBS, SACCT)
    jobs = table[~table["jobid"].str.contains(".", regex=False)]  # steps fail with their jobs
    counted["no_failure", "step(s) of jobs"] = len(table) - len(jobs)
    lost = jobs[jobs["state"].str.upper().str.startswith(BY_NODE)]
    counted["no_failure", "job(s) that no node took down left out"] = len(jobs) - len(lost)
    if lost.empty:
        raise trace_error(log, None, f"has no job in the state {' or '.join(BY_NODE)}")
    failed_node = lost.get("failednode", pd.Series("", lost.index))
    of_jobs = lost["nodelist"].where(failed_node == "", failed_node)
    nameless = of_jobs.str.lower().isin(UNKNOWN_WORDS)
    counted["dropped", "failed job(s) that name no node left out"] = int(nameless.sum())
    lists = node_lists(of_jobs[~nameless], log)
    start = local_hours(lost["end"], log, spec, required=True)[~nameless]
    placed = (lists.map(len) == 1) | (failed_node[~nameless] != "")
    counted["assumed", UNKNOWN_NODE] = int((~placed).sum())
    node = lists.where(placed, lists.str[0])
    rows = pd.DataFrame({"node": node, "start": start, "end": nan})
    rows = rows.assign(placed=placed, cause=lost["state"][~nameless]).explode("node")
    n_read = len(table) + len(rows) - len(lists)
    others = jobs["nodelist"][~jobs["nodelist"].str.lower().isin(UNKNOWN_WORDS)].drop_duplicates()
    nodes = frozenset(node_lists(others, log).explode())
    seen = dict[str, Any]()
    if len(lost) < len(jobs):  # jobs that ended otherwise name nodes that never failed
        ends_h = local_hours(jobs["end"], log, spec)  # one may have begun before the export
        seen["watched"] = float(ends_h.min()), float(ends_h.max())
        seen["evidence"] = {
            "n_nodes": "the nodes of all jobs", "begins": "the first end of a job",
            "ends": "the last end of a job",
        }  # fmt: skip
    return Log(rows, counted, points=True, n_read=n_read, nodes=nodes, **seen)


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: "the columns of `sacct`" if has_columns(head, "jobid", "state") else "",
    read=read_slurm_jobs,
    order=21,
)
