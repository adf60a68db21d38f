"""Kernel logs with NVIDIA's Xids (by docs.nvidia.com/deploy/xid-errors), and what each means."""

from __future__ import annotations

import json
import re
from collections import Counter
from math import nan
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import LogFormat, LogOptions
from cprsim.failures.traces.files import numbered_lines, trace_error
from cprsim.failures.traces.log import Log, outages
from cprsim.failures.traces.reading import FIRST_ROW, no_row_where
from cprsim.failures.traces.repeats import ONE_FAULT_H, joined
from cprsim.failures.traces.times import ZONE, date_h, hours_since_1970, in_zone

LOSES_NODE = {  # it has to be reset, rebooted or serviced before a job goes on
    # published
    46: "GPU stopped processing", 48: "double bit ECC error",
    # recalled
    61: "internal micro-controller breakpoint", 62: "internal micro-controller halt",
    64: "ECC page retirement or row remapping failed", 74: "NVLink error",
    79: "GPU has fallen off the bus", 95: "uncontained ECC error", 109: "context switch timeout",
    110: "security fault", 119: "timeout of the GPU's system processor (GSP)",
    120: "error of the GPU's system processor (GSP)", 136: "link training failed",
    140: "unrecovered ECC error", 143: "GPU initialisation error",
}  # fmt: skip
LOSES_NO_NODE = {
    # published
    8: "GPU stopped processing", 11: "invalid or corrupted push buffer stream",
    13: "graphics engine exception",
    # recalled
    31: "GPU memory page fault", 32: "invalid or corrupted push buffer stream",
    38: "driver firmware error", 43: "GPU stopped processing",
    45: "preemptive cleanup after another error",
    63: "ECC page retirement or row remapping recorded", 68: "video processor exception",
    69: "graphics engine class error", 92: "high rate of single bit ECC errors",
    94: "contained ECC error", 121: "corrected error on the chip-to-chip link",
}  # fmt: skip

