"""Kernel logs with NVIDIA's Xids, and what each means."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from math import nan
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.reading import numbered_lines, trace_error
from cprsim.failures.traces.spells import Spell, outages_of_spells
from cprsim.failures.traces.times import date_h, hours_since_1970, in_zone
from cprsim.foreign import one_line

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
    r"|(?P<year>\d{4} )?(?P<syslog>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?)"
    r"(?P<after> \d{4})?"
    r"|\[(?P<dmesg>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\])"
    r"(?:\s+(?P<host>[^\s\[:]+))?[\s:]"
)
THIS_NODE = "this machine"
MOST_BACK_H = 30 * 24  # a line so much older than the one before is of the next year


def read_nvidia_xid(path: Path, asked: LogOptions) -> Outages:
    """Failures of nodes from kernel logs: instants at the Xids that lose a node (`xids.XIDS`).

    Lines are those of ``journalctl -k`` (``-o short-iso``), of syslog, or of ``dmesg -T`` (which
    names no node: all lines are of one). Syslog names no year: the first line's is that of
    ``--from``, and December is followed by January. Xids that lose no node, and those that the
    catalogue has not, are left out and counted.

    Raises
    ------
    TraceError
        with file and line.
    """
    counted, spells, last_h = Counter[str](), [], None
    for number, text in numbered_lines(path):
        found = XID.search(text)
        if found is None:
            counted["line(s) without an Xid left out"] += 1
            continue
        if not found["code"].rstrip(",.:;").isdigit():
            message = f"'{one_line(found['code'])}' is no number of an Xid"
            raise trace_error(path, number, message, "Xid")
        code = int(found["code"].rstrip(",.:;")[:9])
        at_h, host = _when_and_where(text, found.start(), number, path, asked, last_h)
        last_h = at_h
        known = XIDS.get(code)
        if known is None or not known.loses_node:
            what = "that lose no node" if known else "that the catalogue has not"
            counted[f"Xid(s) {code} left out, of those {what}"] += 1
            continue
        spells.append(Spell(host, at_h, nan, f"Xid {code}: {known.meaning}", number))
    if not spells:
        seen = ", ".join(what for what in counted if what.startswith("Xid")) or "no Xid at all"
        raise trace_error(path, None, f"holds no Xid that loses a node ({seen})")
    if any(spell.node == THIS_NODE for spell in spells):
        counted["Xid(s) without a node's name, taken as of one node (dmesg names none)"] += sum(
            spell.node == THIS_NODE for spell in spells
        )
    return outages_of_spells(path, spells, asked, points=True, counted=counted)


def _when_and_where(
    text: str, before: int, number: int, path: Path, asked: LogOptions, last_h: float | None
) -> tuple[float, str]:
    found = PREFIX.match(text[:before])
    if found is None:
        message = (
            "the line begins with no time stamp and node: write the log with "
            "`journalctl -k -o short-iso`"
        )
        raise trace_error(path, number, message)
    host = found["host"] if found["host"] and found["host"] != "NVRM" else THIS_NODE
    if found["iso"]:
        return _hours(found["iso"].replace(",", "."), "ISO8601", number, path, asked), host
    if found["dmesg"]:
        return _hours(found["dmesg"], "%a %b %d %H:%M:%S %Y", number, path, asked), host
    year = found["year"] or found["after"]
    syslog = found["syslog"].partition(".")[0]
    form = "%b %d %H:%M:%S %Y"
    if year:
        return _hours(f"{syslog} {year.strip()}", form, number, path, asked), host
    return _in_some_year(syslog, form, number, path, asked, last_h), host


def _in_some_year(
    syslog: str, form: str, number: int, path: Path, asked: LogOptions, last_h: float | None
) -> float:
    """An instant without a year: in that of the line before, the year after it, or `--from`'s."""
    if last_h is None and asked.period[0] is None:
        message = "the line names no year: say it with --from, for example --from 2024-01-01"
        raise trace_error(path, number, message, "period")
    since_h = last_h if last_h is not None else date_h(str(asked.period[0]), path, asked.tz)
    # an hour's difference of zones does not matter for the year
    year = (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=since_h)).year
    at_h = _hours(f"{syslog} {year}", form, number, path, asked)
    if at_h >= since_h - MOST_BACK_H:
        return at_h
    return _hours(f"{syslog} {year + 1}", form, number, path, asked)


def _hours(text: str, form: str, number: int, path: Path, asked: LogOptions) -> float:
    stamp = pd.Series(pd.to_datetime([text], format=form, errors="coerce", utc=True))
    if stamp.isna().any():
        raise trace_error(path, number, f"'{one_line(text)}' is no time stamp")
    named_zone = form == "ISO8601" and re.search(r"(?:Z|[+-]\d\d:?\d\d)$", text) is not None
    if asked.tz is not None and not named_zone:
        stamp = in_zone(stamp, asked.tz).first
    return float(hours_since_1970(stamp)[0])


def _looks_like(head: Head) -> str:
    return "lines with `NVRM: Xid`" if "NVRM: Xid (" in head.text else ""


FORMAT = LogFormat(
    name="nvidia-xid",
    what="kernel logs with NVIDIA's Xids",
    commands=("journalctl -k -o short-iso --since 2024-01-01 | grep 'NVRM: Xid'",),
    provenance="from documentation: docs.nvidia.com/deploy/xid-errors; no such GPU's log here",
    options=frozenset({"--from and --to", "--tz", "--repair"}),
    looks_like=_looks_like,
    read=read_nvidia_xid,
    order=25,
)
