"""The figures of a run, by the names of their files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cprsim.plots.overhead import overhead_figure
from cprsim.plots.save import Draw
from cprsim.plots.timeline import timeline_figure

if TYPE_CHECKING:
    from cprsim.results.run import Result


def run_figures(result: Result) -> dict[str, Draw]:
    """Each figure that suits the result; a single replication has no mean overhead."""
    timeline: dict[str, Draw] = {"timeline": partial(timeline_figure, result)}
    whole = {} if result.replay is not None else {"overhead": partial(overhead_figure, result)}
    return whole | timeline
