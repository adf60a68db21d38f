"""Reader of logs that `cprsim.events` writes: JSON lines, in pieces, millions of them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import ArrowInvalid, compute
from pyarrow import json as arrow_json

from cprsim.errors import Place, TraceError
from cprsim.events import FIELDS
from cprsim.history.table import CODE, Events, Others, Steps, in_order
from cprsim.records import Bools

PIECE_BYTES = 1 << 24
LONGEST_LINE_BYTES = 1 << 20
SHOWN = 3  # lines that can't be read, by their numbers
LARGEST_STEP = 1e15
NUMBERS = ("step", "step_seconds", "fraction")
NAMES = ("part", "mode", "node", "role", "cause", "save_id", "outcome")
TYPES = {
    "time_unix_nano": pa.int64(),
    "event": pa.string(),
    "job": pa.string(),
    "attempt": pa.int64(),
    "last_seen_unix_nano": pa.int64(),
    **dict.fromkeys(NUMBERS, pa.float64()),
    **dict.fromkeys(NAMES, pa.string()),
}
SCHEMA = pa.schema(list(TYPES.items()))
NUMBERED = re.compile(rb'"(node|save_id)"\s*:\s*-?\d')
PROGRESS = CODE["progress"]


@dataclass
class WordNumbers:
    """Words and the numbers that stand for them."""

    numbers: dict[str, int] = field(default_factory=dict)

    def of(self, column: Any) -> NDArray[np.int32]:
        """Numbers of a column of words, -1 where there is none."""
        if column.null_count == len(column):
            return np.full(len(column), -1, dtype=np.int32)
        coded = column.combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.combine_chunks()
        known = [self.number(word) for word in coded.dictionary.to_pylist()]
        places = compute.fill_null(coded.indices, len(known)).to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*known, -1], dtype=np.int32)[places])

    def number(self, word: str) -> int:
        """The number of one word."""
        return self.numbers.setdefault(word, len(self.numbers))


@dataclass
class Collected:
    """Pieces of tables, as they are read, and what could not be."""

    jobs: WordNumbers = field(default_factory=WordNumbers)
    words: WordNumbers = field(default_factory=WordNumbers)
    steps: list[tuple[Any, ...]] = field(default_factory=list)
    others: list[tuple[Any, ...]] = field(default_factory=list)
    damaged: int = 0
    first_damaged: list[str] = field(default_factory=list)
    unknown: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, table: pa.Table, default_job: str) -> None:
        """Take in some events. A log that names no job is one job."""
        table = _of_known_events(table, self.unknown)
        event = self._kinds(table["event"])
        job = self.jobs.of(compute.fill_null(table["job"], default_job))
        attempt = _numbers(table["attempt"], -1).astype(np.int32)
        time_ns, step = _numbers(table["time_unix_nano"], 0), _floats(table["step"])
        plain = table["part"].is_null().to_numpy()  # that says no more than a step
        is_step = (event == PROGRESS) & np.isfinite(step) & plain
        self.steps.append((job[is_step], time_ns[is_step], step[is_step], attempt[is_step]))
        rest = np.flatnonzero(~is_step)
        table = table.take(pa.array(rest))
        self.others.append(
            (
                job[rest], time_ns[rest], event[rest], step[rest], attempt[rest],
                _floats(table["step_seconds"]), _floats(table["fraction"]),
                _numbers(table["last_seen_unix_nano"], 0),
                *(self.words.of(table[name]) for name in NAMES),
            )
        )  # fmt: skip

    def left_out(self, path: Path, line: int) -> None:
        """Count a line that is no event."""
        self.damaged += 1
        if len(self.first_damaged) < SHOWN:
            self.first_damaged.append(f"{path.name}:{line}")

    def _kinds(self, column: Any) -> NDArray[np.int8]:
        coded = column.combine_chunks().dictionary_encode()
        codes = [CODE[name] for name in coded.dictionary.to_pylist()]
        places = coded.indices.to_numpy(zero_copy_only=False)
        return np.asarray(np.array([*codes, -1], dtype=np.int8)[places])

    def events(self) -> Events:
        """All of them in order."""
        steps = in_order(Steps(*_joined(self.steps, Steps)))
        others = in_order(Others(*_joined(self.others, Others)))
        return Events(
            steps, others, tuple(self.jobs.numbers), tuple(self.words.numbers), self._notes()
        )

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

    Parameters
    ----------
    job : of events that name none

    Raises
    ------
    TraceError : the file can't be read, or holds no event at all
    """
    n_before = _n_events(into)
    number = 1
    try:
        for piece in _pieces(path):
            table = _parsed(piece, path, number, into)
            into.add(table, job)
            number += piece.count(b"\n")
    except OSError as error:
        raise TraceError.at(Place(path), f"can't be read: {error.strerror or error}") from error
    if _n_events(into) == n_before:
        raise TraceError.at(Place(path), "holds no event that can be read (docs/events.md)")


def _n_events(into: Collected) -> int:
    return sum(len(one[0]) for one in (*into.steps, *into.others))


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
    rows: dict[str, list[Any]] = {name: [] for name in TYPES}
    for number, line in enumerate(piece.splitlines(), first_line):
        if not line.strip():
            continue
        found = event_of(line)
        if found is None:
            into.left_out(path, number)
            continue
        for name, values in rows.items():
            values.append(found.get(name))
    return pa.table({name: pa.array(rows[name], TYPES[name]) for name in TYPES})


def event_of(line: bytes | str) -> dict[str, Any] | None:
    """What a line says, in the types of its columns; None where it is no event."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not isinstance(found.get("event"), str):
        return None
    plain: dict[str, Any] = {}
    for name, value in found.items():
        if name not in TYPES or value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, FIELDS[name]):
            return None
        known: Any = value
        if pa.types.is_string(TYPES[name]):
            plain[name] = str(known)
        elif pa.types.is_floating(TYPES[name]):
            plain[name] = float(known) if abs(known) <= LARGEST_STEP else None
        elif abs(known) < 2**62:
            plain[name] = known
        else:
            return None
    return plain if "time_unix_nano" in plain else None


def _of_known_events(table: pa.Table, unknown: dict[str, int]) -> pa.Table:
    counts = compute.value_counts(table["event"].combine_chunks()).to_pylist()
    strange = [one for one in counts if one["values"] not in CODE]
    for one in strange:
        unknown[str(one["values"])] = unknown.get(str(one["values"]), 0) + one["counts"]
    if not strange:
        return table
    return table.filter(compute.is_in(table["event"], pa.array(list(CODE))))


def _numbers(column: Any, missing: int) -> NDArray[np.int64]:
    return np.asarray(compute.fill_null(column, missing).to_numpy())


def _floats(column: Any) -> NDArray[np.float64]:
    values = np.asarray(compute.fill_null(column, float("nan")).to_numpy())
    beyond: Bools = np.abs(values) > LARGEST_STEP
    return np.where(beyond, np.nan, values) if beyond.any() else values


def _joined(pieces: list[tuple[Any, ...]], table: type) -> list[NDArray[Any]]:
    """The columns of all pieces, each freed as soon as it is joined."""
    n_columns = len(table.__dataclass_fields__)  # type: ignore[attr-defined]
    kept = [list(piece) for piece in pieces]
    pieces.clear()
    columns = []
    for place in range(n_columns):
        columns.append(np.concatenate([piece[place] for piece in kept]))
        for piece in kept:
            piece[place] = None
    return columns
