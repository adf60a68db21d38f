"""Outages of a known cluster, written in a drawn form: the fit holds them or refuses the log."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import cprsim

BEGIN, DAY, BERLIN = datetime(2025, 3, 17, tzinfo=UTC), 1440, ZoneInfo("Europe/Berlin")
ODD = (  # irregularities
    "names", "shuffled", "repeated", "extra", "ignored", "instants", "file", "renamed", "open",
    "lists", "no node", "dates", "no period", "no nodes", "words", "late", "merged", "noise",
)  # fmt: skip
GRIDS = {"polls": (60, 6), "daily": (DAY, 48), "prometheus": (60, 8)}  # minutes, days
Row = dict[str, Any]


class Outage(NamedTuple):
    """Of some nodes, in minutes; no end where it is open."""

    nodes: tuple[int, ...]
    start: int
    end: int | None


class Log:
    """A known cluster, its log, and the options that read it."""

    def __init__(self, form: str, odd: frozenset[str], seed: int, n_nodes: int, n: int) -> None:
        self.form, self.odd, self.rng, self.n_nodes = form, odd, Random(seed), n_nodes
        lists, dates = (form in ("spans", "length") and word in odd for word in ("lists", "dates"))
        self.grid, days = (DAY, 48) if dates else GRIDS.get(form, (1, 40))
        self.minutes, slot = days * DAY, days * DAY // 8
        cells = [(node, k) for node in range(n_nodes) for k in range(8)]
        cells, self.outages = self.rng.sample(cells, min(n, len(cells) - 1)), list[Outage]()
        for node, k in cells[:]:
            start, length = (self.grid * self.rng.randint(1, slot // 4 // self.grid) for _ in "12")
            free = [m for m in range(n_nodes) if (m, k) not in cells] if lists else []
            more = free[::2]
            cells += [(m, k) for m in more]
            end = None if "open" in odd and k == 7 and not more else k * slot + start + length
            self.outages.append(Outage((node, *more), k * slot + start, end))
        self.outages.sort(key=lambda one: one.start)
        self.options: Row = {} if "no nodes" in odd else {"nodes": n_nodes}
        self.options |= {} if "no period" in odd else {"period": f"{iso(0)}..{iso(self.minutes)}"}
        self.seen, self.watched = {m for one in self.outages for m in one.nodes}, dict[int, int]()
        self.at: Callable[[int], str] = iso
        self.text = ""
        FORMS[form](self)

    def of(self, node: int) -> list[Outage]:
        return [one for one in self.outages if one.nodes[0] == node]


def iso(minute: int) -> str:
    return f"{BEGIN + timedelta(minutes=minute):%Y-%m-%dT%H:%M:%S}"


def instants(log: Log) -> Callable[[int], str]:
    """How a table writes instants, with the options that this needs."""
    forms = ["", "Z", "zones", "tz", "h", "000", "000000", "000000000", "%d.%m.%Y %I:%M %p"]
    form = log.rng.choice(forms) if "instants" in log.odd and log.grid < DAY else ""

    def at(minute: int) -> str:
        when = BEGIN + timedelta(minutes=minute)
        local = when.astimezone(BERLIN if form == "tz" or minute % 2 else UTC)
        if form in ("zones", "tz"):
            return local.isoformat()[: 19 if form == "tz" else None]
        if form[:1] in ("0", "%"):
            return f"{when.timestamp():.0f}{form}" if form[0] == "0" else when.strftime(form)
        return repr(minute / 60) if form == "h" else iso(minute) + form

    log.options |= {"tz": "Europe/Berlin"} if form == "tz" else {}
    log.options |= {"time_unit": "h"} if form == "h" else {}
    log.options |= {"date_format": form} if form[:1] == "%" else {}
    if form in ("tz", "h") and "period" in log.options:
        log.options["period"] = f"{at(0)}..{at(log.minutes)}"
    return at if log.grid < DAY else lambda minute: iso(minute)[:10]


def naming(log: Log) -> Callable[[int], str]:
    """How nodes are called, maybe each by several names."""
    stem = log.rng.choice(["gpu{:03d}", "node{}", "rack1-n{:02d}", "{}"])
    others = ["{}", " {} ", "{}.0"] if stem == "{}" else ["{}", "{}.hpc.local", "{}:9100", "{} "]
    others = others if "names" in log.odd else ["{}"]
    return lambda node: log.rng.choice(others).format(stem.format(node + 1))


def write(log: Log, rows: list[Row], ours: Row) -> None:
    """A table, maybe with further columns; `_` is the instant of a row, in minutes."""
    minutes, rng = [row.pop("_") for row in rows], log.rng
    extra: dict[str, Callable[[int], Any]] = {
        "region": lambda k: "eu", "ticket": lambda k: f"INC-{4711 + 7 * k}", "gpus": lambda k: 8,
        "comment": lambda k: rng.choice(["", "GPU replaced", "down again?"]),
        "severity": lambda k: rng.choice(["low", "high", "critical"]),
        "acked": lambda k: rng.choice(["yes", "no"]), "jobs": lambda k: rng.randint(0, 9),
        "reported": lambda k: log.at(minutes[k] + 5), "until": lambda k: log.at(log.minutes),
        "rack": lambda k: f"r{rng.randint(1, 3)}", "cause": lambda k: rng.choice(["gpu", "disk"]),
    }  # fmt: skip
    for column in rng.sample(sorted(extra), 2) if log.odd & {"extra", "ignored"} else []:
        for k, row in enumerate(rows):
            row[column] = extra[column](k)
        if "ignored" in log.odd and column != "cause":
            log.options["ignore"] = [*log.options.get("ignore", []), column]
    names = {"start": "von", "node": "Rechner", **ours} if "renamed" in log.odd else ours
    names = {key: name for key, name in names.items() if key != name}
    log.options |= {"columns": [f"{a}={b}" for a, b in names.items()]} if names else {}
    rows = [{names.get(key, key): cell for key, cell in row.items()} for row in rows]
    repeat(log, rows)
    form = rng.choice(["\t", ";", "|", "jsonl", "json", "#"]) if "file" in log.odd else ","
    top, end, form = ("\ufeff# by ops\r\n", "\r\n", ",") if form == "#" else ("", "\n", form)
    if form in ("json", "jsonl"):
        log.text = json.dumps(rows) if form == "json" else "\n".join(map(json.dumps, rows))
        return
    table = [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    lines = [form.join(f'"{c}"' if form in c else c for c in cells) for cells in table]
    log.text = top + end.join(lines) + end


def repeat(log: Log, rows: list[Any]) -> None:
    rows += log.rng.sample(rows, len(rows) // 4) if "repeated" in log.odd else []
    if "shuffled" in log.odd:
        log.rng.shuffle(rows)


WORDS: list[tuple[str, list[str], list[str], str | None]] = [  # column, down, up, option
    ("state", ["DOWN"], ["UP"], None), ("state", ["DOWN*", "FAIL"], ["IDLE", "MIXED"], None),
    ("status", ["NotReady"], ["Ready"], None), ("alert", ["firing"], ["resolved"], None),
    ("up", ["0"], ["1"], None), ("down", ["1"], ["0"], None), ("down", ["yes"], ["no"], None),
    ("state", ["CRITICAL"], ["OK", "WARNING"], None), ("state", ["broken"], ["fine"], None),
    ("state", ["broken"], ["fine", "good"], "broken"), ("zustand", ["kaputt"], ["gut"], "kaputt"),
]  # fmt: skip
LENGTHS: list[tuple[str, Callable[[int], str]]] = [
    ("duration_s", lambda m: f"{60 * m}"), ("downtime_min", str), ("duration", "{} min".format),
    ("elapsed", lambda m: f"{m // 60}:{m % 60:02}:00"), ("repair_time", lambda m: f"PT{m * 60}S"),
    ("duration", str), ("Dauer", "{} min".format), ("outage_h", lambda m: f"{m / 60:.4f}"),
]  # fmt: skip
LISTS: list[Callable[[list[str]], str]] = [",".join, " ".join, ";".join, repr, json.dumps, "+".join]


def spans(log: Log, lengths: bool = False) -> None:
    """A row for each outage, with its end or its length."""
    name, log.at, rows = naming(log), instants(log), list[Row]()
    column, length = log.rng.choice(LENGTHS[: None if "words" in log.odd else 5])
    no_end, joined = log.rng.choice(["", "-", "NULL", "ongoing"]), log.rng.choice(LISTS)
    for one in log.outages:
        node = joined([name(m).strip() for m in one.nodes]) if one.nodes[1:] else name(one.nodes[0])
        end = no_end if one.end is None else log.at(one.end)
        end = length(one.end - one.start) if lengths and one.end is not None else end
        rows += [{"_": one.start, "node": node, "start": log.at(one.start)}]
        rows[-1][column if lengths else "end"] = end
    if "no node" in log.odd:
        rows.append({**rows[-1], "node": log.rng.choice(["unknown", "NULL", "-"])})
    write(log, rows, {"duration": column} if lengths and column in ("Dauer", "outage_h") else {})


def states(log: Log, step: int = 0, stays: bool = False) -> None:
    """A row where a state begins; for each node and step; or for each stay, with its end."""
    name, log.at, rows = naming(log), instants(log), list[Row]()
    column, down, up, option = log.rng.choice(WORDS[: None if "words" in log.odd else 7])
    for node in range(log.n_nodes):
        begins = [(0, up)] if "late" in log.odd or stays or step else []
        for one in log.of(node):
            begins += [(one.start, down), *([] if one.end is None else [(one.end, up)])]
        if step:
            begins = [
                (m, [w for at, w in begins if at <= m][-1]) for m in range(0, log.minutes, step)
            ]
        for (minute, words), (end, _) in zip(begins, [*begins[1:], (None, up)]):  # noqa: B905
            row = {"_": minute, "start": log.at(minute), "node": name(node)}
            over = "" if words is down else log.at(log.minutes)
            row |= {"end": over if end is None else log.at(end)} if stays else {}
            rows.append({**row, column: log.rng.choice(words)})
    log.seen |= set(range(log.n_nodes)) if step or stays or "late" in log.odd else set()
    log.options |= {"down": option} if option else {}
    write(log, sorted(rows, key=lambda row: row["_"]), {"state": "zustand"} if option else {})


def prometheus(log: Log) -> None:
    """Series that begin late and end early."""
    series, begin, late = list[Row](), round(BEGIN.timestamp()), "late" in log.odd
    log.seen = set(range(log.n_nodes))
    for node in range(log.n_nodes):
        edges = [DAY, *(x for one in log.of(node) for x in (one.start, one.end or log.minutes))]
        first = log.rng.randrange(0, min(edges), 60) if late else 0
        last = log.rng.randrange(max(edges), log.minutes + 60, 60) if late else log.minutes
        log.watched[node] = last - first
        bad = {m for one in log.of(node) for m in range(one.start, one.end or last + 1, 60)}
        values = [[begin + 60 * m, str(int(m not in bad))] for m in range(first, last + 1, 60)]
        series.append({"metric": {"__name__": "up", "instance": f"n{node}:9100"}, "values": values})
    log.text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": series}})


def kubernetes(log: Log) -> None:
    """Events of nodes, maybe those of a node merged with their number."""
    items = list[Row]()
    for node in range(log.n_nodes):
        about, some = {"kind": "Node", "name": f"n{node}"}, log.of(node)
        for few in [some] if "merged" in log.odd else [[one] for one in some]:
            starts, ends = [one.start for one in few], [one.end for one in few if one.end]
            for reason, at in (("NodeNotReady", starts), ("NodeReady", ends)):
                if at:
                    event = {"kind": "Event", "reason": reason, "count": len(at)}
                    more = {"firstTimestamp": iso(at[0]) + "Z", "lastTimestamp": iso(at[-1]) + "Z"}
                    items.append({**event, **more, "involvedObject": about})
    repeat(log, items)
    log.text = json.dumps({"kind": "List", "apiVersion": "v1", "items": items})


def lines(log: Log) -> None:
    """Events of Slurm, its jobs that die with a node, lines of the kernel; and others between."""
    noise, everyone, text = "noise" in log.odd, f"n[0-{log.n_nodes - 1}]", log.form
    head = {
        "sacctmgr": ["Cluster|NodeName|TimeStart|TimeEnd|State|Reason|User"],
        "sacct": ["JobID|State|Start|End|NodeList", f"1|COMPLETED|{iso(0)}|{iso(1)}|{everyone}"],
    }.get(text, [])  # fmt: skip
    if text == "sacct":  # failures of one node within a minute are merged
        log.outages = list(
            {one.start // 9: one for one in log.outages if one.start % 9 > 1}.values()
        )
        log.seen = set(range(log.n_nodes))
    rows = list[str]()
    for k, one in enumerate(log.outages):
        node, at = f"n{one.nodes[0]}", iso(one.start)
        xid, end = f"{at}Z {node} kernel: NVRM: Xid (PCI:0000:3b:00):", one.end
        rows += {
            "sacctmgr": [f"a|{node}|{at}|{iso(end) if end else 'Unknown'}|DOWN*|dead|root"],
            "sacct": [f"{k + 7}|NODE_FAIL|{iso(0)}|{at}|{everyone if noise and k % 3 else node}"],
            "xid": [f"{xid} 79, pid=1234, GPU has fallen off the bus."],
        }[text]  # fmt: skip
        rows += {
            "sacctmgr": [f"a|{node}|{at}|{iso(one.start + 1)}|DRAIN|DIMM|root"],
            "sacct": [f"{k + 99}|TIMEOUT|{iso(0)}|{iso(one.start + 3)}|{node}"],
            "xid": [f"{xid} 13, pid=7, Graphics Exception"],
        }[text] if noise else []  # fmt: skip
    repeat(log, rows)
    log.text = "\n".join([*head, *rows, ""])


FORMS: dict[str, Callable[[Log], None]] = {
    "spans": spans, "length": partial(spans, lengths=True), "changes": states,
    "polls": partial(states, step=60), "daily": partial(states, step=DAY), "sacct": lines,
    "stays": partial(states, stays=True), "prometheus": prometheus, "kubernetes": kubernetes,
    "sacctmgr": lines, "xid": lines,
}  # fmt: skip


def wrong(log: Log, answer: Any) -> str:
    """What the answer says otherwise than the truth, if anything."""
    values, times = answer.values, answer.frames["times"].set_index("times")
    said, n, fixed = str(values["warnings"]), values["n_failures"], "period" in log.options
    each = [(node, one) for one in log.outages for node in one.nodes]
    if "more often than this log shows" in said and n <= len(each) and "merged" in log.odd:
        return ""  # a bound
    slack_h = 24.0 if log.grid == DAY or "spread over" in said else 0.0
    known_h, total_slack_h, n_nodes = log.minutes / 60, slack_h * n, log.options.get("nodes")
    n_nodes = n_nodes or len(log.seen)
    instants = len({one.start for one in log.outages})
    low_h = (log.outages[-1].start - log.outages[0].start) / 60 - slack_h
    low_h = known_h if fixed else known_h - log.grid / 60 if log.form in GRIDS else low_h
    low_h = known_h if log.form == "stays" and "open" not in log.odd else low_h
    late_h = sum(log.watched.values()) / 60 if "late" in log.odd else 0.0
    watched_h, steps = late_h or n_nodes * values["window_h"], len(log.watched)
    begins = not (fixed or late_h) and log.form not in (*GRIDS, "stays")  # with a failure
    most_h = watched_h / n_nodes / (values["n_instants"] - begins)
    may_begin = slack_h or log.form == "sacct"  # with a date, or a job
    mean_h = watched_h / n_nodes / values["n_instants"] if may_begin else most_h
    down_h = sum((one.end - one.start) / 60 for _, one in each if one.end)
    open_h = sum((log.minutes - one.start) / 60 for _, one in each if not one.end)
    points = log.form in ("sacct", "xid")  # logs without ends
    ended = 0 if points else sum(one.end is not None for _, one in each)
    facts = [
        ("failures", n, len(each), len(each)),
        ("instants", values["n_instants"], instants, n if slack_h else instants),
        ("nodes", values["n_nodes"], n_nodes, n_nodes),
        ("window", values["window_h"], 0 if late_h else low_h, known_h + slack_h),
        ("node-hours", values["node_hours"], watched_h, watched_h + steps),
        ("mean gap", values["mtbf_h"].mean, mean_h * 0.999, most_h * 1.001 + (steps > 0)),
    ]  # fmt: skip
    found = (times["hours_per_end"] * times["n_observed"]).to_dict()
    if found.get("repairs", 0) > 0:
        facts += [("ended", times.loc["repairs", "n_observed"], ended, ended)]
        high_h = down_h + open_h + total_slack_h
        facts += [("repairs", found["repairs"], down_h - total_slack_h, high_h)]
    if found.get("uptimes", 0) > 0 and fixed and not points:
        up_h = watched_h - down_h
        low_h = up_h - open_h - total_slack_h
        facts += [("up-times", found["uptimes"], low_h, up_h + total_slack_h + steps)]
    return "; ".join(
        f"{what}: {value}, not {low} to {high}"
        for what, value, low, high in facts
        if not low - 0.05 <= float(value) <= high + 0.05
    )


def outcome(log: Log, folder: Path) -> str:
    """Why a log is refused; empty where it is read rightly."""
    (path := folder / "log").write_text(log.text, "utf-8", newline="")
    try:
        answer = cprsim.fit(path, bootstrap=0, **log.options)
    except cprsim.CprsimError as refused:
        return str(refused)
    shown = f"{log.form} {sorted(log.odd)} {log.options}\n{log.text[:3000]}"
    assert not (found := wrong(log, answer)), f"{found}\n{shown}"
    return ""


LOGS = st.builds(
    Log, st.sampled_from(sorted(FORMS)), st.frozensets(st.sampled_from(ODD), max_size=4),
    st.integers(0, 2**32), st.integers(2, 12), st.integers(4, 40),
)  # fmt: skip


@pytest.mark.parametrize("n", [60, pytest.param(2000, marks=pytest.mark.long)])
def test_log_of_a_known_cluster_is_read_rightly_or_refused(tmp_path: Path, n: int) -> None:
    @settings(max_examples=n, derandomize=True)
    @given(LOGS)
    def read(log: Log) -> None:
        event(f"{log.form}: {'refused' if outcome(log, tmp_path) else 'right'}")

    read()


@pytest.mark.parametrize("form", FORMS)
def test_plain_log_of_each_form_is_answered(tmp_path: Path, form: str) -> None:
    for seed in range(3):
        assert not outcome(Log(form, frozenset(), seed, 3 + 4 * seed, 9 + 12 * seed), tmp_path)
    odd = [Log(form, frozenset({word}), 7, 9, 21) for word in ODD]
    assert sum(not outcome(log, tmp_path) for log in odd) > len(odd) // 2
