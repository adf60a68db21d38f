"""InfiniteHBD's fault trace: a JSON array with a start and an end event per fault."""

from __future__ import annotations

import json
from collections import defaultdict, deque
from math import nan
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.asked import LogFormat
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import LONGEST_WINDOW_H, checked, guesses, n_observed

EVENT = {"node_id": "", "event_time": 0.0, "event_type": "fault_start", "fault_type": {}}


def read_infinitehbd(path: Path | str, *, n_nodes: int | None = None) -> Outages:
    """Outages from a JSON array of events: node_id, event_time [d], event_type, fault_type.

    Each ``fault_start`` is paired with the next ``fault_end`` of the same node and fault type,
    first in, first out. The observation begins at 0 and ends at the last event. The cause is the
    fault's level and class.

    Raises TraceError with file and line.
    """
    path = Path(path)
    events = [(line, *_event(item, line, path)) for line, item in items(path)]
    if not events:
        raise trace_error(path, None, "names no fault")
    events.sort(key=lambda event: (event[2], event[3]))  # at one tick, starts come first
    under_way: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    found: list[list[Any]] = []
    for line, node, at_h, ends, fault, cause in events:
        faults = under_way[node, fault]
        if not ends:
            faults.append(len(found))
            found.append([node, at_h, nan, cause])
        elif faults:
            found[faults.popleft()][2] = at_h
        else:
            raise trace_error(path, line, "a fault ends that did not begin", "event_type")
    rows = pd.DataFrame(found, columns=["node", "start", "end", "cause"])
    names, node = np.unique(rows["node"].to_numpy(object), return_inverse=True)
    window_h = events[-1][2]
    outages = outages_of(
        node.astype(np.int64), rows["start"].to_numpy(), rows["end"].to_numpy(float),
        tuple(rows["cause"]), n_nodes=n_observed(n_nodes, len(names), path), window_h=window_h,
        origin="day 0", node_names=tuple(names.tolist()), notes=guesses(n_nodes, (0.0, window_h)),
    )  # fmt: skip
    return checked(outages, path)


def _event(item: Any, line: int, path: Path) -> tuple[str, float, bool, str, str]:
    """Node, instant [h], whether it ends a fault, what pairs a start with its end, cause."""
    item = require_object(item, line, path, json.dumps(EVENT))
    if missing := [key for key in EVENT if key not in item]:
        raise trace_error(path, line, "is missing in this event", missing[0])
    node, day, kind, fault = (item[key] for key in EVENT)
    is_number = isinstance(day, int | float) and not isinstance(day, bool)
    if not is_number or not 0 <= day <= LONGEST_WINDOW_H / 24:  # nor NaN
        raise trace_error(path, line, f"`{one_line(str(day))}` is no number of days", "event_time")
    if kind not in ("fault_start", "fault_end"):
        message = f"`{one_line(str(kind))}` is neither fault_start nor fault_end"
        raise trace_error(path, line, message, "event_type")
    cause = str(fault)
    if isinstance(fault, dict):
        cause = " / ".join(str(fault[key]) for key in ("Level", "Class") if key in fault)
    paired = json.dumps(fault, sort_keys=True)
    return str(node), day * 24.0, kind == "fault_end", paired, cause


FORMAT = LogFormat(
    name="infinitehbd",
    options=frozenset(),
    looks_like=lambda head: (
        "a JSON array with events `fault_start`"
        if head.text.startswith("[") and "fault_start" in head.text
        else ""
    ),
    read=lambda path, asked: read_infinitehbd(path, n_nodes=asked.n_nodes),
    order=10,
)
