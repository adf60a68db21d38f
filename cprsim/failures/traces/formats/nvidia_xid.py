"""Kernel logs with NVIDIA's Xids (by docs.nvidia.com/deploy/xid-errors), and what each means."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from math import nan
from os import PathLike
from typing import NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.traces.files import numbered_lines, trace_error
from cprsim.failures.traces.log import Log
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.spec import LogFormat, LogSpec
from cprsim.failures.traces.times import date_h, hours_since_1970, in_zone

# ------------------------------------------------------------------------------------ the catalogue


class Xid(NamedTuple):
    """One kind of error that the driver reports."""

    meaning: str
    loses_node: bool  # the node has to be reset, rebooted or serviced before a job goes on
    mark: str  # published or recalled


XIDS: dict[int, Xid] = {
    8: Xid("GPU stopped processing", False, "published"),
    11: Xid("invalid or corrupted push buffer stream", False, "published"),
    13: Xid("graphics engine exception", False, "published"),
    31: Xid("GPU memory page fault", False, "recalled"),
    32: Xid("invalid or corrupted push buffer stream", False, "recalled"),
    38: Xid("driver firmware error", False, "recalled"),
    43: Xid("GPU stopped processing", False, "recalled"),
    45: Xid("preemptive cleanup after another error", False, "recalled"),
    46: Xid("GPU stopped processing", True, "published"),
    48: Xid("double bit ECC error", True, "published"),
    61: Xid("internal micro-controller breakpoint", True, "recalled"),
    62: Xid("internal micro-controller halt", True, "recalled"),
    63: Xid("ECC page retirement or row remapping recorded", False, "recalled"),
    64: Xid("ECC page retirement or row remapping failed", True, "recalled"),
    68: Xid("video processor exception", False, "recalled"),
    69: Xid("graphics engine class error", False, "recalled"),
    74: Xid("NVLink error", True, "recalled"),
    79: Xid("GPU has fallen off the bus", True, "recalled"),
    92: Xid("high rate of single bit ECC errors", False, "recalled"),
    94: Xid("contained ECC error", False, "recalled"),
    95: Xid("uncontained ECC error", True, "recalled"),
    109: Xid("context switch timeout", True, "recalled"),
    110: Xid("security fault", True, "recalled"),
    119: Xid("timeout of the GPU's system processor (GSP)", True, "recalled"),
    120: Xid("error of the GPU's system processor (GSP)", True, "recalled"),
    121: Xid("corrected error on the chip-to-chip link", False, "recalled"),
    136: Xid("link training failed", True, "recalled"),
    140: Xid("unrecovered ECC error", True, "recalled"),
    143: Xid("GPU initialisation error", True, "recalled"),
}


# --------------------------------------------------------------------------------------- the reader

XID = re.compile(r"NVRM: Xid \((?P<gpu>[^)]*)\):\s*(?P<code>\S*)")
PREFIX = re.compile(
    r"^(?:<\d+>(?:1 )?)?"
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|(?P<year>\d{4} )?(?P<syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)(?:\.\d+)?"
    r"(?P<after> \d{4})?"
    r"|\[(?P<dmesg>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\])"
    r"(?:\s+(?P<host>[^\s\[:]+))?[\s:]"
)
THIS_NODE = "this machine"
MOST_BACK = timedelta(days=30)  # a line so much older than the one before is of the next year


class _Failure(NamedTuple):
    row: int
    node: str
    at: datetime  # in UTC where the line names its zone, else without one
    cause: str


def read_nvidia_xid(path: PathLike[str], asked: LogSpec) -> Log:
    """Failures of nodes from kernel logs: instants at the Xids that lose a node (`XIDS`).

    Lines are those of ``journalctl -k`` (``-o short-iso``), of syslog, or of ``dmesg -T`` (which
    names no node: all lines are of one). Syslog names no year: the first line's is that of
    the period, and December is followed by January. Xids that lose no node, and those that the
    catalogue has not, are left out and counted.

    Raises TraceError with file and line.
    """
    counted, found, last = Counter[str](), [], _first_year(path, asked)
    for line, text in numbered_lines(path):
        xid = XID.search(text)
        if xid is None:
            counted["line(s) without an Xid left out"] += 1
            continue
        digits = xid["code"].rstrip(",.:;")
        if not digits.isdigit():
            message = f"'{one_line(xid['code'])}' is no number of an Xid"
            raise trace_error(path, line, message, "Xid")
        code = int(digits[:9])
        at, host = _when_and_where(text[: xid.start()], line, path, last)
        last = at.replace(tzinfo=None)
        known = XIDS.get(code)
        if known is None or not known.loses_node:
            what = "that lose no node" if known else "that the catalogue has not"
            counted[f"Xid(s) {code} left out, of those {what}"] += 1
            continue
        found.append(_Failure(line - FIRST_ROW, host, at, f"Xid {code}: {known.meaning}"))
    if not found:
        seen = ", ".join(what for what in counted if what.startswith("Xid")) or "no Xid at all"
        raise trace_error(path, None, f"holds no Xid that loses a node ({seen})")
    counted["Xid(s) without a node's name, taken as of one node (dmesg names none)"] = sum(
        one.node == THIS_NODE for one in found
    )
    rows = pd.DataFrame(found, columns=_Failure._fields).set_index("row")
    rows = rows.assign(start=_hours([one.at for one in found], asked.tz), end=nan)
    return Log(rows, counted, points=True)


def _first_year(path: PathLike[str], asked: LogSpec) -> datetime | None:
    """The instant since which the log is, for lines that name no year."""
    if asked.ends[0] is None:
        return None
    return datetime(1970, 1, 1) + timedelta(hours=date_h(str(asked.ends[0]), path, asked.tz))


def _when_and_where(
    before: str, line: int, path: PathLike[str], last: datetime | None
) -> tuple[datetime, str]:
    """The instant and the node that stand before an Xid."""
    found = PREFIX.match(before)
    if found is None:
        message = (
            "the line begins with no time stamp and node: write the log with "
            "`journalctl -k -o short-iso`"
        )
        raise trace_error(path, line, message)
    host = found["host"] if found["host"] and found["host"] != "NVRM" else THIS_NODE
    year = found["year"] or found["after"]
    try:
        if found["iso"]:
            return datetime.fromisoformat(found["iso"].replace(",", ".")), host
        if found["dmesg"]:
            return datetime.strptime(found["dmesg"], "%a %b %d %H:%M:%S %Y"), host
        if year:
            return _of_syslog(found["syslog"], int(year)), host
        if last is None:
            message = "the line names no year: --period says it, for example 2024-01-01.."
            raise trace_error(path, line, message, "period")
        at = _of_syslog(found["syslog"], last.year)
        return (at if at >= last - MOST_BACK else _of_syslog(found["syslog"], last.year + 1)), host
    except ValueError:
        message = f"'{one_line(before.strip())}' begins with no time stamp"
        raise trace_error(path, line, message) from None


def _of_syslog(text: str, year: int) -> datetime:
    return datetime.strptime(f"{text} {year}", "%b %d %H:%M:%S %Y")


def _hours(instants: list[datetime], tz: str | None) -> np.ndarray:
    """Instants as hours since 1970; those without a zone as of `tz`, else as UTC."""
    naive = np.array([at.tzinfo is None for at in instants])
    utc = [at if at.tzinfo is None else at.astimezone(UTC).replace(tzinfo=None) for at in instants]
    stamps = pd.Series(np.array(utc, dtype="datetime64[us]")).dt.tz_localize("UTC")
    hours = hours_since_1970(stamps)
    return hours if tz is None else np.where(naive, hours_since_1970(in_zone(stamps, tz)[0]), hours)


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: "lines with `NVRM: Xid`" if "NVRM: Xid (" in head.text else "",
    read=read_nvidia_xid,
    order=25,
)
