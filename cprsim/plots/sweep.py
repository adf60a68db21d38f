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
from pathlib import Path

from matplotlib.figure import Figure

from cprsim.plots.save import save_figures
from cprsim.plots.sweep_axes import OVERHEAD_HEIGHT, Height, money_height
from cprsim.plots.sweep_curves import curves_figure, family_figure
from cprsim.plots.sweep_map import compared, map_figure
from cprsim.plots.sweep_tornado import tornado_figure
from cprsim.sweeps import AxisColumn, SweepResult


def draw_sweep(
    result: SweepResult, folder: Path, *, prefix: str = "", formats: Sequence[str] = ("png", "svg")
) -> list[Path]:
    """Draw the figures of a sweep into a folder that is there; the paths."""
    return save_figures(sweep_figures(result), folder, prefix=prefix, formats=formats)


def sweep_figures(result: SweepResult, *, narrow: bool = False) -> dict[str, Figure]:
    """The figures that suit the sweep, by name.

    Parameters
    ----------
    narrow : for a telephone: panels below each other, without titles
    """
    if result.mode != "grid":
        tornados = {"tornado": tornado_figure(result, narrow=narrow)}
        if result.cheapest is not None:
            tornados["money"] = tornado_figure(result, money_height(result), narrow=narrow)
        return tornados
    along, *others = _in_order(result.axes)
    figures = {"curves": _along(result, along, others, OVERHEAD_HEIGHT, narrow=narrow)}
    if result.cheapest is not None:
        height = money_height(result)
        figures["money"] = _along(result, along, others, height, narrow=narrow)
    numeric = [axis for axis in (along, *others) if axis.numeric]
    if len(numeric) > 1 and compared(result):
        figures["map"] = map_figure(result, numeric[0], numeric[1], narrow=narrow)
    return figures


def _along(
    result: SweepResult, along: AxisColumn, others: Sequence[AxisColumn], height: Height, *,
    narrow: bool,
) -> Figure:  # fmt: skip
    if not others:
        return curves_figure(result, along, height, narrow=narrow)
    return family_figure(result, along, others[0], height, narrow=narrow)


def _in_order(axes: Sequence[AxisColumn]) -> list[AxisColumn]:
    """A save interval first, since everything else is read against it; then numbers, then words."""
    return sorted(axes, key=lambda axis: (not axis.is_interval, not axis.numeric))
