"""Logs of any kind that is known to events: which reader a file is for shows in its first lines."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from cprsim.errors import Place, TraceError
from cprsim.failures.traces.reading import named_columns, no_row_where, read_csv
from cprsim.failures.traces.times import read_times
from cprsim.history.json_lines import SCHEMA, Collected, event_of, in_types, read_json_lines
from cprsim.history.table import Events
from cprsim.records import Floats

LOOKED_AT_BYTES = 1 << 18


def read_logs(paths: Sequence[Path], time_unit: str | None = None) -> Events:
    """The events of all files, and of all files in folders.

    `time_unit` is that of times in tables of attempts. Raises TraceError for what is no log.
    """
    into = Collected()
    for file, job in _named([file for path in paths for file in _files(path)]).items():
        kind = _kind(file)
        if kind == "json":
            read_json_lines(file, into, job)
            continue
        is_torch = kind == "torch"
        events = torch_events(file, into) if is_torch else attempt_events(file, time_unit)
        rows = [event for event in map(in_types, events) if event is not None]
        if not rows:
            raise TraceError.at(Place(file), "holds no event of a job")
        into.add(pa.Table.from_pylist(rows, SCHEMA), job)
        if not is_torch and NOTE not in into.notes:
            into.notes.append(NOTE)
    return into.events()


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(one for one in path.iterdir() if one.is_file() and one.name[0] != ".")
    if not inside:
        raise TraceError.at(Place(path), "the folder holds no file")
    return inside


def _named(files: list[Path]) -> dict[Path, str]:
    """Each file once, and the job of a log that names none: as much of its path as differs."""
    names = {file: file.stem for file in {file.absolute(): file for file in files}.values()}
    for n_parts in count(1):
        n_called = Counter(names.values())
        alike = [file for file, name in names.items() if n_called[name] > 1]
        if not alike:
            break
        names |= {file: "/".join(file.absolute().parts[-n_parts:]) for file in alike}
    return names


def _kind(path: Path) -> str:
    if not path.is_file():
        raise TraceError.at(Place(path), "there is no such file")
    try:
        with path.open("rb") as file:
            text = file.read(LOOKED_AT_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise TraceError.at(Place(path), f"can't be read: {error.strerror or error}") from error
    lines = text.splitlines()
    if any(hint in text for hint in HINTS):
        return "torch"
    if lines and {"start", "end", "last_step"} <= {cell.strip() for cell in lines[0].split(",")}:
        return "attempts"
    if any(event_of(line) is not None for line in lines):
        return "json"
    raise TraceError.at(
        Place(path),
        "is no log that can be read: no events of docs/events.md, no output of torchrun, and no "
        "CSV of attempts with the columns start, end and last_step",
    )


# ------------------------------------------------------------------------------- tables of attempts

ATTEMPT_COLUMNS = (
    "job",
    "start",
    "end",
    "last_step",
    "last_saved_step",
    "step_seconds",
    "node",
    "cause",
)
OPTIONAL_COLUMNS = {"job", "last_saved_step", "step_seconds", "node", "cause"}
NS_PER_H = 3600 * 10**9
NOTE = (
    "a table of attempts says nothing of saves, loads and detection: what they took within an "
    "attempt counts as work (unless the column step_seconds says what a step takes), and what lies "
    "between attempts as rescheduling"
)


def attempt_events(path: Path, time_unit: str | None) -> Iterator[dict[str, Any]]:
    """The events that a table of attempts amounts to. Raises TraceError, with file and line."""
    rows = named_columns(read_csv(path), {}, path, ATTEMPT_COLUMNS, OPTIONAL_COLUMNS)
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start")
    read = pd.DataFrame(
        {"start_h": start.hours, "end_h": end.hours}
        | {name: _steps(rows, name, path) for name in ("last_step", "last_saved_step")}
        | {"pace_s": _steps(rows, "step_seconds", path)}
        | {name: _texts(rows, name) for name in ("job", "node", "cause")}
    ).sort_values("start_h", kind="stable")
    for job in dict.fromkeys(_texts(rows, "job")):
        before, mine = 0.0, list[Any](read[read["job"] == job].itertuples())
        for attempt, row in enumerate(mine):
            about = {"attempt": attempt, **({"job": job} if job else {})}
            first = {"time_unix_nano": round(row.start_h * NS_PER_H), **about}
            if attempt > 0:
                yield {**first, "event": "rollback", "step": before}
            pace = {"step_seconds": row.pace_s} if isfinite(row.pace_s) else {}
            yield {**first, "event": "job.start", **pace}
            if not pace:
                yield {**first, "event": "train.resume", "step": before}
            if isfinite(row.end_h):
                yield from _end(about, row, is_last=attempt == len(mine) - 1)
            if isfinite(row.last_saved_step):
                before = row.last_saved_step


def _end(about: dict[str, Any], row: Any, *, is_last: bool) -> Iterator[dict[str, Any]]:
    here = {"time_unix_nano": round(row.end_h * NS_PER_H), **about}
    at = {**here, **({"step": row.last_step} if isfinite(row.last_step) else {})}
    if "step" in at:
        yield {**at, "event": "progress"}
    if is_last and not row.cause:
        yield {**at, "event": "job.end", "outcome": "finished"}
        return
    yield {**at, "event": "failure", "node": row.node or None, "cause": row.cause or None}
    yield {**here, "event": "failure.detected"}
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


# ------------------------------------------------------------------------------- output of torchrun

STAMP = re.compile(
    r"^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:[zZ]|[+-]\d\d:?\d\d)?)[ \t:]+(.*)$"
)
AGENT_EVENT = re.compile(r'\{"name": "torchelastic\.worker\.status\.([A-Z_]+)"')
CHECKPOINT = re.compile(r"\{'checkpoint_id': .*'func_name': '(save|async_save|load)'.*\}")
CLOSING = re.compile(r"Sending process \d+ closing signal|failed \(exitcode: (-?\d+)\)")
STEP = re.compile(r"(\d+)/?$")
NS_PER_MS = 1e6
HINTS = ("torchelastic.worker.status", "'func_name': '")
NO_EVENT = (  # what comes of text that is none; the last three of `ast.literal_eval`
    ValueError, TypeError, LookupError, AttributeError, OverflowError,
    SyntaxError, MemoryError, RecursionError,
)  # fmt: skip


def torch_events(path: Path, into: Collected) -> Iterator[dict[str, Any]]:
    """The events of a job that torchrun ran, under the names of docs/events.md.

    Lines with an event that can't be read are counted and left out. Raises TraceError where an
    event of torchrun stands in a line without a time stamp.
    """
    attempt, died = -1, False
    for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1):
        found = STAMP.match(line)
        stamp, said = found.groups() if found else ("", line)
        saved, closing = CHECKPOINT.search(said), CLOSING.search(said)
        begins = list(AGENT_EVENT.finditer(said))
        if not (saved or closing or begins):
            continue
        if not (saved or stamp):
            raise TraceError.at(
                Place(path, number),
                "an event of torchrun without a time stamp before it, as "
                "`torchrun ... 2>&1 | ts '%Y-%m-%dT%H:%M:%.S'` puts there",
            )
        try:
            if saved:
                yield from _of_checkpoint(saved[0], saved[1])
                continue
            at_ns = pd.Timestamp(stamp.replace(",", ".")).as_unit("ns").value  # UTC, unless said
            agents = [(one[1], *_of_agent(said, one.start())) for one in begins]
        except NO_EVENT:
            into.left_out(path, number)
            continue
        if closing and not died:
            died = True
            yield {"time_unix_nano": at_ns, "event": "failure.detected", "attempt": max(attempt, 0)}
        for status, source, restarts, took_ns in agents:
            if status == "START" and restarts > attempt:
                attempt, died = restarts, False
                yield {"time_unix_nano": at_ns, "event": "job.start", "attempt": attempt}
            elif status == "RENDEZVOUS" and died:
                now = {"event": "reschedule.start", "attempt": max(attempt, 0)}
                yield {"time_unix_nano": at_ns - took_ns, **now}
            elif status in ("SUCCEEDED", "FAILED") and source == "AGENT":
                outcome = "finished" if status == "SUCCEEDED" else "failed"
                yield {"time_unix_nano": at_ns, "event": "job.end", "outcome": outcome}


def _of_agent(line: str, begins: int) -> tuple[str, int, int]:
    """An event of the launcher: its source, restarts until then, and nanoseconds that it took."""
    event, _ = json.JSONDecoder().raw_decode(line, begins)
    about = event["metadata"]
    took_ns = round(float(about.get("duration_ms") or 0) * NS_PER_MS)
    return event["source"], int(about.get("agent_restarts") or 0), took_ns


def _of_checkpoint(text: str, what: str) -> list[dict[str, Any]]:
    """A save or load as the first rank logs it."""
    fields = ast.literal_eval(text)
    if str(fields.get("global_rank", "0")) != "0" or fields.get("event") not in ("start", "end"):
        return []
    step = STEP.search(str(fields.get("checkpoint_id") or ""))
    names = {
        "load": ("load.start", "train.resume"),
        "save": ("save.start", "save.commit"),
        "async_save": ("save.start", "save.resume"),
    }[what]
    return [
        {
            "time_unix_nano": int(fields["time"]),
            "event": names[fields["event"] == "end"],
            "step": int(step[1]) if step else None,
            "save_id": None if what == "load" else str(fields.get("uuid")),
        }
    ]
