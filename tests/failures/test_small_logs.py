"""Logs of a few rows: what is made of good ones, and the one clear error for each bad one."""

import json
import re
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from cprsim.errors import ParameterError, TraceError
from tests.failures.test_forms import GONE, node_event
from tests.failures.tidy import read

TORCHRUN = Path(__file__).parents[1] / "history" / "samples" / "torchrun.log"
HOURS = {"time_unit": "h", "coalesce": "0 s"}
OF_100_H = HOURS | {"period": (0, 100)}
TIDY = "node,start,end\n"


class Small(NamedTuple):
    """A log, and what it holds."""

    text: str
    options: dict[str, Any]
    holds: dict[str, Any]  # by attribute of `Outages`
    notes: tuple[str, ...] = ()  # some of them


def event(node: str, day: float, kind: str, fault: str = "GPU") -> dict[str, object]:
    """Of InfiniteHBD."""
    return {
        "node_id": node,
        "event_time": day,
        "event_type": f"fault_{kind}",
        "fault_type": {"Level": "Hardware", "Class": fault, "Desc": "lost"},
    }


def of_kubernetes() -> str:
    events = [
        node_event(node, reason, datetime(2024, 5, 1) + timedelta(minutes=at_min))
        for node, reason, at_min in (
            ("a", "NodeReady", 0), ("a", "NodeNotReady", 60), ("a", "NodeNotReady", 65),
            ("a", "Rebooted", 90), ("a", "NodeReady", 120), ("b", "Rebooted", 180),
            ("b", "Starting", 180),
        )
    ]  # fmt: skip
    merged = node_event("c", "NodeNotReady", datetime(2024, 5, 1, 4))
    merged |= {"count": 5, "lastTimestamp": "2024-05-01T09:00:00Z"}
    return "\n".join(map(json.dumps, [*events, merged]))


def of_prometheus(*samples: str, **labels: str) -> str:
    """An answer with a series for each text of samples, a letter each."""
    series = [
        {"metric": labels or {"__name__": "up", "instance": f"a:{port}"},
         "values": [[1_714_570_200 + 60 * k, up.replace("N", "NaN")] for k, up in enumerate(text)]}
        for port, text in enumerate(samples)
    ]  # fmt: skip
    answer = {"status": "success", "data": {"resultType": "matrix", "result": series}}
    return json.dumps(answer)


