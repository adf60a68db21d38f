"""Tables with a row per attempt of a job, as events."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.failures.outages import Note
from cprsim.job.records import Floats
from cprsim.logs.jobs.causes import DONE, word_of
from cprsim.logs.reading import named_columns, no_row_where, read_csv, separator_of
from cprsim.logs.times import read_times

NEEDED_OF_ATTEMPTS = {"start", "end", "last_step"}
TEXTS = ("job", "node", "cause")
STEPS = ("first_step", "resumed_step", "last_step", "last_saved_step")
OPTIONAL = {"first_step", "resumed_step", "last_saved_step", "step_seconds", *TEXTS}
NS_PER_H = 3600 * 10**9
LAST_H = 2**62 / NS_PER_H
NOTE = Note(
    "assumed",
    None,
    "a table of attempts has no saves, loads and detections: their hours within an attempt count "
    "as work (unless the column step_seconds gives the time of a step), and hours between attempts "
    "as rescheduling",
)


def is_header(line: str) -> bool:
    """Whether a table of attempts begins with it."""
    return {cell.strip() for cell in line.split(separator_of(line))} >= NEEDED_OF_ATTEMPTS


def attempt_events(
    path: Path, time_unit: str | None, notes: list[Note]
) -> Iterator[dict[str, Any]]:
    """The events that a table of attempts amounts to. Raises TraceError, with file and line."""
    read = _attempts(path, time_unit, notes)
    for job, mine in read.groupby("job", sort=False):
        tells = mine[["first_step", "last_saved_step", "step_seconds"]].notna().to_numpy().any()
        saved, n = nan if tells else 0.0, len(mine)
        rows: Any = mine.itertuples()
        for attempt, row in enumerate(rows):
            about = {"attempt": attempt, "job": job or None}
            first = {"time_unix_nano": round(row.start_h * NS_PER_H), **about}
            began = row.first_step if isfinite(row.first_step) else saved
            if isfinite(began):
                yield {**first, "event": "rollback", "step": began}
            yield {**first, "event": "job.start", "step_seconds": row.step_seconds}
            if not isfinite(row.step_seconds):
                yield {**first, "event": "train.resume", "step": began}
            if isfinite(row.end_h):
                yield from _end(about, row, is_last=attempt == n - 1)
            saved = row.last_saved_step


def _end(about: dict[str, Any], row: Any, *, is_last: bool) -> Iterator[dict[str, Any]]:
    instant = {"time_unix_nano": round(row.end_h * NS_PER_H), **about}
    at = {**instant, "step": row.last_step}
    finished = is_last and word_of(row.cause) in DONE
    if isfinite(row.last_step):
        yield {**at, "event": "progress"}
    if not finished:
        yield {**at, "event": "failure", "node": row.node, "cause": row.cause}
        yield {**instant, "event": "failure.detected"}
        if is_last and isfinite(row.last_saved_step):
            yield {**instant, "event": "rollback", "step": row.last_saved_step}
    if is_last:
        outcome = "finished" if finished else "failed"
        yield {**(at if finished else instant), "event": "job.end", "outcome": outcome}


def _attempts(path: Path, time_unit: str | None, notes: list[Note]) -> pd.DataFrame:
    """Attempts in order of time, checked."""
    table = read_csv(path)
    columns = (*TEXTS, "start", "end", *STEPS, "step_seconds")
    rows = named_columns(table.drop_duplicates(), {}, path, columns, OPTIONAL)
    rows = rows.reindex(columns=list(columns)).astype(object).fillna("")
    rows = rows.apply(lambda cells: cells.str.strip())
    notes.append(NOTE)
    if (rows["cause"] == "").all() and rows["job"].duplicated().any():
        words = f"no row of {path.name} has a cause: all ends but a job's last count as failures"
        notes.append(Note("assumed", None, words))
    if others := [str(name) for name in table if str(name).strip() not in columns]:
        words = f"column(s) of {path.name} that were not read: {', '.join(others)}"
        notes.append(Note("dropped", None, words))
    if n_twice := len(table) - len(rows):
        notes.append(Note("merged", n_twice, f"row(s) of {path.name} said twice, counted once"))
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    for name, times in (("start", start), ("end", end)):
        far = np.abs(times.hours) > LAST_H
        no_row_where(far, rows, path, name, "{value} lies hundreds of years off")
    open_ = np.isnan(end.hours) & np.isfinite(_steps(rows, "last_step", path))
    message = "the row has no end: write the instant of its last_step"
    no_row_where(open_, rows, path, "end", message)
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start")
    read = pd.DataFrame(
        {"start_h": start.hours, "end_h": end.hours}
        | {name: _steps(rows, name, path) for name in STEPS}
        | {"step_seconds": _steps(rows, "step_seconds", path, above=0.0)}
    ).set_index(rows.index)
    read[[*TEXTS]] = rows[[*TEXTS]]
    read["first_step"] = read["first_step"].fillna(read["resumed_step"])
    for name in ("first_step", "resumed_step", "last_saved_step"):
        is_beyond = read[name] > read["last_step"]
        no_row_where(is_beyond, rows, path, name, "{value} lies beyond the row's last_step")
    read = read.assign(place=np.arange(len(read))).sort_values("start_h", kind="stable")
    ended_h = read.groupby("job")["end_h"].transform(lambda ends: ends.cummax().shift())
    message = "{value} lies before the end of another attempt of the job that began before"
    in_order = rows.iloc[read["place"]]
    no_row_where(read["start_h"] < ended_h, in_order, path, "start", message)
    saved = read.groupby("job")["last_saved_step"].shift()
    back = read["first_step"].isna() & (read["last_step"] < saved)
    message = "{value} lies before the last_saved_step of the attempt before: give first_step"
    no_row_where(back, in_order, path, "last_step", message)
    order = {job: place for place, job in enumerate(dict.fromkeys(rows["job"]))}
    return read.sort_values("job", key=lambda jobs: jobs.map(order), kind="stable")


def _steps(rows: pd.DataFrame, name: str, path: Path, above: float = -1e-300) -> Floats:
    """A column of numbers, NaN where it is empty or absent."""
    numbers = pd.to_numeric(rows[name], errors="coerce").to_numpy(dtype=np.float64)
    bad = (rows[name] != "").to_numpy(dtype=bool) & ~(np.isfinite(numbers) & (numbers > above))
    right = "above 0" if above == 0 else "from 0 on"
    no_row_where(bad, rows, path, name, "{value} is no number " + right)
    return numbers
