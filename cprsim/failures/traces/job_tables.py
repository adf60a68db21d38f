"""Tables of jobs: those that a node took down, at their ends; a job's own length is no outage."""

from __future__ import annotations

import re
from os import PathLike

import numpy as np
import pandas as pd

from cprsim.failures.outages import Counted
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.slurm import UNKNOWN_NODE, any_of
from cprsim.records import Ints

HOW = "each row: a job; where {!r} is NODE_FAIL, a node failed at its end"
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
    lost = (table[state].map(_word) == LOST).to_numpy(bool)
    counted["no_failure", "job(s) that no node took down, for each node"] += int((~lost).sum())
    return table[lost]


def at_their_ends(
    frame: pd.DataFrame, number: Ints, path: PathLike[str], counted: Counted
) -> pd.DataFrame:
    """Failures at the ends of jobs (n,); of a job on several nodes one of these, whichever."""
    if frame["end"].isna().any():
        message = "when the jobs ended is not said: --column end=NAME, or duration=NAME"
        raise trace_error(path, None, message, "end")
    lists = pd.Series(frame["node"].astype(object).to_numpy()).groupby(number).agg(list)
    frame = frame[~pd.Series(number).duplicated().to_numpy()]
    placed = lists.map(len).to_numpy() == 1
    counted["merged", "further node(s) of jobs that one failure ended"] += len(number) - len(frame)
    counted["assumed", UNKNOWN_NODE] += int((~placed).sum())
    node = pd.Categorical(any_of(lists, frame["end"]))
    return frame.assign(node=node, start=frame["end"], end=np.nan, placed=placed)
