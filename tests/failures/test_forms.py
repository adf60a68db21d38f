"""One log of a cluster whose outages are known, in every form in which people have such a log."""

from __future__ import annotations

import gzip
import io
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from math import gamma
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

import cprsim
from cprsim.errors import CprsimError

N_NODES, N_OUTAGES, N_DAYS = 60, 295, 90
BEGINS = datetime(2024, 2, 5, tzinfo=UTC)
ENDS = BEGINS + timedelta(days=N_DAYS)
PERIOD = "2024-02-05..2024-05-05"
STEP_S = 600  # of Prometheus: no outage is shorter
GERMAN = "%d.%m.%Y %H:%M:%S"
BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")  # the former with a DST jump
TORCHRUN = Path(__file__).parents[1] / "history" / "samples" / "torchrun.log"


class Outage(NamedTuple):
    """One of the known outages; instants to the second."""

    node: str
    start: datetime
    end: datetime


def simulated() -> Iterator[Outage]:
    """Weibull up-times of shape .825 and mean 434 h, exponential repairs."""
    rng = np.random.default_rng(128)
    for node in range(N_NODES):
        at_s = 0
        while True:
            at_s += max(round(3600 * 434 / gamma(1 + 1 / 0.825) * rng.weibull(0.825)), 1200)
            lasts_s = max(round(rng.exponential(2150)), STEP_S)
            if at_s + lasts_s >= N_DAYS * 86400 - STEP_S:
                break
            start = BEGINS + timedelta(seconds=at_s)
            at_s += lasts_s
            yield Outage(f"gpu{node:03d}", start, BEGINS + timedelta(seconds=at_s))


OUTAGES = sorted(simulated(), key=lambda one: (one.start, one.node))
NODES = [f"gpu{node:03d}" for node in range(N_NODES)]
CHANGES = sorted(
    [(one.start, one.node, "DOWN") for one in OUTAGES]
    + [(one.end, one.node, "UP") for one in OUTAGES]
)


# ------------------------------------------------------------------------------ how instants look


Instant = Callable[[datetime], str]


def written(form: str, zone: tzinfo = UTC) -> Instant:
    return lambda at: at.astimezone(zone).strftime(form)


utc, plain = written("%Y-%m-%dT%H:%M:%SZ"), written("%Y-%m-%dT%H:%M:%S")
berlin, berlin_plain = written("%Y-%m-%dT%H:%M:%S%z", BERLIN), written("%Y-%m-%d %H:%M:%S", BERLIN)
german, american = written(GERMAN), written("%m/%d/%Y %I:%M:%S %p")


def any_zone(at: datetime) -> str:
    return at.astimezone((UTC, BERLIN, KOLKATA)[at.second % 3]).isoformat()


def seconds(at: datetime) -> str:
    return str(round(at.timestamp()))


def milliseconds(at: datetime) -> str:
    return f"{at.timestamp() * 1000:.0f}"


def excel(at: datetime) -> str:
    return f"{at.timestamp() * 1000:.5E}"


def hours(at: datetime) -> str:
    return repr((at - BEGINS) / timedelta(hours=1))


def minutes(one: Outage) -> float:
    return (one.end - one.start) / timedelta(minutes=1)


# ------------------------------------------------------------------------------------------ tables


def table(
    start: Instant, end: Instant | None = None, *, header: str = "node,start,end",
    of: list[Outage] | None = None, more: str = "",
) -> str:  # fmt: skip
    """A CSV with a row per outage."""
    end = end or start
    rows = [f"{one.node},{start(one.start)},{end(one.end)}{more}" for one in of or OUTAGES]
    return lines([header, *rows])


def lasting(column: str, length: Callable[[Outage], object], start: Instant = utc) -> str:
    rows = [f"{one.node},{start(one.start)},{length(one)}" for one in OUTAGES]
    return lines([f"node,start,{column}", *rows])


def changes(column: str, states: Mapping[str, str]) -> str:
    rows = [f"{utc(at)},{node},{states[state]}" for at, node, state in CHANGES]
    return lines([f"start,node,{column}", *rows])


def lines(rows: list[str]) -> str:
    return "\n".join(rows) + "\n"


def spreadsheet() -> bytes:
    rows = [f'{one.node};{german(one.start)};{german(one.end)};"done; why"' for one in OUTAGES]
    return b"\xef\xbb\xbf" + "\r\n".join(["Knoten;Beginn;Ende;Notiz", *rows, ""]).encode()


