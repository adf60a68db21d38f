"""All systems of a comparison in one figure: a bar each, of its overhead by cause."""

from __future__ import annotations

from math import nan

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.errors import printable
from cprsim.plots.axes import (
    INK,
    OVERHEAD_LABEL,
    axis_top,
    look_of,
    percent_axis,
    stacked,
    style,
    title_figure,
)
from cprsim.results.words import count, hours
from cprsim.systems_compared.comparison import Comparison

ROW_IN, BAR = 0.3, 0.62


def systems_figure(comparison: Comparison) -> Figure:
    """A bar per system, the cheapest on top, with the 95 % interval of the total."""
    standings, result = comparison.standings, comparison.result
    finishing = [standing for standing in standings if standing.finishes]
    parts = [
        part
        for part in stacked(result.parts)
        if any(standing.part(part) > 0 for standing in finishing)
    ]
    edge = axis_top([max(standing.overhead.high, standing.overhead.mean) for standing in finishing])
    with style():
        figure = Figure(figsize=(8.0, 1.9 + ROW_IN * len(standings)), layout="constrained")
        axes = figure.add_subplot()
        for y, standing in enumerate(standings):
            left, half = 0.0, nan
            for part in parts if standing.finishes else ():
                axes.barh(y, standing.part(part), BAR, left, **look_of(part))
                left, half = left + standing.part(part), standing.overhead.half_width
            if half > 0 and left < edge:
                axes.errorbar(left, y, xerr=half, color=INK, capsize=3, lw=1.1)
            total = f" {standing.percent}{' →' * (left > edge)}"
            axes.text(1, y, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_xlim(0, edge)
        axes.set_ylim(len(standings) - 0.5, -0.5)
        axes.set_yticks(
            range(len(standings)), [printable(standing.label) for standing in standings]
        )
        axes.tick_params(axis="y", length=0)
        percent_axis(axes.xaxis)
        axes.xaxis.grid(True)
        axes.set_xlabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in parts]
        figure.legend(handles=handles, loc="outside lower left", ncols=5, fontsize=8)
        n = int(result.replications["replication"].nunique())
        caption = (
            f"{hours(result.useful_h)} of useful work on {result.n_nodes} nodes; "
            f"{comparison.intervals}; mean of {count(n, 'replication')}, in % of useful "
            "time; error bars: 95 %"
        )
        title_figure(figure, f"Overhead by system: {comparison.name}", caption)
    return figure
