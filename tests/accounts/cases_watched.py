"""Cases of logs of failures: who was watched and when, jobs on several nodes, ends, the balance."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.accounts.case import Case
from tests.accounts.cases_failures import table

BEGINS = datetime(2025, 2, 1, tzinfo=UTC)
FEBRUARY = "--period 2025-02-01..2025-03-01"  # 672 h


def at(hours: float) -> str:
    """An instant of February."""
    return f"{BEGINS + timedelta(hours=hours):%Y-%m-%dT%H:%M:%SZ}"


def up(series: dict[str, tuple[int, int, tuple[int, ...]]], step_h: float = 1.0) -> str:
    """Prometheus' answer: of each node the first and last sample, and those at which it is 0."""
    begin_s = BEGINS.timestamp()
    result = [
        {"metric": {"__name__": "up", "instance": f"{node}:9100"},
         "values": [[begin_s + 3600 * step_h * k, "0" if k in down else "1"]
                    for k in range(first, last + 1)]}
        for node, (first, last, down) in series.items()
    ]  # fmt: skip
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def without(answer: str, first: int, end: int) -> str:
    """The answer without the samples of some hours."""
    document = json.loads(answer)
    for series in document["data"]["result"]:
        del series["values"][first:end]
    return json.dumps(document)


def event(node: str, reason: str, hours: float, **more: Any) -> dict[str, Any]:
    """An event of Kubernetes about a node."""
    return {
        "kind": "Event", "reason": reason, "involvedObject": {"kind": "Node", "name": node},
        "firstTimestamp": at(hours), "lastTimestamp": at(hours), "count": 1, **more,
    }  # fmt: skip


def events(*of: dict[str, Any]) -> str:
    """What kubectl prints."""
    return json.dumps({"kind": "List", "items": list(of)})


def merged(reason: str, first_h: float, last_h: float, **n: Any) -> dict[str, Any]:
    """An event that occurred several times."""
    return event("k1", reason, first_h, lastTimestamp=at(last_h), **n)