LANL = (
    "System,nodes,nodenumz,Prob Started,Down Time,"
    "Facilities,Hardware,Human Error,Network,Undetermined,Software\n"
)
LANL_ROWS = (
    f"{LANL}2,5,0,6/21/2005 10:54,6,,Disk,,,,\n2,5,3,6/21/2005 12:54,0,,,,,,Other\n"
    "3,9,0,6/22/2005 10:54,60,,,,,,\n"
)
SACCT = "JobID|State|End|NodeList|FailedNode\n1|NODE_FAIL|2024-05-01T00:00:00|gpu[1-9]|%s\n"
MONTH = {"period": ("2024-01-01", "2024-02-01")}
LIVES = (
    "node,start,end,installed,entry,exit\n"
    "a,2024-01-10,2024-01-11,2023-12-22,2024-01-01,\n"
    "a,2024-01-20,2024-01-21,2023-12-22,2024-01-01,\n"
    "b,2024-01-15,2024-01-16,,2024-01-13,2024-01-18\n"
    "c,2024-01-28,2024-01-30,2023-12-22,2024-01-01,\n"
)
JANUARY = {"nodes": "dates", **MONTH}
DATES = ("2024-01-01", "2024-01-02", "2024-01-10", "2024-01-12")
MERGED = "outages of nodes that were down already, merged into the outage under way"
NO_END = "outage without an end,"
TO_THE_END = "taken to last to the end of the observation: their repairs are not fitted"
GOOD = {
    "unsorted, open and twice": Small(
        "node,start,end,cause\nb,30,31.5,disk\na,2,4,\n\nb,30,31.5,disk\nc,40,,power\na,3,3,fan\n",
        HOURS | {"n_nodes": 5},
        {"node": [0, 1, 2], "start_h": [0, 28, 38], "end_h": [2, 29.5, 38], "origin": "2 h",
         "ended": [True, True, False], "cause": ["", "disk", "power"], "n_nodes": 5,
         "window_h": 38, "node_names": ["a", "b", "c"]},
        (f"1 {NO_END} {TO_THE_END}", f"2 {MERGED}"),
    ),
    "closed by the next failure": Small(
        f"{TIDY}a,10,\nb,20,22\na,30,31\nb,60,\na,70,\nc,99,", OF_100_H | {"n_nodes": 3},
        {"start_h": [10, 20, 30, 60, 70, 99], "end_h": [30, 22, 31, 100, 100, 100],
         "ended": [False, True, True, False, False, False]},
        (f"1 {NO_END} closed by the next failure of the node",),
    ),
    "a given repair, which does not swallow the next failure": Small(
        f"{TIDY}a,10,\na,11,\nb,20,\na,40,", OF_100_H | {"repair_h": 2.0},
        {"start_h": [10, 11, 20, 40], "end_h": [11, 13, 22, 42], "ended": [False] * 4},
        (f"1 {NO_END} of these cut at the node's next failure",),
    ),
    "outside the period": Small(
        f"{TIDY}a,1,2\nb,20,30\na,90,91", HOURS | {"period": (10, 80)},
        {"start_h": [10], "end_h": [20], "ended": [True]},
        ("1 outage from the end of the period on left out",),
    ),
    "with an end, and without": Small(
        f"{TIDY}a,10,\na,10,12\na,40,\na,60,61\nb,70,71", OF_100_H,
        {"start_h": [10, 40, 60, 70], "end_h": [12, 60, 61, 71],
         "ended": [True, False, True, True]},
    ),
    "zero is an end in hours of another zero": Small(
        f"{TIDY}a,-1,0\na,9,12", HOURS | {"period": (-2, 98)},
        {"start_h": [1, 11], "end_h": [2, 14], "ended": [True, True]},
    ),
    "a cause in any case, with which others compete": Small(
        "node,start,end,cause\na,1,2,disk\nb,5,6,Power supply\n", OF_100_H | {"cause": "POWER"},
        {"chosen": [False, True]},
    ),
    "a cause that does not count, yet ends up-times": Small(
        "node,start,end,cause\na,1,2,disk\nb,5,6,Planned maintenance\nc,7,8,disk\n",
        OF_100_H | {"not_cause": "maintenance"}, {"chosen": [True, False, True]},
        ("1 outage of a cause with 'maintenance' counted as none, but ending up-times",),
    ),
    "repeats where a log has no ends": Small(
        "node,start\na,2024-05-01T10:00:00Z\na,2024-05-01T10:00:00.5Z\n", {}, {"n_outages": 1},
    ),
    "repeats that count": Small(
        "node,start\na,2024-05-01T10:00:00Z\na,2024-05-01T10:00:00.5Z\n", {"coalesce": "0 s"},
        {"n_outages": 2},
    ),
    "repeats where it has": Small(
        f"{TIDY}a,1,1.001\na,1.002,3\nb,5,6\n", {"time_unit": "h"}, {"n_outages": 3},
        ("1 of 3 begin within a minute of another on the same node: --coalesce '1 min' merges them",
        ),
    ),
    "a period as the log writes times, in a zone": Small(
        f"{TIDY}a,06.02.2024,07.02.2024\n",
        {"date_format": "%d.%m.%Y", "period": ("05.02.2024", "05.05.2024"), "tz": "Asia/Tokyo"},
        {"origin": "2024-02-05T00:00:00+09:00", "window_h": 90 * 24},
    ),
    "a period in the zone of the log, and coordinates": Small(
        'node,start\n"(0, 1)",2024-03-01T10:00:00+0100\n"(0, 1)",2024-04-01T10:00:00+0200\n',
        {"period": ("2024-02-05", None)},
        {"origin": "2024-02-05T01:00:00+01:00", "node_names": ["(0, 1)"]},
    ),
    **{
        f"an end of {ends[0]}": Small(
            f"{TIDY}a,{rows[0]},{rows[1]}\na,{rows[2]},{ends[0]}\nb,{rows[3]},{ends[1]}\n", {},
            {"ended": [True, False, False]},
            ("2 ends such as NULL, -, 0 or the year 9999 taken for none",),
        )
        for rows, ends in (
            (DATES, ("9999-12-31", "9999-12-31T00:00")), (DATES, ("0001-01-01", "1970-01-01")),
            (("1704067200", "1704153600", "1704844800", "1705017600"), ("0", "0")),
        )
    },
    "seconds since 1970": Small(
        f"{TIDY}a,1714570200,1714573800\nb,1714656600,1714660200\n",
        {"period": ("2024-05-01", "2024-05-03")},
        {"origin": "2024-05-01T00:00:00+00:00", "window_h": 48},
        ("times taken as s since 1970, as no unit was given",),
    ),
    # Berlin 2024: 31 March 02:00 to 03:00 is skipped, 27 October 02:00 to 03:00 occurs twice
    "hours that occur twice or are skipped": Small(
        f"{TIDY}a,2024-03-31 01:30,2024-03-31 03:30\nb,2024-03-31 02:30,\n"
        "c,2024-10-27 01:30,2024-10-27 02:30\nd,2024-10-27 02:40,2024-10-27 03:20\n",
        {"tz": "Europe/Berlin", "period": ("2024-03-31", None)},
        {"origin": "2024-03-31T00:00:00+01:00", "start_h": [1.5, 2, 5040.5, 5041 + 2 / 3],
         "end_h": [2.5, 5043 + 1 / 3, 5041.5, 5043 + 1 / 3]},
        ("3 local times that summer time skips or repeats, taken as the earliest they can be",),
    ),
    "changes that change nothing": Small(
        "start,node,event\n2024-01-01 00:00,a,up\n2024-01-01 01:00,a,down\n2024-01-01 02:00,a,down"
        "\n2024-01-01 03:00,a,fenced\n2024-01-01 04:00,a,up\n2024-01-01 05:00,b,down\n",
        {"columns": {"state": "event"}, "ignore": ["event=Fenced"]},
        {"start_h": [0, 4], "end_h": [3, 4], "ended": [True, False]},
        ("1 row left out by --ignore event=Fenced",
         "2 rows of nodes that are up",
         "1 of 3 rows say that a node is down that was down already"),
    ),
    "down again at the instant at which it is up": Small(
        "start,node,state\n2024-01-01 00:00,a,down\n2024-01-01 01:00,a,up\n"
        "2024-01-01 01:00,a,down\n2024-01-01 03:00,a,up\n", {},
        {"start_h": [0, 1], "end_h": [1, 3], "ended": [True, True]},
    ),
    "down and up again at one instant, and all of one date": Small(
        "start,node,state\n2024-01-02,b,up\n2024-01-02,b,down\n2024-01-05,b,up\n2024-01-05,b,down\n"
        "2024-01-09,a,down\n2024-01-09,a,up\n2024-01-30,a,down\n2024-01-31,a,up\n", MONTH,
        {"node": [1, 1, 0, 0], "ended": [True, True, True, True], "down_h": [0, 0, 0, 24]},
    ),
    "words that are signs": Small(
        "start,node,state\n2024-01-01,a,✗\n2024-01-03,a,✓\n2024-01-05,a,-\n", {"down": "✗"},
        {"start_h": [0], "end_h": [48]}, ("1 row of planned work",),
    ),
    "outages that are said again, whose ends may be missing": Small(
        "start,node,state\n2024-01-01,a,down\n2024-01-03,a,down\n2024-01-04,a,up\n", MONTH,
        {"end_h": [72], "balance": {"read": 3, "outages": 1, "merged": 0, "no_failures": 1,
                                    "left_out": 1}},
    ),
    "outages that last to the instant of the export": Small(
        f"{TIDY}n1,2024-01-01T03:00,2024-01-01T05:00\n" + "".join(
            f"n{day % 5},2024-01-{day}T03:00,2024-02-20T08:30\n" for day in (17, 18, 19, 20, 22)
        ), {"period": ("2024-01-01T03:00", "2024-03-01T03:00")},
        {"ended": [True] + [False] * 5, "end_h": [2, 21 * 24, *[60 * 24] * 4]},
        ("5 outages of several days that end at the last instant of the log: under way still",),
    ),
    "a title with commas": Small(
        f"Outages, of 2024\nby, us\n\n{TIDY}a,2024-01-01,2024-01-02\nb,2024-01-03,2024-01-04\n", {},
        {"n_outages": 2},
    ),
    "a span of a state whose end is missing": Small(
        f"{TIDY.strip()},state\na,1,,down\na,20,21,down\na,21,30,up\nb,2,,down\nb,40,41,down\n",
        OF_100_H, {"start_h": [1, 2, 20, 40], "end_h": [20, 40, 21, 41],
                    "ended": [False, False, True, True]},
    ),
    "lists of nodes": Small(
        f'{TIDY}"g[01-03,7]",2024-01-01,2024-01-02\n"x,y",2024-01-03,2024-01-04\n'
        '"Rack 5, left",2024-01-05,2024-01-06\n', {},
        {"node_names": ["Rack 5, left", "g01", "g02", "g03", "g7", "x", "y"], "n_outages": 7},
        ("2 rows that name several nodes, an outage of each",),
    ),
    "nodes of other notations": Small(
        f'{TIDY}g(01-02),2024-01-01,2024-01-02\n"g03\tg04",2024-01-03,2024-01-04\n'
        "G 4,2024-01-05,2024-01-06\ng5@a;g6@a,2024-01-07,2024-01-08\n"
        "-1,2024-01-09,2024-01-10\n#g7,2024-01-09,2024-01-10\n", {},
        {"node_names": ["G 4", "g01", "g02", "g03", "g5@a", "g6@a"], "n_outages": 7},
        ("2 rows left out whose node is unknown, NULL, -, localhost or the like",),
    ),
    "a node without a number": Small(
        TIDY + "".join(f"n{day},2024-01-{day},2024-01-{day}\n" for day in range(10, 20))
        + "login,2024-01-20,2024-01-21\n", {}, {"n_outages": 11},
        ("1 row of nodes without a number or with a blank, unlike the others: login (--ignore "
         "node=login leaves them out)",),
    ),
    "lists of nodes in JSON": Small(
        '{"node": ["a", "b"], "start": "2024-05-01", "gpus": [1, 2, 3]}\n'
        '{"node": ["a"], "start": "2024-05-03", "gpus": [1, 2, 3]}\n', {},
        {"node_names": ["a", "b"], "n_outages": 3},
    ),
    "a table with the dates of its nodes": Small(
        LIVES, JANUARY,
        {"node_names": ["a", "b", "c"],
         "lives": [[-240, 288, -240], [0, 288, 0], [744, 408, 744]]},
    ),
    "InfiniteHBD, first in, first out": Small(
        json.dumps([
            event("a", 1.0, "start"), event("a", 2.0, "start"), event("a", 2.0, "start", "NIC"),
            event("a", 4.0, "end"), event("a", 5.0, "end"), event("b", 6.0, "end"),
            event("b", 6.0, "start"), event("c", 7.0, "start"),
        ]), {"n_nodes": 10},
        {"start_h": [24, 144, 168], "end_h": [168, 144, 168], "ended": [False, True, False],
         "cause": ["Hardware / GPU"] * 3},
        ("2 outages without an end, still under way at the end of the observation", f"2 {MERGED}"),
    ),
    "LANL": Small(
        LANL_ROWS, {"system": 2},
        {"start_h": [0, 2], "down_h": [0.1, 0], "cause": ["Hardware", "Software"], "n_nodes": 5,
         "window_h": 24, "node_names": ["2/0", "2/3"],  # to the file's last record
         "window_given": [False, False]},
    ),
    "LANL, all systems": Small(
        LANL_ROWS, {"format": "lanl"}, {"n_nodes": 14, "n_outages": 3, "cause_code": [1, 2, 0]}
    ),
    "LANL, a period": Small(
        LANL_ROWS, {"system": 2, "period": ("2005-06-21", "2005-06-21T12:00")},
        {"start_h": [0], "window_h": 1.1, "facts": {
            "n_nodes": ("read", "column nodes"), "ends": ("given", "--period"),
            "begins": ("inferred", "what the file holds from 2005-06-21, see --period"),
        }},
    ),
    "lists and states of Slurm": Small(
        "NodeName|TimeStart|TimeEnd|State|Reason\n"
        "gpu[001-003]|2024-05-01T00:00:00|2024-05-01T02:00:00|DOWN*|a|b [root@2024-05-01]\n"
        "gpu004|2024-05-02T00:00:00|Unknown|MAINT|planned\n"
        "gpu005|2024-05-02T00:00:00|2024-05-02T10:00:00|IDLE+DRAIN|\n"
        "gpu005|2024-05-03T00:00:00|2024-05-03T10:00:00|IDLE+PLANNED|\n", {},
        {"node_names": ["gpu001", "gpu002", "gpu003", "gpu005"],
         "cause": ["DOWN / a|b"] * 3 + ["IDLE+DRAIN"]},
        ("1 event left out whose state is no failure (MAINT)",
         "1 event left out whose state is no failure (IDLE+PLANNED)"),
    ),
    "a job on several nodes that names the failed one": Small(
        SACCT % "gpu4", {}, {"node": [3], "placed": [True], "n_nodes": 9}
    ),
    "a job on several nodes that names none": Small(
        SACCT % "" + "2|NODE_FAIL|2024-05-01T09:00:00|gpu[1-9]|\n", {},
        {"n_outages": 2, "placed": [False, False], "n_nodes": 9, "start_h": [0, 9]},
        ("2 failures of jobs on several nodes: the one that failed is not known",),
    ),
    "events of Kubernetes without a partner": Small(
        of_kubernetes(), {},
        {"node_names": ["a", "b", "c"], "start_h": [0, 2, 3], "end_h": [1, 2, 3],
         "ended": [True, True, False], "cause": ["NodeNotReady", "Rebooted", "NodeNotReady"]},
        ("2 rows of nodes that are up",
         "2 of 4 rows say that a node is down that was down already",
         "3 events left out that Kubernetes merged into others, as their instants are not known: "
         "nodes fail more often than this log shows",
         "1 event Starting left out: the node is up"),
    ),
    "Xids of every kind of kernel log": Small(
        f"Dec 31 23:00:00 a kernel: {GONE}\nJan  1 01:00:00 a kernel: {GONE}\n"
        "[Mon Jan  1 02:00:00 2024] NVRM: Xid (PCI:0000:3b:00): 95, pid=7\n"
        f"2024-01-01T05:00:00.2+02:00 b kernel: {GONE}\n"
        "2024-01-01T06:00:00+02:00 b kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=7\n"
        "2024-01-01T06:00:01+02:00 b kernel: something else\n"
        "<4>1 2024-01-01T10:00:00.003Z c kernel - - - NVRM: Xid (PCI:0000:1a:00): 79, gone\n",
        {"period": ("2023-12-31", None)},
        {"node_names": ["a", "b", "c", "this machine"], "node": [0, 0, 3, 1, 2],
         "start_h": [23, 25, 26, 27 + 0.2 / 3600, 34 + 0.003 / 3600]},
        ("1 Xid 13 left out, of those that lose no node",),
    ),
    "samples that are no number": Small(
        of_prometheus("1N01" + 9 * "1"), {},
        {"start_h": [2 / 60], "n_nodes": 1, "window_given": [True, True]},
        ("1 sample that are no number left out",),
    ),
}  # fmt: skip


