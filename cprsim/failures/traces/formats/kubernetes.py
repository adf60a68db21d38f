"""Kubernetes' events of nodes: NotReady and Ready, as ``kubectl get events`` prints them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, numbered, paired
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.spec import Head, LogFormat, LogSpec
from cprsim.failures.traces.times import read_times

INSTANT = NEITHER  # an outage of no length
STATES = {
    "NodeNotReady": BEGIN, "NodeReady": END, "Rebooted": INSTANT, "SystemOOM": INSTANT,
    "KernelOops": INSTANT, "KernelDeadlock": INSTANT,
}  # fmt: skip
EXAMPLE = "an event of kubectl get events -o json"


class _Event(NamedTuple):
    row: int
    node: str
    at: str
    cause: str


def read_kubernetes(path: PathLike[str], asked: LogSpec) -> Log:
    """Outages from events of nodes: a list, or one object after the other (``--watch``).

    ``NodeNotReady`` begins an outage, the node's next ``NodeReady`` ends it. A NotReady of a node
    that is down already, and a Ready of one that is up, are counted and left out. Of events that
    Kubernetes merged (`count`), the first and the last instant are known, the others are counted.
    Events of a node that name a failure without an end (`INSTANT`) are instants.

    Raises TraceError with file and line.
    """
    counted = Counter[str]()
    found = [event for line, item in items(path) for event in _events(item, line, path, counted)]
    events = pd.DataFrame(found, columns=_Event._fields).set_index("row")
    state = np.asarray(events["cause"].map(STATES), dtype=np.int64)
    if not (state != END).any():
        message = (
            "holds no event of a node that is not ready: a cluster keeps events for an hour "
            "unless --event-ttl says otherwise"
        )
        raise trace_error(path, None, message)
    events["start"] = read_times(events["at"].rename("lastTimestamp"), None, path).hours
    begins, end_h = paired(numbered(events["node"])[0], events["start"].to_numpy(), state)
    n_begins, n_ends = int((state == BEGIN).sum()), int((state == END).sum())
    n_idle, n_up = n_begins - len(begins), n_ends - int(np.isfinite(end_h).sum())
    counted["NotReady event(s) of nodes that were not ready already left out"] = n_idle
    counted["Ready event(s) of nodes that were ready already left out"] = n_up
    instants = events[state == INSTANT]
    rows = pd.concat(
        [events.iloc[begins].assign(end=end_h), instants.assign(end=instants["start"])]
    )
    return Log(rows, counted, points=False)


def _events(item: Any, line: int, path: PathLike[str], counted: Counter[str]) -> Iterator[_Event]:
    item = require_object(item, line, path, EXAMPLE)
    if isinstance(item.get("items"), list):
        for one in item["items"]:
            yield from _events(one, line, path, counted)
        return
    item = item["object"] if "object" in item and "reason" not in item else item  # of a watch
    item = require_object(item, line, path, EXAMPLE)
    if "reason" not in item:
        raise trace_error(path, line, "is missing in this event", "reason")
    about, reason = item.get("involvedObject") or item.get("regarding") or {}, str(item["reason"])
    if not isinstance(about, dict) or about.get("kind") != "Node":
        counted["event(s) left out that are not about a node"] += 1
    elif reason not in STATES:
        counted["event(s) of nodes left out that are no failure"] += 1
    elif not about.get("name"):
        raise trace_error(path, line, "the event names no node", "involvedObject.name")
    else:
        instants = _instants(item)
        if not instants:
            raise trace_error(path, line, "is missing in this event", "lastTimestamp")
        n_more = item.get("count")
        merged = n_more - len(instants) if isinstance(n_more, int) else 0
        what = "repetition(s) of merged events left out: their instants are not kept"
        counted[what] += max(merged, 0)
        yield from (_Event(line - FIRST_ROW, str(about["name"]), at, reason) for at in instants)


def _instants(item: dict[str, Any]) -> list[str]:
    """First and last instant of an event, as it writes them."""
    series = item.get("series")
    first = item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp")
    last = item.get("lastTimestamp") or item.get("deprecatedLastTimestamp")
    observed = series.get("lastObservedTime") if isinstance(series, dict) else None
    written = (first or item.get("eventTime"), last, observed)  # eventTime is the first
    return list(dict.fromkeys(str(at) for at in written if at))


def _looks_like(head: Head) -> str:
    marks = r'"(?:involvedObject|regarding)"|"kind":\s*"(?:Event)?List"'
    if head.text.startswith("{") and re.search(marks, head.text):
        return "JSON with events about objects of Kubernetes"
    return ""


FORMAT = LogFormat(
    options=frozenset({"--period", "--repair"}),
    looks_like=_looks_like,
    read=read_kubernetes,
    order=30,
)
