"""Kubernetes' events of nodes: NotReady and Ready, as ``kubectl get events`` prints them."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.json_values import items_of
from cprsim.failures.traces.reading import trace_error
from cprsim.failures.traces.spells import Spell, outages_of_spells
from cprsim.failures.traces.times import MICROSECONDS_PER_HOUR
from cprsim.foreign import one_line

BEGINS, ENDS = frozenset({"NodeNotReady"}), frozenset({"NodeReady"})
INSTANTS = frozenset({"Rebooted", "SystemOOM", "KernelOops", "KernelDeadlock"})


class _Event(NamedTuple):
    node: str
    at_h: float
    reason: str
    line: int


def read_kubernetes(path: Path, asked: LogOptions) -> Outages:
    """Outages from events of nodes: a list, or one object after the other (``--watch``).

    ``NodeNotReady`` begins an outage, the node's next ``NodeReady`` ends it. A NotReady of a node
    that is down already, and a Ready of one that is up, are counted and left out. Of events that
    Kubernetes merged (`count`), the first and the last instant are known, the others are counted.
    Events of a node that name a failure without an end (`INSTANTS`) are instants.

    Raises
    ------
    TraceError
        with file and line.
    """
    counted = Counter[str]()
    by_node: defaultdict[str, list[_Event]] = defaultdict(list)
    for line, item in items_of(path, "items"):
        for event in _events(item, line, path, counted):
            by_node[event.node].append(event)
    spells = [spell for name in sorted(by_node) for spell in _paired(name, by_node[name], counted)]
    if not spells:
        raise trace_error(
            path,
            None,
            "holds no event of a node that is not ready: a cluster keeps events for "
            "an hour unless --event-ttl says otherwise",
        )
    return outages_of_spells(path, spells, asked, points=False, counted=counted)


def _events(item: Any, line: int, path: Path, counted: Counter[str]) -> Iterator[_Event]:
    if not isinstance(item, dict):
        raise trace_error(path, line, f"an event is an object, not `{one_line(str(item))}`")
    if item.get("kind") == "List" and not item.get("items"):
        return
    item = item["object"] if "object" in item and "reason" not in item else item  # of a watch
    if not isinstance(item, dict) or "reason" not in item:
        raise trace_error(path, line, "is missing in this event", "reason")
    about = item.get("involvedObject") or item.get("regarding") or {}
    reason = item["reason"]
    if not isinstance(about, dict) or about.get("kind") != "Node":
        counted["event(s) left out that are not about a node"] += 1
        return
    if reason not in BEGINS | ENDS | INSTANTS:
        counted["event(s) of nodes left out that are no failure"] += 1
        return
    name = about.get("name")
    if not isinstance(name, str) or not name:
        raise trace_error(path, line, "the event names no node", "involvedObject.name")
    instants = sorted(set(_instants(item, line, path)))
    n_more = item.get("count") or 1
    if isinstance(n_more, int) and n_more > len(instants):
        counted["repetition(s) of merged events left out: their instants are not kept"] += (
            n_more - len(instants)
        )
    yield from (_Event(name, at_h, str(reason), line) for at_h in instants)


def _instants(item: dict[str, Any], line: int, path: Path) -> Iterator[float]:
    """First and last instant of an event [h since 1970]."""
    series = item.get("series") if isinstance(item.get("series"), dict) else {}
    assert isinstance(series, dict)
    written = {
        "firstTimestamp": item.get("firstTimestamp") or item.get("deprecatedFirstTimestamp"),
        "eventTime": item.get("eventTime"),
        "lastTimestamp": item.get("lastTimestamp") or item.get("deprecatedLastTimestamp"),
        "series.lastObservedTime": series.get("lastObservedTime"),
    }
    present = {key: text for key, text in written.items() if text}
    if not present:
        raise trace_error(path, line, "is missing in this event", "lastTimestamp")
    if "eventTime" in present and "firstTimestamp" in present:
        del present["eventTime"]  # the same instant, with microseconds
    for key, text in present.items():
        stamp = pd.to_datetime(str(text), format="ISO8601", errors="coerce", utc=True)
        if pd.isna(stamp) or not isinstance(text, str):
            message = f"'{one_line(str(text))}' is no time stamp such as 2024-05-01T13:30:00Z"
            raise trace_error(path, line, message, key)
        yield stamp.value / 1e3 / MICROSECONDS_PER_HOUR


def _paired(name: str, events: list[_Event], counted: Counter[str]) -> Iterator[Spell]:
    """The outages of one node."""
    begun: _Event | None = None
    for event in sorted(set(events), key=lambda one: (one.at_h, one.reason in BEGINS)):
        if event.reason in INSTANTS:
            yield Spell(name, event.at_h, event.at_h, event.reason, event.line)
        elif event.reason in BEGINS and begun is not None:
            counted["NotReady event(s) of nodes that were not ready already left out"] += 1
        elif event.reason in BEGINS:
            begun = event
        elif begun is not None:
            yield Spell(name, begun.at_h, event.at_h, begun.reason, begun.line)
            begun = None
        else:
            counted["Ready event(s) of nodes that were ready already left out"] += 1
    if begun is not None:
        assert not isnan(begun.at_h)
        yield Spell(name, begun.at_h, nan, begun.reason, begun.line)


def _looks_like(head: Head) -> str:
    text = head.text.lstrip("\ufeff \t\r\n")
    named = '"involvedObject"' in text or '"regarding"' in text
    if text.startswith("{") and (named or re.search(r'"kind":\s*"(Event)?List"', text)):
        return "JSON with events about objects of Kubernetes"
    return ""


FORMAT = LogFormat(
    name="kubernetes",
    what="Kubernetes: events NodeNotReady and NodeReady, as JSON",
    commands=(
        "kubectl get events -A --field-selector involvedObject.kind=Node -o json",
        "kubectl get events -A --field-selector involvedObject.kind=Node --watch -o json",
    ),
    provenance="from documentation: kubernetes.io, Event v1; kept for an hour unless --event-ttl",
    options=frozenset({"--from and --to", "--repair"}),
    looks_like=_looks_like,
    read=read_kubernetes,
    order=30,
)