def parquet(frame: pd.DataFrame) -> bytes:
    frame.to_parquet(file := io.BytesIO())
    return file.getvalue()


def frame() -> pd.DataFrame:
    return pd.DataFrame(OUTAGES, columns=["node", "start", "end"])


def of_nanoseconds() -> pd.DataFrame:
    whole = frame()
    start = whole["start"].astype("datetime64[ns, Europe/Berlin]") + pd.Timedelta(1, "ns")
    lasts = (whole.pop("end") - whole["start"]).astype("timedelta64[ns]")
    columns = {"tags": [["a", "b"]] * N_OUTAGES, "meta": [{"rack": 1}] * N_OUTAGES}
    node = whole["node"].astype("category")
    return whole.assign(node=node, start=start, downtime=lasts, **columns)


def json_rows() -> list[dict[str, str]]:
    return [{"node": one.node, "start": utc(one.start), "end": utc(one.end)} for one in OUTAGES]


def a_late_end() -> str:
    return "2099-05-04".join(table(utc).rsplit("2024-05-04", 1))


def an_end_in_20_missing() -> str:
    """None of a node's last outage: that would be down to the end."""
    last = {one.node: one for one in OUTAGES}.values()
    rows = [
        f"{one.node},{utc(one.start)},{'' if n % 20 == 3 and one not in last else utc(one.end)}"
        for n, one in enumerate(OUTAGES)
    ]
    return lines(["node,start,end", *rows])


def a_bad_date() -> str:
    rows = table(german).splitlines()
    rows[50] = rows[50].replace(".2024", ".20")
    return lines(rows)


# ------------------------------------------------------------------------------------------- Slurm


def slurm_events() -> str:
    """With events of the cluster, of maintenance, and of a drained node that stops responding."""
    rows = [f"demo||{plain(BEGINS)}|Unknown||Cluster Registered TRES|"]
    rows += [f"demo|gpu001|{plain(BEGINS)}|{plain(ENDS)}|MAINT|planned|root(0)"]
    for number, one in enumerate(OUTAGES):
        middle = plain(one.start + timedelta(seconds=90))
        if number % 3 == 0:
            rows.append(f"demo|{one.node}|{plain(one.start)}|{middle}|DRAIN|bad DIMM|root(0)")
        start = middle if number % 3 == 0 else plain(one.start)
        rows.append(f"demo|{one.node}|{start}|{plain(one.end)}|DOWN*|Not|responding|root(0)")
    return lines(["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User", *rows])


def slurm_jobs() -> str:
    """Three jobs of a node die within seconds; others end well, or are on several nodes."""
    rows = [
        f"1|COMPLETED|{plain(BEGINS)}|{plain(BEGINS)}|gpu001",
        f"2|NODE_FAIL|{plain(BEGINS)}|{plain(BEGINS)}|gpu[001-009]",
    ]
    for number, one in enumerate(OUTAGES):
        ends = [plain(one.start + timedelta(seconds=k)) for k in range(1 + number % 3)]
        rows += [
            f"{number}{k}|NODE_FAIL|{plain(BEGINS)}|{end}|{one.node}" for k, end in enumerate(ends)
        ]
        rows.append(f"{number}0.batch|NODE_FAIL|{plain(BEGINS)}|{ends[0]}|{one.node}")
    return lines(["JobID|State|Start|End|NodeList", *rows])


# -------------------------------------------------------------------------------------- Kubernetes


def node_event(node: str, reason: str, at: datetime) -> dict[str, Any]:
    return {
        "kind": "Event",
        "reason": reason,
        "count": 1,
        "firstTimestamp": utc(at),
        "lastTimestamp": utc(at),
        "involvedObject": {"kind": "Node", "name": node},
    }


def kubernetes() -> list[dict[str, Any]]:
    """Events of nodes, one killed process between two outages, a reboot in each third."""
    names = {"DOWN": "NodeNotReady", "UP": "NodeReady"}
    events = [node_event(node, names[state], at) for at, node, state in CHANGES]
    events += [
        node_event(one.node, "SystemOOM", one.start - timedelta(minutes=9)) for one in OUTAGES
    ]
    events += [node_event(one.node, "Rebooted", one.end) for one in OUTAGES[::3]]
    of_a_pod = node_event("pod", "Killing", BEGINS)
    of_a_pod["involvedObject"]["kind"] = "Pod"
    return [*events, of_a_pod]


