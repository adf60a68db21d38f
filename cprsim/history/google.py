"""The log of Google's resiliency library as events: starts of nodes, loads and saves of a job."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from math import nan
from pathlib import Path
from typing import Any

import pandas as pd

from cprsim.failures.traces.files import numbered_lines
from cprsim.history.torchrun import NO_EVENT

HINT = re.compile(r'"event_type": ?"(?:job_started|checkpoint_loaded|checkpoint_saved)"')
START, LOAD, SAVE, STOP = "job_started", "checkpoint_loaded", "checkpoint_saved", "job_terminated"
MOST_STEPS = 1e15
NOTHING: tuple[None, int, str, float] = (None, 0, "", 0.0)


def resiliency_events(path: Path, damaged: list[str]) -> Iterator[dict[str, Any]]:
    """What the log says, under the names of docs/events.md.

    When work begins after a load is not logged: the ledger infers it from the first save.
    """
    rows, attempt, saved = [], -1, nan
    for number, line in numbered_lines(path):
        try:
            said = json.loads(line)
            name, at = str(said["event_type"]), str(said["timestamp"])
            at_ns = pd.Timestamp(at).as_unit("ns").value  # UTC, unless said
            step = float(said["step"]) if name in (LOAD, SAVE) else 0.0
            if not (0 <= step < MOST_STEPS and at_ns > 0):
                raise ValueError
            rows.append((str(said.get("job_name") or ""), at_ns, name, step))
        except NO_EVENT:
            damaged.append(f"{path.name}:{number}")
    rows.sort(key=lambda row: row[:2])
    for before, row, after in zip([NOTHING, *rows], rows, [*rows[1:], NOTHING], strict=False):
        job, at_ns, name, step = row
        attempt, saved = (attempt, saved) if before[0] == job else (-1, nan)
        if is_first := name == START and before[::2] != row[::2]:  # of the nodes of an attempt
            attempt += 1
        about = {"time_unix_nano": at_ns, "attempt": max(attempt, 0), "job": job or None}
        if is_first:
            yield from [{**about, "event": "failure.detected"}][:attempt]
            yield {**about, "event": "job.start"}
        elif name == LOAD:
            yield {**about, "event": "rollback", "step": step}
        elif name == SAVE and before[2:] != row[2:]:  # else by another rank
            for event in ("progress", "save.start", "save.commit"):  # its stall is not logged
                yield {**about, "event": event, "step": step}
            saved = step
        elif name == STOP and after[0] != job:
            yield {**about, "event": "job.end", "outcome": "stopped", "step": saved}
        elif name not in (START, SAVE, STOP):
            yield {**about, "event": name}
