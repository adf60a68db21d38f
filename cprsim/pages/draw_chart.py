"""Charts drawn: lines that differ by dash and marker, bars by hatch, the paper's values marked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle
from math import sqrt
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.job.records import Floats, Ints
from cprsim.pages.axes import (
    FAINT,
    INK,
    LOOKS,
    OTHER_LOOKS,
    SERIES,
    Line,
    Look,
    filled,
    fold,
    line_of_many,
    log_scale,
    panels,
    style,
    title_figure,
)
from cprsim.pages.chart import Band, Chart, Kind, Panel, Series

HATCHES = ("", "////", "xxx", "+++", "----", "||||", "\\\\\\\\")
LOOKS_OF_LINES = [
    filled("", line.colour, hatch) for line, hatch in zip(SERIES, HATCHES, strict=False)
]
HEIGHT_IN, BAR_HEIGHT_IN = 4.0, 0.5  # of a panel; of a bar along x with its name
MOST_TICKS = 8  # that are the values of x themselves on a logarithmic axis
LOG_HEADROOM = 0.15  # of a logarithmic axis: room for a legend above a line along the top
MOST_MARKERS = 40  # of a line: with more points it has none
LEAST_DOT, MOST_DOT = 2.0, 4.5  # points across: smaller where there are many
VECTOR_POINTS = 5_000  # points of an SVG, beyond which it holds them as an image
MANY_LINES, LEGEND_HEADROOM = 4, 0.25  # in a legend; of an axis: room for that legend
LARGE = 1e5  # values from here on are written out; matplotlib would put 1e6 above the axis
NAMES_WIDTH = 52  # characters along x
BAR_WIDTH = 0.62
PAPER_STYLE: Any = {"mfc": "white", "mec": INK, "mew": 1.1, "ls": "none", "zorder": 5}
LINES: tuple[Kind, ...] = ("line", "steps", "points")
DRAWING_ORDER: tuple[Kind, ...] = ("stack", "range", *LINES, "paper")  # in this order
PUBLISHED = "published"
SIGNS = {
    PUBLISHED: ("*", 12), "secondary": ("p", 9), "derived": ("X", 8), "recalled": ("o", 7),
    "chosen": ("*", 15), "lowest": ("o", 9), "Young": ("X", 7),
}  # fmt: skip
DASHES_OF_BANDS = ((6, 3), (1, 1), (6, 2, 1, 2))
RIGHT_OF_BAR = (
    0.2  # how far right of a bar's middle a paper's value stands, in widths of a category
)


def chart_figure(chart: Chart) -> Figure:
    """Draw a chart: its panels side by side under one title, at most three in a row."""
    bars = [series for panel in chart.panels for series in panel.series if series.kind == "range"]
    height_in = max(
        HEIGHT_IN, 2 + BAR_HEIGHT_IN * max((len(series.x) for series in bars), default=0)
    )
    with style():
        figure, places = panels(len(chart.panels), (4.4, height_in))
        for axes, panel in zip(places, chart.panels, strict=True):
            _panel(axes, panel)
        labels = {tuple(axes.get_legend_handles_labels()[1]) for axes in places}
        if len(places) > 1 and len(labels) == 1 and len(min(labels)) > MANY_LINES:
            handles = places[0].get_legend_handles_labels()
            figure.legend(*handles, loc="outside right center", fontsize=7.2)
        else:
            for axes, panel in zip(places, chart.panels, strict=True):
                _legend(axes, panel)
        title_figure(figure, chart.title, chart.subtitle)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    names = list(
        dict.fromkeys(x for series in panel.series for x in series.x if isinstance(x, str))
    )
    places: dict[str | float, int] = {name: place for place, name in enumerate(names)}
    bottom = np.zeros(len(names))
    labels = list(dict.fromkeys(series.label for series in panel.series if series.kind in LINES))
    fills, labelled = _fills(panel), set()
    axes.set_title(fill(panel.title, 48), loc="left", fontsize=9)
    for series in sorted(panel.series, key=lambda series: DRAWING_ORDER.index(series.kind)):
        x = np.array([places.get(x, x) for x in series.x], dtype=np.float64)
        if series.kind == "stack":
            _stack(axes, series, x.astype(int), bottom, fills[series.label])
        elif series.kind == "range":
            _bars(axes, series, panel)
            return
        elif series.kind == "paper":  # the sign says what the values are
            sign, size = next(
                (SIGNS[mark] for mark in SIGNS if mark in series.label), SIGNS[PUBLISHED]
            )
            x = x + RIGHT_OF_BAR if names else x
            axes.plot(x, series.y, label=series.label, marker=sign, ms=size, **PAPER_STYLE)
        else:
            look = line_of_many(labels.index(series.label), len(labels))
            _series(axes, series, x, look, "_" if series.label in labelled else series.label)
            labelled.add(series.label)
    for band, dashes in zip(panel.bands, cycle(DASHES_OF_BANDS), strict=False):
        _band(axes, band, dashes)
    _dress(axes, panel, names)


def _fills(panel: Panel) -> dict[str, Look]:
    """Looks of the parts of a stack: those of overhead as in all figures, others unlike them.

    A stack without parts of overhead has the colours of lines.
    """
    labels = [series.label for series in panel.series if series.kind == "stack"]
    looks = cycle(OTHER_LOOKS if any(label in LOOKS for label in labels) else LOOKS_OF_LINES)
    return {label: LOOKS.get(label) or next(looks) | {"label": label} for label in labels}


def _stack(axes: Axes, series: Series, x: Ints, bottom: Floats, look: Look) -> None:
    heights = np.where(np.isfinite(series.y), series.y, 0.0)  # what is left out is said
    axes.bar(x, heights, BAR_WIDTH, bottom[x], **look)
    bottom[x] += heights
    if series.low:
        ends = np.abs(np.array([series.low, series.high]) - bottom[x])
        axes.errorbar(x, bottom[x], ends, fmt="none", color=INK, capsize=4, lw=1.1)


def _series(axes: Axes, series: Series, x: Floats, look: Line, label: str) -> None:
    colour, marker, dashes = look
    many = series.kind == "steps" or (series.kind == "line" and len(x) > MOST_MARKERS)
    axes.plot(
        x, series.y, color=colour, ls="none" if series.kind == "points" else dashes, lw=1.4,
        marker=None if many else marker, label=label, rasterized=len(x) > VECTOR_POINTS,
        ms=float(np.clip(80 / sqrt(max(len(x), 1)), LEAST_DOT, MOST_DOT)),
        drawstyle="steps-post" if series.kind == "steps" else "default",
    )  # fmt: skip
    if series.low and many:
        axes.fill_between(x, series.low, series.high, color=colour, alpha=0.2, lw=0)
    elif series.low:
        ends = np.abs(np.array([series.low, series.high]) - np.array(series.y))
        axes.errorbar(x, series.y, ends, fmt="none", color=colour, capsize=2.5, lw=1.0)


def _bars(axes: Axes, series: Series, panel: Panel) -> None:
    """A bar along x for each name, the first on top; a dot at y, or a line if all are equal."""
    low, high = np.array(series.low), np.array(series.high)
    axes.use_sticky_edges = False  # bars end beside the border
    axes.barh(range(len(series.x)), high - low, BAR_WIDTH, low, color=SERIES[5].colour)
    axes.set_yticks(range(len(series.x)), [fold(str(name), 24) for name in series.x])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(series.x) - 0.5, -0.5)
    if len(set(series.y)) == 1:
        axes.axvline(series.y[0], color=INK, lw=1.2, label=series.label)
    else:
        axes.plot(series.y, range(len(series.x)), "o", color=INK, ms=3.5, label=series.label)
    axes.xaxis.grid(True)
    axes.set_xlabel(panel.y_label)


def _band(axes: Axes, band: Band, dashes: tuple[int, ...]) -> None:
    across = band.axis == "y"
    shared: dict[str, Any] = {"label": band.label, "zorder": 0}
    if band.high > band.low:
        look: dict[str, Any] = {"facecolor": "none", "edgecolor": FAINT, "hatch": "\\\\", "lw": 0.8}
        (axes.axhspan if across else axes.axvspan)(band.low, band.high, **look, **shared)
    else:
        line = axes.axhline if across else axes.axvline
        line(band.low, color=INK, lw=1.0, ls=(0, dashes), **shared)


def _dress(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    if panel.x_log:
        log_scale(axes, "x")
        values = sorted({x for series in panel.series for x in series.x if not isinstance(x, str)})
        if len(values) <= MOST_TICKS:  # ticks at the values; powers of ten would say less
            axes.set_xticks(values, [f"{x:,.10g}" for x in values])
    if panel.y_log:
        log_scale(axes, "y")
        low, high = axes.get_ylim()
        if panel.y_range is None:
            axes.set_ylim(low, high * (high / low) ** LOG_HEADROOM)
    elif panel.y_range is None and panel.y_from_zero and axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    if not panel.y_log and axes.get_ylim()[1] >= LARGE:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if names:
        width = int(NAMES_WIDTH / len(names))  # characters that stand beside each other
        folded = [fold(name, width) for name in names]
        axes.set_xticks(range(len(names)), folded, fontsize=9 if len(names) < 5 else 8)
        axes.set_xlim(-0.6, len(names) - 0.4)
    axes.yaxis.grid(True)


def _legend(axes: Axes, panel: Panel) -> None:
    """Stacked parts below lines and points; many lines get room above them."""
    handles, labels = axes.get_legend_handles_labels()
    stacked = any(series.kind == "stack" for series in panel.series)
    if len(labels) >= MANY_LINES and not (panel.y_log or stacked):
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + LEGEND_HEADROOM * (high - low))
    if len(labels) > 1:
        order = sorted(range(len(labels)), key=lambda i: isinstance(handles[i], Patch))
        axes.legend([handles[i] for i in order], [fold(labels[i], 34) for i in order], fontsize=7.2)