def of_kubectl(items: list[dict[str, Any]]) -> str:
    return json.dumps({"apiVersion": "v1", "items": items, "kind": "List"}, indent=1)


def kubectl_nodes() -> str:
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    item = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "gpu001"},
        "status": {"conditions": [ready]},
    }
    return of_kubectl([item])


# ------------------------------------------------------------------------------------ kernel logs

GONE = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
BOOT = "kernel: Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)"


def xids(
    prefix: Callable[[datetime, str], str], of: Callable[[Outage], object] = lambda one: one.start
) -> str:
    """Each third fault is reported three times in a minute; a process of a user fails between."""
    rows = []
    for number, one in enumerate(sorted(OUTAGES, key=of)):  # type: ignore[arg-type]
        before = one.start - timedelta(minutes=5)
        rows.append(f"{prefix(before, one.node)} kernel: NVRM: Xid (PCI:0000:3b:00): 13, pid=7")
        rows += [
            f"{prefix(one.start + timedelta(seconds=20 * k), one.node)} kernel: {GONE}"
            for k in range(3 if number % 3 == 0 else 1)
        ]
        rows.append(f"{prefix(one.end, one.node)} {BOOT}")
    return lines(rows)


def short_iso(at: datetime, node: str) -> str:
    return f"{berlin(at)} {node}"


def syslog(at: datetime, node: str) -> str:
    return f"{at:%b %e %H:%M:%S} {node}"


def boot_first() -> str:
    begins = f"-- Boot 5e3c1f2a9d7b4c0e8f6a1b2c3d4e5f60 --\n{short_iso(BEGINS, 'gpu000')} {BOOT}\n"
    return begins * 700 + xids(short_iso)


def journal_json() -> str:
    entries = [
        {
            "__REALTIME_TIMESTAMP": f"{one.start.timestamp() * 1e6:.0f}",
            "_HOSTNAME": one.node,
            "MESSAGE": GONE,
        }
        for one in OUTAGES
    ]
    return lines([json.dumps(entry) for entry in entries])


# -------------------------------------------------------------------------------------- Prometheus


@cache
def samples(invert: bool = False, skew_s: int = 0) -> dict[str, str]:
    """JSON of the samples of each node."""
    at_s = np.arange(round(BEGINS.timestamp()), round(ENDS.timestamp()) + 1, STEP_S)
    texts = {}
    for node in NODES:
        up = np.ones(len(at_s), dtype=int)
        for one in (one for one in OUTAGES if one.node == node):
            up[(at_s >= one.start.timestamp() + skew_s) & (at_s < one.end.timestamp() + skew_s)] = 0
        up = 1 - up if invert else up
        texts[node] = ",".join(
            f'[{at},"{value}"]' for at, value in zip(at_s.tolist(), up.tolist(), strict=True)
        )
    return texts


def prometheus(*labels: Callable[[str], dict[str, str]], **how: Any) -> str:
    """An answer with a series for each node and set of labels; the second set is skewed."""
    result = []
    for number, of in enumerate(labels):
        for node, values in samples(**(how if number else {})).items():
            result.append(f'{{"metric": {json.dumps(of(node))}, "values": [{values}]}}')
    return f'{{"status":"success","data":{{"resultType":"matrix","result":[{",".join(result)}]}}}}'


def condition(status: str) -> Callable[[str], dict[str, str]]:
    def labels(node: str) -> dict[str, str]:
        return {"condition": "Ready", "node": node, "status": status, "instance": "10.0.0.9:8080"}

    return labels


def port(number: int, job: str = "node") -> Callable[[str], dict[str, str]]:
    return lambda node: {"__name__": "up", "instance": f"{node}:{number}", "job": job}


def alerts() -> list[dict[str, Any]]:
    """Two of each outage."""
    return [
        {
            "endsAt": utc(one.end + timedelta(minutes=k)),
            "labels": {"alertname": name, "instance": f"{one.node}:9100"},
            "startsAt": utc(one.start + timedelta(minutes=k)),
            "status": {"state": "active"},
        }
        for one in OUTAGES
        for k, name in enumerate(("NodeDown", "KubeletDown"))
    ]


def webhook(of: list[dict[str, Any]]) -> str:
    return json.dumps({"receiver": "x", "status": "resolved", "alerts": of})


