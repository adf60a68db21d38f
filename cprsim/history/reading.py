"""Logs of any kind that is known to events: which reader a file is for shows in its first lines."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

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
    """The events of all files.

    Parameters
    ----------
    paths : files; of a folder, all that it holds
    time_unit : of tables of attempts whose times are numbers

    Raises
    ------
    TraceError : a file can't be read, or is of no known kind
    """
    into = Collected()
    for file, job in _named([file for path in paths for file in _files(path)]).items():
        kind = _kind(file)
        if kind == "json":
            read_json_lines(file, into, job)
        elif kind == "torch":
            _add(torch_events(file, into), file, into, job)
        else:
            _add(attempt_events(file, time_unit), file, into, job)
            if NOTE not in into.notes:
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


def _add(events: Iterable[dict[str, Any]], path: Path, into: Collected, job: str) -> None:
    rows = [event for event in map(in_types, events) if event is not None]
    if not rows:
        raise TraceError.at(Place(path), "holds no event of a job")
    into.add(pa.Table.from_pylist(rows, SCHEMA), job)


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
    """The events that a table of attempts amounts to.

    Parameters
    ----------
    time_unit : ms, s, min, h or d where times are numbers; else time stamps, ISO 8601

    Raises
    ------
    TraceError : with file and line, for anything that can't be read
    """
    rows = named_columns(read_csv(path), {}, path, ATTEMPT_COLUMNS, OPTIONAL_COLUMNS)
    start = read_times(rows["start"], time_unit, path)
    end = read_times(rows["end"], time_unit, path, start)
    no_row_where(np.isnan(start.hours), rows, path, "start", "the row has no start")
    no_row_where(end.hours < start.hours, rows, path, "end", "{value} lies before the start")
    last, saved = _steps(rows, "last_step", path), _steps(rows, "last_saved_step", path)
    step_s = _steps(rows, "step_seconds", path)
    jobs = _texts(rows, "job")
    nodes, causes = _texts(rows, "node"), _texts(rows, "cause")
    for job in dict.fromkeys(jobs):
        places = [place for place in range(len(rows)) if jobs[place] == job]
        places.sort(key=lambda place: float(start.hours[place]))
        before = 0.0
        for attempt, place in enumerate(places):
            about = {"attempt": attempt, **({"job": job} if job else {})}
            begin_ns = round(float(start.hours[place]) * NS_PER_H)
            pace_s = float(step_s[place])
            first: dict[str, Any] = {"time_unix_nano": begin_ns, **about}
            if attempt > 0:
                yield {**first, "event": "rollback", "step": before}
            pace = {"step_seconds": pace_s} if isfinite(pace_s) else {}
            yield {**first, "event": "job.start", **pace}
            if not pace:
                yield {**first, "event": "train.resume", "step": before}
            yield from _end(
                about, float(end.hours[place]), float(last[place]), place == places[-1],
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

    Lines with an event that can't be read are counted and left out.

    Raises
    ------
    TraceError : an event of torchrun stands in a line without a time stamp
    """
    attempt, died = -1, False
    text = path.read_text("utf-8", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        found = STAMP.match(line)
        said = found[2] if found else line
        if saved := CHECKPOINT.search(said):
            try:
                yield from _of_checkpoint(saved[0], saved[1])
            except NO_EVENT:
                into.left_out(path, number)
            continue
        begins, closing = list(AGENT_EVENT.finditer(said)), CLOSING.search(said)
        if not begins and not closing:
            continue
        if found is None:
            raise TraceError.at(
                Place(path, number),
                "an event of torchrun without a time stamp before it, as "
                "`torchrun ... 2>&1 | ts '%Y-%m-%dT%H:%M:%.S'` puts there",
            )
        try:
            at_ns, agents = _ns(found[1]), [_of_agent(said, one) for one in begins]
        except NO_EVENT:
            into.left_out(path, number)
            continue
        if closing and not died:
            died = True
            yield {"time_unix_nano": at_ns, "event": "failure.detected", "attempt": max(attempt, 0)}
        for agent in agents:
            if agent.status == "START" and agent.restarts > attempt:
                attempt, died = agent.restarts, False
                yield {"time_unix_nano": at_ns, "event": "job.start", "attempt": attempt}
            elif agent.status == "RENDEZVOUS" and died:
                yield {
                    "time_unix_nano": at_ns - agent.took_ns,
                    "event": "reschedule.start",
                    "attempt": max(attempt, 0),
                }
            elif agent.status in ("SUCCEEDED", "FAILED") and agent.source == "AGENT":
                outcome = "finished" if agent.status == "SUCCEEDED" else "failed"
                yield {"time_unix_nano": at_ns, "event": "job.end", "outcome": outcome}


class _Agent(NamedTuple):
    """An event of torchrun's launcher."""

    status: str
    source: str
    restarts: int
    took_ns: int


def _of_agent(line: str, begins: re.Match[str]) -> _Agent:
    """The event that begins there; raises one of `NO_EVENT` where it is none."""
    event, _ = json.JSONDecoder().raw_decode(line, begins.start())
    about = event["metadata"]
    took_ns = round(float(about.get("duration_ms") or 0) * NS_PER_MS)
    return _Agent(begins[1], event["source"], int(about.get("agent_restarts") or 0), took_ns)


def _of_checkpoint(text: str, what: str) -> Iterator[dict[str, Any]]:
    """A save or load as the first rank logs it; raises one of `NO_EVENT` where it is none."""
    fields = ast.literal_eval(text)
    if str(fields.get("global_rank", "0")) != "0" or fields.get("event") not in ("start", "end"):
        return
    event = {"time_unix_nano": int(fields["time"]), "rank": 0}
    step = STEP.search(str(fields.get("checkpoint_id") or ""))
    if step:
        event["step"] = int(step[1])
    begins = fields["event"] == "start"
    if what == "load":
        yield {**event, "event": "load.start" if begins else "train.resume"}
        return
    end = "save.resume" if what == "async_save" else "save.commit"
    yield {**event, "event": "save.start" if begins else end, "save_id": str(fields.get("uuid"))}


def _ns(stamp: str) -> int:
    """Nanoseconds since 1970 of a time stamp; one without a zone counts as UTC."""
    return int(pd.Timestamp(stamp.replace(",", ".")).as_unit("ns").value)
