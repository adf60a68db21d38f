"""InfiniteHBD's fault trace: a JSON array of start and end events."""

from __future__ import annotations

from pathlib import Path

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.infinitehbd import read_infinitehbd


def _looks_like(head: Head) -> str:
    if head.text.lstrip("\ufeff \t\r\n").startswith("[") and "fault_start" in head.text:
        return "a JSON array with events `fault_start`"
    return ""


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_infinitehbd(path, n_nodes=asked.n_nodes)


FORMAT = LogFormat(
    name="infinitehbd",
    what="JSON array of fault_start and fault_end events (InfiniteHBD)",
    commands=(),
    provenance="published",
    options=frozenset(),
    looks_like=_looks_like,
    read=_read,
    order=10,
)