def nagios() -> str:
    rows = []
    for at, node, state in CHANGES:
        rows.append(f"[{seconds(at)}] HOST ALERT: {node};{state};SOFT;1;PING CRITICAL")
        rows.append(f"[{seconds(at)}] HOST ALERT: {node};{state};HARD;3;PING CRITICAL")
        rows.append(f"[{seconds(at)}] SERVICE ALERT: {node};GPU;CRITICAL;HARD;3;lost")
    return lines(rows)


# ------------------------------------------------------------------------------------- the table


class Form(NamedTuple):
    """A way to write the log, and what comes of it."""

    content: Callable[[], str | bytes]
    options: Mapping[str, Any] = {}
    refused: str = ""  # in this sentence; empty where it is read
    points: bool = False  # it has no ends
    within: float = 1e-6  # of its fit, relative
    said: tuple[str, ...] = ()  # in the answer
    name: str = "log"  # of the file
    nodes: str = ""  # a table of nodes

    def in_bytes(self) -> bytes:
        content = self.content()
        return content if isinstance(content, bytes) else content.encode()


def refused(content: Callable[[], str | bytes], sentence: str, **options: Any) -> Form:
    return Form(content, options, sentence)


def instants(content: Callable[[], str | bytes], *said: str) -> Form:
    return Form(content, points=True, said=said)


def sampled(content: Callable[[], str], *said: str) -> Form:
    return Form(content, within=0.02, said=said)


