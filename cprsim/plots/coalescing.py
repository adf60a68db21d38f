"""Figure of what a coalescing window does to a log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.estimate import Estimate
from cprsim.fitting.windows import ByWindow
from cprsim.plots.style import INK, series_line, style

SHORTEST_MIN = 0.1  # where a window of zero is drawn


def coalescing_figure(windows: Sequence[ByWindow]) -> Figure:
    """Number of failures, and Weibull shapes with 95 % intervals, over the window."""
    within_min = np.maximum([one.within_h * 60 for one in windows], SHORTEST_MIN)
    with style():
        figure = Figure(figsize=(9, 3.6), layout="constrained")
        counts, shapes = figure.subplots(1, 2)
        counts.step(
            within_min, [one.n_failures for one in windows], where="post", color=INK, marker="o",
            markersize=3,
        )  # fmt: skip
        counts.set_ylim(bottom=0)
        counts.set_ylabel("failures that are left")
        _shape_line(shapes, within_min, [one.uptime_shape for one in windows], "up-times", 0)
        _shape_line(shapes, within_min, [one.gap_shape for one in windows], "gaps", 1)
        shapes.axhline(1.0, color=INK, linewidth=0.6)
        shapes.set_ylabel("Weibull shape (1: exponential)")
        shapes.legend(fontsize=7)
        for axes in (counts, shapes):
            axes.set_xscale("log")
            axes.set_xlabel(f"coalescing window in minutes (0 is drawn at {SHORTEST_MIN:g})")
    return figure


def _shape_line(
    axes: Axes, within_min: np.ndarray, shapes: list[Estimate | None], label: str, number: int
) -> None:
    known = [(x, one) for x, one in zip(within_min, shapes, strict=True) if one is not None]
    if not known:
        return
    at = np.array([one.mean for _, one in known])
    apart = np.array([[one.mean - one.low, one.high - one.mean] for _, one in known]).T
    line = series_line(number)
    axes.errorbar(
        [x for x, _ in known], at, yerr=apart, color=line.colour, linestyle=line.dashes,
        marker=line.marker, markersize=3, linewidth=1.0, elinewidth=0.7, label=label,
    )  # fmt: skip
