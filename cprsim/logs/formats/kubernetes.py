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
from cprsim.logs.columns import UNKNOWN_STATE, states
from cprsim.logs.files import trace_error
from cprsim.logs.formats.jsonl import flat, items, require_object
from cprsim.logs.log import Log, LogFormat
from cprsim.logs.reading import FIRST_ROW, no_row_where
from cprsim.logs.spec import LogSpec
from cprsim.logs.states import BEGIN, END, NEITHER, joined, outages_of_states
from cprsim.logs.tables import without_ignored
from cprsim.logs.times import Times, read_times

STATE_OF_REASON = {
    "NodeNotReady": BEGIN, "NodeReady": END,
    "Rebooted": NEITHER, "KernelOops": NEITHER, "KernelDeadlock": NEITHER,  # of no length
}  # fmt: skip
KIND_PATHS = ("involvedObject.kind", "regarding.kind")
NAME_PATHS = ("involvedObject.name", "regarding.name")
INSTANTS = (
    ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("series.lastObservedTime",),
)
MARKS_OF_EVENTS = re.compile(
    r'\{.*("(?:involvedObject|regarding)"|"kind":\s*"(?:Event)?List")', re.DOTALL
)
COUNTS = ("count", "deprecatedCount", "series.count")
MOST_OFTEN = 1e9
GOES_ON = r"(?i)fail|block|cancel|abort|uncordon|interrupt|preempt"  # what follows is no removal
REMOVES = r"(?i)scale_?down|remov|delet"
ANNOUNCES = rf"{REMOVES}|drain|cordon|notschedul|disrupt|terminat|shutdown|upgrad|retir|decommis"
UP_STILL = (  # of kubelet, Kubernetes' controllers, and node-problem-detector
    r"Starting|RegisteredNode|Synced|Node(?:Has\w+|Schedulable|AllocatableEnforced)|CIDR\w+|"
    r"InvalidDiskCapacity|\w+GCFailed|FreeDiskSpaceFailed|EvictionThresholdMet|SystemOOM|OOMKilling"
)
BEFORE_H, AFTER_H = 1.0, 1 / 6  # of the removal of what had not failed: it is not ready meanwhile
PLANNED_NOTE = "node(s) taken out on purpose (drained, scaled down or removed): no failures"
MERGED = (
    "event(s) left out that Kubernetes merged into others, as their instants are not known: nodes "
    "fail more often than this log shows"
)
EVENT_EXAMPLE = "an event of kubectl get events -o json"
REBOOT_H = 1 / 60  # a reboot is reported when the node is ready again