TABLES = {
    "ISO 8601": Form(lambda: table(utc)),
    "no zone": Form(lambda: table(plain)),
    "a DST jump": Form(lambda: table(berlin)),
    "mixed zones": Form(lambda: table(any_zone)),
    "local times": Form(
        lambda: table(berlin_plain),
        {"tz": "Europe/Berlin", "period": "2024-02-05T01:00..2024-05-05T02:00"},
    ),
    "seconds": Form(lambda: table(seconds)),
    "milliseconds": Form(lambda: table(milliseconds)),
    "hours": Form(lambda: table(hours), {"time_unit": "h", "period": "0..2160"}),
    "hours, no unit": refused(lambda: table(hours), "say in which unit", period="0..2160"),
    "duration in seconds": Form(lambda: lasting("duration_s", lambda one: 60 * minutes(one))),
    "duration as a clock": Form(lambda: lasting("downtime", lambda one: one.end - one.start)),
    "duration in words": Form(
        lambda: lasting("repair_time", lambda one: f"{60 * minutes(one):.0f} s")
    ),
    "duration as Slurm writes it": Form(
        lambda: lasting("elapsed", lambda one: f"0-{one.end - one.start!s:0>8}"),
        said=("outages last as the column 'elapsed' says",),
    ),
    "duration in minutes": Form(lambda: lasting("Down time (minutes)", minutes)),
    "duration in milliseconds": Form(
        lambda: lasting("DURATION_MS", lambda one: 6e4 * minutes(one))
    ),
    "duration of ISO 8601": Form(
        lambda: lasting("duration", lambda one: f"PT{60 * minutes(one):.0f}S")
    ),
    "duration with an option": Form(lambda: lasting("elapsed", minutes), {"time_unit": "min"}),
    "duration, no unit": refused(lambda: lasting("elapsed", minutes), "in which unit"),
    "states": Form(lambda: changes("state", {"DOWN": "DOWN", "UP": "UP"})),
    "states of Kubernetes": Form(
        lambda: changes("reason", {"DOWN": "NodeNotReady", "UP": "NodeReady"})
    ),
    "alerts as rows": Form(lambda: changes("alert", {"DOWN": "firing", "UP": "resolved"})),
    "down as true and false": Form(lambda: changes("down", {"DOWN": "true", "UP": "false"})),
    "an end beside a length and a state": Form(
        lambda: table(utc, header="node,start,end,duration,state", more=",9 h,up"),
        said=("column(s) not read as node, start, end or cause: duration, state",),
    ),
    "up as 0 and 1": Form(lambda: changes("up", {"DOWN": "0", "UP": "1"})),
    "spreadsheet": Form(
        spreadsheet,
        {"columns": ["node=Knoten", "start=Beginn", "end=Ende"], "date_format": GERMAN},
        said=("column(s) not read as node, start, end or cause: Notiz",),
    ),
    "other columns": refused(
        lambda: table(utc, header="Host,Begin,Finish"), "node=Host .*start=Begin .*end=Finish"
    ),
    "German dates": refused(lambda: table(german), "is no ISO 8601 time stamp.*date_format"),
    "American dates": Form(lambda: table(american), {"date_format": "%m/%d/%Y %I:%M:%S %p"}),
    "a bad date": refused(
        a_bad_date, ":51: start: .* is no time stamp in the form", date_format=GERMAN
    ),
    "tabs": Form(lambda: table(utc).replace(",", "\t")),
    "bars": Form(lambda: table(utc).replace(",", "|")),
    "gzip": Form(lambda: gzip.compress(table(utc).encode()), name="log.csv.gz"),
    "byte-order mark and CRLF": Form(
        lambda: b"\xef\xbb\xbf" + table(utc).replace("\n", "\r\n").encode()
    ),
    "each 20th end missing": Form(an_end_in_20_missing, within=0.04, said=(
        "closed by the next failure of the node",
    )),
    "unsorted, each row twice": Form(
        lambda: table(utc, of=OUTAGES[::-1] + OUTAGES), said=("merged",)
    ),
    "a comma in the header, no last end of line": Form(
        lambda: table(utc, header='node,start,end,"why, and who"', more=",").rstrip("\n")
    ),
    "no header": refused(
        lambda: table(utc, header="gpu001,2024-01-01,2024-01-02"), "is the first line no header"
    ),
    "lengths of a spreadsheet": refused(
        lambda: lasting("duration_s", lambda one: f"{60 * minutes(one):,.0f}".replace(",", ".")),
        "between thousands",
    ),
    "rounded by Excel": refused(lambda: table(excel), "rounded"),
    "seconds, then milliseconds": refused(lambda: table(seconds, milliseconds), "end: "),
    "an end in the future": refused(a_late_end, "lies in the future .2099"),
    "nodes installed and removed": Form(
        lambda: table(utc), {"columns": ["exit=removed"]},
        nodes=lines(["node,installed,removed", *(f"{node},{plain(BEGINS)}," for node in NODES)]),
    ),
    "JSON lines": Form(lambda: lines([json.dumps(row) for row in json_rows()])),
    "JSON array, keys within keys": Form(
        lambda: json.dumps([{"meta": {"host": row.pop("node")}, **row} for row in json_rows()]),
        {"columns": {"node": "meta.host"}},
    ),
    "Parquet": Form(lambda: parquet(frame())),
    "Parquet of nanoseconds and lengths": Form(
        lambda: parquet(of_nanoseconds()),
        said=("column(s) not read as node, start, end or cause: tags, meta.rack",),
    ),
    "Parquet of texts": Form(lambda: parquet(frame().astype(str))),
}  # fmt: skip
SCHEDULERS = {
    "sacctmgr show event": Form(slurm_events, said=(
        "99 of 394 event(s) go on from the one before", "1 event(s) of the whole cluster left out",
        "1 event(s) left out whose state is no failure (MAINT)",
    )),
    "sacct": instants(slurm_jobs, "294 of 589"),
    "sacct without bars": refused(
        lambda: "JobID    State      End\n------ -------- -----\n1 NODE_FAIL 2024\n",
        r"print it with bars \(-P\)",
    ),
    "kubectl get events": Form(lambda: of_kubectl(kubernetes()), said=(
        "295 event(s) SystemOOM left out: the node goes on",
        "1 event(s) left out that are not about a node",
    )),
    "kubectl get events --watch": Form(
        lambda: lines([json.dumps({"type": "ADDED", "object": one}) for one in kubernetes()])
    ),
    "kubectl get nodes": refused(kubectl_nodes, "nodes as they are now.*kubectl get events"),
    "kubectl get events as text": refused(
        lambda: "LAST SEEN   TYPE     REASON\n5m   Normal   NodeReady\n", "write them with -o json"
    ),
}  # fmt: skip
KERNEL_LOGS = {
    "journalctl -k": instants(
        lambda: xids(short_iso), "198 of 493", "295 Xid(s) 13 left out, of those that lose no node"
    ),
    "journalctl -k that begins with boots": instants(boot_first),
    "journalctl -o json": refused(journal_json, "write it with `journalctl -k -o short-iso`"),
    "syslog": instants(lambda: xids(syslog)),
    "syslog of one node after the other": instants(
        lambda: xids(syslog, lambda one: (one.node, one.start))
    ),
    "syslog, no year": refused(
        lambda: xids(syslog), "names no year: period says it", period=None
    ),
    "syslog that begins before the period": refused(
        lambda: xids(syslog), "begins with period, and is no longer than a year",
        period="2024-03-20..",
    ),
    "syslog that goes back": refused(
        lambda: 2 * xids(syslog), "lies more than a month before the line above it"
    ),
    "dmesg": refused(lambda: f"[    5.123456] {GONE}\n", "dmesg -T"),
}  # fmt: skip
MONITORING = {
    "up": sampled(lambda: prometheus(port(9100)), "600 s is the query's step"),
    "up of two ports": sampled(
        lambda: prometheus(port(9100), port(9400, "dcgm")), "further series of a host"
    ),
    "up of two ports that contradict": refused(
        lambda: prometheus(port(9100), port(9400, "dcgm"), skew_s=1200),
        r"series of gpu\d+ contradict each other at 2024-",
    ),
    "exported_instance": sampled(
        lambda: prometheus(lambda node: {"exported_instance": node, "instance": "10.0.0.9:9091"})
    ),
    "exported_node": sampled(
        lambda: prometheus(lambda node: {"exported_node": node, "node": "head", "instance": "a:80"})
    ),
    "Ready is true": sampled(lambda: prometheus(condition("true"))),
    "Ready is false": refused(
        lambda: prometheus(condition("false"), condition("unknown"), invert=True),
        'condition="Ready",status="true"',
    ),
    "alerts of Alertmanager": refused(
        lambda: json.dumps(alerts()), "alerts of Alertmanager.*query Prometheus"
    ),
    "webhook of Alertmanager": refused(
        lambda: webhook(alerts()), "alerts of Alertmanager.*query Prometheus"
    ),
    "webhooks of Alertmanager, one in a line": refused(
        lambda: lines([webhook([one]) for one in alerts()]), "alerts of Alertmanager"
    ),
    "Nagios": refused(nagios, "archive of Nagios: make a table"),
    "torchrun": refused(TORCHRUN.read_bytes, "`cprsim ledger` reads it"),
}
FORMS = TABLES | SCHEDULERS | KERNEL_LOGS | MONITORING
SHAPE, SHAPE_OF_POINTS, REPAIR_MIN = 0.834748, 0.841734, 37.411186