def written(folder: Path, text: str | bytes) -> Path:
    path = folder / "log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("name", GOOD)
def test_a_small_log_holds_what_it_says(tmp_path: Path, name: str) -> None:
    small = GOOD[name]
    log = read(written(tmp_path, small.text), **small.options)
    for attribute, right in small.holds.items():
        found = getattr(log, attribute)
        if attribute in ("node_names", "cause"):
            assert list(found) == right, attribute
        elif isinstance(right, str | dict):
            assert found == right, attribute
        else:
            np.testing.assert_allclose(found, right, rtol=0, atol=1e-7, err_msg=attribute)
    assert log.balance["outages"] == log.n_outages
    assert set(small.notes) <= set(map(str, log.notes))


NAGIOS = "".join(
    f"[{at_s}] {kind} ALERT: a;{state};HARD;3;PING CRITICAL\n"
    for at_s, kind, state in (
        (1714570200, "HOST", "DOWN"), (1714570260, "SERVICE", "CRITICAL"),
        (1714573800, "HOST", "UP"),
    )
)  # fmt: skip
FOREIGN: dict[str | bytes, str] = {  # what people take for a log of failures
    "JobID    State      End\n------ -------- -----\n1 NODE_FAIL 2024\n": "print it with bars (-P)",
    '{"apiVersion": "v1", "items": [{"kind": "Node", "status": {}}]}': "nodes as they are now",
    "LAST SEEN   TYPE     REASON\n5m   Normal   NodeReady\n": "events without their instants",
    '[{"labels": {"alertname": "Down"}, "startsAt": "2024-05-01"}]': "query Prometheus for `up`",
    NAGIOS: "is an archive of Nagios: make a table of it by (echo",
    TORCHRUN.read_bytes(): "`cprsim ledger` reads it",
}
CAUSES = "node,start,cause\n" + "".join(
    f"n{n},2024-01-{day:02}T0{hour}:00,{cause}\n"
    for n in range(6)
    for day in range(1, 9)
    for hour, cause in ((1, "host gone"), (5, "host is back"))[: 1 + ((day + n) % 3 > 0)]
)
XID = "NVRM: Xid (PCI:0000:3b:00): %d pid=%d"
TEXTS = ("link %d flaps", "node lost %d", "%d C")
DAILY = "node,start,end%s\n" + "".join(
    f"n{day % 3},2024-01-{day:02}T03:00,2024-01-{day:02}T0{4 + day % 5}:30%s\n"
    for day in range(1, 25)
)  # fmt: skip
# text, options, the beginning of the complaint (its line, where it has one), and the rest
BAD: list[tuple[str | bytes, dict[str, Any], str, str]] = [
    ("[2025-04-01T00:00:00] Nodes a not responding, setting DOWN\n", {}, ":1: ", "no header?"),
    (f"{TIDY}a,1,2\n\na,3,x\n", HOURS, ":4: ", "end: 'x' is no time: leave such ends empty"),
    (f"{TIDY}a,1,2\na,inf,2\n", HOURS, ":3: ", "start: 'inf' is no finite number"),
    (f"{TIDY}a,1,2\na,5,4\n", HOURS, ":3: ", "end: the outage of 'a' ends before it begins"),
    (f"{TIDY}a,1,2\n,5,6\n", HOURS, ":3: ", "node: the row names no node"),
    (f"{TIDY}a,1,2\na,,6\n", HOURS, ":3: ", "no start: --ignore start= leaves such rows out"),
    (f"{TIDY}a,1,2\na,5,6,7\n", HOURS, ":3: ", "can't be read"),
    (f"{TIDY}a,1,2\nb,3", HOURS, ":3: ", "the file ends within this row"),
    (f'{TIDY}a,1,2\n"b,3,4\n', HOURS, ":3: ", "can't be read"),
    (f"{TIDY}a,1e300,2e300\nb,3e300,\n", HOURS, ": ", "are its times in another unit?"),
    (TIDY, HOURS, ": ", "holds no row below the header"),
    ("nod,start,end\na,1,2\n", HOURS, ":1: ", "header (nod, start, end); --column"),
    ("node,start,start\na,1,2\n", HOURS, ":1: ", "start: two columns have this name: rename one"),
    (f"{TIDY}a,1,2\n", HOURS | {"columns": {"end": "stop"}}, ":1: ", "no column 'stop'"),
    (f"{TIDY}a,1,2\n", HOURS | {"columns": {"until": "end"}}, ": columns.until: ", "no such col"),
    (f"{TIDY}a,1,2\n", HOURS | {"columns": {"state": "evnt"}}, ":1: ", "no column 'evnt'"),
    (f"{TIDY}a,1,2\nb,3,4\n", HOURS | {"n_nodes": 1}, ": nodes: ", "but the file names 2"),
    *(
        (f"{TIDY}a,1,\na,30,\n", HOURS | {"period": period}, ": period: ", complaint)
        for period, complaint in (
            ((50, 10), "the period ends before it begins"), ((10, 10), "ends before it begins"),
            ((90, None), "or before the log"),
        )
    ),
    (f"{TIDY}a,2024-02-01,\n", {"period": ("2262-04-12", "2262-04-13")}, ": period: ",
     "no outage begins within the period"),
    ("node,start\na,1700000000000\nb,1710000000000\n", HOURS, ":2: ",
     "look like ms since 1970 (2023-11-14 to"),
    ("node,start\na,20240501\n", {}, ":2: ", "'20240501' is a date: say --date-format %Y%m%d"),
    ("node,start\na,2024-05-01T00:00Z\na,2024-05-02T00:00\n", {}, ":3: ", "have a zone or none"),
    *(
        (f"node,start\na,2024-05-01\nb,{text}\nc,2024-05-02\n", {}, ":3: ", "no ISO 8601 time st")
        for text in ("01/02/2024 03:00", "17", "2024-02-30", "now", "2024-05-01 10:00 CET")
    ),
    *(
        (f"node,start,duration\na,2024-01-01,1 h\nb,2024-01-02,{cell}\n", {}, ":3: ", complaint)
        for cell, complaint in (
            ("90", "duration: '90': in which unit? Say --time-unit (beside time stamps), or name"),
            ("P1M", "duration: 'P1M' is no length of time such as 35 min"),  # a month
            ("PT1.5H", "duration: 'PT1.5H' is no length of time such as 35 min"),
            ('"1,500 s"', "duration: '1,500 s' is no length of time such as 35 min"),
            ("-2 h", "the outage of 'b' ends before it begins"),
        )
    ),
    (f"{TIDY}a,1714570200,1714573800000\n", {}, ": end: ", "looks like ms since 1970, the starts"),
    (f"{TIDY}a,2024-05-01,2099-05-04\n", {}, ":2: ", "'a' lies in the future (2099-05-04T00:00:00"),
    (f"{TIDY}a,01.05.2024,\nb,02.05.20,\n", {"date_format": "%d.%m.%Y"}, ":3: ",
     "start: '02.05.20' is no time stamp in the form %d.%m.%Y"),
    ("a,2024-01-01,2024-01-02\n", {}, ":1: ", "is the first line no header?"),
    *(
        (f"{TIDY}{nodes},2024-01-01,\n", {}, ":2: ", "is no range of numbers")
        for nodes in ("g[03-01]", "g[a-b]", "g[1-999999999]")
    ),
    *(
        (f"{TIDY}n7,2024-01-01,\n{nodes},2024-01-02,\n", {}, ":3: ", f"'{nodes}' is no node, nor")
        for nodes in ("n1 bis n3", "n1、n2", "n1_n2", "n1-3", "n1..3", "n1/2/3", "n1 (+2)",
                      "n?", "n1*", "n1 and 2 others", "3 nodes", "n1\\nn2", "all of n1 n2")
    ),
    (f"{TIDY}n1>n2,2024-01-01,\n", {}, ":2: ", "'n1>n2' is no node"),
    (f"{TIDY}x,2024-01-01,\n" + "".join(f"n{n},2024-01-02,\n" for n in range(5)), {}, ": node: ",
     "1 row of nodes without a number or with a blank, unlike the others: x (--ignore node=x"),
    (CAUSES, {}, ":1: columns: ", "'cause' (words that take turns"),
    (DAILY % (",text", *[f",{XID % (13, day)}" for day in range(24)]), {"format": "tidy"},
     ":1: columns: ", "write the lines of the kernel's log"),
    (DAILY % (",text", *[f",{TEXTS[day % 3] % day}" for day in range(24)]), {}, ":1: columns: ",
     "'text' (link  flaps 8, node lost 8, C 8, but for numbers)"),
    (DAILY % (",trial_id", *[f",{day}" for day in range(24)]), {}, ":1: trial_id: ", "is a job"),
    (TIDY + 4 * "a,2024-01-01T03:00,2024-01-03\n", {}, ": end: ", "--ignore end reads the starts"),
    (TIDY + 4 * "a,2024-01-01,2024-01-03T03:00\n", {}, ": end: ", "one side alone has times"),
    ("start,node,old\n" + "".join(
        f"2024-0{month}-{day},a,{word}\n"
        for month in (1, 2, 3) for day, word in (("03", "up"), ("04", "down"))
     ), {}, ": end: ", "nodes are down for 1,"),
    (LIVES.replace("2023-12-22,2024-01-01,\nb", "2023-12-23,2024-01-01,\nb"), JANUARY, ":3: ",
     "'a' has other dates in another row"),
    (f"{TIDY}a,2024-01-01,2024-01-02\n", JANUARY, "", "has no column installed, entry or exit"),
    (b"PK\3\4\0 and more", {}, ": ", "is no text: write the log as CSV"),
    ("node,start,Grund\na,1,St\xf6rung\n".encode("latin-1"), {}, ":2: ", "can't be read: byte 7"),
    ("node,start,cause\na,1,x\n", HOURS | {"not_cause": "fan"}, "", "with 'fan'; there are: x"),
    ('{"a": 1\n', {}, ":2: ", "is no valid JSON"),
    ('[{"node": "a", "start": "2024-05-01"},\n 3]', {}, ":2: ", "is no JSON object such as"),
    ('[{"node": "a", "start": "2024-05-01"}', {}, ":1: ", "JSON: the array does not end"),
    ('{"meta": {"host": "a"}, "time": 1}\n', {}, ":1: ", "(meta.host, time); --column"),
    ("NodeName,Start time\na,1\n", {}, ":1: ", "of the header (NodeName, 'Start time'); --column"),
    ('{"kind": "List", "items": []}\n', {}, ": ", "holds no event of a node that is not ready"),
    ('{"status": "error", "error": "too many points"}\n', {}, ":1: ", "of Prometheus: too many"),
    ("2024-01-01T06:00:01+02:00 b kernel: something else\n", {}, ": ", "no Xid at all"),
    (SACCT.replace("gpu[1-9]", "None assigned") % "", {}, ": ", "holds no failure of a node"),
    (f"Mar  1 10:00:00 a kernel: {GONE}\n", {}, ":1: ", "names no year: --period says it"),
    *(
        (f"{first} 10:00:00 a kernel: {GONE}\n{then} 10:00:00 a kernel: {GONE}\n",
         {"period": ("2024-03-20", None)}, ":2: ", "lies more than a month before the line above")
        for first, then in (("Feb  1", "May  1"), ("May 20", "Apr  1"))
    ),
    (of_prometheus("101", "111"), {}, ": data.result: ", "series of a contradict each other at 2"),
    (of_prometheus("001", condition="Ready", status="false", node="a"), {},
     ": data.result[0].metric: ", 'condition="Ready",status="true"'),
    *((text, {}, ": ", advice) for text, advice in FOREIGN.items()),
    *(
        (text, {"format": "infinitehbd"}, place, complaint)
        for text, place, complaint in (
            ('{"a": 1}', ":1: ", "node_id: is missing"),
            ('[\n{"node_id": 1,\n', ":3: ", "no valid JSON"),
            ('[\n\n{"node_id": 1}\n]', ":3: ", "event_time: is missing"),
            (json.dumps([event("a", float("nan"), "start")]), ":1: ", "'NaN' is no number of days"),
            (json.dumps([event("a", 1.0, "end")]), ":1: ", "a fault ends that did not begin"),
            (json.dumps([event("a", 1.0, "stop")]), ":1: ", "neither fault_start nor fault_end"),
        )
    ),
    (f"{LANL}2,5,0,2005-06-21 10:54,6,,,,,,\n", {"system": 2}, ":2: ", "is no m/d/Y H:M"),
    (f"{LANL}2,5,0,6/21/2005 10:54,-6,,,,,,\n", {"system": 2}, ":2: ", "Down Time: '-6' is no wh"),
    (LANL_ROWS, {"system": 7}, ": system: ", "no system 7; there are 2"),
    ("System\n2\n", {"format": "lanl"}, ":1: ", "column of LANL's records is missing"),
    (f"{TIDY}a,1,2\n", {"tz": "Europe/Nowhere"}, "", "no time zone 'Europe/Nowhere'"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "options", "place", "complaint"), BAD)
