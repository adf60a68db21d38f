"""Slurm's accounting of many jobs, from ``sacct``: the hours, nodes and end of each attempt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from pathlib import Path

import pandas as pd

from cprsim.errors import ParameterError
from cprsim.failures.traces.files import has_columns, head_of, trace_error
from cprsim.failures.traces.reading import no_row_where
from cprsim.failures.traces.slurm import NO_TIME, bar_table, local_hours, node_lists
from cprsim.failures.traces.spec import LogSpec
from cprsim.failures.traces.times import read_lengths

COMMAND = (
    "`sacct -a -X --duplicates -S 2024-01-01 -E now -P -o "
    "JobID,State,Start,End,Elapsed,NNodes,NodeList`"
)
NO_EVENTS = (
    "is a table of sacct, which tells of no steps and no saves: `cprsim ledger` books its "
    f"node-hours, `cprsim fit` its failures, if it is written with {COMMAND}"
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
KINDS = {state: kind for kind, states in STATES.items() for state in states.split()}
NEAR_H = 1 / 60
NO_NODES = ("", "none assigned", "none", "(null)")
OPTIONAL = ("nodelist", "failednode", "elapsed", "nnodes", "allocnodes", "cluster")


def tables_of(logs: Sequence[Path]) -> list[Path]:
    """The tables of sacct among files and folders, which are all of them, or none."""
    files = [f for log in logs for f in (sorted(log.glob("[!.]*")) if log.is_dir() else [log])]
    tables = [file for file in files if has_columns(head_of(file), "jobid", "state")]
    if tables and (others := [file for file in files if file not in tables]):
        raise trace_error(others[0], None, f"is no table of sacct, as {tables[0].name} is")
    return tables


def read_attempts(tables: Sequence[Path]) -> tuple[pd.DataFrame, list[str]]:
    """Attempts of jobs in the order of their ends, and what was left out or assumed.

    Columns: job, kind (of `STATES`), state, start_h and end_h (since 1970, of the log's clock),
    hours, n_nodes, nodes (names, if known), and blamed: those that failed, as far as is known.
    Raises TraceError for a table that can't be read, ParameterError for a job that runs twice.
    """
    rows, notes = pd.concat(map(_attempts, tables), ignore_index=True), list[str]()
    rows = rows.sort_values(["job", "start_h", "end_h"], na_position="first", kind="stable")
    for why, is_left_out in LEFT_OUT.items():
        which = is_left_out(rows)
        notes.append(f"{which.sum()} row(s) left out {why}")
        rows = rows[~which]
    if rows.empty:
        raise trace_error(tables[0], None, f"has no job that started; write it with {COMMAND}")
    next_h = rows.groupby("job")["start_h"].shift(-1)
    if (twice := rows["end_h"] > next_h + NEAR_H).any():
        right = "if these are two clusters, write the column Cluster, too"
        raise ParameterError(f"job {rows['job'][twice].iloc[0]} runs twice at one time: {right}")
    open_, last_h = rows["end_h"].isna(), rows[["start_h", "end_h"]].max(axis=None)
    rows["end_h"] = rows["end_h"].fillna(next_h).fillna(last_h)
    from_start_h = rows["end_h"] - rows["start_h"]
    hours = rows["elapsed_h"].fillna(from_start_h)
    n_other = int(((hours - from_start_h).abs() > NEAR_H)[~open_].sum())
    notes += [f"{open_.sum()} attempt(s) without an end counted to Elapsed, or to the last instant"]
    notes += [f"{n_other} attempt(s) ran by Elapsed another time than from Start to End"]
    notes = [note for note in notes if not note.startswith("0 ")]
    return rows.assign(hours=hours).sort_values("end_h", kind="stable"), notes


LEFT_OUT: dict[str, Callable[[pd.DataFrame], pd.Series[bool]]] = {
    "of steps, which are part of their job": lambda rows: rows["job"].str.contains(r"\d\."),
    "of jobs that never started": lambda rows: rows["start_h"].isna(),
    "that another row says, too": lambda rows: (
        rows.duplicated(["job", "start_h", "end_h"], keep="last")
        | (rows["end_h"].isna() & rows.duplicated(["job", "start_h"], keep="last"))
    ),
}


def _attempts(log: Path) -> pd.DataFrame:
    """All rows of a table, NaN for what it does not say."""
    table = bar_table(log, ("jobid", "state", "start", "end"), COMMAND)
    table = table.assign(**dict.fromkeys(set(OPTIONAL) - set(table), ""))
    state = table["state"].str.upper().str.extract(r"^(\w*)")[0]
    kind, right = state.map(KINDS), ", ".join(KINDS)
    no_row_where(kind.isna().to_numpy(), table, log, "state", "{value} is none of " + right)
    start, end = (local_hours(table[name], log, LogSpec()) for name in ("start", "end"))
    no_row_where((end < start).to_numpy(), table, log, "end", "{value} lies before the start")
    endless = (end.isna() & start.notna() & (kind != RUNS)).to_numpy()
    no_row_where(endless, table, log, "end", "{value}: a job that has ended has an end")
    elapsed = table["elapsed"].mask(table["elapsed"].str.lower().isin(NO_TIME), "")
    nodes, failed = (_names(table[name], log) for name in ("nodelist", "failednode"))
    counts = table["nnodes"].where(table["nnodes"] != "", table["allocnodes"])
    n_nodes = nodes.map(len).replace(0, nan).fillna(pd.to_numeric(counts, errors="coerce"))
    unknown = (n_nodes.isna() & start.notna() & (end != start)).to_numpy()
    no_row_where(unknown, table, log, "nodelist", f"on how many nodes? Write it with {COMMAND}")
    return pd.DataFrame({
        "job": (table["cluster"] + "/" + table["jobid"]).str.removeprefix("/"), "kind": kind,
        "state": state, "start_h": start, "end_h": end,
        "elapsed_h": read_lengths(elapsed, "s", log), "n_nodes": n_nodes.fillna(0.0),
        "nodes": nodes, "blamed": failed.where(failed.map(len) > 0, nodes),
    })  # fmt: skip


def _names(cells: pd.Series[str], log: Path) -> pd.Series:
    """The nodes of each list, none where Slurm writes none."""
    lists = node_lists(cells.mask(cells.str.lower().isin(NO_NODES), "-"), log)
    return lists.map(lambda names: [] if names == ["-"] else names)
