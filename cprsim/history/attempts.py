"""Reader of a table of attempts: a CSV with a row for each start of a job."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.failures.traces.reading import named_columns, no_row_where, read_csv
from cprsim.failures.traces.times import read_times
from cprsim.records import Floats

COLUMNS = ("job", "start", "end", "last_step", "last_saved_step", "step_seconds", "node", "cause")
OPTIONAL = {"job", "last_saved_step", "step_seconds", "node", "cause"}
NS_PER_H = 3600 * 10**9
NOTE = (
    "a table of attempts says nothing of saves, loads and detection: what they took within an "
    "attempt counts as work (unless the column step_seconds says what a step takes), and what lies "
    "between attempts as rescheduling"
)


def attempt_events(path: Path, time_unit: str | None) -> Iterator[dict[str, Any]]:
    """The events that a table of attempts amounts to.

    Parameters
    ----------
    time_unit : ms, s, min, h or d where times are numbers; else time stamps, ISO 8601

    Raises
    ------
    TraceError : with file and line, for anything that can't be read
    """
    rows = named_columns(read_csv(path), {}, path, COLUMNS, OPTIONAL)
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start")
    last, saved = _steps(rows, "last_step", path), _steps(rows, "last_saved_step", path)
    step_s = _steps(rows, "step_seconds", path)
    jobs = _texts(rows, "job")
    nodes, causes = _texts(rows, "node"), _texts(rows, "cause")
    for job in dict.fromkeys(jobs):
        mine = [place for place in range(len(rows)) if jobs[place] == job]
        mine.sort(key=lambda place: float(start.hours[place]))
        before = 0.0
        for attempt, place in enumerate(mine):
            about = {"attempt": attempt, **({"job": job} if job else {})}
            begin_ns = round(float(start.hours[place]) * NS_PER_H)
            said = float(step_s[place])
            first: dict[str, Any] = {"time_unix_nano": begin_ns, **about}
            if attempt > 0:
                yield {**first, "event": "rollback", "step": before}
            pace = {"step_seconds": said} if isfinite(said) else {}
            yield {**first, "event": "job.start", **pace}
            if not pace:
                yield {**first, "event": "train.resume", "step": before}
            yield from _end(
                about, float(end.hours[place]), float(last[place]), place == mine[-1],
                nodes[place], causes[place],
            )  # fmt: skip
            if isfinite(saved[place]):
                before = float(saved[place])


def _end(
    about: dict[str, Any], end_h: float, last: float, is_last: bool, node: str, cause: str
) -> Iterator[dict[str, Any]]:
    if not isfinite(end_h):
        return
    step = {"step": last} if isfinite(last) else {}
    at = {"time_unix_nano": round(end_h * NS_PER_H), **about, **step}
    if step:
        yield {**at, "event": "progress"}
    if is_last and not cause:
        yield {**at, "event": "job.end", "outcome": "finished"}
        return
    words = {**({"node": node} if node else {}), **({"cause": cause} if cause else {})}
    yield {**at, "event": "failure", **words}
    yield {"time_unix_nano": at["time_unix_nano"], **about, "event": "failure.detected"}
    if is_last:
        yield {**at, "event": "job.end", "outcome": "failed"}


def _steps(rows: pd.DataFrame, name: str, path: Path) -> Floats:
    """A column of numbers, NaN where it is empty or absent."""
    if name not in rows:
        return np.full(len(rows), np.nan)
    text = rows[name].fillna("").str.strip()
    numbers = pd.to_numeric(text, errors="coerce").to_numpy(dtype=np.float64)
    bad = (text != "").to_numpy(dtype=bool) & ~(np.isfinite(numbers) & (numbers >= 0))
    no_row_where(bad, rows, path, name, "{value} is no number from 0 on")
    return numbers


def _texts(rows: pd.DataFrame, name: str) -> list[str]:
    if name not in rows:
        return [""] * len(rows)
    return [str(one).strip() for one in rows[name].fillna("")]
