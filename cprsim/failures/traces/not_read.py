"""Files that are no log that can be read: by what they are known, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from cprsim.failures.traces.asked import Head
from cprsim.failures.traces.reading import SEPARATORS, trace_error

_Is = Callable[[Head], bool]


def _begins(*beginnings: bytes) -> _Is:
    return lambda head: head.begins.startswith(beginnings)


def _says(*beginnings: str) -> _Is:
    return lambda head: head.first_line.lstrip().lower().startswith(beginnings)


def _is_blank_separated(head: Head) -> bool:
    line = head.first_line
    return len(line.split()) > 1 and not any(mark in line for mark in SEPARATORS)


KNOWN: tuple[tuple[_Is, str], ...] = (
    (_begins(b"PK\3\4", b"\xd0\xcf\x11\xe0"), "a spreadsheet or an archive: save its sheet as CSV"),
    (
        _begins(b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd"),
        "packed, which its name does not say: name it .gz, .xz, .bz2 or .zst",
    ),
    (_begins(b"SQLite"), "an SQLite database: sqlite3 -header -csv FILE 'select ...' > log.csv"),
    (_begins(b"ARROW1", b"FEA1", b"ORC"), "a table in binary columns: write it as Parquet or CSV"),
    (_begins(b"\xff\xfe", b"\xfe\xff"), "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > log.csv"),
    (_begins(b"%PDF", b"\x7fELF", b"\x89PNG"), "no text: export the log as CSV"),
    (_says("<!doctype", "<html", "<?xml"), "HTML or XML: export the log as CSV or JSON lines"),
    (_says("---", "- "), "YAML: write a row per outage as CSV (node,start,end) or JSON lines"),
    (_says("#"), "no table, or one below a comment: let the header of its columns come first"),
    (_says("sep="), "CSV with a line for a spreadsheet on top: delete its first line"),
    (
        _says("["),
        "one JSON array or lines with a stamp in brackets: of an array, jq -c '.[]' FILE > "
        "log.jsonl makes JSON lines; of lines, write node,start,end as CSV",
    ),
    (_says("{"), "JSON over several lines: jq -c '.KEY[]' FILE > log.jsonl makes JSON lines"),
    (
        _is_blank_separated,
        "separated by blanks: print it with bars (Slurm: -P) or write it as CSV, with "
        "the columns node,start,end",
    ),
)  # fmt: skip


def require_readable(path: Path, head: Head) -> None:
    """Raise TraceError with what to do, for a file that no reader takes."""
    for is_so, advice in KNOWN:
        if is_so(head):
            raise trace_error(path, 1, f"is {advice}")
