"""Logs read by the options of `cprsim fit`, as keywords."""

from functools import partial
from pathlib import Path
from typing import Any

from cprsim.failures.outages import Outages
from cprsim.logs.formats import read_log
from cprsim.logs.spec import LogSpec


def read(
    path: Path | str, *, n_nodes: int | None = None, period: tuple[Any, Any] = (None, None),
    repair_h: float | None = None, **options: Any,
) -> Outages:  # fmt: skip
    """The outages of a file; numbers where the options are texts."""
    if n_nodes is not None:
        options["nodes"] = n_nodes
    if period != (None, None):
        options["period"] = "..".join("" if end is None else str(end) for end in period)
    if repair_h is not None:
        options["repair"] = f"{repair_h} h"
    return read_log(Path(path), LogSpec(**options))


read_tidy = partial(read, format="tidy", coalesce="0 s")
read_infinitehbd = partial(read, format="infinitehbd")
read_lanl = partial(read, format="lanl")
