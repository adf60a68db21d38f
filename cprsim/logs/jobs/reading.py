"""Logs of jobs as events: JSON lines of docs/events.md, output of torchrun, tables of attempts."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import ArrowInvalid, compute
from pyarrow import json as arrow_json

from cprsim.errors import one_line
from cprsim.events import EVENTS, FIELDS
from cprsim.failures.outages import Note, n_rows
from cprsim.logs.columns import plain
from cprsim.logs.files import opened, trace_error
from cprsim.logs.jobs import google, slurm_jobs
from cprsim.logs.jobs.attempts import attempt_events, is_header
from cprsim.logs.jobs.causes import DONE, word_of
from cprsim.logs.jobs.torchrun import HINTS, torch_events
from cprsim.logs.reading import require_no_print

HEAD_BYTES_OF_EVENTS = 1 << 18
PIECE_BYTES = 1 << 24
EVENTS_AT_ONCE = 1 << 16
MANY = 0.1  # of the events, or of those of a piece
MOST_LINES_SHOWN = 3  # lines that can't be read, by their numbers; names of unknown events
NS_PER_S = 1e9
NOT_READ = ("revert", "save.wait")  # of partial recovery: refused, as the field `part`
EVENT_TEXTS = ("part", "mode", "node", "cause", "save_id", "outcome", "rank")
SCHEMA = pa.schema(
    {
        "time_unix_nano": pa.int64(),
        "event": pa.string(),
        "job": pa.string(),
        "attempt": pa.int64(),
        "last_seen_unix_nano": pa.int64(),
        **dict.fromkeys(("step", "step_seconds"), pa.float64()),
        **dict.fromkeys(EVENT_TEXTS, pa.string()),
    }
)
FIRST_EVENTS = ("job.start", "load.start", "warm-up.start", "train.resume", "rollback")
MISSING: dict[str, Any] = {
    "attempt": -1, "last_seen_unix_nano": 0, "step": float("nan"), "step_seconds": float("nan"),
    **dict.fromkeys(EVENT_TEXTS, ""),
}  # fmt: skip
INSTANT = (0, 2**62, "an instant in ns since 1970")
INSTANTS = ("time_unix_nano", "last_seen_unix_nano")
MOST_ATTEMPTS = 10**9
MOST_EXACT = 2**53  # below which a float has each whole number
UNIT_OF_NS = {10**9: "s", 10**6: "ms", 10**3: "us"}  # ns in each
DATED_NS = (1_262_304_000 * 10**9, 4_102_444_800 * 10**9)  # the years 2010 to 2100
BOUNDS_OF_FIELDS = {  # least, most, and what would be right
    **dict.fromkeys(INSTANTS, INSTANT),
    "attempt": (-1, MOST_ATTEMPTS, "the number of an attempt, from 0 on"),
    "step": (0, 1e15, "a number of steps from 0 on"),
    "step_seconds": (1e-9, 1e9, "a time above 0 s"),
}
Bounds = dict[str, tuple[float, float, str]]
NUMBER_AS_NAME = re.compile(rb'("(?:node|save_id|rank)"\s*:\s*)(-?\d+)(?=\s*[,}])')


@dataclass(frozen=True, slots=True)
class Events:
    """Events of many jobs; numbers that an event does not say are as in `MISSING`."""

    jobs: tuple[str, ...]  # in the order of their first events
    steps: pd.DataFrame  # `progress` that says no more than a step: job, time_ns, step, attempt
    others: pd.DataFrame  # all other events, with all fields that are read
    notes: tuple[Note, ...] = ()

    @property
    def much_left_out(self) -> list[str]:
        """What was left out, if it is more than a tenth of all; the answer begins with it."""
        n, n_read = n_rows(self.notes, "dropped"), len(self.steps) + len(self.others)
        is_much = n > MANY * (n + n_read)
        return [str(note) for note in self.notes if is_much and note.kind == "dropped" and note.n]

    def by_job(self) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """Job after job: its name, and its rows in order of time; those of one instant as read."""
        steps, others = (
            dict(iter(rows.sort_values("time_ns", kind="stable").groupby("job", observed=True)))
            for rows in (self.steps, self.others)
        )
        for job in self.jobs:
            yield job, steps.get(job, self.steps[:0]), others.get(job, self.others[:0])


def read_logs(paths: Sequence[Path], time_unit: str | None = None) -> Events:
    """The events of all files, and of all files in folders.

    `time_unit` is that of times in tables of attempts. Raises TraceError for a file that is no log.
    """
    steps, other_tables = list[pa.Table](), list[pa.Table]()
    jobs, notes = dict[str, None](), list[Note]()
    unknown, damaged = Counter[str](), list[str]()  # events by their names, places of lines
    files = dict.fromkeys(file for path in paths for file in _files(path))
    n_called = Counter(file.stem for file in files)  # where a file names no job, it is one
    job_of = {file: file.stem if n_called[file.stem] == 1 else str(file) for file in files}
    for file, job in job_of.items():
        n_events = 0
        for table in _tables(file, damaged, notes, time_unit):
            is_known = compute.field("event").isin((*EVENTS, *NOT_READ))
            unknown.update(map(str, table.filter(~is_known)["event"].to_pylist()))
            for name in unknown:
                if right := [event for event in EVENTS if plain(event) == plain(name)]:
                    raise trace_error(file, None, f"{name!r} is no event: write {right[0]}")
            table = _with_job(table.filter(is_known), job, file)
            jobs |= dict.fromkeys(compute.unique(table["job"]).to_pylist())
            n_events += len(table)
            is_plain = (compute.field("event") == "progress") & (compute.field("part") == "")
            is_step = is_plain & ~compute.field("step").is_nan()
            steps.append(table.filter(is_step).select(["job", "time_ns", "step", "attempt"]))
            other_tables.append(table.filter(~is_step))
        if not n_events:
            said = f": it has {one_line(', '.join(unknown))}" * bool(unknown)
            raise trace_error(file, None, f"holds no event of docs/events.md{said}")
    of_steps, of_others = (
        pa.concat_tables(tables).unify_dictionaries().to_pandas()
        for tables in (steps, other_tables)
    )
    later = set[str]()
    if len(jobs) > 1:
        same, later = _put_together(of_steps, of_others, {*job_of.values()}, notes)
        jobs = dict.fromkeys(same[job] for job in jobs)
    odd = [f"'{one_line(name)}'" for name in sorted(unknown)]
    for n, names, words in (
        (len(damaged), damaged, "line(s) that are no event left out: {}"),
        (unknown.total(), odd, "event(s) {} left out: no event of docs/events.md"),
        (None, sorted(later), "{}: no first attempts? Name the attempts of one job alike in `job`"),
    ):
        listed = ", ".join(names[:MOST_LINES_SHOWN]) + ", ..." * (len(names) > MOST_LINES_SHOWN)
        notes += [Note("dropped" if n else "assumed", n, words.format(listed))] * bool(names)
    return Events(tuple(jobs), of_steps, of_others, tuple(dict.fromkeys(notes)))


def _put_together(
    steps: pd.DataFrame, others: pd.DataFrame, unnamed: set[str], notes: list[Note]
) -> tuple[dict[str, str], set[str]]:
    """Rename logs that are of one job; return its name by theirs, and jobs that lack their begin.

    Logs that overlap are of one. One that begins within a job continues the log that fits, if only
    one does; its attempts are counted on, as each launch may count them anew.
    """
    ends = steps.groupby("job", observed=True)["time_ns"].agg(["idxmin", "idxmax"])
    told = pd.concat([steps.loc[np.unique(ends)].assign(event="progress"), others])
    told = told.astype({"job": str}).sort_values("time_ns", kind="stable")
    same = {str(job): str(job) for job in told["job"].unique()}
    for one, other in _overlapping(told[told["job"].isin(unnamed)], [steps, others]):
        notes.append(Note("merged", None, f"{one} and {other} have events in common: one log"))
        same |= {job: same[one] for job, of in same.items() if of == same[other]}
    told["job"] = told["job"].map(same)
    told["attempt"] = told["attempt"].where(told["attempt"] >= 0)
    is_opening = (~told["event"].isin(FIRST_EVENTS)).groupby(told["job"]).cumsum() == 0
    starts = told["job"][is_opening & (told["event"] == "job.start")]
    first, last = (told.drop_duplicates("job", keep=k).set_index("job") for k in ("first", "last"))
    first["begins"] = told[is_opening].groupby("job")["step"].first()
    last[["step", "attempt"]] = told.groupby("job")[["step", "attempt"]].last()
    is_later = (first["begins"] > 0) | (first["attempt"] > first["attempt"].min())
    is_later |= bool(len(starts)) & ~first.index.isin(starts)
    later, goes_on, launch = {*first.index[is_later]}, dict[str, str](), dict.fromkeys(same, 0)
    left: dict[str, Any] = {str(end.Index): end for end in last.itertuples()}
    may = first[(is_later | ~first["event"].isin(FIRST_EVENTS)) & first.index.isin(unnamed)]
    for log in cast("Iterator[Any]", may.itertuples()):
        can = [name for name in unnamed & left.keys() if _continues(log, left[name])]
        if len(can) == 1:
            before = left.pop(can[0]).Index
            goes_on[log.Index] = goes_on.get(before, before)
            launch[log.Index] = launch[before] + (log.event in FIRST_EVENTS)
            notes.append(Note("merged", None, f"{log.Index} goes on where {before} ends: one log"))
    one_job = {job: goes_on.get(of, of) for job, of in same.items()}
    for table in (steps, others):
        logs, attempt = table["job"].cat, table["attempt"]
        of_launch = np.array([launch[same[job]] for job in logs.categories])[logs.codes]
        counted_on = MOST_ATTEMPTS * of_launch + attempt.clip(lower=0)
        table["attempt"] = np.where(of_launch, counted_on, attempt)
        table["job"] = table["job"].map(one_job).astype("category")
    return one_job, later - goes_on.keys()


def _continues(log: Any, before: Any) -> bool:
    """Whether a log may continue another: the first event of the one, the last of the other."""
    finished = before.event == "job.end" and word_of(before.outcome) in DONE
    n = log.attempt - before.attempt  # NaN: unknown
    if finished or before.time_ns > log.time_ns or log.Index == before.Index or n > 1:
        return False
    has_begun = before.event in FIRST_EVENTS and not n < 0
    if log.event not in FIRST_EVENTS and n != 1:
        return has_begun or not (n < 0 or log.step < before.step)
    return (n == 1 or has_begun or log.begins > 0) and not log.begins > before.step


def _overlapping(told: pd.DataFrame, tables: Sequence[pd.DataFrame]) -> list[tuple[str, str]]:
    """Logs of which one begins, and one ends, within the other: rotated ones, or older copies."""
    what = ["job", "time_ns", "event", "step", "node"]
    none = {"event": "progress", "step": -1.0, "node": ""}
    told = told[~told["event"].isin(("rollback", "job.end"))].fillna(none)  # of tables: inferred
    ends = [told.drop_duplicates("job", keep=keep)[what] for keep in ("first", "last")]
    at_ns, logs = pd.concat(ends)["time_ns"], ends[0]["job"]
    held = pd.concat([table[table["time_ns"].isin(at_ns)] for table in tables]).fillna(none)
    held = held[held["job"].isin(logs)].astype({"job": str})[what]
    begins, finishes = ({*zip(of["job_x"], of["job_y"], strict=True)}
                        for of in (end.merge(held, on=what[1:]) for end in ends))  # fmt: skip
    overlap = (pair for pair in begins if not finishes.isdisjoint((pair, pair[::-1])))
    return sorted({(one, other) for one, other in map(sorted, overlap) if one != other})


def _with_job(table: pa.Table, default_job: str, path: Path) -> pa.Table:
    """The columns that are used, nothing of them null. A log that names no job is one job."""
    columns = {"time_ns": table["time_unix_nano"], "event": table["event"]}
    columns |= {name: compute.fill_null(table[name], none) for name, none in MISSING.items()}
    job = compute.utf8_trim_whitespace(table["job"])
    if 0 < job.null_count < len(job):
        message = f"{job.null_count} events name no job, where others do: name it in each, or none"
        raise trace_error(path, None, message, "job")
    columns["job"] = compute.fill_null(job, default_job).dictionary_encode()
    return pa.table(columns)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    inside = sorted(file for file in path.iterdir() if file.is_file() and file.name[0] != ".")
    if not inside:
        raise trace_error(path, None, "the folder holds no file")
    return inside


def _tables(
    path: Path, damaged: list[str], notes: list[Note], time_unit: str | None
) -> Iterator[pa.Table]:
    """Yield the events of one file, by the reader that its first lines indicate.

    Raises TraceError if it is no log.
    """
    with opened(path) as file:
        head = file.read(HEAD_BYTES_OF_EVENTS).decode("utf-8-sig", errors="replace")
    lines = head.splitlines()
    if any(hint in head for hint in HINTS):
        yield from _of_rows(torch_events(path, damaged))
    elif is_header(next((line for line in lines if line[:1] != "#"), "")):
        yield from _of_rows(attempt_events(path, time_unit, notes))
    elif told := [said[INSTANTS[0]] for line in lines if (said := fields_of(line))]:
        first_at = next((at for at in told if type(at) is int), DATED_NS[0])
        with opened(path) as file:
            yield from _of_json_lines(file, path, first_at, damaged)
    elif google.HINT.search(head):
        yield from _of_rows(google.resiliency_events(path, damaged))
    elif re.match(r"[^{\n]*\bjobid", head, re.IGNORECASE):
        raise trace_error(path, None, slurm_jobs.NO_EVENTS)
    else:
        require_no_print(path)
        what = "no events of docs/events.md, no output of torchrun, and no CSV of attempts"
        message = f"is no log that can be read: {what} with the columns start, end and last_step"
        message += f", but {one_line(''.join(lines[:1]))!r}"
        if re.match(r"\s*(\[\s*)*\{", head):
            what = "write one JSON object a line with time_unix_nano, in ns, and event at its top"
            message = f"no line is an event: {what} (`jq -c .`, `jq -c '.[]'` of arrays), or a CSV"
        elif '{"time_unix_nano"' in head:
            message = "events stand behind other text: sed -n 's/^[^{]*{/{/p' FILE leaves it out"
        raise trace_error(path, 1, message)


def _of_rows(events: Iterable[dict[str, Any]]) -> Iterator[pa.Table]:
    events = iter(events)
    while rows := list(islice(events, EVENTS_AT_ONCE)):
        yield pa.Table.from_pylist(rows, SCHEMA)


# ------------------------------------------------------------------------------------- JSON lines


def _of_json_lines(
    file: IO[bytes], path: Path, first_at: int, damaged: list[str]
) -> Iterator[pa.Table]:
    """Yield events in pieces: all lines together, or line by line if a line holds none.

    Instants are all of our days, or none is, as the first one of the log.
    """
    of_units = (DATED_NS[0] <= first_at * n_ns <= DATED_NS[1] for n_ns in (1, *UNIT_OF_NS))
    is_dated = first_at >= DATED_NS[0] or any(of_units)
    of_days = (DATED_NS[0], INSTANT[1]) if is_dated else (0, DATED_NS[0] - 1)
    right = f"{INSTANT[2]} as the first of the log is, of {'our days' if is_dated else '1970'}"
    bounds = BOUNDS_OF_FIELDS | dict.fromkeys(INSTANTS, (*of_days, right))
    first = 1
    while piece := file.read(PIECE_BYTES) + file.readline(PIECE_BYTES):
        table = _at_once(piece, bounds)
        if table is None:
            table = _at_once(NUMBER_AS_NAME.sub(rb'\1"\2"', piece), bounds)
        if table is None:
            rows = _line_by_line(piece.split(b"\n"), path, first, bounds, damaged)
            table = pa.Table.from_pylist(rows, SCHEMA)
        yield table
        first += piece.count(b"\n")


def _at_once(piece: bytes, bounds: Bounds) -> pa.Table | None:
    """Columns of all lines; None where one of them is no event, or has a value out of bounds."""
    options = arrow_json.ParseOptions(explicit_schema=SCHEMA, unexpected_field_behavior="ignore")
    try:
        piece.decode()  # pyarrow takes any bytes for text
        table = arrow_json.read_json(io.BytesIO(piece), parse_options=options)
    except (ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None
    if table["time_unix_nano"].null_count or table["event"].null_count:
        return None
    for name, (least, most, _) in bounds.items():
        ends = compute.min_max(table[name]).as_py()
        if ends["min"] is not None and not least <= ends["min"] <= ends["max"] <= most:
            return None
    return table


def _line_by_line(
    lines: Sequence[bytes], path: Path, first: int, bounds: Bounds, damaged: list[str]
) -> list[dict[str, Any]]:
    """The events of some lines. Raises TraceError for a value that none can have.

    Also where many lines are events but for a value of another type; else these are damaged.
    """
    events, misfits = list[dict[str, Any]](), list[tuple[int, str, Any]]()
    for number, line in enumerate(lines, first):
        fields = fields_of(line)
        misfit = [
            (number, name, value)
            for name, value in fields.items()
            if isinstance(value, bool) or not isinstance(value, FIELDS.get(name, str))
        ]
        if line.strip() and (misfit or not fields):
            damaged.append(f"{path.name}:{number}")
        misfits += misfit[:1]
        if misfit or not fields:
            continue
        for name, (least, most, right) in bounds.items():
            if name in fields and not least <= fields[name] <= most:
                message = f"{fields[name]!r} is not {right}"
                for n_ns, unit in UNIT_OF_NS.items() if name in INSTANTS else ():
                    if DATED_NS[0] <= fields[name] * n_ns <= DATED_NS[1]:
                        message = f"{fields[name]} ns lies in 1970: it looks like {unit}; write ns"
                raise trace_error(path, number, message, name)
        events.append({k: str(value) if k in EVENT_TEXTS else value for k, value in fields.items()})
    if len(misfits) > min(len(events), 1 + MANY * len(events)):
        number, name, value = misfits[0]
        kinds: dict[Any, str] = {int: "a whole number, without quotes"}
        kinds |= dict.fromkeys((str, (str, int)), "a text")
        right = kinds.get(FIELDS.get(name, str), "a number, without quotes")
        message = f"{value!r} is not {right}; so in {len(misfits)} events"
        raise trace_error(path, number, message, name)
    return events


def _number(text: str) -> float:
    """A number, whole if it is: pandas writes 3.0 for 3."""
    number = float(text)
    return int(number) if abs(number) < MOST_EXACT and number.is_integer() else number


def fields_of(line: bytes | str) -> dict[str, Any]:
    """Return the fields of an event in a line that are read; empty if the line is no event."""
    try:
        said = json.loads(line, parse_float=_number)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    fields = {name: said[name] for name in SCHEMA.names if said.get(name) is not None}
    return fields if "event" in fields and "time_unix_nano" in fields else {}