def read_kubernetes(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from events of nodes: a list, or one object after the other (``--watch``).

    ``NodeNotReady`` begins an outage, the node's next ``NodeReady`` ends it; other failures of a
    node, and those of ``--down``, are instants. A node that is drained or removed has an outage
    that is no failure. Of events that Kubernetes merged, the first and the last instant are known.
    """
    counted = Counted()
    by_line = [(line - FIRST_ROW, dict(flat(event))) for line, event in _events(log)]
    events = pd.DataFrame(
        [event for _, event in by_line], [row for row, _ in by_line], dtype=object
    )
    events = without_ignored(events, spec.ignored, log, counted)
    reason, kind = _first(events, ("reason",)), _first(events, KIND_PATHS)
    no_row_where(reason.isna(), reason, log, "reason", "is missing in this event")
    counted["no_failure", "event(s) left out that are not about a node"] = int(
        (kind != "Node").sum()
    )
    if wrong := {*spec.down_words} - {*reason}:
        raise trace_error(log, None, f"no event has the reason {', '.join(sorted(wrong))}", "down")
    state_of = STATE_OF_REASON | dict.fromkeys(spec.down_words, NEITHER)
    text = reason.astype(str).str
    is_removal = text.contains(ANNOUNCES) & ~text.contains(GOES_ON) & ~reason.isin(list(state_of))
    is_change = (kind == "Node") & (reason.isin(list(state_of)) | is_removal)
    others = reason[(kind == "Node") & ~is_change].astype(str).rename("reason")
    known = others.str.fullmatch(UP_STILL) | others.str.contains(ANNOUNCES)
    states(others[~known], dict.fromkeys(others, END if spec.down else UNKNOWN_STATE), log)
    for name, n in others.value_counts().items():
        counted["no_failure", f"event(s) {one_line(str(name))} left out: the node is up"] = int(n)
    if not (is_change & ~is_removal & (reason != "NodeReady")).any():
        message = "holds no event of a node that is not ready: a cluster keeps them for an hour"
        raise trace_error(log, None, message)
    changes, times = _occurrences(events.assign(cause=reason)[is_change], log)
    removed = ~changes["cause"].isin(list(state_of)).to_numpy(bool)
    removes = removed & changes["cause"].str.contains(REMOVES).to_numpy(bool)
    state = changes["cause"].map(state_of).fillna(NEITHER).mask(removes, BEGIN).astype(int)
    if not (state == END).any() and changes[(state == BEGIN) & ~removes].duplicated("node").any():
        message = "no NodeReady ends an outage, though nodes are not ready again: write all events"
        raise trace_error(log, None, message)
    changes = changes.assign(state=state, end=np.nan)
    down = outages_of_states(changes[state != NEITHER], counted)
    down = _with_removals(down, changes[removed])
    counted["assumed", PLANNED_NOTE] = int(down["planned"].sum())
    instants = changes[(state == NEITHER) & ~removed]
    counted["no_failure", "event(s) announcing a removal"] = int((removed & ~removes).sum())
    rows = pd.concat([down, instants.assign(end=instants["start"], planned=False, open=False)])
    note = "outage(s) begin within a minute of the end of another of the same node: one failure"
    rows = joined(rows.fillna({"end": np.inf}), REBOOT_H, note, counted)  # down still
    rows["end"] = rows["end"].replace(np.inf, np.nan)
    n_more = int(changes["n"].groupby(changes["key"]).first().sum()) - len(changes)
    counted["dropped", MERGED] = n_more
    n_read = len(by_line) - int(is_change.sum()) + len(changes) + n_more
    return Log(rows, counted, points=False, times=times, n_read=n_read)


def _occurrences(events: pd.DataFrame, log: PathLike[str]) -> tuple[pd.DataFrame, Times]:
    """The known instants of events: node, cause, start, and their event's key and number `n`.

    A watch shows an event again whenever it occurs again: its versions are one event.
    """
    node = _first(events, NAME_PATHS)
    no_row_where(node.isna(), node, log, NAME_PATHS[0], "the event names no node")
    of_first = events.assign(first=_first(events, sum(INSTANTS, ())).astype(str))
    one = _first(of_first, ("metadata.uid", "metadata.name", "first"))
    key = one + "|" + node + "|" + events["cause"]
    events = events.assign(node=node, key=key, line=np.arange(len(events)), n=1.0)
    for name in COUNTS:
        cells = events.get(name, pd.Series(None, events.index, dtype=object))
        number = pd.to_numeric(cells, errors="coerce")
        bad = cells.notna() & ~((number >= 0) & (number < MOST_OFTEN))
        no_row_where(bad, cells, log, name, "{value} is no number of events")
        events["n"] = np.fmax(events["n"], np.floor(number))
    changes = pd.concat([events.assign(at=_first(events, names)) for names in INSTANTS])
    changes = changes.dropna(subset="at")
    undated = ~events["line"].isin(changes["line"])
    no_row_where(undated, events["cause"], log, "lastTimestamp", "is missing in this event")
    times = read_times(changes["at"].astype(str).rename("lastTimestamp"), None, log)
    changes = changes.assign(start=times.hours).drop_duplicates(["key", "node", "cause", "start"])
    of_event = changes.groupby("key")
    n = np.fmax(of_event["n"].transform("max"), of_event["start"].transform("size"))
    return changes.assign(n=n)[["node", "cause", "start", "key", "n"]], times


def _with_removals(down: pd.DataFrame, removals: pd.DataFrame) -> pd.DataFrame:
    """Which outages are removals on purpose, and which were under way when the log ended.

    One that a removal follows later failed, and its node never came back.
    """
    both = down.assign(row=np.arange(len(down))).merge(
        removals[["node", "start"]], "left", "node", suffixes=("", "_removed")
    )
    removed_h = both["start_removed"].where(~(both["start_removed"] > both["end"]))
    after_h = removed_h - both["start"]
    planned, gone = (
        is_so.groupby(both["row"]).any().to_numpy()
        for is_so in (after_h.between(-BEFORE_H, AFTER_H), after_h >= 0)
    )
    return down.assign(planned=planned, open=~gone)


def _events(log: PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line and fields of each event of a list, or of a watch."""
    for line, item in items(log):
        top = require_object(item, line, log, EVENT_EXAMPLE)
        for event in top["items"] if isinstance(top.get("items"), list) else [top]:
            event = require_object(event, line, log, EVENT_EXAMPLE)
            event = event if "reason" in event else event.get("object", event)  # of a watch
            yield line, require_object(event, line, log, EVENT_EXAMPLE)


def _first(events: pd.DataFrame, names: tuple[str, ...]) -> pd.Series[str]:
    """The first of these fields that an event has, missing where it has none."""
    return events.reindex(columns=list(names)).astype(object).bfill(axis=1)[names[0]]


FORMAT = LogFormat(
    options=frozenset({"--period", "--repair", "--down", "--ignore"}),
    looks_like=lambda head: (
        "JSON with events about objects of Kubernetes" if MARKS_OF_EVENTS.match(head) else ""
    ),
    read=read_kubernetes,
    order=30,
)
