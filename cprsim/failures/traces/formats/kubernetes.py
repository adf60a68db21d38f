"""Kubernetes' events of nodes: NotReady and Ready, as ``kubectl get events`` prints them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, numbered, outages, paired
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.repeats import ONE_FAULT_H, joined
from cprsim.failures.traces.times import read_times

INSTANT = NEITHER  # an outage of no length
STATES = {
    "NodeNotReady": BEGIN, "NodeReady": END, "Rebooted": INSTANT, "KernelOops": INSTANT,
    "KernelDeadlock": INSTANT,
}  # fmt: skip
EXAMPLE = "an event of kubectl get events -o json"


def read_kubernetes(path: Path, asked: LogOptions) -> Outages:
    """Outages from events of nodes: a list, or one object after the other (``--watch``).

    ``NodeNotReady`` begins an outage, the node's next ``NodeReady`` ends it; other failures of a
    node are instants. Of events that Kubernetes merged (`count`), the first and the last instant
    are known. What is not read is counted.
    """
    counted = Counter[str]()
    found = [event for line, item in items(path) for event in _events(item, line, path, counted)]
    events = pd.DataFrame(found, columns=["row", "node", "at", "cause"]).set_index("row")
    state = np.asarray(events["cause"].map(STATES), dtype=np.int64)
    if not (state != END).any():
        raise trace_error(
            path, None,
            "holds no event of a node that is not ready: a cluster keeps events for an hour "
            "unless --event-ttl says otherwise",
        )  # fmt: skip
    events["start"] = read_times(events["at"].rename("lastTimestamp"), None, path).hours
    begins, end_h = paired(numbered(events["node"])[0], events["start"].to_numpy(), state)
    n_idle = int((state == BEGIN).sum()) - len(begins)
    n_up = int((state == END).sum()) - int(np.isfinite(end_h).sum())
    counted["NotReady event(s) of nodes that were not ready already left out"] = n_idle
    counted["Ready event(s) of nodes that were ready already left out"] = n_up
    down, instants = events.iloc[begins].assign(end=end_h), events[state == INSTANT]
    rows = pd.concat([down, instants.assign(end=instants["start"])])
    what = "outage(s) begin within a minute of another of the same node: one failure"
    return outages(path, Log(joined(rows, ONE_FAULT_H, what, counted), counted, False), asked)


def _events(
    item: Any, line: int, path: Path, counted: Counter[str]
) -> Iterator[tuple[int, str, str, str]]:
    """Row, node, instant and reason of each change of a node in a list, a watch, or an event."""
    item = require_object(item, line, path, EXAMPLE)
    if isinstance(item.get("items"), list):
        for one in item["items"]:
            yield from _events(one, line, path, counted)
        return
    if "object" in item and "reason" not in item:  # of a watch
        item = require_object(item["object"], line, path, EXAMPLE)
    if "reason" not in item:
        raise trace_error(path, line, "is missing in this event", "reason")
    about, reason = item.get("involvedObject") or item.get("regarding") or {}, str(item["reason"])
    if not isinstance(about, dict) or about.get("kind") != "Node":
        counted["event(s) left out that are not about a node"] += 1
        return
    if reason not in STATES:
        counted[f"event(s) {one_line(reason)} left out: the node goes on"] += 1
        return
    if not about.get("name"):
        raise trace_error(path, line, "the event names no node", "involvedObject.name")
    series = item.get("series") or {}
    written = (
        item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp") or item.get("eventTime"),
        item.get("lastTimestamp") or item.get("deprecatedLastTimestamp"),
        series.get("lastObservedTime") if isinstance(series, dict) else None,
    )
    instants = list(dict.fromkeys(str(at) for at in written if at))
    if not instants:
        raise trace_error(path, line, "is missing in this event", "lastTimestamp")
    merged = item["count"] - len(instants) if isinstance(item.get("count"), int) else 0
    what = "repetition(s) of merged events left out: their instants are not kept"
    counted[what] += max(merged, 0)
    yield from ((line - FIRST_ROW, str(about["name"]), at, reason) for at in instants)


def _looks_like(head: Head) -> str:
    marks = r'\{.*("(?:involvedObject|regarding)"|"kind":\s*"(?:Event)?List")'
    found = re.match(marks, head.text, re.DOTALL)
    return "JSON with events about objects of Kubernetes" if found else ""


FORMAT = LogFormat(
    name="kubernetes",
    options=frozenset({"--period", "--repair"}),
    looks_like=_looks_like,
    read=read_kubernetes,
    order=30,
)
