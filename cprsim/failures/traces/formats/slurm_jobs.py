"""Slurm's accounting of jobs: those that a node took down, from ``sacct``."""

from __future__ import annotations

from collections import Counter
from math import nan
from pathlib import Path

from cprsim.errors import ParameterError
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.reading import trace_error
from cprsim.failures.traces.slurm import BarRow, bar_rows, expanded, local_hours
from cprsim.failures.traces.spells import Spell, outages_of_spells

NEEDED = ("jobid", "state", "end", "nodelist")
COMMAND = "sacct -a -X -S 2024-01-01 -E now -s NODE_FAIL -P -o JobID,State,Start,End,NodeList"
LOST = "NODE_FAIL"


def read_slurm_jobs(path: Path, asked: LogOptions) -> Outages:
    """Failures of nodes from the jobs that they ended, instants at the jobs' ends.

    Which node of a job failed is known where it had one, or where there is a column
    ``FailedNode`` (newer versions of Slurm); the others are left out and counted. Idle nodes that
    failed ended no job: `sacctmgr show event` has them, this has not. Jobs of one node that end
    together are one failure.

    Raises
    ------
    TraceError
        with file and line.
    """
    counted = Counter[str]()
    rows = list(bar_rows(path, NEEDED, COMMAND))
    lost = [row for row in rows if row.cells["state"].upper().startswith(LOST)]
    lost = [row for row in lost if "." not in row.cells["jobid"]]  # steps fail with their jobs
    counted["job(s) that no node took down left out"] = sum(
        "." not in row.cells["jobid"] for row in rows
    ) - len(lost)
    if not lost:
        raise trace_error(path, None, f"has no job in the state {LOST}")
    end_h = local_hours(path, lost, "end", asked, required=True)
    spells = {
        (name, float(at)): Spell(name, float(at), nan, LOST, row.line)
        for row, at in zip(lost, end_h, strict=True)
        for name in _failed(row, path, counted)
    }
    return outages_of_spells(path, list(spells.values()), asked, points=True, counted=counted)


def _failed(row: BarRow, path: Path, counted: Counter[str]) -> list[str]:
    """The node that failed, or none where that is not known."""
    named = row.cells.get("failednode", "")
    try:
        nodes = expanded(named or row.cells["nodelist"])
    except ParameterError as error:
        raise trace_error(path, row.line, str(error), "nodelist") from None
    if len(nodes) == 1 or named:
        return nodes
    counted["job(s) on several nodes left out: which of them failed is not said"] += 1
    return []


def _looks_like(head: Head) -> str:
    cells = {cell.strip().lower() for cell in head.first_line.split("|")}
    return "the columns of `sacct`" if cells >= {"jobid", "state"} else ""


FORMAT = LogFormat(
    name="slurm-jobs",
    what="Slurm: jobs that a node took down (sacct)",
    commands=(COMMAND,),
    provenance="run here: Slurm 22.05.8 of Debian 12; column FailedNode recalled",
    options=frozenset({"--from and --to", "--tz", "--repair"}),
    looks_like=_looks_like,
    read=read_slurm_jobs,
    order=21,
)
