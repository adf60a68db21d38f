"""The log of Google's resiliency library as events: starts of nodes, loads and saves of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.failures.traces.files import numbered_lines

HINT = re.compile(r'"event_type": ?"(?:job_started|checkpoint_loaded|checkpoint_saved)"')
START, LOAD, SAVE, STOP = "job_started", "checkpoint_loaded", "checkpoint_saved", "job_terminated"
MOST_STEPS = 1e15


def resiliency_events(path: Path, damaged: list[str]) -> Iterator[dict[str, Any]]:
    """What the log says, under the names of docs/events.md.

    When work begins after a load is not logged: the ledger infers it from the first save.
    """
    rows = []
    for number, line in numbered_lines(path):
        try:
            said = json.loads(line)
            name, at = str(said["event_type"]), pd.Timestamp(said["timestamp"])  # UTC, unless said
            step = float(said["step"]) if name in (LOAD, SAVE) else 0.0
            if not 0 <= step < MOST_STEPS or at is pd.NaT:
                raise ValueError
            rows.append((at.as_unit("ns").value, name, step, said.get("job_name")))
        except (ValueError, KeyError, TypeError):
            damaged.append(f"{path.name}:{number}")
    rows.sort(key=lambda row: row[0])
    last = {row[3]: row for row in rows}
    before, attempt, saved = dict[Any, str](), dict[Any, int](), dict[Any, float]()
    for row in rows:
        at_ns, name, step, job = row
        about = {"time_unix_nano": at_ns, "attempt": attempt.get(job, 0)}
        about |= {} if job is None else {"job": str(job)}
        is_new, before[job] = before.get(job) != name, name
        if name == START and is_new:  # of the first node
            attempt[job] = attempt.get(job, -1) + 1
            if attempt[job]:
                yield {**about, "event": "failure.detected"}
            yield {**about, "event": "job.start", "attempt": attempt[job]}
        elif name == LOAD:
            yield {**about, "event": "rollback", "step": step}
        elif name == SAVE:
            saved[job] = step
            yield from ({**about, "event": e, "step": step} for e in ("progress", *SAVED))
        elif name == STOP and row is last[job]:
            yield {**about, "event": "job.end", "outcome": "stopped", "step": saved.get(job)}
        elif name not in (START, STOP):
            yield {**about, "event": name}


SAVED = ("save.start", "save.commit")  # at one instant: how long a save stalls is not logged
