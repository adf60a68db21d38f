"""One log of a cluster whose outages are known, in every form, whole and damaged."""

import io
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest

from cprsim.errors import TraceError
from tests.failures.tidy import read

BEGINS = datetime(2024, 3, 20, tzinfo=UTC)
ENDS = BEGINS + timedelta(days=20)
PERIOD = ("2024-03-20", "2024-04-09")
STEP_S = 600  # of Prometheus: no outage is shorter
GERMAN = "%d.%m.%Y %H:%M:%S"
BERLIN, KOLKATA = ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kolkata")  # the former with a DST jump
NODES = [f"gpu{node:03d}" for node in range(12)]


class Outage(NamedTuple):
    """One of the known outages; instants to the second."""

    node: str
    start: datetime
    end: datetime


def known_outages(n_each: int = 5) -> list[Outage]:
    """Of each node, at least 20 minutes apart; sorted by start."""
    rng, outages = np.random.default_rng(128), []
    for node in NODES:
        gaps_s, lengths_s = rng.integers(1200, 250_000, n_each), rng.integers(STEP_S, 9000, n_each)
        ends_s = np.cumsum(gaps_s + lengths_s)
        for start_s, end_s in zip((ends_s - lengths_s).tolist(), ends_s.tolist(), strict=True):
            start, end = (BEGINS + timedelta(seconds=at_s) for at_s in (start_s, end_s))
            outages.append(Outage(node, start, end))
    return sorted(outages, key=lambda outage: outage.start)


OUTAGES = known_outages()
CHANGES = sorted(
    [(outage.start, outage.node, "DOWN") for outage in OUTAGES]
    + [(outage.end, outage.node, "UP") for outage in OUTAGES]
)


# ------------------------------------------------------------------------------ how instants look


Instant = Callable[[datetime], str]


def in_form(form: str, zone: tzinfo = UTC) -> Instant:
    return lambda at: at.astimezone(zone).strftime(form)


utc, plain = in_form("%Y-%m-%dT%H:%M:%SZ"), in_form("%Y-%m-%dT%H:%M:%S")
berlin, berlin_plain = in_form("%Y-%m-%dT%H:%M:%S%z", BERLIN), in_form("%Y-%m-%d %H:%M:%S", BERLIN)
german, american = in_form(GERMAN), in_form("%m/%d/%Y %I:%M:%S %p")


def any_zone(at: datetime) -> str:
    return at.astimezone((UTC, BERLIN, KOLKATA)[at.second % 3]).isoformat()


def seconds(at: datetime) -> str:
    return str(round(at.timestamp()))


def hours(at: datetime) -> str:
    return repr((at - BEGINS) / timedelta(hours=1))


# ------------------------------------------------------------------------------------------ tables


def lines(rows: Iterable[str]) -> str:
    return "\n".join(rows) + "\n"


def table(
    instant: Instant, header: str = "node,start,end", more: str = "", of: list[Outage] = OUTAGES
) -> str:
    """A CSV with a row per outage."""
    return lines(
        [header, *(f"{one.node},{instant(one.start)},{instant(one.end)}{more}" for one in of)]
    )


def lasting(column: str, length: Callable[[timedelta], object]) -> str:
    rows = [f"{one.node},{utc(one.start)},{length(one.end - one.start)}" for one in OUTAGES]
    return lines([f"node,start,{column}", *rows])


def changes(column: str, down: str, up: str) -> str:
    names = {"DOWN": down, "UP": up}
    rows = [f"{utc(at)},{node},{names[state]}" for at, node, state in CHANGES]
    return lines([f"start,node,{column}", *rows])


def spreadsheet() -> bytes:
    rows = [f'{one.node};{german(one.start)};{german(one.end)};"done; why"' for one in OUTAGES]
    return b"\xef\xbb\xbf" + "\r\n".join(["Knoten;Beginn;Ende;Notiz", *rows, ""]).encode()


def frame() -> pd.DataFrame:
    return pd.DataFrame(OUTAGES, columns=["node", "start", "end"])


def parquet(outages: pd.DataFrame) -> bytes:
    outages.to_parquet(file := io.BytesIO())
    return file.getvalue()


def of_nanoseconds() -> pd.DataFrame:
    outages = frame()
    start = outages["start"].astype("datetime64[ns, Europe/Berlin]") + pd.Timedelta(1, "ns")
    downtime = (outages.pop("end") - outages["start"]).astype("timedelta64[ns]")
    more = {"tags": [["a", "b"]] * len(start), "meta": [{"rack": 1}] * len(start)}
    node = outages["node"].astype("category")
    return outages.assign(node=node, start=start, downtime=downtime, **more)


