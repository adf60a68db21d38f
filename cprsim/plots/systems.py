"""All systems of a comparison in one figure: overhead by its parts, and what else each takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import isnan

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.errors import printable
from cprsim.plots.axes import OVERHEAD_LABEL, axis_top, percent_axis, title_figure
from cprsim.plots.style import INK, look_of, stacked, style
from cprsim.results.words import count, hours, percent_number, significant
from cprsim.systems_compared.comparison import BEST, ELIGIBLE, TIED, Comparison, Standing
from cprsim.systems_compared.words import (
    columns_of_fates,
    interval_of,
    intervals_in_words,
    lost_at_most,
    name_of,
    overhead,
    ratio,
)

ROW_IN, BAR = 0.36, 0.62
TOP_IN = 1.3  # title and headings
AXIS_IN, LEGEND_ROW_IN, LEGEND_COLUMNS = 0.55, 0.2, 5
NAMES_IN, BARS_IN, CELL_IN = 1.45, 3.6, 0.66
INTERVAL_IN = 0.3  # more for the second column, whose cells may be intervals of two tiers
MARKS = {BEST: "★ ", TIED: "≈ "}  # before the name

Column = tuple[str, Callable[[Standing], str]]


def systems_figure(comparison: Comparison) -> Figure:
    """A row per system, the cheapest on top: stacked overhead with its interval, and cells."""
    found = comparison.standings
    columns = _columns(found)
    parts = [
        part
        for part in stacked(comparison.result.parts)
        if any(one.finishes and one.part(part) > 0 for one in found)
    ]
    below_in = AXIS_IN + LEGEND_ROW_IN * (-(-len(parts) // LEGEND_COLUMNS) + 0.5)
    height = TOP_IN + ROW_IN * len(found) + below_in
    width = NAMES_IN + BARS_IN + CELL_IN * len(columns) + INTERVAL_IN + 0.15
    with style():
        figure = Figure(figsize=(width, height))
        sides = (BARS_IN / width, ROW_IN * len(found) / height)
        axes = figure.add_axes((NAMES_IN / width, below_in / height, *sides))
        _bars(axes, found, parts)
        _cells(axes, found, columns)
        handles = [look_of(part).patch() for part in parts]
        figure.legend(handles=handles, loc="lower left", ncols=LEGEND_COLUMNS, fontsize=8)
        result = comparison.result
        n = int(result.replications["replication"].nunique())
        caption = (
            f"{hours(result.useful_h)} of useful work on {result.n_nodes} nodes; "
            f"{intervals_in_words(comparison)}; mean of {count(n, 'replication')}, bars: 95 %. "
            "★ best, ≈ not distinguishable from it; after a failure: most progress lost"
        )
        title_figure(figure, f"Overhead and side costs by system: {comparison.name}", caption)
    return figure


def _bars(axes: Axes, found: Sequence[Standing], parts: Sequence[str]) -> None:
    edge = axis_top([max(one.overhead.high, one.overhead.mean) for one in found if one.finishes])
    for y, one in enumerate(found):
        if not one.finishes:
            continue
        left = 0.0
        for part in parts:
            width = one.part(part)
            axes.barh(y, width, BAR, left, **look_of(part).fill())
            left += width
        half = one.overhead.half_width
        if not isnan(half) and half > 0 and left < edge:
            axes.errorbar(left, y, xerr=half, color=INK, capsize=3, lw=1.1)
        if left > edge:
            axes.annotate("→", (edge, y), ha="right", va="center", fontweight="bold")
    axes.set_xlim(0, edge)
    axes.set_ylim(len(found) - 0.5, -0.5)
    marks = [MARKS.get(one.verdict, "") if one.accuracy in ELIGIBLE else "" for one in found]
    names = [printable(mark + name_of(one)) for mark, one in zip(marks, found, strict=True)]
    axes.set_yticks(range(len(found)), names)
    axes.tick_params(axis="y", length=0)
    percent_axis(axes.xaxis)
    axes.xaxis.grid(True)
    axes.set_xlabel(OVERHEAD_LABEL)


def _columns(found: Sequence[Standing]) -> list[Column]:
    """Heading and cell of all that stands beside the bars."""
    columns: list[Column] = [
        ("%", lambda one: overhead(one).split(" ±")[0].replace(" done", "\ndone")),
        ("saves\nevery", lambda one: interval_of(one).replace(", ", ",\n")),
        ("ETTR", partial(ratio, "ettr")),
        ("ETTR\npaid", partial(ratio, "ettr_paid")),
        ("memory\n+%", lambda one: percent_number(one.policy.tax.memory)),
        ("extra\nnodes", lambda one: significant(one.policy.tax.nodes)),
        ("accu-\nracy", lambda one: "kept" if one.accuracy == "kept" else "lost"),
    ]
    for names in columns_of_fates(found):
        kinds = ",\n".join(name.replace(" ", "\n") for name in names)
        columns.append((f"after\n{kinds}", partial(lost_at_most, names[0])))
    return columns


def _cells(axes: Axes, found: Sequence[Standing], columns: Sequence[Column]) -> None:
    across = axes.get_yaxis_transform()  # x as a share of the axes, y a row
    for place, (heading, cell) in enumerate(columns):
        x = 1.0 + (CELL_IN * (place + 0.95) + INTERVAL_IN * (place > 0)) / BARS_IN
        axes.text(x, -0.6, heading, transform=across, ha="right", va="bottom", fontsize=7.5)
        for y, one in enumerate(found):
            axes.text(x, y, cell(one), transform=across, ha="right", va="center", fontsize=8)