def outage(node: str, start_h: float, lasts_h: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """A node that is not ready for a time."""
    return event(node, "NodeNotReady", start_h), event(node, "NodeReady", start_h + lasts_h)


# 30 outages of 3 nodes of 10, each of 2 h, 20 h apart
REGULAR = [(f"m{k % 3}", at(20 * k + 5), at(20 * k + 7)) for k in range(30)]
ONE_OPEN = [*REGULAR[:20], ("m7", at(70.5), ""), *REGULAR[20:]]
SACCT = "JobID|State|Start|End|NodeList\n" + "".join(
    f"{k}|{'NODE_FAIL' if k % 3 else 'BOOT_FAIL'}|{at(60 * k)[:-1]}|{at(60 * k + 50)[:-1]}|"
    f"{'c[01-16]' if k % 4 else f'c{20 + k}'}\n"
    for k in range(8)
)
OTHERS = (
    f"90|COMPLETED|{at(0)[:-1]}|{at(9)[:-1]}|c[01-40]\n91|PENDING|Unknown|Unknown|None assigned\n"
)
JOBS = [
    ("h1", at(0), "2-00:00:00", "COMPLETED"), ("h1", at(60), "1-12:00:00", "NODE_FAIL"),
    ("h2", at(60), "12:00:00", "CANCELLED by 1000"), ("h2", at(100), "04:00:00", "NODE_FAIL"),
]  # fmt: skip
UNITS = table("node,entry,exit", [(f"u{k}", 10 * k, 1000 + 100 * k) for k in range(10)])
DEATHS = table("node,start", [(f"u{k}", 1000 + 100 * k) for k in range(10)])
ZERO = "--bootstrap 0"

CASES: list[Case] = [
    Case(
        "Prometheus: series that begin late",
        {"log.json": up({"a": (0, 299, (50, 200)), "b": (250, 299, (270,)), "c": (280, 299, ())})},
        f"fit log.json {ZERO}",
        {"values.node_hours": 299 + 49 + 19, "values.mtbf_h.mean": (299 + 49 + 19) / 3 / 3},
    ),
    Case(
        "Prometheus: series that end early, one of a node that is down",
        {"log.json": up({"a": (0, 299, (50,)), "b": (0, 99, (98, 99)), "c": (0, 199, (150,))})},
        f"fit log.json {ZERO}",
        {"values.node_hours": 299 + 99 + 199, "values.mtbf_h.mean": (299 + 99 + 199) / 3 / 3,
         "frames.times.2.n_censored": 1},
    ),
    Case(
        "Prometheus: a hole of 24 samples",
        {"log.json": without(up({node: (0, 299, down) for node, down in (
            ("a", (50,)), ("b", (98, 99)), ("c", ()))}), 200, 224)},
        f"fit log.json {ZERO}",
        {"values.node_hours": 3 * (299 - 24), "values.mtbf_h.mean": (299 - 24) / 2},
        says=("3 holes in the samples, 8.0% of the time: the rate leaves them out",),
    ),
    Case(
        "Prometheus: nodes that are down at the first sample",
        {"log.json": up({"a": (0, 299, (0, 1, 50)), "b": (0, 299, (0, 98)), "c": (9, 299, (9,))})},
        f"fit log.json {ZERO} -v",
        {"values.n_failures": 2, "values.n_instants": 2, "frames.times.2.n_observed": 2},
        says=("3 outages under way when their node was first seen: no failures",),
    ),
    Case(
        "changes after the states of all",
        {"log.csv": table("node,start,state", [
            ("a", at(0), "down"), ("b", at(0), "up"), ("a", at(5), "up"), ("b", at(70), "down"),
            ("b", at(72), "up"), ("a", at(90), "down"), ("a", at(93), "up"),
        ])},
        f"fit log.csv {FEBRUARY} {ZERO}",
        {"values.n_failures": 2, "values.n_nodes": 2},
    ),
    Case(
        "Prometheus: a metric of which 1 is bad, whatever its name",
        {"log.json": up({node: (0, 99, tuple(k for k in range(100) if k not in (20, 60)))
                         for node in "abc"})},
        f"fit log.json {ZERO}",
        refused=("nodes are down for 97 h each, most of the time", "--down WORDS"),
    ),
    Case(
        "Prometheus: a period that is longer than the samples",
        {"log.json": up({"a": (24, 299, (50,)), "b": (24, 299, (98, 99)), "c": (24, 299, ())})},
        f"fit log.json {FEBRUARY} {ZERO}",
        {"values.node_hours": 3 * 275, "values.mtbf_h.mean": 275 / 2},
    ),
    Case(
        "dates of nodes decide the period",
        {"log.csv": DEATHS, "units.csv": UNITS},
        f"fit log.csv --time-unit h --nodes units.csv {ZERO}",
        {"values.node_hours": sum(1000 + 90 * k for k in range(10)), "values.window_h": 1900,
         "frames.times.1.n_observed": 10},
    ),
    Case(
        "a table of nodes with other names, and words for no exit",
        {"log.csv": DEATHS, "units.csv": UNITS.replace("node", "Einheit").replace(",1900", ",-")},
        "fit log.csv --time-unit h --nodes units.csv --column node=Einheit --period 0..2000 "
        f"{ZERO}",
        {"values.node_hours": sum(1000 + 90 * k for k in range(10)) + 100,
         "frames.times.1.n_observed": 10},
    ),
    Case(
        "an exit of each node alone ends the period",
        {"log.csv": DEATHS, "units.csv": UNITS.replace("u3,30,", "u3,,")},
        f"fit log.csv --time-unit h --nodes units.csv {ZERO}",
        {"frames.times.1.n_observed": 9, "values.window_h": 900},
        says=("The log does not say when it begins:",),
    ),
    Case(
        "Kubernetes: drained, then removed",
        {"log.json": events(
            *outage("k1", 50, 1), *outage("k2", 100, 2), event("k3", "NodeNotSchedulable", 200),
            event("k3", "NodeNotReady", 200.2), event("k3", "DeletingNode", 201),
            event("k4", "NodeNotReady", 300), event("k4", "RemovingNode", 300.05),
            event("k5", "Drain", 310), event("k5", "NodeNotReady", 310.5),
            event("k5", "NodeReady", 312), event("k6", "ScaleDown", 400),
        )},
        f"fit log.json --nodes 8 {FEBRUARY} {ZERO}",
        {"values.n_failures": 2, "values.mtbf_h.mean": 336, "frames.times.2.n_observed": 2,
         "frames.times.2.n_censored": 0},
    ),
    Case(
        "Kubernetes: removed long after it failed",
        {"log.json": events(
            *outage("k1", 50, 1), event("k2", "NodeNotReady", 100), event("k2", "DeletingNode", 109)
        )},
        f"fit log.json --nodes 8 {FEBRUARY} {ZERO}",
        {"values.n_failures": 2, "frames.times.2.n_observed": 1, "frames.times.2.n_censored": 0},
    ),
    *(
        Case(
            f"Kubernetes: merged events, by {' and '.join(n)}",
            {"log.json": events(
                merged("NodeNotReady", 24, 480, **n), merged("NodeReady", 24.5, 480.5, **n),
                *outage("k2", 100, 2),
            )},
            f"fit log.json --nodes 8 {FEBRUARY} {ZERO}",
            {"values.n_failures": 3, "frames.times.2.n_observed": 3},
            says=("events left out that Kubernetes merged into others, as their instants are",
                  "nodes fail more often than this log shows"),
        )
        for n in ({"count": 17}, {"count": None, "deprecatedCount": 17},
                  {"count": None, "series": {"count": 17, "lastObservedTime": at(480)}})
    ),
    Case(
        "Kubernetes: a merged event that stands twice in the file",
        {"log.json": events(
            *(merged("NodeNotReady", 24, 480, count=5),) * 2, merged("NodeReady", 25, 481, count=5)
        )},
        f"fit log.json --nodes 8 {FEBRUARY} {ZERO}",
        {"values.n_failures": 2, "values.balance.left_out": 6},
    ),
    Case(
        "Kubernetes: a watch shows each version of an event",
        {"log.json": "\n".join(
            json.dumps({"type": "MODIFIED", "object": merged(
                reason, 24 + ends, 24 * n + ends, count=n, metadata={"uid": reason}
            )})
            for n in range(1, 13) for reason, ends in (("NodeNotReady", 0), ("NodeReady", 0.5))
        )},
        f"fit log.json --nodes 8 {FEBRUARY} {ZERO}",
        {"values.n_failures": 12, "frames.times.0.n_observed": 12},
    ),
    Case(
        "Kubernetes: reasons that are named",
        {"log.json": events(*(event("k", of, 9 * h) for h, of in enumerate(("Lost", "Hot") * 3)))},
        f"fit log.json --nodes 8 --down Lost --ignore reason=Hot {FEBRUARY} {ZERO}",
        {"values.n_failures": 3, "values.balance.read": 6, "values.balance.no_failures": 3},
    ),
    *(
        Case(f"Kubernetes: {name}", {"log.json": events(*of)}, "fit log.json", refused=(said,))
        for name, of, said in (
            ("reasons that are not known", (*outage("k1", 5, 1), event("k2", "GpuLost", 10)),
             "not known whether these words say that a node is down: GpuLost 1. --down"),
            ("nothing is ready again", [event("k1", "NodeNotReady", h) for h in (5, 50, 500)],
             "no NodeReady ends an outage, though nodes are not ready again"),
            ("a count that is none", [merged("NodeNotReady", 24, 480, count="many")],
             "count: 'many' is no number of events"),
        )
    ),
    Case(
        "sacct: jobs on several nodes",
        {"log": SACCT},
        f"fit log --nodes 64 {FEBRUARY} {ZERO}",
        {"values.n_failures": 8, "values.mtbf_h.mean": 84, "values.n_job_nodes": 64,
         "frames.times.0.n_observed": 8, "frames.times.1.n_observed": 2},
        says=("Uptimes are not fitted: 6 of 8 failures are of a node",),
    ),
    Case(
        "sacct: the nodes are those of all jobs",
        {"log": SACCT + OTHERS},
        f"fit log {FEBRUARY} {ZERO}",
        {"values.n_nodes": 40, "values.n_job_nodes": 40, "values.balance.read": 10,
         "values.balance.no_failures": 2},
    ),
    Case(
        "sacct: all jobs say when it was watched, from the first end at 9 h to the last at 470 h",
        {"log": SACCT + OTHERS}, f"fit log {ZERO}",
        {"values.n_failures": 8, "values.mtbf_h.mean": (470 - 9) / 8},
    ),
    Case(
        "an outage without an end is no repair",
        {"log.csv": table("node,start,end", ONE_OPEN)},
        f"fit log.csv --nodes 10 {FEBRUARY} {ZERO}",
        {"frames.times.2.mean_h": 2, "frames.times.2.n_censored": 0, "values.n_failures": 31},
    ),
    Case(
        "many outages without an end: no mean of repairs",
        {"log.csv": table("node,start,end", [
            *REGULAR[:3], *((f"x{k}", at(100 + 40 * k), "") for k in range(6))
        ])},
        f"fit log.csv --nodes 10 {FEBRUARY} {ZERO}",
        {"values.n_failures": 9, "frames.times.2.n_observed": 3},
        says=("Repairs are not fitted: 6 of 9 failures have no end",),
    ),
    Case(
        "nodes that stay down: no mean of repairs beyond the log",
        {"log.csv": table("time,node,state", [
            (at(3), "a", "DOWN"), (at(3.5), "a", "UP"),
            *((at(10 + 30 * k), f"x{k}", "DOWN") for k in range(5)),
            (at(300), "b", "DOWN"), (at(303), "b", "UP"),
        ])},
        f"fit log.csv --column start=time --nodes 10 {FEBRUARY} {ZERO} -v",
        {"values.n_failures": 7},
        says=("each family's mean is longer than the log of 672 h",),
    ),
    Case(
        "lengths beside ends that are empty",
        {"log.csv": table("node,start,end,downtime_min", [
            (node, start, "" if k % 2 else end, 120) for k, (node, start, end) in enumerate(REGULAR)
        ])},
        f"fit log.csv --nodes 10 {FEBRUARY} {ZERO}",
        {"frames.times.2.n_observed": 30, "frames.times.2.mean_h": 2},
    ),
    Case(
        "a table of jobs",
        {"log.csv": table("node,start,elapsed,state", JOBS)},
        f"fit log.csv --nodes 4 {FEBRUARY} {ZERO}",
        refused=("each row is a job (NODE_FAIL 2,", "`sacct -a -X --duplicates"),
    ),
    Case(
        "much is left out: the answer begins with it",
        {"log.csv": table("node,start,end", [*REGULAR, *(
            (f"m{k}", at(700 + 24 * k), at(703 + 24 * k)) for k in range(6)
        )])},
        f"fit log.csv --nodes 10 {FEBRUARY} {ZERO}",
        {"values.balance.read": 36, "values.balance.left_out": 6, "values.balance.outages": 30},
        says=("Of 36 rows read 6 are left out: 6 outages from the end of the period on",),
    ),
]  # fmt: skip
