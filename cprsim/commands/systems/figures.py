"""The figure of a comparison of systems: a bar for each."""

from __future__ import annotations

from matplotlib.figure import Figure

from cprsim.commands.run.figures import Bar, bars_figure
from cprsim.commands.systems.comparison import Comparison, in_percent


def systems_figure(comparison: Comparison) -> Figure:
    """A bar per system, the cheapest on top, with its paired difference to the best."""
    bars = []
    for one in comparison.ranked_systems:
        overhead, more = one.percent.partition(" ±")[0], one.more
        words = f", {'+' if more.mean >= 0 else ''}{in_percent(more)}" if more else ""
        bars.append(Bar(one.label, overhead + words, one.summary, more.half_width if more else 0.0))
    about = f"; {comparison.intervals}"
    errors = f"second number, error bar: difference to {comparison.best}, paired, 95 % interval"
    return bars_figure(comparison.result, comparison.name, "system", bars, about, errors)