MARK = "NVRM: Xid ("
CODE = r"NVRM: Xid \([^)]*\):\s*(?P<code>\d+)(?:[,.:;\s]|$)"
PREFIX = (  # of a line: its instant and its node
    r"^(?:<\d+>(?:1 )?)?"
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|\[?(?:[A-Z][a-z]{2} )?(?:(?P<year>\d{4}) )?(?P<day>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
    r"(?:\.\d+)?(?: (?P<after>\d{4}))?\]?)"
    r"(?:\s+(?P<host>[^\s\[:]+))?[\s:]"
)
BEGINS = re.compile(rf'(?:-- .*\n)*(?:{PREFIX[1:]}.*kernel|\{{.*"__REALTIME_TIMESTAMP")')
THIS_NODE = "this machine"
NEW_YEAR, MOST_BACK = pd.Timedelta(180, "D"), pd.Timedelta(30, "D")  # by which a line goes back


def read_nvidia_xid(path: Path, asked: LogOptions) -> Outages:
    """Failures of nodes, instants at the Xids that lose a node; what else there is, is counted.

    Lines are those of ``journalctl -k`` (short-iso, json), of syslog, or of ``dmesg -T`` (all of
    one node, as none is named).
    """
    counted, lines = Counter[str](), dict[int, str]()
    for number, line in numbered_lines(path):
        if MARK in line:
            lines[number - FIRST_ROW] = _of_journal(line) if line.startswith("{") else line
        else:
            counted["line(s) without an Xid left out"] += 1
    text = pd.Series(lines, dtype=str)
    code = pd.to_numeric(_extracted(text, CODE)["code"], errors="coerce").astype(float)
    no_row_where(code.isna().to_numpy(), text, path, "Xid", "{value} has no number of an Xid")
    for number, n in code[~code.isin(list(LOSES_NODE))].value_counts().items():
        known = "that lose no node" if number in LOSES_NO_NODE else "that the catalogue has not"
        counted[f"Xid(s) {number:.0f} left out, of those {known}"] = int(n)
    seen = ", ".join(what for what in counted if what.startswith("Xid")) or "no Xid at all"
    text = text[code.isin(list(LOSES_NODE))]
    if text.empty:
        raise trace_error(path, None, f"holds no Xid that loses a node ({seen})")
    found = _extracted(text, PREFIX).replace("", None)
    what = "{value} begins with no time stamp and node: write it with `journalctl -k -o short-iso`"
    untimed = (found["iso"].isna() & found["day"].isna()).to_numpy()
    no_row_where(untimed, text, path, "", what)
    nameless = found["host"].isna() | (found["host"] == "NVRM")
    counted["Xid(s) without a node's name, taken as of one node (dmesg names none)"] = int(
        nameless.sum()
    )
    rows = pd.DataFrame({
        "node": found["host"].mask(nameless, THIS_NODE), "start": nan, "end": nan,
        "cause": [f"Xid {number:.0f}: {LOSES_NODE[number]}" for number in code[text.index]],
    })  # fmt: skip
    rows["start"] = _hours(found, rows["node"], text, path, asked, counted)
    what = "Xid(s) come within a minute of another of the same node: one failure"
    return outages(path, Log(joined(rows, ONE_FAULT_H, what, counted), counted, points=True), asked)


def _of_journal(line: str) -> str:
    """A line of ``journalctl -o json`` as ``-o short-iso`` writes it."""
    try:
        entry = json.loads(line)
        at = pd.Timestamp(int(entry["__REALTIME_TIMESTAMP"]), unit="us").isoformat()
        return f"{at}Z {entry['_HOSTNAME']} kernel: {entry['MESSAGE']}"
    except (ValueError, KeyError, TypeError):
        return line  # which begins with no time stamp


def _extracted(text: pd.Series[str], pattern: str) -> pd.DataFrame:
    """The named groups of a pattern, a column each; missing where it does not match."""
    found = pc.extract_regex(pa.array(text, type=pa.large_string()), pattern)
    names = [field.name for field in found.type]
    columns = zip(names, found.flatten(), strict=True)
    return pd.DataFrame({name: one.to_pandas() for name, one in columns}, dtype=str).set_axis(
        text.index
    )


def _hours(
    found: pd.DataFrame, node: pd.Series[str], text: pd.Series[str], path: Path, asked: LogOptions,
    counted: Counter[str],
) -> pd.Series[float]:  # fmt: skip
    """Instants as hours since 1970; those without a zone as of ``--tz``, else as UTC."""
    year = found["year"].fillna(found["after"])
    bare = found["iso"].isna() & year.isna()
    if bare.any():
        year[bare] = _years(found["day"][bare], node[bare], path, asked, counted)
    stamps = pd.to_datetime(
        found["iso"].str.replace(",", "."), format="ISO8601", errors="coerce", utc=True
    )
    form = "%Y %b %d %H:%M:%S"
    days = pd.to_datetime(year + " " + found["day"], format=form, errors="coerce", utc=True)
    stamps = stamps.fillna(days)
    no_row_where(stamps.isna().to_numpy(), text, path, "", "{value} begins with no time stamp")
    if asked.tz is not None:
        zoned = found["iso"].str.contains(ZONE).fillna(False).astype(bool)
        stamps = stamps.where(zoned, in_zone(stamps, asked.tz)[0])
    return pd.Series(hours_since_1970(stamps), text.index)


def _years(
    day: pd.Series[str], node: pd.Series[str], path: Path, asked: LogOptions, counted: Counter[str]
) -> pd.Series[str]:
    """The years of lines that name none: the period's first, and one more at each new year.

    Each node's lines are followed on their own, as files of several nodes may be put together.

    Raises TraceError where nobody says the first year, or a node's lines go back.
    """
    if asked.period[0] is None:
        line = int(day.index[0]) + FIRST_ROW
        message = "the line names no year: --period says it, for example 2024-01-01.."
        raise trace_error(path, line, message, "period")
    hours = date_h(str(asked.period[0]), path, asked.tz)
    first = pd.Timestamp(hours, unit="h")
    at = pd.to_datetime("2000 " + day, format="%Y %b %d %H:%M:%S", errors="coerce").ffill()
    before = at.groupby(node).shift()
    back = before.fillna(first.replace(year=2000)) - at
    is_new = (back > NEW_YEAR) | (before.isna() & (back > MOST_BACK))
    what = "{value} names no year, and lies more than a month before the line above it of its node"
    no_row_where(((back > MOST_BACK) & ~is_new).to_numpy(), day, path, "", what)
    n_back = int((at.diff() < -MOST_BACK).sum() - is_new.sum())
    counted[
        "time(s) the lines go back by more than a month, as files of several nodes put together "
        "do: years are counted for each node"
    ] = max(n_back, 0)
    return (first.year + is_new.groupby(node).cumsum()).astype(str)


FORMAT = LogFormat(
    name="nvidia-xid",
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: (
        "lines with `NVRM: Xid`"
        if MARK in head.text
        else "lines of a kernel's log"
        if BEGINS.match(head.text)
        else ""
    ),
    read=read_nvidia_xid,
    order=25,
)