def test_a_bad_log_is_one_clear_error(
    tmp_path: Path, text: str | bytes, options: dict[str, Any], place: str, complaint: str
) -> None:
    path = written(tmp_path, text)
    with pytest.raises(TraceError if place else ParameterError) as caught:
        read(path, **options)
    assert str(caught.value).startswith(f"{path}{place}" if place else "")
    assert complaint in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_an_outage_that_begins_when_one_of_a_given_length_ends_is_a_failure(tmp_path: Path) -> None:
    """Whatever the sum of a date and a length rounds to."""
    begins = [datetime(2024, 1, 1) + timedelta(minutes=7 * (i + i // 2 * 4)) for i in range(2000)]
    rows = "".join(f"a,{at:%Y-%m-%d %H:%M},7 min\n" for at in begins)
    log = read(written(tmp_path, f"node,start,duration\n{rows}"), coalesce="0 s")
    assert log.n_outages == 2000


def test_the_advice_for_an_archive_of_nagios_makes_a_table(tmp_path: Path) -> None:
    path = written(tmp_path, NAGIOS)
    with pytest.raises(TraceError) as caught:
        read(path)
    command = re.search(r"\(echo.*\)", str(caught.value))
    table = subprocess.check_output(command[0].replace("FILE", "log"), shell=True, cwd=tmp_path)
    log = read(written(tmp_path, table))
    assert (log.start_h.tolist(), log.end_h.tolist()) == ([0], [1])


def test_a_table_of_more_rows_than_memory_takes_is_refused_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cprsim.logs.reading.MOST_ROWS", 2)
    with pytest.raises(TraceError, match="more than 2 rows: split it"):
        read(written(tmp_path, f"{TIDY}a,1,2\na,3,4\na,5,6\n"), **HOURS)
