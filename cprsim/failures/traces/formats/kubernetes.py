"""Kubernetes' events of nodes: NotReady and Ready, as ``kubectl get events`` prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Counted
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.formats.jsonl import flat, items, require_object
from cprsim.failures.traces.log import BEGIN, END, NEITHER, Log, LogFormat, joined, numbered, paired
from cprsim.failures.traces.reading import FIRST_ROW, no_row_where
from cprsim.failures.traces.spec import LogSpec
from cprsim.failures.traces.times import read_times

STATES = {
    "NodeNotReady": BEGIN, "NodeReady": END,
    "Rebooted": NEITHER, "KernelOops": NEITHER, "KernelDeadlock": NEITHER,  # of no length
}  # fmt: skip
KIND = ("involvedObject.kind", "regarding.kind")
NAME = ("involvedObject.name", "regarding.name")
INSTANTS = (
    ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("series.lastObservedTime",),
)
MARKS = re.compile(r'\{.*("(?:involvedObject|regarding)"|"kind":\s*"(?:Event)?List")', re.DOTALL)
EXAMPLE = "an event of kubectl get events -o json"
REBOOT_H = 1 / 60  # a reboot is reported when the node is ready again


def read_kubernetes(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from events of nodes: a list, or one object after the other (``--watch``).

    ``NodeNotReady`` begins an outage, the node's next ``NodeReady`` ends it; other failures of a
    node are instants. Of events that Kubernetes merged (`count`), the first and the last instant
    are known. What is not read is counted.
    """
    counted = Counted()
    by_line = [(line - FIRST_ROW, dict(flat(event))) for line, event in _events(log)]
    events = pd.DataFrame(
        [event for _, event in by_line], [row for row, _ in by_line], dtype=object
    )
    reason, kind = _first(events, ("reason",)), _first(events, KIND)
    no_row_where(reason.isna().to_numpy(), reason, log, "reason", "is missing in this event")
    counted["dropped", "event(s) left out that are not about a node"] = int((kind != "Node").sum())
    is_failure = (kind == "Node") & reason.isin(list(STATES))
    for name, n in reason[(kind == "Node") & ~is_failure].value_counts().items():
        counted["dropped", f"event(s) {one_line(str(name))} left out: the node goes on"] = int(n)
    events, cause = events[is_failure], reason[is_failure]
    node = _first(events, NAME)
    no_row_where(node.isna().to_numpy(), node, log, NAME[0], "the event names no node")
    events = events.assign(node=node, cause=cause, number=np.arange(len(events)))
    changes = pd.concat([events.assign(at=_first(events, names)) for names in INSTANTS])
    changes = changes.dropna(subset="at").drop_duplicates(["number", "at"])
    undated = ~events["number"].isin(changes["number"]).to_numpy(dtype=bool)
    no_row_where(undated, cause, log, "lastTimestamp", "is missing in this event")
    events = events.reindex(columns=["number", "count"]).set_index("number")
    n_more = pd.to_numeric(events["count"]).fillna(1) - changes.groupby("number").size()
    note = "repetition(s) of merged events left out: their instants are not kept"
    counted["dropped", note] = int(n_more.clip(lower=0).sum())
    state = np.asarray(changes["cause"].map(STATES), dtype=np.int64)
    if not (state != END).any():
        raise trace_error(
            log, None,
            "holds no event of a node that is not ready: a cluster keeps events for an hour "
            "unless --event-ttl says otherwise",
        )  # fmt: skip
    times = read_times(changes["at"].rename("lastTimestamp"), None, log)
    changes["start"] = times.hours
    begins, end_h = paired(numbered(changes["node"])[0], changes["start"].to_numpy(), state)
    n_idle = int((state == BEGIN).sum()) - len(begins)
    n_up = int((state == END).sum()) - int(np.isfinite(end_h).sum())
    counted["dropped", "NotReady event(s) of nodes that were not ready already left out"] = n_idle
    counted["dropped", "Ready event(s) of nodes that were ready already left out"] = n_up
    down, instants = changes.iloc[begins].assign(end=end_h), changes[state == NEITHER]
    rows = pd.concat([down, instants.assign(end=instants["start"])])
    note = "outage(s) begin within a minute of the end of another of the same node: one failure"
    return Log(joined(rows, REBOOT_H, note, counted), counted, points=False, times=times)


def _events(log: PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and fields of each event of a list, or of a watch."""
    for line, item in items(log):
        top = require_object(item, line, log, EXAMPLE)
        for event in top["items"] if isinstance(top.get("items"), list) else [top]:
            event = require_object(event, line, log, EXAMPLE)
            event = event if "reason" in event else event.get("object", event)  # of a watch
            yield line, require_object(event, line, log, EXAMPLE)


def _first(events: pd.DataFrame, names: tuple[str, ...]) -> pd.Series[str]:
    """The first of these fields that an event has, missing where it has none."""
    return events.reindex(columns=names).bfill(axis=1)[names[0]]


FORMAT = LogFormat(
    options=frozenset({"--period", "--repair"}),
    looks_like=lambda head: (
        "JSON with events about objects of Kubernetes" if MARKS.match(head) else ""
    ),
    read=read_kubernetes,
    order=30,
)
