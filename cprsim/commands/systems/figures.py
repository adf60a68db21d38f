"""The figure of a comparison of systems: a bar for each."""

from __future__ import annotations

from matplotlib.figure import Figure

from cprsim.commands.run.figures import Bar, bars_figure
from cprsim.commands.systems.comparison import Comparison


def systems_figure(comparison: Comparison) -> Figure:
    """A bar per system, the cheapest on top."""
    bars = [Bar(one.label, one.percent, one.summary) for one in comparison.ranked_systems]
    about = f"; {comparison.intervals}"
    return bars_figure(comparison.result, comparison.name, "system", bars, about)
