"""Files that are no log that can be read: by what they are known, and what to do with them."""

from __future__ import annotations

import re
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


def _is_array(head: Head) -> bool:
    return re.match(r"\s*\[\s*(?:\]|\"|[\d.]+\s*,)", head.text) is not None


def _is_drawn(head: Head) -> bool:
    """Whether a line of signs follows the header, as of psql and Markdown."""
    below = head.text.partition("\n")[2].partition("\n")[0].strip()
    return "|" in head.first_line and len(below) > 3 and set(below) <= set("-+|: ")


def _is_line_protocol(head: Head) -> bool:
    return re.match(r"\w+(,\w+=[^\s,]+)+ \w+=\S+( \d+)?$", head.first_line) is not None


def _has_a_table_below(head: Head) -> bool:
    """Whether a line with separators follows a first one without: a title above the header."""
    lines = [line for line in head.text.splitlines()[:20] if line.strip()]
    return _is_blank_separated(head) and any(
        line.count(mark) >= 2 and {"node", "start"} <= set(re.split(r"[\s\W]+", line.lower()))
        for line in lines[1:]
        for mark in SEPARATORS
    )


KNOWN: tuple[tuple[_Is, str], ...] = (
    (_begins(b"PK\3\4", b"\xd0\xcf\x11\xe0"), "a spreadsheet or an archive: save its sheet as CSV"),
    (
        _begins(b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd"),
        "packed, which its name does not say: name it .gz, .xz, .bz2 or .zst",
    ),
    (
        lambda head: head.text[257:262] == "ustar",
        "an archive (tar): unpack it, and give the log alone",
    ),
    (
        _begins(b"\x89HDF", b"\x93NUMPY", b"\x80\x04", b"\x80\x05", b"Obj\x01"),
        "data of a program, no text: write it as CSV or Parquet (pandas: to_csv)",
    ),
    (_begins(b"SQLite"), "an SQLite database: sqlite3 -header -csv FILE 'select ...' > log.csv"),
    (_begins(b"ARROW1", b"FEA1", b"ORC"), "a table in binary columns: write it as Parquet or CSV"),
    (_begins(b"\xff\xfe", b"\xfe\xff"), "text in UTF-16: iconv -f UTF-16 -t UTF-8 FILE > log.csv"),
    (
        lambda head: head.begins[1::2].count(0) > len(head.begins) // 3,
        "text in UTF-16: iconv -f UTF-16LE -t UTF-8 FILE > log.csv",
    ),
    (
        lambda head: head.begins.startswith((b"%PDF", b"\x7fELF", b"\x89PNG")) or "\0" in head.text,
        "no text: export the log as CSV",
    ),
    (_says("<!doctype", "<html", "<?xml"), "HTML or XML: export the log as CSV or JSON lines"),
    (_says("{\\rtf"), "a document: save it as plain text, and as CSV"),
    (_says("insert into", "create table"), "SQL: export the table as CSV (node,start,end)"),
    (_says("+--"), "a table in a frame: print it without one (mysql: --batch; psql: --csv)"),
    (
        _says("---", "- ", "apiversion:"),
        "YAML: write a row per outage as CSV (node,start,end) or JSON lines",
    ),
    (
        _says("# help", "# type"),
        "what an exporter says of one moment: ask Prometheus for its past, "
        "/api/v1/query_range of `up`",
    ),
    (_says("#datatype", "#group"), "InfluxDB's annotated CSV: delete the lines that begin with #"),
    (_says("#"), "no table, or one below a comment: let the header of its columns come first"),
    (_says("sep="), "CSV with a line for a spreadsheet on top: delete its first line"),
    (_is_array, "a JSON array, but not of objects with node, start and end"),
    (_is_drawn, "a table drawn for people: write it as CSV (psql --csv), or delete its line 2"),
    (_is_line_protocol, "InfluxDB's line protocol: query it as CSV, with node, start and up"),
    (_says("["), "lines or sections in brackets: write a row per outage as CSV (node,start,end)"),
    (_says("{"), "JSON over several lines: jq -c '.KEY[]' FILE > log.jsonl makes JSON lines"),
    (
        _has_a_table_below,
        "no header, but above one: delete what stands above node,start,end",
    ),
    (_says("last seen", "reason"), "printed for people: kubectl -o json, or Slurm's sacctmgr -P"),
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
