"""Charts drawn: lines that differ by dash and marker, bars by hatch, the paper's values marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import cycle
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

from cprsim.plots.axes import fold, title_figure
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
PANEL_WIDTH_IN, HEIGHT_IN = 4.4, 4.0
MOST_BESIDE = 3  # panels in a row; four stand two by two
FEW_DECADES = 30  # highest over lowest: below it the ticks between powers of ten have numbers
MOST_TICKS = 8  # that are the values of x themselves on a logarithmic axis
LOG_HEADROOM = 0.15  # of a logarithmic axis: room for a legend above a line along the top
MOST_MARKERS = 40  # of a line: with more points it has none
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
    n = len(chart.panels)
    n_columns = 2 if n == 4 else min(n, MOST_BESIDE)
    n_rows = -(-n // n_columns)
    width_in = max(6.4, PANEL_WIDTH_IN * n_columns)
    with style():
        figure = Figure(figsize=(width_in, HEIGHT_IN * n_rows), layout="constrained")
        places = list(figure.subplots(n_rows, n_columns, squeeze=False).flat)
        for axes, panel in zip(places, chart.panels, strict=False):
            _panel(axes, panel)
        for empty in places[n:]:
            empty.remove()
        labels = {tuple(axes.get_legend_handles_labels()[1]) for axes in places[:n]}
        if n > 1 and len(labels) == 1 and len(min(labels)) > MANY_LINES:
            handles = places[0].get_legend_handles_labels()
            figure.legend(*handles, loc="outside right center", fontsize=7.2)
        else:
            for axes, panel in zip(places, chart.panels, strict=False):
                _legend(axes, panel)
        title_figure(figure, chart.title, chart.subtitle)
    return figure


def _panel(axes: Axes, panel: Panel) -> None:
    names = _categories(panel)
    _stack(axes, [one for one in panel.series if one.kind == "stack"], names)
    drawn = [one for one in panel.series if one.kind not in ("stack", "paper")]
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
    _dress(axes, panel, names)


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
    shown = None if one.kind == "steps" or many else marker
    axes.plot(
        x, one.y, color=colour, ls="none" if one.kind == "points" else dashes,
        marker=shown, ms=4.5, lw=1.4, label=label,
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


def _heights(panel: Panel) -> Iterator[float]:
    """Everything that has to be seen along y."""
    for one in panel.series:
        yield from (*one.y, *one.low)
    yield from (band.low for band in panel.bands if band.axis == "y")


def _ticks_at_values(axes: Axes, panel: Panel) -> None:
    """Few values of x are the ticks themselves; powers of ten would say less."""
    values = sorted({x for one in panel.series for x in one.x if not isinstance(x, str)})
    if len(values) <= MOST_TICKS:
        axes.set_xticks(values, [f"{x:,.10g}" for x in values])
        axes.set_xticks([], minor=True)
    else:
        axes.xaxis.set_major_formatter("{x:g}")


def _dress(axes: Axes, panel: Panel, names: Sequence[str]) -> None:
    axes.set_title(fill(panel.title, 48), loc="left", fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.x_log:
        axes.set_xscale("log")
        _ticks_at_values(axes, panel)
    if panel.y_log:
        axes.set_yscale("log")
        if panel.y_range is None:
            low, high = axes.get_ylim()
            axes.set_ylim(low, high * (high / low) ** LOG_HEADROOM)
        axes.yaxis.set_major_formatter("{x:g}")
        if axes.get_ylim()[1] < FEW_DECADES * axes.get_ylim()[0]:
            axes.yaxis.set_minor_formatter("{x:g}")
        else:
            axes.yaxis.set_minor_formatter(NullFormatter())
    elif panel.y_from_zero and not any(value < 0 for value in _heights(panel)):
        axes.set_ylim(bottom=0)
    if not panel.y_log and axes.get_ylim()[1] >= LARGE:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
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
