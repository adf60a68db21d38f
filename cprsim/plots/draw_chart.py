"""Charts drawn: lines that differ by dash and marker, bars by hatch, the paper's values marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from math import sqrt
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.plots.axes import fold, log_scale, panels, title_figure
from cprsim.plots.chart import Band, Chart, Panel, Series
from cprsim.plots.style import (
    FAINT,
    INK,
    LOOKS,
    OTHER_LOOKS,
    SERIES,
    Line,
    Look,
    line_of_many,
    style,
)

HATCHES = ("", "////", "xxx", "+++", "----", "||||", "\\\\\\\\")
LOOKS_OF_LINES = [
    Look("", line.colour, hatch) for line, hatch in zip(SERIES, HATCHES, strict=False)
]
HEIGHT_IN, BAR_HEIGHT_IN = 4.0, 0.5  # of a panel; of a bar along x with its name
MOST_TICKS = 8  # that are the values of x themselves on a logarithmic axis
LOG_HEADROOM = 0.15  # of a logarithmic axis: room for a legend above a line along the top
MOST_MARKERS = 40  # of a line: with more points it has none
LEAST_DOT, MOST_DOT = 2.0, 4.5  # points across: smaller where there are many
MOST_VECTORS = 5_000  # points of an SVG, beyond which it holds them as an image
MANY_LINES, LEGEND_HEADROOM = 4, 0.25  # in a legend; of an axis: room for that legend
LARGE = 1e5  # values from here on are written out; matplotlib would put 1e6 above the axis
NAMES_WIDTH = 52  # characters along x
BAR_WIDTH = 0.62
PAPER: Any = {"mfc": "white", "mec": INK, "mew": 1.1, "ls": "none", "zorder": 5}
SIGNS = {
    "published": ("*", 12), "secondary": ("p", 9), "derived": ("X", 8), "recalled": ("o", 7),
    "chosen": ("*", 15), "lowest": ("o", 9), "Young": ("X", 7),
}  # fmt: skip
DASHES_OF_BANDS = ((6, 3), (1, 1), (6, 2, 1, 2))
BESIDE = 0.2  # how far right of a bar's middle a paper's value stands, in widths of a category


def chart_figure(chart: Chart) -> Figure:
    """Draw a chart: its panels side by side under one title, at most three in a row."""
    n_bars = max(
        len(x.x) if x.kind == "range" else 0 for panel in chart.panels for x in panel.series
    )
    with style():
        figure, places = panels(
            len(chart.panels), (4.4, max(HEIGHT_IN, 2 + BAR_HEIGHT_IN * n_bars))
        )
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
    names = _categories(panel)
    _stack(axes, [one for one in panel.series if one.kind == "stack"], names)
    drawn = [one for one in panel.series if one.kind in ("line", "points", "steps")]
    labels = list(dict.fromkeys(one.label for one in drawn))
    with_lines = {one.label for one in drawn if one.kind != "points"}
    for one in drawn:
        again = one.kind == "points" and one.label in with_lines
        look = line_of_many(labels.index(one.label), len(labels))
        _series(axes, one, look, names, "_" if again else one.label)
    for band, dashes in zip(panel.bands, cycle(DASHES_OF_BANDS), strict=False):
        _band(axes, band, dashes)
    for one in panel.series:
        if one.kind == "paper":
            _paper(axes, one, names)
    bars = [one for one in panel.series if one.kind == "range"]
    for one in bars:
        _bars(axes, one)
    if bars:
        axes.set_xlabel(panel.y_label)
        axes.set_title(fill(panel.title, 48), loc="left", fontsize=9)
    else:
        _dress(axes, panel, names)


def _bars(axes: Axes, one: Series) -> None:
    """A bar along x for each name, the first on top; a line where all have the same y."""
    low, high = np.array(one.low), np.array(one.high)
    axes.barh(range(len(one.x)), high - low, BAR_WIDTH, low, color=SERIES[5].colour)
    axes.set_yticks(range(len(one.x)), [fold(str(name), 24) for name in one.x])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(one.x) - 0.5, -0.5)
    axes.use_sticky_edges = False  # bars end beside the border
    for y in set(one.y):
        axes.axvline(y, color=INK, lw=1.2, label=one.label)
    axes.xaxis.grid(True)


def _categories(panel: Panel) -> list[str]:
    """Names along x, in the order in which they come; none where x are numbers."""
    found: dict[str, None] = {}
    for one in panel.series:
        found.update({name: None for name in one.x if isinstance(name, str)})
    return list(found)


def _places(one: Series, names: Sequence[str]) -> list[float]:
    return [names.index(x) if isinstance(x, str) else x for x in one.x]


def _stack(axes: Axes, parts: Sequence[Series], names: Sequence[str]) -> None:
    bottom = np.zeros(len(names))
    fills = _fills([part.label for part in parts])
    for part, look in zip(parts, fills, strict=True):
        places = np.array(_places(part, names), dtype=int)
        heights = np.where(np.isfinite(part.y), part.y, 0.0)  # what is left out is said
        axes.bar(places, heights, BAR_WIDTH, bottom[places], **look)
        bottom[places] += heights
    for part in (part for part in parts if part.low):
        places = np.array(_places(part, names), dtype=int)
        ends = np.abs(np.array([part.low, part.high]) - bottom[places])
        axes.errorbar(places, bottom[places], ends, fmt="none", color=INK, capsize=4, lw=1.1)


def _fills(labels: Sequence[str]) -> Iterator[dict[str, Any]]:
    """How the parts of a stack are filled: those of overhead as in all figures, others unlike them.

    A stack without parts of overhead has the colours of lines.
    """
    others = cycle(OTHER_LOOKS if any(label in LOOKS for label in labels) else LOOKS_OF_LINES)
    for label in labels:
        look = LOOKS.get(label) or replace(next(others), label=label)
        yield {**look.fill(), "label": look.label}


def _series(axes: Axes, one: Series, look: Line, names: Sequence[str], label: str) -> None:
    x = np.array(_places(one, names), dtype=float)
    colour, marker, dashes = look
    many = one.kind != "points" and len(x) > MOST_MARKERS
    size = float(np.clip(80 / sqrt(max(len(x), 1)), LEAST_DOT, MOST_DOT))
    shown = None if one.kind == "steps" or many else marker
    axes.plot(
        x, one.y, color=colour, ls="none" if one.kind == "points" else dashes,
        marker=shown, ms=size, lw=1.4, label=label, rasterized=len(x) > MOST_VECTORS,
        drawstyle="steps-post" if one.kind == "steps" else "default",
    )  # fmt: skip
    if not one.low:
        return
    if shown is None:
        axes.fill_between(x, one.low, one.high, color=colour, alpha=0.2, lw=0)
        return
    ends = np.abs(np.array([one.low, one.high]) - np.array(one.y))
    axes.errorbar(x, one.y, ends, fmt="none", color=colour, capsize=2.5, lw=1.0)


def _paper(axes: Axes, one: Series, names: Sequence[str]) -> None:
    """Values that are marked apart; the sign says what they are."""
    sign, size = next((SIGNS[mark] for mark in SIGNS if mark in one.label), SIGNS["published"])
    places = [place + BESIDE if names else place for place in _places(one, names)]
    axes.plot(places, one.y, label=one.label, marker=sign, ms=size, **PAPER)


def _band(axes: Axes, band: Band, dashes: tuple[int, ...]) -> None:
    along = axes.axhspan if band.axis == "y" else axes.axvspan
    line = axes.axhline if band.axis == "y" else axes.axvline
    if band.high > band.low:
        along(
            band.low, band.high, facecolor="none", edgecolor=FAINT, hatch="\\\\", lw=0.8,
            label=band.label, zorder=0,
        )  # fmt: skip
    else:
        line(band.low, color=INK, lw=1.0, ls=(0, dashes), label=band.label, zorder=0)


def _dress(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    axes.set_title(fill(panel.title, 48), loc="left", fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    if panel.x_log:
        log_scale(axes, "x")
        values = sorted({x for one in panel.series for x in one.x if not isinstance(x, str)})
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
    stacked = any(one.kind == "stack" for one in panel.series)
    if len(labels) >= MANY_LINES and not (panel.y_log or stacked):
        low, high = axes.get_ylim()
        axes.set_ylim(low, high + LEGEND_HEADROOM * (high - low))
    if len(labels) > 1:
        order = sorted(range(len(labels)), key=lambda i: isinstance(handles[i], Patch))
        axes.legend([handles[i] for i in order], [fold(labels[i], 34) for i in order], fontsize=7.2)
