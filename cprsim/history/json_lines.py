"""Reader of logs that `cprsim.events` writes: JSON lines, in pieces, millions of them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ArrowInvalid, compute
from pyarrow import json as arrow_json

from cprsim.errors import Place, TraceError
from cprsim.events import EVENTS, FIELDS
from cprsim.history.table import Events

PIECE_BYTES = 1 << 24
LONGEST_LINE_BYTES = 1 << 20
SHOWN = 3  # lines that can't be read, by their numbers
LARGEST_STEP = 1e15
LARGEST_NS = 2**62
WORDS = ("part", "mode", "node", "cause", "save_id", "outcome")
TYPES = {
    "time_unix_nano": pa.int64(),
    "event": pa.string(),
    "job": pa.string(),
    "attempt": pa.int64(),
    "last_seen_unix_nano": pa.int64(),
    "step": pa.float64(),
    "step_seconds": pa.float64(),
    **dict.fromkeys(WORDS, pa.string()),
}
SCHEMA = pa.schema(list(TYPES.items()))
MISSING = {"attempt": -1, "last_seen_unix_nano": 0, **dict.fromkeys(WORDS, "")}
NUMBERED = re.compile(rb'"(node|save_id)"\s*:\s*-?\d')


@dataclass
class Collected:
    """Pieces of tables, as they are read, and what could not be."""

    steps: list[pa.Table] = field(default_factory=list)
    others: list[pa.Table] = field(default_factory=list)
    jobs: dict[str, None] = field(default_factory=dict)  # in the order of their first events
    damaged: int = 0
    first_damaged: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, table: pa.Table, default_job: str) -> None:
        """Take in some events. A log that names no job is one job."""
        known = compute.is_in(table["event"], pa.array(EVENTS))
        for one in compute.value_counts(table.filter(compute.invert(known))["event"]).to_pylist():
            name, n = str(one["values"]), one["counts"]
            self.unknown[name] = self.unknown.get(name, 0) + n
        table = table.filter(known)
        columns = {name: table[name] for name in TYPES if name != "time_unix_nano"}
        columns |= {name: compute.fill_null(columns[name], none) for name, none in MISSING.items()}
        columns |= {name: _finite(columns[name]) for name in ("step", "step_seconds")}
        columns["job"] = compute.fill_null(columns["job"], default_job).dictionary_encode()
        self.jobs |= dict.fromkeys(compute.unique(columns["job"]).to_pylist())
        table = pa.table({"time_ns": table["time_unix_nano"], **columns})
        says_part = compute.not_equal(table["part"], "")
        is_progress = compute.and_not(compute.equal(table["event"], "progress"), says_part)
        is_step = compute.and_(is_progress, compute.is_finite(table["step"]))
        self.steps.append(table.select(["job", "time_ns", "step", "attempt"]).filter(is_step))
        self.others.append(table.filter(compute.invert(is_step)))

    def left_out(self, path: Path, line: int) -> None:
        """Count a line that is no event."""
        self.damaged += 1
        if len(self.first_damaged) < SHOWN:
            self.first_damaged.append(f"{path.name}:{line}")

    @property
    def n_events(self) -> int:
        return sum(len(one) for one in (*self.steps, *self.others))

    def events(self) -> Events:
        """All of them."""
        tables = (pa.concat_tables(one) for one in (self.steps, self.others))
        steps, others = (table.unify_dictionaries().to_pandas() for table in tables)
        return Events(tuple(self.jobs), steps, others, self._notes())

    def _notes(self) -> tuple[str, ...]:
        notes = list(self.notes)
        if self.damaged:
            shown = ", ".join(self.first_damaged)
            more = ", ..." if self.damaged > len(self.first_damaged) else ""
            notes.append(f"{self.damaged} line(s) that are no event left out: {shown}{more}")
        for name, n in sorted(self.unknown.items())[:SHOWN]:
            notes.append(f"{n} event(s) {name!r} left out: no event of docs/events.md")
        return tuple(notes)


def read_json_lines(path: Path, into: Collected, job: str) -> None:
    """Events of one file; lines that are none are counted and left out.

    Raises TraceError: the file can't be read, or holds no event at all.
    """
    n_before = into.n_events
    number = 1
    try:
        for piece in _pieces(path):
            table = _parsed(piece, path, number, into)
            into.add(table, job)
            number += piece.count(b"\n")
    except OSError as error:
        raise TraceError.at(Place(path), f"can't be read: {error.strerror or error}") from error
    if into.n_events == n_before:
        raise TraceError.at(Place(path), "holds no event that can be read (docs/events.md)")


def _pieces(path: Path) -> Iterator[bytes]:
    """Whole lines, so many bytes at once."""
    with path.open("rb") as file:
        rest = b""
        while piece := file.read(PIECE_BYTES):
            whole, line_end, rest_of = (rest + piece).rpartition(b"\n")
            if len(rest_of) > LONGEST_LINE_BYTES:
                raise TraceError.at(Place(path), "has a line of more than 1 MB: no log of events")
            if line_end:
                yield whole + line_end
            rest = rest_of
        if rest.strip():
            yield rest


def _parsed(piece: bytes, path: Path, first_line: int, into: Collected) -> pa.Table:
    """Columns of the lines that hold events: all at once, or where one does not, line by line."""
    table = _at_once(piece, SCHEMA)
    if table is None and (schema := _with_numbers(piece)) != SCHEMA:
        table = _at_once(piece, schema)
    if table is None or table["time_unix_nano"].null_count or table["event"].null_count:
        return _line_by_line(piece, path, first_line, into)
    return table.cast(SCHEMA)


def _at_once(piece: bytes, schema: pa.Schema) -> pa.Table | None:
    """Columns of all lines; None where one of them does not fit."""
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    try:
        piece.decode()  # pyarrow takes any bytes for text
        return arrow_json.read_json(io.BytesIO(piece), parse_options=options)
    except (ArrowInvalid, pa.ArrowNotImplementedError, UnicodeDecodeError):
        return None


def _with_numbers(piece: bytes) -> pa.Schema:
    """The columns, with whole numbers for the names that lines give as numbers."""
    given = {found[1].decode() for found in NUMBERED.finditer(piece)}
    return pa.schema([(name, pa.int64() if name in given else of) for name, of in TYPES.items()])


def _line_by_line(piece: bytes, path: Path, first_line: int, into: Collected) -> pa.Table:
    rows = []
    for number, line in enumerate(piece.splitlines(), first_line):
        if not line.strip():
            continue
        found = event_of(line)
        if found is None:
            into.left_out(path, number)
        else:
            rows.append(found)
    return pa.Table.from_pylist(rows, SCHEMA)


def event_of(line: bytes | str) -> dict[str, Any] | None:
    """What a line says, in the types of its columns; None where it is no event."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return in_types(found) if isinstance(found, dict) else None


def in_types(event: dict[str, Any]) -> dict[str, Any] | None:
    """The fields that are read, in the types of their columns; None where one has another type."""
    given = {name: event[name] for name in TYPES if event.get(name) is not None}
    if "event" not in given or "time_unix_nano" not in given:
        return None
    for name, value in given.items():
        known: Any = value
        if isinstance(value, bool) or not isinstance(value, FIELDS[name]):
            return None
        if TYPES[name] == pa.string():
            given[name] = str(known)
        elif TYPES[name] == pa.float64():
            given[name] = float(known) if abs(known) <= LARGEST_STEP else None
        elif abs(known) >= LARGEST_NS:
            return None
    return given


def _finite(column: Any) -> Any:
    """Steps, NaN where there is none, or none that can be."""
    column = compute.fill_null(column, float("nan"))
    is_step = compute.less_equal(compute.abs(column), LARGEST_STEP)
    return compute.if_else(is_step, column, float("nan"))
