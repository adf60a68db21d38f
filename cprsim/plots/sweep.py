"""Figures of a sweep, chosen by its shape.

- With prices, what a month costs along the same axes, too.
- One axis: overhead along it; over a save interval with its minimum, Young's, Daly's and CPR's
  choice.
- Two axes or more: curves along one for values of another; where both are numbers, also a map of
  what the other strategies cost beside the reference, with the line where they cost the same.
- One at a time: a tornado, how far each axis moves the overhead; with prices, a month's cost, too.

Axes beyond the second are held at their middle value, and the figure says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.save import Draw
from cprsim.plots.sweep_axes import OVERHEAD_HEIGHT, Height, money_height
from cprsim.plots.sweep_curves import curves_chart, family_chart
from cprsim.plots.sweep_map import compared, map_figure
from cprsim.plots.sweep_tornado import tornado_figure
from cprsim.sweeps.folder import AxisColumn, SweepResult


def sweep_figures(result: SweepResult) -> dict[str, Draw]:
    """The figures that suit the sweep, by name."""
    heights = {"money": money_height(result)} if result.cheapest is not None else {}
    if result.mode != "grid":
        heights = {"tornado": OVERHEAD_HEIGHT, **heights}
        return {name: partial(tornado_figure, result, one) for name, one in heights.items()}
    along, *others = _in_order(result.axes)
    heights = {"curves": OVERHEAD_HEIGHT, **heights}
    figures = {name: _along(result, along, others, one) for name, one in heights.items()}
    numeric = [axis for axis in (along, *others) if axis.numeric]
    if len(numeric) > 1 and compared(result):
        figures["map"] = partial(map_figure, result, *numeric[:2])
    return figures


def _along(
    result: SweepResult, along: AxisColumn, others: Sequence[AxisColumn], height: Height
) -> Draw:
    if not others:
        return lambda: chart_figure(curves_chart(result, along, height))
    return lambda: chart_figure(family_chart(result, along, others[0], height))


def _in_order(axes: Sequence[AxisColumn]) -> list[AxisColumn]:
    """A save interval first, since everything else is read against it; then numbers, then words."""
    return sorted(axes, key=lambda axis: (not axis.is_interval, not axis.numeric))
