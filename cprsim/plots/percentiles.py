"""How bad a run can get: overhead over the percentile of the replications."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cprsim.plots.axes import OVERHEAD_LABEL, axis_top
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.results.metrics import Percentiles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

READ_AT = 95  # the percentile by which the scale is chosen


def percentiles_figure(overheads: Mapping[str, Percentiles], *, what: str) -> Figure:
    """A line per strategy with the band of its 95 % intervals, by overhead as a share."""
    lines = tuple(
        Series(
            name, floats(one.percent), floats(100 * one.value), floats(100 * one.low),
            floats(100 * one.high),
        )
        for name, one in overheads.items()
    )  # fmt: skip
    at = [one.at(READ_AT).mean for one in overheads.values()]
    x_label = "percentile of the runs, % of runs that fare no worse"
    panel = Panel("", x_label, OVERHEAD_LABEL, lines, y_log=axis_top(at) < max(at))
    return chart_figure(Chart(f"How bad a run can get: {what}", "bands: 95 % intervals", (panel,)))
