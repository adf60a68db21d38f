"""Tables of jobs: those that a node took down, at their ends; a job's own length is no outage."""

from __future__ import annotations

import re
from os import PathLike

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Counted, Note
from cprsim.failures.traces.files import trace_error

LOST = "nodefail"
NUMBER = "number of the job"  # a column that is added
OF_JOBS = {LOST, "bootfail", "outofmemory", "timeout", "preempted"}
ALSO = {
    "completed", "failed", "cancelled", "canceled", "deadline", "running", "pending", "requeued",
    "suspended", "completing", "revoked", "",
}  # fmt: skip
MOST_STATES = 30


def _word(cell: object) -> str:
    """A state without signs and who cancelled the job: CANCELLED by 1000."""
    text = "" if pd.isna(cell) else str(cell)  # type: ignore[call-overload]
    return re.sub(r"[\W_]", "", text.lower().partition(" by ")[0])


def states_of_jobs(table: pd.DataFrame) -> str | None:
    """The column that says how jobs ended, where there is one."""
    for name in table:
        words = set(map(_word, table[name].unique()[: MOST_STATES + 1]))
        if words & OF_JOBS and words <= OF_JOBS | ALSO:
            return str(name)
    return None


def lost_jobs(table: pd.DataFrame, state: str, counted: Counted) -> pd.DataFrame:
    """The jobs that a node took down."""
    lost = table[state].map(_word) == LOST
    counted["no_failure", "job(s) that no node took down"] += int((~lost).sum())
    return table[lost.to_numpy(bool)].assign(**{NUMBER: np.arange(lost.sum())})


def at_their_ends(
    frame: pd.DataFrame, table: pd.DataFrame, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """Failures at the ends of jobs; of a job on several nodes one of these, whichever it was."""
    if frame["end"].isna().any():
        message = "when the jobs ended is not said: --column end=NAME, or duration=NAME"
        raise trace_error(path, None, message, "end")
    job = pd.Series(table[NUMBER].to_numpy())
    n_nodes = job.groupby(job).transform("size").to_numpy()
    one = job.groupby(job).cumcount().to_numpy() == job.to_numpy() % n_nodes
    counted["merged", "node(s) of one job: one failure"] += int((~one).sum())
    frame, n_nodes = frame[one], n_nodes[one]
    counted["assumed", "failure(s) of jobs on several nodes: the one that failed is not known"] += (
        int((n_nodes > 1).sum())
    )
    return frame.assign(start=frame["end"], end=np.nan, placed=n_nodes == 1)


def how_jobs_are_read(state: str) -> Note:
    """What each row is."""
    words = f"each row: a job; where {one_line(state)!r} is NODE_FAIL, a node failed at its end"
    return Note("read_as", None, words)
