"""Outages of a known cluster, written in a drawn form: the fit holds them, or the log is refused."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import hypothesis
import pytest
from hypothesis import strategies

import cprsim

BEGIN = datetime(2025, 4, 7, tzinfo=UTC)
MINUTE, DAY = timedelta(minutes=1), 1440
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Outage:
    """A known outage, in minutes; no end where it is open."""

    nodes: tuple[int, ...]
    start: int
    end: int | None


@dataclass
class Log:
    """A written log, how it is read, and what is known of it."""

    form: str
    rng: Random
    plain: bool
    n_nodes: int
    minutes: int
    outages: list[Outage]
    options: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    points: bool = False  # it has no ends
    coarse: bool = False  # instants are known to the day or the sample alone
    at_least: bool = False  # events that are merged
    seen: set[int] = field(default_factory=set)  # nodes that are named
    watched: dict[int, tuple[int, int]] = field(default_factory=dict)  # by node, in minutes
    said: list[str] = field(default_factory=list)

    def maybe(self, p: float = 0.3) -> bool:
        """Whether an irregularity is drawn."""
        return not self.plain and self.rng.random() < p


def draw(form: str, rng: Random, plain: bool = False) -> Log:
    """A cluster with 4 to 40 outages."""
    grid, days = {"polls": (60, 6), "daily": (DAY, 48), "prometheus": (60, 8)}.get(form, (1, 40))
    dates = form in ("spans", "length") and not plain and rng.random() < 0.1
    grid, days = (DAY, 48) if dates else (grid, days)
    n, slot = rng.randint(2, 12), days * DAY // 8
    cells = [(node, k) for node in range(n) for k in range(8)]
    chosen = rng.sample(cells, rng.randint(4, min(40, len(cells) - 1)))
    outages, per = list[Outage](), max(2, slot // 4 // grid)
    lists = form in ("spans", "length") and not plain and rng.random() < 0.2
    for node, k in sorted(chosen):
        start = k * slot + grid * rng.randint(1, per)
        end = start + grid * rng.randint(1, per)
        free = [m for m in range(n) if (m, k) not in chosen]
        more = rng.sample(free, rng.randint(1, len(free))) if lists and free and k % 2 else []
        chosen += [(m, k) for m in more]
        is_open = not more and k == 7 and not plain and rng.random() < 0.3
        outages.append(Outage((node, *more), start, None if is_open else end))
    log = Log(form, rng, plain, n, days * DAY, sorted(outages, key=lambda one: one.start))
    log.coarse = grid > 1
    if log.coarse and dates:
        log.said.append("dates")
    return log


# ------------------------------------------------------------------------------ names and instants


def naming(log: Log) -> Callable[[int], str]:
    """How nodes are called, maybe by several names."""
    stem = log.rng.choice(["gpu{:03d}", "node{}", "rack1-n{:02d}", "{}"])
    others = ["{}", " {} ", "{}.0"] if stem == "{}" else ["{}", " {} "]
    if stem != "{}":
        others += ["{}.hpc.local", "{}:9100", "UPPER"]
    vary = log.maybe(0.25)
    if vary:
        log.said.append("names")

    def name(node: int) -> str:
        plain = stem.format(node + 1)
        other = log.rng.choice(others) if vary else "{}"
        return plain.upper() if other == "UPPER" else other.format(plain)

    return name


def instants(log: Log) -> Callable[[int], Any]:
    """How instants are written, with the options that this needs."""
    zone, berlin = UTC, ZoneInfo("Europe/Berlin")
    form = "iso" if log.plain else log.rng.choice(
        ["iso", "z", "blank", "zone", "zones", "local", "german", "s", "ms", "us", "ns", "h", "us12"]
    )  # fmt: skip
    if "dates" in log.said or log.form == "daily":
        form = "date"
    units = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}

    def at(minute: int) -> Any:
        when = BEGIN + minute * MINUTE
        if form in units:
            return str(round(when.timestamp()) * units[form])
        if form == "h":
            return repr(minute / 60)
        if form == "zones":
            zones = (UTC, berlin, ZoneInfo("Asia/Kolkata"))
            return when.astimezone(zones[minute % 3]).isoformat()
        forms = {
            "z": "%Y-%m-%dT%H:%M:%SZ", "blank": "%Y-%m-%d %H:%M:%S", "date": "%Y-%m-%d",
            "german": "%d.%m.%Y %H:%M", "us12": "%m/%d/%Y %I:%M %p", "zone": "%Y-%m-%dT%H:%M:%S%z",
        }  # fmt: skip
        when = when.astimezone(berlin if form in ("local", "zone") else zone)
        return when.strftime(forms.get(form, "%Y-%m-%dT%H:%M:%S"))

    if form == "local":
        log.options["tz"] = "Europe/Berlin"
    if form == "h":
        log.options["time_unit"] = "h"
    if form in ("german", "us12"):
        log.options["date_format"] = {"german": "%d.%m.%Y %H:%M", "us12": "%m/%d/%Y %I:%M %p"}[form]
    if log.plain or log.rng.random() < 0.7:
        local = form == "local"
        ends = [BEGIN.astimezone(berlin if local else zone) + log.minutes * k * MINUTE for k in (0, 1)]
        log.options["period"] = "..".join(f"{end:%Y-%m-%dT%H:%M:%S}" for end in ends)
        if form == "h":
            log.options["period"] = f"0..{log.minutes / 60:g}"
    if log.plain or log.rng.random() < 0.7:
        log.options["nodes"] = log.n_nodes
    log.said.append(form)
    return at


# ------------------------------------------------------------------------------------------ tables

WORDS = [  # column, words of a node that is down, of one that is up, option
    ("state", ["DOWN"], ["UP"], None),
    ("state", ["DOWN", "DOWN*", "FAIL"], ["IDLE", "ALLOCATED", "MIXED"], None),
    ("status", ["NotReady"], ["Ready"], None),
    ("reason", ["NodeNotReady"], ["NodeReady"], None),
    ("state", ["CRITICAL"], ["OK", "WARNING"], None),
    ("notification", ["PROBLEM"], ["RECOVERY"], None),
    ("alert", ["firing"], ["resolved"], None),
    ("up", ["0"], ["1"], None),
    ("down", ["1"], ["0"], None),
    ("healthy", ["false"], ["true"], None),
    ("state", ["broken", "burnt"], ["fine"], None),
    ("state", ["broken", "burnt"], ["fine", "good"], "broken,burnt"),
    ("zustand", ["kaputt"], ["gut"], "kaputt"),
    ("state", ["0"], ["1"], None),
    ("value", ["1"], ["0"], "1"),
]
LENGTHS: list[tuple[str, Callable[[int], str], str | None]] = [
    ("duration_s", lambda m: str(60 * m), None),
    ("downtime_min", lambda m: str(m), None),
    ("repair_time", lambda m: f"{m / 60:.6g} h", None),
    ("duration", lambda m: f"{m} min", None),
    ("elapsed", lambda m: f"{m // DAY}-{m // 60 % 24:02d}:{m % 60:02d}:00", None),
    ("duration", lambda m: f"PT{m}M", None),
    ("duration", lambda m: str(60 * m), "s"),
    ("outage_length", lambda m: str(m), None),
    ("duration", lambda m: str(m), None),
    ("Dauer", lambda m: f"{m} min", None),
]
LISTS: list[Callable[[list[str]], str]] = [
    ",".join, " ".join, ";".join, "|".join, repr, lambda names: "{" + ",".join(names) + "}",
    lambda names: " and ".join(names), json.dumps,
    lambda names: "gpu[" + ",".join(name[3:] for name in names) + "]" if names[0][:3] == "gpu"
    else "+".join(names),
]  # fmt: skip


def extra_columns(log: Log, rows: Rows, at: Callable[[int], Any]) -> None:
    """Columns that have nothing to do with the outages."""
    rng, starts = log.rng, [row.pop("_at") for row in rows]
    columns: dict[str, Callable[[int], Any]] = {
        "region": lambda k: "eu-west", "id": lambda k: k, "ticket": lambda k: f"INC-{4711 + 7 * k}",
        "comment": lambda k: rng.choice(["", "see ticket", "GPU replaced, twice", "down again?"]),
        "severity": lambda k: rng.choice(["low", "medium", "high", "critical"]),
        "acked": lambda k: rng.choice(["yes", "no"]), "paged": lambda k: rng.choice([0, 1]),
        "reported": lambda k: at(starts[k] + rng.randint(0, 9)), "jobs": lambda k: rng.randint(0, 9),
        "updated_at": lambda k: at(log.minutes), "rack": lambda k: f"r{rng.randint(1, 3)}",
        "cause": lambda k: rng.choice(["gpu", "disk", "network"]), "temp_c": lambda k: 40 + k % 30,
        "uid": lambda k: f"{k * 2654435761 % 2**32:08x}", "operator": lambda k: rng.choice("ab"),
    }  # fmt: skip
    for column in rng.sample(sorted(columns), rng.randint(1, 2)) if log.maybe() else []:
        log.said.append(column)
        for k, row in enumerate(rows):
            row[column] = columns[column](k)
        if log.maybe(0.4) and column != "cause":
            log.options.setdefault("ignore", []).append(column)


def write(log: Log, rows: Rows, at: Callable[[int], Any]) -> None:
    """A table of rows, with irregularities of files."""
    extra_columns(log, rows, at)
    if log.maybe(0.2):
        rows += log.rng.sample(rows, max(1, len(rows) // 5))
        log.said.append("repeated")
    if log.maybe(0.25):
        log.rng.shuffle(rows)
        log.said.append("shuffled")
    form = "," if log.plain else log.rng.choice([",", ",", ",", "\t", ";", "jsonl", "json"])
    log.said.append({"\t": "tsv"}.get(form, form))
    if form in ("json", "jsonl"):
        lines = [json.dumps(row) for row in rows]
        log.text = f"[{', '.join(lines)}]" if form == "json" else "\n".join(lines) + "\n"
        return
    quoted = [[f'"{cell}"' if form in str(cell) else str(cell) for cell in row.values()] for row in rows]
    lines = [form.join(cells) for cells in [list(rows[0]), *quoted]]
    if log.maybe(0.15):
        lines = ["# exported by ops", "# all times as in the table", *lines]
        log.said.append("comments")
    end = "\r\n" if log.maybe(0.15) else "\n"
    log.text = ("\ufeff" if log.maybe(0.15) else "") + end.join(lines) + end


def rename(log: Log, rows: Rows, names: dict[str, str]) -> Rows:
    """Columns of other names, which options declare."""
    if not log.maybe(0.25):
        return rows
    log.options["columns"] = [f"{ours}={theirs}" for ours, theirs in names.items()]
    log.said.append("renamed")
    return [{names.get(key, key): cell for key, cell in row.items()} for row in rows]


def spans(log: Log, lengths: bool = False) -> None:
    """A row for each outage, with its end or its length."""
    name, at, rows = naming(log), instants(log), Rows()
    column, length, unit = log.rng.choice(LENGTHS[:6] if log.plain else LENGTHS)
    no_end, joined = log.rng.choice(["", "-", "NULL", "ongoing"]), log.rng.choice(LISTS)
    if lengths and unit and "time_unit" not in log.options:
        log.options["time_unit"] = unit
    for one in log.outages:
        nodes = [name(node).strip() for node in one.nodes]
        row = {"_at": one.start, "node": name(one.nodes[0]), "start": at(one.start)}
        if len(nodes) > 1:
            row["node"] = joined(nodes)
            log.said.append(f"list {row['node']}")
        if lengths:
            row[column] = no_end if one.end is None else length(one.end - one.start)
        else:
            row["end"] = no_end if one.end is None else at(one.end)
        rows.append(row)
    if log.maybe(0.15):
        spare = {**rows[-1], "node": log.rng.choice(["unknown", "NULL", "-", "", "n/a"])}
        rows.append({**spare, "_at": 77, "start": at(77), **({} if lengths else {"end": at(99)})})
        log.said.append("no node")
    log.seen = {node for one in log.outages for node in one.nodes}
    names = {"node": "host", "start": "went_down", "end": "came_back"}
    if lengths:
        names = {"node": "Server", "start": "Beginn", "duration": column}
        if column == "duration":
            del names["duration"]
    write(log, rename(log, rows, names), at)
    if lengths and column in ("outage_length", "Dauer") and "columns" not in log.options:
        log.options["columns"] = [f"duration={column}"]


def declare(log: Log, time: str, column: str, option: str | None) -> None:
    """Options that name the column of instants, that of states, and words of nodes that are down."""
    columns = [f"start={time}"] if time != "start" and not log.maybe(0.05) else []
    if column in ("zustand", "value", "healthy") and not log.maybe(0.2):
        columns.append(f"state={column}")
    if columns:
        log.options["columns"] = columns
    if option:
        log.options["down"] = option


def changes(log: Log) -> None:
    """A row where a node goes down, and where it is up again."""
    name, at, rows = naming(log), instants(log), Rows()
    column, down, up, option = log.rng.choice(WORDS[:10] if log.plain else WORDS)
    time = log.rng.choice(["time", "timestamp", "start"])
    instant_words = [(one.start, one.nodes[0], down) for one in log.outages]
    instant_words += [(one.end, one.nodes[0], up) for one in log.outages if one.end is not None]
    if log.maybe(0.2):  # each node is up at first
        instant_words += [(0, node, up) for node in range(log.n_nodes)]
        log.said.append("up at first")
    if log.maybe(0.2):  # a state is repeated
        twice = [(m + 1, node, words) for m, node, words in instant_words if m and m % 3 == 0]
        ends = {(one.nodes[0], one.end) for one in log.outages}
        instant_words += [one for one in twice if (one[1], one[0]) not in ends]
        log.said.append("repeated state")
    for minute, node, words in sorted(instant_words, key=lambda one: one[0]):
        row = {time: at(minute), "node": name(node), column: log.rng.choice(words)}
        rows.append({"_at": minute, **row})
    declare(log, time, column, option)
    log.seen = {node for _, node, _ in instant_words}
    log.said.append(f"{column} {down} {up}")
    write(log, rows, at)


def sampled(log: Log, step: int) -> None:
    """A row for each node and hour, or day."""
    name, at, rows = naming(log), instants(log), Rows()
    column, down, up, option = log.rng.choice(WORDS[:10] if log.plain else WORDS)
    if step == DAY:
        column, down, up, option = log.rng.choice(WORDS[7:10])
    downs = {(one.nodes[0], m) for one in log.outages
             for m in range(one.start, one.end or log.minutes, step)}  # fmt: skip
    time = "date" if step == DAY else log.rng.choice(["time", "timestamp"])
    names, switch = list[str](), DAY * log.rng.randint(2, 5)
    for minute in range(0, log.minutes, step):
        if minute in (0, switch):
            names = [name(node) for node in range(log.n_nodes)]
        for node in range(log.n_nodes):
            word = log.rng.choice(down if (node, minute) in downs else up)
            rows.append({"_at": minute, time: at(minute), "node": names[node], column: word})
    declare(log, time, column, option)
    log.seen = set(range(log.n_nodes))
    log.said.append(f"{column} {down} {up}")
    write(log, rows, at)


def stays(log: Log) -> None:
    """A row for each stay of a node in a state."""
    name, at, rows = naming(log), instants(log), Rows()
    column, down, up, option = log.rng.choice(WORDS[:2] if log.plain else WORDS)
    no_end = log.rng.choice(["", "-", "NULL"])
    for node in range(log.n_nodes):
        edges: list[tuple[int, int | None, list[str]]] = []
        last: int | None = 0
        for one in (one for one in log.outages if one.nodes[0] == node):
            edges += [(last or 0, one.start, up), (one.start, one.end, down)]
            last = one.end
        edges += [(last, None if log.maybe(0.3) else log.minutes, up)] if last is not None else []
        for start, end, words in edges:
            row = {"node": name(node), "start": at(start), "end": no_end if end is None else at(end)}
            rows.append({"_at": start, **row, column: log.rng.choice(words)})
    declare(log, "start", column, option)
    log.seen = set(range(log.n_nodes))
    log.said.append(f"{column} {down} {up}")
    write(log, rows, at)


# ------------------------------------------------------------------------------ logs of one system


def iso(minute: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return (BEGIN + minute * MINUTE).strftime(form)


def bounded(log: Log) -> None:
    """Maybe the period and the number of nodes."""
    if log.plain or log.rng.random() < 0.7:
        log.options["period"] = f"{iso(0)}..{iso(log.minutes)}"
    if log.plain or log.rng.random() < 0.7:
        log.options["nodes"] = log.n_nodes


def prometheus(log: Log) -> None:
    """Series that begin late and end early."""
    bounded(log)
    series, begin = [], round(BEGIN.timestamp())
    for node in range(log.n_nodes):
        mine = [one for one in log.outages if one.nodes[0] == node]
        first = log.rng.randrange(0, mine[0].start if mine else DAY, 60) if log.maybe() else 0
        latest = max([DAY, *(one.end or log.minutes for one in mine)])
        last = log.rng.randrange(latest, log.minutes + 60, 60) if log.maybe() else log.minutes
        log.watched[node] = (first, last)
        bad = {m for one in mine for m in range(one.start, one.end or log.minutes + 1, 60)}
        values = [[begin + 60 * m, str(int(m not in bad))] for m in range(first, last + 1, 60)]
        series.append({"metric": {"__name__": "up", "instance": f"n{node}:9100"}, "values": values})
    if log.maybe():
        log.rng.shuffle(series)
    log.seen = set(range(log.n_nodes))
    log.text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def kubernetes(log: Log) -> None:
    """Events of nodes, maybe those of a node merged with their number."""
    bounded(log)
    items = []

    def event(node: int, reason: str, minutes: list[int]) -> None:
        about = {"kind": "Node", "name": f"gpu{node:03d}"}
        first, last = (iso(m) + "Z" for m in (minutes[0], minutes[-1]))
        more = {"count": len(minutes), "firstTimestamp": first, "lastTimestamp": last}
        if named:
            more["metadata"] = {"uid": f"{len(items):08x}-aaaa", "name": f"gpu{node:03d}.{len(items):x}"}
        items.append({"kind": "Event", "reason": reason, "involvedObject": about, **more})

    merged, named = log.maybe(0.4), log.maybe(0.5)
    log.said.append("uid" if named else "no uid")
    for node in range(log.n_nodes):
        mine = [one for one in log.outages if one.nodes[0] == node]
        log.seen |= {node} if mine else set()
        for some in [mine] if merged and mine else [[one] for one in mine]:
            log.at_least |= len(some) > 1
            event(node, "NodeNotReady", [one.start for one in some])
            if ends := [one.end for one in some if one.end is not None]:
                event(node, "NodeReady", ends)
    if log.maybe(0.3):
        items += log.rng.sample(items, max(1, len(items) // 4))
        log.said.append("repeated")
    if log.maybe(0.3):
        log.rng.shuffle(items)
    log.text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items})


def sacctmgr(log: Log) -> None:
    """Events of nodes, some drained before, some of a maintenance."""
    bounded(log)
    rows = []
    for one in log.outages:
        node, end = f"gpu{one.nodes[0]:03d}", "Unknown" if one.end is None else iso(one.end)
        rows.append(f"demo|{node}|{iso(one.start)}|{end}|DOWN*|Not responding|root(0)")
        if log.maybe(0.2) and one.end and one.end - one.start > 2:
            rows[-1] = f"demo|{node}|{iso(one.start)}|{iso(one.start + 2)}|DRAIN|bad DIMM|root(0)"
            rows.append(f"demo|{node}|{iso(one.start + 2)}|{end}|DOWN*|Not responding|root(0)")
    if log.maybe():
        rows.append(f"demo|gpu000|{iso(5)}|{iso(9)}|MAINT|kernel|root(0)")
    if log.maybe():
        rows += log.rng.sample(rows, 2)
        log.said.append("repeated")
    if log.maybe():
        log.rng.shuffle(rows)
    log.seen = {one.nodes[0] for one in log.outages}
    log.text = "\n".join(["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User", *rows]) + "\n"


def sacct(log: Log) -> None:
    """Jobs on one or several nodes, of which some die with a node."""
    bounded(log)
    log.points, rng = True, log.rng
    everyone = f"gpu[000-{log.n_nodes - 1:03d}]"
    rows = [f"1|COMPLETED|{iso(0)}|{iso(1)}|{everyone}"]
    used = set[int]()
    outages = []
    for one in log.outages:
        if not used & {one.start // 2, one.start // 2 - 1, one.start // 2 + 1}:
            outages.append(one)
            used.add(one.start // 2)
    for number, one in enumerate(outages):
        nodes = f"gpu{one.nodes[0]:03d}"
        if log.maybe():
            nodes = everyone
            log.said.append("several nodes")
        begin = iso(max(0, one.start - rng.randint(5, 99)))
        rows.append(f"{number + 7}|NODE_FAIL|{begin}|{iso(one.start)}|{nodes}")
        if log.maybe(0.2):
            word = rng.choice(["FAILED", "TIMEOUT", "CANCELLED by 1000", "OUT_OF_MEMORY", "PREEMPTED"])
            rows.append(f"{number + 999}|{word}|{begin}|{iso(one.start + 3)}|{nodes}")
    if log.maybe():
        rows.append(f"9999|RUNNING|{iso(9)}|Unknown|gpu000")
    if log.maybe(0.2):
        rng.shuffle(rows)
    log.outages, log.seen = outages, set(range(log.n_nodes))
    log.text = "\n".join(["JobID|State|Start|End|NodeList", *rows]) + "\n"


def xid(log: Log) -> None:
    """Lines of the kernel."""
    bounded(log)
    log.points, rows = True, []
    words = ["79, pid=1234, GPU has fallen off the bus.", "79, GPU has fallen off the bus."]
    if not log.plain:
        words += ["154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"]
    for one in log.outages:
        at = iso(one.start, "%Y-%m-%dT%H:%M:%S+00:00")
        line = f"{at} gpu{one.nodes[0]:03d} kernel: NVRM: Xid (PCI:0000:3b:00): "
        rows += [line + log.rng.choice(words)] * (1 + log.maybe(0.2))
        if log.maybe(0.2):
            rows.append(line + log.rng.choice(["13, pid=7, Graphics Exception", "43, pid=7, Ch 8"]))
    if log.maybe(0.2):
        log.rng.shuffle(rows)
    log.seen = {one.nodes[0] for one in log.outages}
    log.text = "\n".join(rows) + "\n"


FORMS: dict[str, Callable[[Log], None]] = {
    "spans": spans, "length": partial(spans, lengths=True), "changes": changes,
    "polls": partial(sampled, step=60), "daily": partial(sampled, step=DAY), "stays": stays,
    "prometheus": prometheus, "kubernetes": kubernetes, "sacctmgr": sacctmgr, "sacct": sacct,
    "xid": xid,
}  # fmt: skip


# -------------------------------------------------------------------------------------- the answer


def check(log: Log, answer: Any) -> None:
    """Compare what is known with the answer."""
    values, times = answer.values, answer.frames["times"].set_index("times")
    each = [(node, one) for one in log.outages for node in one.nodes]
    warnings = " ".join(map(str, values["warnings"]))
    n = values["n_failures"]
    assert n == len(each) or (log.at_least and "at least" in warnings and n <= len(each)), n
    if n < len(each):
        return
    worst = sorted(values["worst_nodes"].values(), reverse=True)
    counts = Counter(node for node, _ in each)
    several = "several nodes" in log.said
    assert several or worst == sorted(counts.values(), reverse=True)[: len(worst)], values["worst_nodes"]
    named = {len(log.seen)} | ({len(counts)} if "never failed are not counted" in warnings else set())
    assert values["n_nodes"] in ({log.options["nodes"]} if "nodes" in log.options else named)
    spread = log.coarse or "spread over" in warnings
    n_instants = len({one.start for one in log.outages})
    assert log.at_least or n_instants <= values["n_instants"] <= (n if spread else n_instants)
    window_h, known_h = values["window_h"], log.minutes / 60
    if "period" in log.options and not log.watched:
        assert window_h == pytest.approx(known_h, rel=1e-3)
    elif not log.watched:
        starts = [one.start / 60 for one in log.outages]
        assert max(starts) - min(starts) - 24 * spread <= window_h + 0.02 <= known_h + 24.1
    watched_h = sum(last - first for first, last in log.watched.values()) / 60
    watched_h = watched_h or values["n_nodes"] * window_h
    if "period" in log.options:
        assert values["node_hours"] == pytest.approx(watched_h, rel=1e-3, abs=len(log.watched))
    right = watched_h / values["n_nodes"] / (n if log.at_least else values["n_instants"])
    mtbf = values["mtbf_h"]
    assert mtbf.mean == pytest.approx(right, rel=1e-3) or mtbf.low <= right <= mtbf.high, right
    closed = [(one.end - one.start) / 60 for _, one in each if one.end is not None]
    open_h = [(log.minutes - one.start) / 60 for _, one in each if one.end is None]
    repairs, slack = times.loc["repairs"] if "repairs" in times.index else None, log.coarse * 24
    if log.points:
        assert repairs is None or not repairs.n_observed, repairs
    elif repairs is not None and repairs.n_observed and not log.at_least:
        low, high = sum(closed) / len(closed), (sum(closed) + sum(open_h)) / len(closed)
        assert repairs.n_observed == len(closed), repairs
        assert low * 0.999 - slack <= repairs.hours_per_end <= high * 1.001 + slack, (low, high)
    uptimes = times.loc["uptimes"] if "uptimes" in times.index else None
    if uptimes is not None and uptimes.n_observed and not log.at_least and "period" in log.options:
        total = uptimes.hours_per_end * uptimes.n_observed
        assert several or uptimes.n_observed + uptimes.n_zero == n
        high = watched_h - (0 if log.points else sum(closed))
        low = high - sum(open_h)
        assert several or low * 0.999 - n * slack <= total <= high * 1.001 + n * slack, (low, total, high)


def outcome(log: Log, folder: Path) -> str:
    """Write and read a log: answered rightly, or why it is refused."""
    FORMS[log.form](log)
    path = folder / "log"
    path.write_text(log.text, "utf-8", newline="")
    try:
        answer = cprsim.fit(path, bootstrap=0, **log.options)
    except cprsim.CprsimError as refused:
        return str(refused)
    try:
        check(log, answer)
    except AssertionError as wrong:
        shown = f"{log.form} {log.said} {log.options}\n{log.text[:2500]}\n{log.outages}"
        told = "\n".join(map(str, answer.values["warnings"]))
        raise AssertionError(f"{wrong}\n{shown}\n{told}\n{answer.values['balance']}") from wrong
    return ""
