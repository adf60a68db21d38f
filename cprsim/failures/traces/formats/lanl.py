"""LANL's failure records (LA-UR-05-7318), as published."""

from __future__ import annotations

from pathlib import Path

from cprsim.failures.outages import Outages
from cprsim.failures.traces.asked import Head, LogFormat, LogOptions
from cprsim.failures.traces.lanl import read_lanl
from cprsim.failures.traces.reading import LANLS


def _looks_like(head: Head) -> str:
    cells = {cell.strip() for cell in head.first_line.split(",")}
    return "the columns of LANL's records" if cells >= LANLS else ""


def _read(path: Path, asked: LogOptions) -> Outages:
    return read_lanl(path, system=asked.system, period=asked.period, n_nodes=asked.n_nodes)


FORMAT = LogFormat(
    name="lanl",
    what="CSV of the failure records LA-UR-05-7318 of Los Alamos",
    commands=(),
    provenance="published",
    options=frozenset({"--system", "--from and --to"}),
    looks_like=_looks_like,
    read=_read,
    order=10,
)
