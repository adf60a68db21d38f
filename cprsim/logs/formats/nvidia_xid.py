"""Kernel logs with NVIDIA's Xids (by docs.nvidia.com/deploy/xid-errors), and which lose a node."""

from __future__ import annotations

import re
from math import nan
from os import PathLike

import pandas as pd

from cprsim.failures.outages import Counted, notes_of
from cprsim.logs.files import numbered_lines, trace_error
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.reading import FIRST_ROW, no_row_where
from cprsim.logs.spec import LogSpec
from cprsim.logs.times import ZONE, Times, date_h, hours_since_1970, in_zone

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
LOSES_NONE = {8, 11, 13} | {31, 32, 38, 43, 45, 63, 68, 69, 92, 94, 121}  # published | recalled

LOST, OFF_THE_BUS = "fallen off the bus|GPU is lost", 79  # which some say without an Xid
MARKS = ("Xid (", *LOST.split("|"))
TROUBLE = re.compile(r"NVRM: .*(?:\b[Ff]ail|respond)|AER: .*\(Fatal\)|amdgpu: GPU reset begin")
CODE = r"Xid \([^)]*\):\s*(?P<code>\d+)(?:[,.:;\s]|$)"
SAYS_SO = (  # that the GPU is lost: Xids from 144 on, SXids of switches, the action that it needs
    r"Xid \([^)]*\):\s*(?:\d+, (?:\S+ )?Fatal\b|154,.*\b(?:Reset|Reboot)(?: Required)?\)?\s*$)"
)
PREFIX = (  # of a line: its instant and its node
    r"^(?:<\d+>(?:1 )?)?"
    r"(?:(?P<iso>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)"
    r"|\[?(?:[A-Z][a-z]{2} )?(?:(?P<year>\d{4}) )?(?P<day>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d)"
    r"(?:\.\d+)?(?: (?P<after>\d{4}))?\]?)"
    r"(?:\s+(?P<host>[^\s\[:]+))?[\s:]"
)
BEGINS = re.compile(rf"(?:-- .*\n)*{PREFIX[1:]}.*kernel")
LONGEST_WITHOUT_YEARS = pd.Timedelta(366, "D")  # of a log without years
MOST_BACK = pd.Timedelta(30, "D")  # lines of several programs come a little late


def read_nvidia_xid(log: PathLike[str], spec: LogSpec) -> Log:
    """Failures of nodes, instants at the Xids that lose a node; what else there is, is counted.

    Lines are those of ``journalctl -k`` (short-iso), of syslog, or of ``dmesg -T`` (all of
    one node, as none is named).
    """
    counted, lines = Counted(), dict[int, str]()
    for number, entry in numbered_lines(log):
        if any(mark in entry for mark in MARKS):
            lines[number - FIRST_ROW] = entry
        elif TROUBLE.search(entry):
            counted["dropped", "line(s) of GPUs in trouble without an Xid, perhaps lost"] += 1
        else:
            counted["no_failure", "line(s) without an Xid"] += 1
    text = pd.Series(lines, dtype=str)
    code = pd.to_numeric(text.str.extract(CODE)["code"])
    code = code.mask(code.isna() & text.str.contains(LOST), OFF_THE_BUS)
    no_row_where(code.isna(), text, log, "Xid", "{value} has no number of an Xid")
    is_fatal = text.str.contains(SAYS_SO)
    loses = code.isin(list(LOSES_NODE)) | is_fatal
    for kind, n in code[~loses].value_counts().items():
        why = "that lose no node" if kind in LOSES_NONE else "that the catalogue has not"
        counted["dropped", f"Xid(s) {kind} left out, of those {why}"] = int(n)
    if not loses.any():
        xids = [str(note) for note in notes_of(counted) if note.kind == "dropped"]
        summary = ", ".join(xids) or "no Xid at all"
        raise trace_error(log, None, f"holds no Xid that loses a node ({summary})")
    text, code = text[loses], code[loses]
    line = text.str.extract(PREFIX).fillna("")
    stamps = _stamps(line, log, spec)
    note = "{value} begins with no time stamp and node: `journalctl -k -o short-iso` writes them"
    no_row_where(stamps.isna(), text, log, "", note)
    nameless = line["host"].isin(["", "NVRM"])
    note = "Xid(s) without a node's name, taken as of one node (dmesg names none)"
    counted["assumed", note] = int(nameless.sum())
    causes = {number: f"Xid {number}: {meaning}" for number, meaning in LOSES_NODE.items()}
    rows = pd.DataFrame({
        "node": line["host"].mask(nameless, "this machine"), "start": hours_since_1970(stamps),
        "end": nan,
        "cause": code.map(causes).fillna("Xid " + code.astype(int).astype(str) + ": fatal"),
    })  # fmt: skip
    zone = pd.Timestamp(line["iso"].iloc[0].replace(",", ".")).tzinfo
    return Log(rows, counted, points=True, times=Times(rows["start"].to_numpy(), zone=zone))


def _stamps(line: pd.DataFrame, log: PathLike[str], spec: LogSpec) -> pd.Series[pd.Timestamp]:
    """The instants of lines, NaT for none; those without a zone as of ``--tz``, else as UTC."""
    year = line["year"].where(line["year"] != "", line["after"])
    bare = (line["day"] != "") & (year == "")
    if bare.any():
        year = year.mask(bare, _years(line[bare], log, spec))
    iso = line["iso"].str.replace(",", ".")
    stamps = pd.to_datetime(iso, format="ISO8601", errors="coerce", utc=True)
    stamps = stamps.fillna(_instants(year + " " + line["day"]).dt.tz_localize("UTC"))
    local = in_zone(stamps, spec.tz or "UTC")[0]
    return stamps.where(iso.str.contains(ZONE) == True, local)  # noqa: E712


def _instants(texts: pd.Series[str]) -> pd.Series[pd.Timestamp]:
    return pd.to_datetime(texts, format="%Y %b %d %H:%M:%S", errors="coerce")


def _years(line: pd.DataFrame, log: PathLike[str], spec: LogSpec) -> pd.Series[str]:
    """The years of lines that name none: all are of the year after the begin of the period."""
    if spec.ends[0] is None:
        message = "the line names no year: --period says it, for example 2024-01-01.."
        raise trace_error(log, int(line.index[0]) + FIRST_ROW, message, "period")
    begin = pd.Timestamp(date_h(spec.ends[0], log, spec.tz), unit="h")
    last = spec.ends[1]
    if last and pd.Timestamp(date_h(last, log, spec.tz), unit="h") > begin + LONGEST_WITHOUT_YEARS:
        message = "the line names no year, and the period is longer than one: add the years"
        raise trace_error(log, int(line.index[0]) + FIRST_ROW, message, "period")
    next_year = _instants("2000 " + line["day"]) < begin.replace(year=2000)  # a leap year
    year = (begin.year + next_year).astype(str)
    at = _instants(year + " " + line["day"])
    back = at.groupby(line["host"]).shift() - at
    complaint = (
        "{value} names no year, and lies more than a month before the line above it of its node: "
        "such a log begins with --period, and is no longer than a year"
    )
    no_row_where(back > MOST_BACK, line["day"], log, "", complaint)
    return year


FORMAT = LogFormat(
    options=frozenset({"--period", "--tz", "--repair"}),
    looks_like=lambda head: (
        "lines of a kernel's log"
        if any(mark in head for mark in MARKS) or BEGINS.match(head)
        else ""
    ),
    read=read_nvidia_xid,
    order=25,
)
