"""The log of Google's resiliency library as events: starts of nodes, loads and saves of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.logs.files import numbered_lines
from cprsim.logs.jobs.torchrun import NO_EVENT

HINT = re.compile(r'"event_type": ?"(?:job_started|checkpoint_loaded|checkpoint_saved)"')
START, STOP = "job_started", "job_terminated"
TOLD_AS = {
    START: ("failure.detected", "job.start"),
    "checkpoint_loaded": ("rollback", "warm-up.start"),
    "checkpoint_saved": ("progress", "save.start", "save.commit"),  # its stall is not logged
    STOP: ("job.end",),
}


def resiliency_events(path: Path, damaged: list[str]) -> Iterator[dict[str, Any]]:
    """Yield the events of the log, under the names of docs/events.md.

    When work begins after a warm-up is not logged: the ledger infers it from the first save.
    """
    rows = []
    for number, line in numbered_lines(path):
        try:
            said = json.loads(line)
            name, at = str(said["event_type"]), str(said["timestamp"])
            at_ns = pd.Timestamp(at).as_unit("ns").value  # UTC, unless said
            step = float(said["step"]) if name.startswith("checkpoint_") else 0.0
            if not (0 <= step < 1e15 and at_ns > 0):
                raise ValueError
            rows.append((str(said.get("job_name") or ""), at_ns, name, step))
        except NO_EVENT:
            damaged.append(f"{path.name}:{number}")
    log = pd.DataFrame(rows, columns=["job", "at_ns", "name", "step"])
    log = log.sort_values(["job", "at_ns"], kind="stable")
    said = log[["job", "name", "step"]]
    log = log[(said != said.shift()).any(axis=1)]  # all nodes of a job say it
    attempt = (log["name"] == START).groupby(log["job"]).cumsum().clip(lower=1) - 1
    log = log.assign(attempt=attempt)[(log["name"] != STOP) | ~log["job"].duplicated(keep="last")]
    for job, at_ns, name, step, attempt in log.itertuples(index=False):
        about = {"time_unix_nano": at_ns, "attempt": attempt, "job": job or None}
        about |= {"outcome": "stopped"} if name == STOP else {"step": step}
        for event in TOLD_AS.get(name, (name,))[name == START and attempt == 0 :]:
            yield {**about, "event": event}
