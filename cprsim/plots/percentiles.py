"""How bad a run can get: overhead over the percentile of the replications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import OVERHEAD_LABEL, axis_top, percent_axis
from cprsim.plots.style import series_line, style
from cprsim.results.percentiles import Percentiles

if TYPE_CHECKING:
    from collections.abc import Mapping

READ_AT = 95  # the percentile by which the axis is laid out: the worst runs would flatten the rest


def percentiles_figure(overheads: Mapping[str, Percentiles], *, what: str) -> Figure:
    """A line per strategy with the band of its 95 % intervals; lines differ without colour too.

    Parameters
    ----------
    overheads : by strategy, overhead as a share of useful time
    what : what the replications are of, for the title
    """
    with style():
        figure = Figure(figsize=(7.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        for number, (name, one) in enumerate(overheads.items()):
            _line(axes, name, one, number)
        _dress(axes, axis_top([one.at(READ_AT).mean for one in overheads.values()]))
        axes.set_title(f"How bad a run can get: {what}", loc="left", fontweight="bold")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def _line(axes: Axes, name: str, one: Percentiles, number: int) -> None:
    colour, marker, dashes = series_line(number)
    axes.fill_between(
        one.percent, one.low, one.high, color=colour, alpha=0.18, linewidth=0, zorder=1.5
    )
    axes.plot(
        one.percent, one.value, color=colour, linestyle=dashes, marker=marker, markersize=4,
        markevery=(4 + 3 * number, 20), lw=1.4, label=name,
    )  # fmt: skip


def _dress(axes: Axes, top: float) -> None:
    axes.set_xlim(0, 100)
    axes.set_ylim(0, top)
    axes.set_xticks(np.arange(0, 101, 10))
    percent_axis(axes.yaxis)
    axes.yaxis.grid(True)
    axes.set_xlabel("percentile of the runs, % of runs that fare no worse")
    axes.set_ylabel(OVERHEAD_LABEL)
