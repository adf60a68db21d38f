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
    """Overhead (of whole runs) and timeline."""
    figures: dict[str, Draw] = {"timeline": partial(timeline_figure, result)}
    if result.replay is None:
        figures = {"overhead": partial(overhead_figure, result), **figures}
    return figures
