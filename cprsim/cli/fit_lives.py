"""The nodes of a log that join and leave, as ``cprsim fit`` is told of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cprsim.failures.outages import Outages
    from cprsim.failures.traces.asked import Asked


def living(
    outages: Outages, trace: Path, form: str, asked: Asked, node_file: Path | None, *, dates: bool
) -> Outages:
    """The log with its nodes' lives, where a file or the records' own dates say them.

    Raises
    ------
    ParameterError
        for both at once, or dates of another format's log.
    TraceError
        for a file that can't be read.
    """
    from cprsim.errors import ParameterError
    from cprsim.failures.lives import with_lives
    from cprsim.failures.traces.lanl_dates import lanl_lives
    from cprsim.failures.traces.node_file import read_nodes

    if node_file is not None and dates:
        raise ParameterError("--node-dates: the nodes' dates are in the file of --nodes already")
    if node_file is not None:
        return with_lives(outages, read_nodes(node_file, outages, asked))
    if not dates:
        return outages
    if form != "lanl" or asked.system is None:
        raise ParameterError("--node-dates: belongs to format `lanl`, with --system")
    return with_lives(outages, lanl_lives(trace, asked.system, outages))
