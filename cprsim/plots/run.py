"""The figures of a run, by the names of their files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from cprsim.plots.overhead import overhead_figure
from cprsim.plots.save import Draw
from cprsim.plots.timeline import timeline_figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from cprsim.results.run import Result

OF_WHOLE_RUNS: dict[str, Callable[[Result], Figure]] = {"overhead": overhead_figure}
OF_ALL: dict[str, Callable[[Result], Figure]] = {  # of single replications too
    "timeline": timeline_figure
}


def run_figures(result: Result) -> dict[str, Draw]:
    """Each figure that suits the result."""
    figures = OF_ALL if result.replay is not None else OF_WHOLE_RUNS | OF_ALL
    return {name: partial(draw, result) for name, draw in figures.items()}