def fitted(folder: Path, form: Form) -> Any:
    (path := folder / form.name).write_bytes(form.in_bytes())
    options = {"nodes": N_NODES, "period": PERIOD, **form.options}
    if form.nodes:
        (folder / "nodes.csv").write_text(form.nodes)
        options["nodes"] = folder / "nodes.csv"
    return cprsim.fit(path, bootstrap=0, **options)


@pytest.mark.parametrize("name", FORMS)
def test_a_form_of_the_log_is_read_or_refused_in_one_sentence(tmp_path: Path, name: str) -> None:
    form = FORMS[name]
    if form.refused:
        with pytest.raises(CprsimError, match=f"(?s){form.refused}") as caught:
            fitted(tmp_path, form)
        assert len(str(caught.value).splitlines()) == 1
        return
    answer = fitted(tmp_path, form)
    assert answer.values["n_failures"] == N_OUTAGES
    assert answer.values["mtbf_h"].mean == pytest.approx(24 * N_DAYS / N_OUTAGES, form.within)
    found = answer.frames["parameters"].set_index(["times", "family", "parameter"])["value"]
    shape = SHAPE_OF_POINTS if form.points else SHAPE
    assert found["uptimes", "weibull", "shape"] == pytest.approx(shape, max(form.within, 1e-4))
    if not form.points:
        repair_h = found["repairs", "exponential", "mean_h"]
        assert 60 * repair_h == pytest.approx(REPAIR_MIN, form.within)
    warnings = "\n".join(answer.values["warnings"])
    for sentence in form.said:
        assert sentence in warnings


def test_the_advice_for_an_archive_of_nagios_leads_to_the_same_answer(tmp_path: Path) -> None:
    with pytest.raises(CprsimError) as caught:
        fitted(tmp_path, FORMS["Nagios"])
    command = re.search(r"\(echo.*\)", str(caught.value))
    assert command is not None
    made = subprocess.run(command[0].replace("FILE", "log"), shell=True, cwd=tmp_path,
                          capture_output=True, check=True)  # fmt: skip
    answer = fitted(tmp_path, Form(lambda: made.stdout))
    assert answer.values["n_failures"] == N_OUTAGES
