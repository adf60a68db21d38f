"""Logs read by the options of `cprsim fit`, as keywords."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cprsim.failures.outages import Outages
from cprsim.failures.traces.formats import read_log
from cprsim.failures.traces.spec import LogSpec


def spec_of(
    *, n_nodes: int | None = None, period: tuple[Any, Any] = (None, None),
    repair_h: float | None = None, **said: Any,
) -> LogSpec:  # fmt: skip
    """A description of a log, from numbers where it has texts."""
    if n_nodes is not None:
        said["nodes"] = n_nodes
    if period != (None, None):
        said["period"] = "..".join("" if end is None else str(end) for end in period)
    if repair_h is not None:
        said["repair"] = f"{repair_h} h"
    return LogSpec(**said)


def read(path: Path | str, **said: Any) -> Outages:
    """The outages of a file, whose format is guessed where none is said."""
    return read_log(Path(path), spec_of(**said))


def read_tidy(path: Path | str, **said: Any) -> Outages:
    """The outages of a table, every row of which counts."""
    return read(path, **{"format": "tidy", "coalesce": "0 s"} | said)


def read_infinitehbd(path: Path | str, **said: Any) -> Outages:
    return read(path, format="infinitehbd", **said)


def read_lanl(path: Path | str, **said: Any) -> Outages:
    return read(path, format="lanl", **said)
