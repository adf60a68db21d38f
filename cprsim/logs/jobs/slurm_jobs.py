"""Slurm's accounting of many jobs, from ``sacct``: the hours, nodes and end of each attempt."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.outages import Note
from cprsim.logs.files import has_columns, head_of, trace_error
from cprsim.logs.reading import no_row_where
from cprsim.logs.slurm import NO_TIME, SACCT, bar_table, local_hours, node_lists
from cprsim.logs.spec import UNKNOWN_WORDS, LogSpec
from cprsim.logs.times import read_lengths

NO_EVENTS = (
    "is a table of sacct, without steps and saves: `cprsim ledger` books the node-hours of such "
    f"tables alone, `cprsim fit` failures; with bars between columns, as of {SACCT}"
)
BY_NODE, BY_JOB, REQUEUED, RUNS = "failed: node", "failed: job", "requeued: cause unknown", "runs"
STATES = {
    "completed": "COMPLETED",
    BY_NODE: "NODE_FAIL BOOT_FAIL",
    BY_JOB: "FAILED OUT_OF_MEMORY LAUNCH_FAILED RECONFIG_FAIL",
    "planned end": "TIMEOUT PREEMPTED CANCELLED DEADLINE REVOKED RESIZING",
    REQUEUED: "REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT",
    RUNS: "RUNNING PENDING SUSPENDED COMPLETING CONFIGURING SIGNALING STAGE_OUT STOPPED",
}
KIND_OF_STATE = {state: kind for kind, states in STATES.items() for state in states.split()}
OPTIONAL_OF_SACCT = ("nodelist", "failednode", "elapsed", "nnodes", "cluster")


def tables_of(logs: Sequence[Path]) -> list[Path]:
    """The files, and those in folders, where all of them are tables of sacct; else none."""
    files = [f for log in logs for f in (sorted(log.glob("[!.]*")) if log.is_dir() else [log])]
    return files if all(has_columns(head_of(file), "jobid", "state") for file in files) else []


def read_attempts(tables: Sequence[Path]) -> tuple[pd.DataFrame, list[str]]:
    """Return attempts of jobs in the order of their ends, and notes on rows left out or assumed.

    Columns: job, kind (of `STATES`), state, start_h and end_h (since 1970, of the log's clock),
    hours, n_nodes, nodes (a list; NaN if unknown), and blamed: those known to have failed.
    Raises TraceError for a table that can't be read, ParameterError for a job that runs twice.
    """
    rows = pd.concat(map(_attempts, tables), ignore_index=True)
    rows = rows.sort_values(["job", "start_h", "end_h"], na_position="first", kind="stable")
    again = rows.duplicated(["job", "start_h", "end_h"], keep="last")
    again |= rows["end_h"].isna() & rows.duplicated(["job", "start_h"], keep="last")
    of_step = rows["job"].str.extract(r"(.*\d)\.[^/]*$")[0]  # the job that a step is part of
    if not (alone := of_step[of_step.notna() & ~of_step.isin(rows["job"])]).empty:
        raise ParameterError(f"job {alone.iloc[0]} has rows of steps alone; write with {SACCT}")
    left_out = {
        "of steps, which are part of their job": of_step.notna(),
        "of jobs that never started": rows["start_h"].isna(),
        "that another row says, too": again,
    }
    why = pd.Series(np.select(list(left_out.values()), list(left_out), ""), rows.index)
    notes = [
        str(Note("dropped", n, f"row(s) left out {reason}"))
        for reason, n in why[why != ""].value_counts().items()
    ]
    if (rows := rows[why == ""]).empty:
        raise trace_error(tables[0], None, f"has no job that started; write it with {SACCT}")
    next_h = rows.groupby("job")["start_h"].shift(-1)
    if (twice := rows["end_h"] > next_h).any():
        right = "if these are two clusters, write the column Cluster, too"
        raise ParameterError(f"job {rows['job'][twice].iloc[0]} runs twice at one time: {right}")
    if n_open := rows["end_h"].isna().sum():
        words = "attempt(s) without an end counted to Elapsed, or to the last instant"
        notes.append(str(Note("assumed", n_open, words)))
    rows["end_h"] = rows["end_h"].fillna(next_h).fillna(rows[["start_h", "end_h"]].max(axis=None))
    rows["hours"] = rows["hours"].fillna(rows["end_h"] - rows["start_h"])
    if n_short := (rows["hours"] < rows["end_h"] - rows["start_h"] - 1 / 60).sum():
        words = "attempt(s) counted by Elapsed, shorter than from start to end"
        notes.append(str(Note("assumed", n_short, words)))
    return rows.sort_values("end_h", kind="stable"), notes


def _attempts(log: Path) -> pd.DataFrame:
    """Return all rows of a table, with NaN for missing values."""
    table = bar_table(log, ("jobid", "state", "start", "end"), SACCT)
    table = table.assign(**dict.fromkeys(set(OPTIONAL_OF_SACCT) - set(table), ""))
    state = table["state"].str.upper().str.extract(r"^(\w*)")[0]
    kind, right = state.map(KIND_OF_STATE), ", ".join(KIND_OF_STATE)
    no_row_where(kind.isna(), table, log, "state", "{value} is none of " + right)
    start, end = (local_hours(table[name], log, LogSpec()) for name in ("start", "end"))
    no_row_where(end < start, table, log, "end", "{value} lies before the start")
    endless = end.isna() & start.notna() & (kind != RUNS)
    no_row_where(endless, table, log, "end", "{value}: a job that has ended has an end")
    elapsed = table["elapsed"].mask(table["elapsed"].str.lower().isin(NO_TIME), "")
    nodes, failed = (
        node_lists(cells[~cells.str.lower().isin(UNKNOWN_WORDS)], log).reindex(table.index)
        for cells in (table["nodelist"], table["failednode"])
    )
    n_nodes = nodes.str.len().astype(float).fillna(pd.to_numeric(table["nnodes"], errors="coerce"))
    unknown = ~(n_nodes > 0) & start.notna() & (end != start)
    no_row_where(unknown, table, log, "nodelist", f"on how many nodes? Write it with {SACCT}")
    hours = read_lengths(elapsed, "s", log)
    no_row_where(
        hours > end - start + 1 / 60, table, log, "elapsed", "{value} lasts beyond the end"
    )
    return pd.DataFrame({
        "job": (table["cluster"] + "/" + table["jobid"]).str.removeprefix("/"), "kind": kind,
        "state": state, "start_h": start, "end_h": end, "hours": hours,
        "n_nodes": n_nodes.fillna(0.0), "nodes": nodes, "blamed": failed.fillna(nodes),
    })  # fmt: skip