def json_rows() -> list[dict[str, str]]:
    return [{"node": one.node, "start": utc(one.start), "end": utc(one.end)} for one in OUTAGES]


# --------------------------------------------------------------------------- Slurm and Kubernetes


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
    """Three jobs of a node die within seconds; others end otherwise, also on several nodes."""
    rows = [
        f"1|COMPLETED|{plain(BEGINS)}|{plain(BEGINS)}|gpu001",
        f"2|TIMEOUT|{plain(BEGINS)}|{plain(BEGINS)}|gpu[001-009]",
    ]
    for number, one in enumerate(OUTAGES):
        ends = [plain(one.start + timedelta(seconds=k)) for k in range(1 + number % 3)]
        rows += [f"{number}|NODE_FAIL|{plain(BEGINS)}|{end}|{one.node}" for end in ends]
        rows.append(f"{number}.batch|NODE_FAIL|{plain(BEGINS)}|{ends[0]}|{one.node}")
    return lines(["JobID|State|Start|End|NodeList", *rows])


def node_event(node: str, reason: str, at: datetime, kind: str = "Node") -> dict[str, Any]:
    return {
        "kind": "Event",
        "reason": reason,
        "count": 1,
        "firstTimestamp": utc(at),
        "lastTimestamp": utc(at),
        "involvedObject": {"kind": kind, "name": node},
    }


def kubernetes() -> list[dict[str, Any]]:
    """Events of nodes, one killed process between two outages, a reboot in each third."""
    reasons = {"DOWN": "NodeNotReady", "UP": "NodeReady"}
    events = [node_event(node, reasons[state], at) for at, node, state in CHANGES]
    events += [
        node_event(one.node, "SystemOOM", one.start - timedelta(minutes=9)) for one in OUTAGES
    ]
    events += [node_event(one.node, "Rebooted", one.end) for one in OUTAGES[::3]]
    return [*events, node_event("pod", "Killing", BEGINS, "Pod")]


# ------------------------------------------------------------------------------------ kernel logs

GONE = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1234, GPU has fallen off the bus."
BOOT = "kernel: Linux version 6.1.0-18-amd64 (debian-kernel@lists.debian.org)"


def xids(prefix: Callable[[datetime, str], str], outages: list[Outage] = OUTAGES) -> str:
    """Each third fault is reported three times in a minute; a process of a user fails between."""
    rows = []
    for number, one in enumerate(outages):
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


# -------------------------------------------------------------------------------------- Prometheus


Labels = Callable[[str], dict[str, str]]


def prometheus(*labels: Labels) -> str:
    """An answer with a series for each node and set of labels."""
    series = []
    at_s = np.arange(round(BEGINS.timestamp()), round(ENDS.timestamp()) + 1, STEP_S)
    for node in NODES:
        up = np.ones(len(at_s), dtype=int)
        for one in (one for one in OUTAGES if one.node == node):
            up[(at_s >= one.start.timestamp()) & (at_s < one.end.timestamp())] = 0
        values = list(zip(at_s.tolist(), map(str, up.tolist()), strict=True))
        series += [{"metric": of(node), "values": values} for of in labels]
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": series}},
        separators=(",", ":"),
    )


def port(number: int, job: str = "node") -> Labels:
    return lambda node: {"__name__": "up", "instance": f"{node}:{number}", "job": job}


def ready(node: str) -> dict[str, str]:
    return {"condition": "Ready", "node": node, "status": "true", "instance": "10.0.0.9:8080"}


# ------------------------------------------------------------------------------------- the table


class Form(NamedTuple):
    """A way to write the log, and what is read."""

    content: Callable[[], str | bytes]
    options: Mapping[str, Any] = {}
    notes: tuple[str, ...] = ()  # parts of some
    points: bool = False  # it has no ends
    within_s: float = 0.01

    def in_bytes(self) -> bytes:
        content = self.content()
        return content if isinstance(content, bytes) else content.encode()


def instants(content: Callable[[], str], *notes: str) -> Form:
    return Form(content, {}, notes, points=True)


def sampled(labels: tuple[Labels, ...], *notes: str, **options: Any) -> Form:
    return Form(lambda: prometheus(*labels), options, notes, within_s=STEP_S)


MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)
FORMS = {
    "ISO 8601": Form(lambda: table(utc)),
    "no zone": Form(lambda: table(plain)),
    "a DST jump": Form(lambda: table(berlin)),
    "mixed zones": Form(lambda: table(any_zone)),
    "local times": Form(
        lambda: table(berlin_plain),
        {"tz": "Europe/Berlin", "period": ("2024-03-20T01:00", "2024-04-09T02:00")},
    ),
    "seconds": Form(lambda: table(seconds)),
    "milliseconds": Form(lambda: table(lambda at: f"{at.timestamp() * 1000:.0f}")),
    "hours": Form(lambda: table(hours), {"time_unit": "h", "period": (0, 480)}),
    **{
        f"length as {column}": Form(partial(lasting, column, length), options, notes)
        for column, length, options, notes in (
            ("downtime", lambda lasts: lasts, {}, ()),
            ("elapsed", lambda lasts: f"0-{lasts!s:0>8}", {},  # as Slurm writes it
             ("each row: an outage of 'node' from 'start', lasting 'elapsed'",)),
            ("Down time (minutes)", lambda lasts: lasts / MINUTE, {}, ()),
            ("DURATION_MS", lambda lasts: 1000 * lasts / SECOND, {}, ()),
            ("elapsed [unit]", lambda lasts: lasts / MINUTE, {"time_unit": "min"}, ()),
        )
    },
    **{
        f"changes of {column}": Form(partial(changes, column, down, up))
        for column, down, up in (
            ("state", "DOWN", "UP"), ("reason", "NodeNotReady", "NodeReady"),
            ("alert", "firing", "resolved"), ("down", "true", "false"), ("up", "0", "1"),
        )
    },
    "an end beside a length and a state that contradict it": Form(
        lambda: table(utc, "node,start,end,duration,state,note", ",9 h,up,seen"),
        {"ignore": ["duration", "state"]},
        ("column(s) not read as node, start, end or cause: note",),
    ),
    "spreadsheet": Form(
        spreadsheet,
        {"columns": ["node=Knoten", "start=Beginn", "end=Ende"], "date_format": GERMAN},
        ("column(s) not read as node, start, end or cause: Notiz",),
    ),
    "American dates": Form(lambda: table(american), {"date_format": "%m/%d/%Y %I:%M:%S %p"}),
    "tabs": Form(lambda: table(utc).replace(",", "\t")),
    "bars": Form(lambda: table(utc).replace(",", "|")),
    "a comma in the header, no last end of line": Form(
        lambda: table(utc, 'node,start,end,"why, and who"', ",").rstrip("\n")
    ),
    "JSON lines": Form(lambda: lines(map(json.dumps, json_rows()))),
    "JSON array, keys within keys": Form(
        lambda: json.dumps([{"meta": {"host": row.pop("node")}, **row} for row in json_rows()]),
        {"columns": {"node": "meta.host"}},
    ),
    "Parquet": Form(lambda: parquet(frame())),
    "Parquet of nanoseconds and lengths": Form(
        lambda: parquet(of_nanoseconds()), {},
        ("column(s) not read as node, start, end or cause: tags (['a', 'b'] 60), meta.rack (1 ",),
    ),
    "Parquet of texts": Form(lambda: parquet(frame().astype(str))),
    "sacctmgr show event": Form(slurm_events, {}, (
        "20 of 80 events continue the one before", "1 event of the whole cluster left out",
        "1 event left out whose state is no failure (MAINT)",
    )),
    "sacct": instants(slurm_jobs, "60 of 120 begin within a minute of another on the same node"),
    "kubectl get events": Form(
        lambda: json.dumps({"apiVersion": "v1", "items": kubernetes(), "kind": "List"}, indent=1),
        {}, ("60 events SystemOOM left out: the node is up",
             "1 event left out that are not about a node"),
    ),
    "kubectl get events --watch": Form(
        lambda: lines(json.dumps({"type": "ADDED", "object": one}) for one in kubernetes())
    ),
    "journalctl -k": instants(
        lambda: xids(short_iso), "40 of 100", "60 Xids 13 left out, of those that lose no node"
    ),
    "journalctl -k that begins with boots": instants(boot_first),
    "syslog": instants(lambda: xids(syslog)),
    "syslog of one node after the other": instants(lambda: xids(syslog, sorted(OUTAGES))),
    "up": sampled((port(9100),), "600 s is the query's step"),
    "up of two ports": sampled((port(9100), port(9400, "dcgm")), "further series of a host"),
    "exported_instance": sampled(
        (lambda node: {"exported_instance": node, "instance": "10.0.0.9:9091"},), down="0"
    ),
    "exported_node": sampled(
        (lambda node: {"exported_node": node, "node": "head", "instance": "a:80"},), down="0"
    ),
    "Ready": sampled((ready,)),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_each_form_of_the_log_holds_the_known_outages(tmp_path: Path, name: str) -> None:
    form = FORMS[name]
    (path := tmp_path / "log").write_bytes(form.in_bytes())
    log = read(path, **{"period": PERIOD, **form.options})
    assert log.window_h == 480
    order = np.lexsort((log.start_h, log.node))
    known = sorted(OUTAGES)
    assert [log.node_names[node] for node in log.node[order]] == [one.node for one in known]
    start_h = [(one.start - BEGINS) / timedelta(hours=1) for one in known]
    end_h = [(one.end - BEGINS) / timedelta(hours=1) for one in known]
    within_h = form.within_s / 3600
    np.testing.assert_allclose(log.start_h[order], start_h, rtol=0, atol=within_h)
    if form.points:  # repeats within a minute are one failure
        end_h, within_h = log.start_h[order], 1 / 60
    np.testing.assert_allclose(log.end_h[order], end_h, rtol=0, atol=within_h)
    assert (log.ended == (not form.points)).all()
    assert log.balance["outages"] == len(known)  # which raises where rows are unaccounted for
    for note in form.notes:
        assert note in "\n".join(map(str, log.notes))


# ---------------------------------------------------------------------------------------- damages

PLACE = re.compile(r":\d+: |\brow \d|\bbyte \d|\[\d+\]|can't be read: ")
AT = OUTAGES[30].start
WHOLE = ("kubectl get events", "up", "Parquet of texts")  # one value, no lines
INSTANTS = {  # how each form writes an instant
    "ISO 8601": utc, "spreadsheet": german, "JSON lines": utc, "Parquet of texts": str,
    "sacctmgr show event": plain, "sacct": plain, "kubectl get events": utc,
    "up": lambda at: str(round(at.timestamp() / STEP_S) * STEP_S),
    "journalctl -k": lambda at: short_iso(at, ""),
}  # fmt: skip


def from_windows(log: bytes, name: str) -> bytes:
    return b"\xef\xbb\xbf" + log.removeprefix(b"\xef\xbb\xbf").replace(b"\n", b"\r\n") + b"\n  \n"


def cut(log: bytes, name: str) -> bytes:
    """Within an instant of a row, or in the middle of what is one whole."""
    middle = len(log) // 2
    if name == "journalctl -k":  # a line that ends before its Xid is one of those without
        return log[: log.index(b"): 79", middle) + 3]
    return log[:middle] if name in WHOLE else log[: log.index(INSTANTS[name](AT).encode()) + 5]


def no_instant(log: bytes, name: str) -> bytes:
    return log.replace(INSTANTS[name](AT).encode(), b"soon" if name != "up" else b'"soon"', 1)


def no_text(log: bytes, name: str) -> bytes:
    return log[: len(log) // 2] + b"\xff" + log[len(log) // 2 + 1 :]


TEXTS = [name for name in INSTANTS if name != "Parquet of texts"]
DAMAGES: list[tuple[Callable[[bytes, str], bytes], list[str], bool]] = [
    (from_windows, TEXTS, True),
    (cut, list(INSTANTS), False),
    (no_text, TEXTS, False),
    (no_instant, TEXTS, False),
]


@pytest.mark.long
@pytest.mark.parametrize("name", INSTANTS)
def test_a_damaged_log_gives_the_same_answer_or_one_error(tmp_path: Path, name: str) -> None:
    """The error says where."""
    form, path = FORMS[name], tmp_path / "log"

    def answer(log: bytes) -> np.ndarray:
        path.write_bytes(log)
        outages = read(path, **{"period": PERIOD, **form.options})
        return np.array([outages.node, outages.start_h, outages.end_h])

    whole = answer(form.in_bytes())
    for damage, names, is_answered in DAMAGES:
        if name not in names:
            continue
        damaged = damage(form.in_bytes(), name)
        if is_answered:
            np.testing.assert_array_equal(answer(damaged), whole)
            continue
        with pytest.raises(TraceError) as caught:
            answer(damaged)
        assert PLACE.search(str(caught.value)), (damage, str(caught.value))
        assert len(str(caught.value).splitlines()) == 1
