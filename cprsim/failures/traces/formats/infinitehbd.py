"""InfiniteHBD's fault trace: a JSON array with a start and an end event per fault."""

from __future__ import annotations

import json
from collections import Counter, defaultdict, deque
from math import nan
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cprsim.errors import one_line
from cprsim.failures.traces.files import trace_error
from cprsim.failures.traces.json_values import items, require_object
from cprsim.failures.traces.log import LONGEST_WINDOW_H, Log
from cprsim.failures.traces.reading import FIRST_ROW
from cprsim.failures.traces.spec import LogFormat, LogSpec
from cprsim.failures.traces.times import Times

EVENT = {"node_id": "", "event_time": 0.0, "event_type": "fault_start", "fault_type": {}}


class _FaultEvent(NamedTuple):
    line: int
    node: str
    at_h: float
    ends: bool
    fault: str  # what pairs a start with its end
    cause: str


def read_infinitehbd(log: PathLike[str], spec: LogSpec) -> Log:
    """Outages from a JSON array of events: node_id, event_time [d], event_type, fault_type.

    Each ``fault_start`` is paired with the next ``fault_end`` of the same node and fault type,
    first in, first out. The observation begins at 0 and ends at the last event. The cause is the
    fault's level and class.

    Raises TraceError with file and line.
    """
    events = [_event(item, line, log) for line, item in items(log)]
    if not events:
        raise trace_error(log, None, "names no fault")
    events.sort(key=lambda event: (event.at_h, event.ends))  # at one tick, starts come first
    started, end_h = _paired(events, log)
    rows = pd.DataFrame(
        [(one.node, one.at_h, end, one.cause) for one, end in zip(started, end_h, strict=True)],
        columns=("node", "start", "end", "cause"),
        index=[event.line - FIRST_ROW for event in started],
    )
    return Log(
        rows, Counter(), points=False, times=Times(np.zeros(0), False, unit="d"),
        watched=(0.0, events[-1].at_h), known={"begins": "the zero of the file's times"},
        records_alone=True,
    )  # fmt: skip


def _paired(
    events: list[_FaultEvent], path: PathLike[str]
) -> tuple[list[_FaultEvent], list[float]]:
    """The starts, and the end [h] of each, NaN where the fault lasted on."""
    under_way: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    started: list[_FaultEvent] = []
    end_h: list[float] = []
    for event in events:
        faults = under_way[event.node, event.fault]
        if not event.ends:
            faults.append(len(started))
            started.append(event)
            end_h.append(nan)
        elif faults:
            end_h[faults.popleft()] = event.at_h
        else:
            raise trace_error(path, event.line, "a fault ends that did not begin", "event_type")
    return started, end_h


def _event(item: Any, line: int, path: PathLike[str]) -> _FaultEvent:
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
    fault_id = json.dumps(fault, sort_keys=True)
    return _FaultEvent(line, str(node), day * 24.0, kind == "fault_end", fault_id, cause)


FORMAT = LogFormat(
    options=frozenset(),
    looks_like=lambda head: (
        "a JSON array with events `fault_start`"
        if head.text.startswith("[") and "fault_start" in head.text
        else ""
    ),
    read=read_infinitehbd,
    order=10,
    source="InfiniteHBD's fault trace: StepFun's public repository of that name on GitHub",
)
