"""Reader of InfiniteHBD's fault trace: a JSON array with a start and an end event per fault."""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cprsim.failures.outages import Outages, outages_of
from cprsim.failures.traces.reading import (
    LONGEST_WINDOW_H,
    checked,
    guesses,
    n_observed,
    read_text,
    trace_error,
)
from cprsim.foreign import one_line, whole_number

KEYS = ("node_id", "event_time", "event_type", "fault_type")
LONGEST_EVENT = 10_000  # characters
BLANK = re.compile(r"[\s,]*")


class _FaultEvent(NamedTuple):
    line: int
    node: str
    at_h: float
    ends: bool
    fault: str  # what pairs a start with its end
    cause: str


def read_infinitehbd(path: Path | str, *, n_nodes: int | None = None) -> Outages:
    """Outages from a JSON array of events: node_id, event_time [d], event_type, fault_type.

    Each ``fault_start`` is paired with the next ``fault_end`` of the same node and fault type,
    first in, first out. The observation begins at 0 and ends at the last event. The cause is the
    fault's level and class.

    Parameters
    ----------
    path : the file
    n_nodes : nodes observed, also those that never failed; default: those that the file names

    Raises
    ------
    TraceError
        with file and line.
    """
    path = Path(path)
    events = [_event(item, line, path) for line, item in _items(path)]
    if not events:
        raise trace_error(path, None, "names no fault")
    events.sort(key=lambda event: (event.at_h, event.ends))  # at one tick, starts come first
    started, end_h = _paired(events, path)
    names, node = np.unique([event.node for event in started], return_inverse=True)
    outages = outages_of(
        node.astype(np.int64),
        np.array([event.at_h for event in started]),
        np.array(end_h),
        tuple(event.cause for event in started),
        n_nodes=n_observed(n_nodes, len(names), path),
        window_h=events[-1].at_h,
        origin="day 0",
        node_names=tuple(names.tolist()),
        notes=guesses(n_nodes, (0.0, events[-1].at_h)),
    )
    return checked(outages, path)


def _paired(events: list[_FaultEvent], path: Path) -> tuple[list[_FaultEvent], list[float]]:
    """The starts, and the end [h] of each, NaN where the fault lasted on."""
    under_way: defaultdict[tuple[str, str], deque[int]] = defaultdict(deque)
    started: list[_FaultEvent] = []
    end_h: list[float] = []
    for event in events:
        faults = under_way[event.node, event.fault]
        if not event.ends:
            faults.append(len(started))
            started.append(event)
            end_h.append(float("nan"))
        elif faults:
            end_h[faults.popleft()] = event.at_h
        else:
            raise trace_error(path, event.line, "a fault ends that did not begin", "event_type")
    return started, end_h


def _event(item: Any, line: int, path: Path) -> _FaultEvent:
    if not isinstance(item, dict):
        raise trace_error(path, line, f"an event is an object, not `{one_line(str(item))}`")
    for key in KEYS:
        if key not in item:
            raise trace_error(path, line, "is missing in this event", key)
    node, day, kind, fault = (item[key] for key in KEYS)
    is_number = isinstance(day, int | float) and not isinstance(day, bool)
    if not is_number or not 0 <= day <= LONGEST_WINDOW_H / 24:  # nor NaN, nor an int of 400 digits
        raise trace_error(path, line, f"`{one_line(str(day))}` is no number of days", "event_time")
    if kind not in ("fault_start", "fault_end"):
        raise trace_error(
            path,
            line,
            f"`{one_line(str(kind))}` is neither fault_start nor fault_end",
            "event_type",
        )
    fault_id = json.dumps(fault, sort_keys=True)
    return _FaultEvent(line, str(node), day * 24.0, kind == "fault_end", fault_id, _cause(fault))


def _cause(fault: Any) -> str:
    if not isinstance(fault, dict):
        return str(fault)
    return " / ".join(str(fault[key]) for key in ("Level", "Class") if key in fault)


def _items(path: Path) -> Iterator[tuple[int, Any]]:
    """Line and value of each item of a JSON array."""
    text = read_text(path)
    begin = re.match(r"\s*\[", text)
    if begin is None:
        raise trace_error(path, 1, "is no JSON array of events")
    decoder, at, line, counted = json.JSONDecoder(parse_int=whole_number), begin.end(), 1, 0
    while True:
        if blank := BLANK.match(text, at):
            at = blank.end()
        line, counted = line + text.count("\n", counted, at), at
        if text[at : at + 1] == "]":
            return
        event = text[at : at + LONGEST_EVENT]
        try:
            item, n = decoder.raw_decode(event)
        except (ValueError, RecursionError) as error:  # ValueError: digits beyond Python's limit
            if isinstance(error, json.JSONDecodeError) and len(event) == LONGEST_EVENT:
                reason = f"or an event is longer than {LONGEST_EVENT:,} characters"
            else:
                reason = getattr(error, "msg", None) or "nested too deep, or a number too long"
            raise trace_error(path, line, f"is no valid JSON: {reason}") from None
        at += n
        yield line, item
