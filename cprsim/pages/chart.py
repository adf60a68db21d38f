"""A figure as data (panels of series, with a paper's values marked among them), and drawn.

Lines differ by dash and marker, bars by hatch; values of a paper are marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import sqrt
from textwrap import fill
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import ScaledTranslation

from cprsim.files import Number
from cprsim.job.records import Floats, Ints
from cprsim.pages.figures import (
    FAINT,
    INK,
    LOOKS,
    MOST_TICKS,
    OTHER_LOOKS,
    SERIES,
    Look,
    filled,
    fold,
    line_of_many,
    log_scale,
    panels,
    plain_number,
    style,
    title_figure,
)

Kind = Literal["line", "points", "steps", "stack", "paper", "range"]


@dataclass(frozen=True, slots=True)
class Series:
    """Values over x, with their 95 % intervals where there is noise; one style per label.

    x are numbers, or names of categories (then all series of the panel share them). Stacked parts
    (`stack`) are listed from the bottom to the top; only the last of them has an interval, that of
    the total. `paper` values have a separate mark: values of a paper, whose label gives their
    source, or the lowest or chosen value. A `range` over names is a bar from low to high, along x;
    y is the value to compare it with.
    """

    label: str
    x: tuple[float | str, ...]
    y: tuple[Number, ...]
    low: tuple[Number, ...] = ()
    high: tuple[Number, ...] = ()
    kind: Kind = "line"


@dataclass(frozen=True, slots=True)
class Band:
    """A value or a range of a paper that holds all along the other axis."""

    label: str  # with its mark: published, secondary, derived, recalled
    low: Number
    high: Number
    axis: Literal["x", "y"] = "y"


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes; labels of axes carry the unit."""

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    bands: tuple[Band, ...] = ()
    x_log: bool = False
    y_log: bool = False
    y_from_zero: bool = True
    x_range: tuple[float, float] | None = None  # as far as the axes go; None: as far as the data
    y_range: tuple[float, float] | None = None
    y_names: tuple[str, ...] = ()  # of the whole numbers on y, from 0 at the top


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure: its title, its caption, and its panels side by side."""

    title: str
    subtitle: str
    panels: tuple[Panel, ...]


def merged(series: Iterable[Series]) -> tuple[Series, ...]:
    """The series, with those of equal values as one by all their labels."""
    groups: dict[str, list[Series]] = {}
    for curve in series:
        groups.setdefault(repr((curve.x, curve.y)), []).append(curve)
    return tuple(
        replace(equal[0], label=", ".join(curve.label for curve in equal))
        for equal in groups.values()
    )


def floats(values: Iterable[float]) -> tuple[float, ...]:
    """Numbers of any kind, also NumPy's, as plain floats."""
    return tuple(float(value) for value in values)


# --------------------------------------------------------------------------- drawn

HATCHES = ("", "////", "xxx", "+++", "----", "||||", "\\\\\\\\")
LOOKS_OF_LINES = [
    filled("", line["color"], hatch) for line, hatch in zip(SERIES, HATCHES, strict=False)
]
HEIGHT_IN, BAR_HEIGHT_IN = 4.0, 0.34  # of a panel; of a bar along x with its name
LEAST_GAP = 0.09  # of a logarithmic axis, between values of x that are its ticks
MOST_NAMES = 24  # along y; of more, some are left out
MOST_MARKERS = 40  # of a line: with more points it has none
LEAST_DOT, MOST_DOT = 2.0, 4.5  # points across: smaller where there are many
VECTOR_POINTS = 5_000  # points of an SVG, beyond which it holds them as an image
LARGE = 1e4  # values from here on are written out; matplotlib would put 1e6 above the axis
LEGEND_POINTS, LEGEND_ROW_IN, LABEL_WIDTH = 7.2, 0.16, 44  # of a legend; characters of a line
DODGE = 0.12  # between points of one name, in widths of a category
NAMES_WIDTH = 52  # characters along x
BAR_WIDTH = 0.62
PAPER_STYLE: Any = {"mfc": "white", "mec": INK, "mew": 1.1, "ls": "none", "zorder": 5}
LINES: tuple[Kind, ...] = ("line", "steps", "points")
DRAWING_ORDER: tuple[Kind, ...] = ("stack", "range", *LINES, "paper")  # in this order
PUBLISHED = "published"
SIGNS = {
    PUBLISHED: ("*", 12), "secondary": ("p", 9), "derived": ("X", 8), "recalled": ("o", 7),
    "chosen": ("o", 13), "lowest": ("o", 10), "Young": ("X", 7),
}  # fmt: skip
RINGS = ("chosen", "lowest")  # around a point of a line, which stays visible
DASHES_OF_BANDS = ((6, 3), (1, 1), (6, 2, 1, 2))
RIGHT_OF_BAR = 0.2  # from a bar's middle to a paper's value, in widths of a category


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
        _legends(figure, places)
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
    has_points = any(series.kind == "points" for series in panel.series)
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
            look = PAPER_STYLE | ({"mfc": "none"} if series.label.startswith(RINGS) else {})
            axes.plot(x, series.y, label=series.label, marker=sign, ms=size, **look)
        else:
            number = labels.index(series.label)
            x = x + DODGE * (number - (len(labels) - 1) / 2) if names else x
            name = "_" if series.label in labelled else series.label
            _series(axes, series, x, line_of_many(number, len(labels)), name, has_points=has_points)
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


def _series(
    axes: Axes, series: Series, x: Floats, look: Look, label: str, *, has_points: bool
) -> None:
    """A line beside points is a model, whose ends are no data: it has no markers."""
    colour, is_bare = look["color"], has_points or len(x) > MOST_MARKERS
    many = series.kind == "steps" or (series.kind == "line" and is_bare)
    axes.plot(
        x, series.y, color=colour, ls="none" if series.kind == "points" else look["ls"], lw=1.4,
        marker=None if many else look["marker"], label=label, rasterized=len(x) > VECTOR_POINTS,
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
    axes.barh(range(len(series.x)), high - low, BAR_WIDTH, low, color=SERIES[5]["color"])
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
    values = sorted({x for series in panel.series for x in series.x if not isinstance(x, str)})
    if panel.x_log:
        log_scale(axes, "x")
        values = [x for x in values if x > 0]
        gaps = np.diff(np.log(values)) / np.diff(np.log(axes.get_xlim()))
        if 1 < len(values) <= MOST_TICKS and gaps.min() > LEAST_GAP:
            axes.set_xticks(values, [plain_number(x) for x in values])
    elif all(float(x).is_integer() for x in values):  # there is no half of a spare
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
    if panel.y_log:
        log_scale(axes, "y")
    elif panel.y_range is None and panel.y_from_zero and axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    if not panel.y_log and axes.get_ylim()[1] >= LARGE:
        axes.yaxis.set_major_formatter("{x:,.0f}")
    if panel.y_names:
        named = slice(None, None, -(-len(panel.y_names) // MOST_NAMES))
        # of a long name, such as a UUID, what tells it apart: both ends
        shown = [re.sub(r"^(.{9}).{3,}(.{9})$", r"\1…\2", name) for name in panel.y_names[named]]
        axes.set_yticks(range(len(panel.y_names))[named], shown, fontsize=8)
        axes.set_ylim(len(panel.y_names) - 0.5, -0.5)
    if names:
        width = int(NAMES_WIDTH / len(names))  # characters that stand beside each other
        folded = [fold(name, width) for name in names]
        axes.set_xticks(range(len(names)), folded, fontsize=9 if len(names) < 5 else 8)
        axes.set_xlim(-0.6, len(names) - 0.4)
    axes.yaxis.grid(True)


def _legends(figure: Figure, places: Sequence[Axes]) -> None:
    """Below the axes, where no mark can be taken for data: one for all if they share its labels."""
    named = [axes.get_legend_handles_labels() for axes in places]
    shared = len({tuple(labels) for _, labels in named}) == 1
    width_in, height_in = figure.get_size_inches()
    n_columns = max(round(width_in / 4.4), 1)
    room_in, rows = width_in if shared else width_in / n_columns - 0.6, [0]
    for axes, (handles, labels) in zip(places[:1] if shared else places, named, strict=False):
        if len(labels) < 2:
            continue
        parts_last = sorted(range(len(labels)), key=lambda i: isinstance(handles[i], Patch))
        drawn = [handles[i] for i in parts_last]
        folded = [fold(labels[i], LABEL_WIDTH) for i in parts_last]
        column_in = 0.5 + 0.058 * max(len(line) for text in folded for line in text.split("\n"))
        columns = int(np.clip(room_in / column_in, 1, len(labels)))
        rows.append(-(-sum(1 + text.count("\n") for text in folded) // columns))
        look: Any = {"fontsize": LEGEND_POINTS, "ncols": columns}
        if shared:
            figure.legend(drawn, folded, loc="outside lower left", **look)
        else:
            names = max(label.get_text().count("\n") for label in axes.get_xticklabels())
            below_in = 0.25 + 0.13 * names + 0.2 * bool(axes.get_xlabel())
            shift = ScaledTranslation(0, -below_in, figure.dpi_scale_trans)
            place = {"bbox_to_anchor": (0, 0), "bbox_transform": axes.transAxes + shift}
            axes.legend(drawn, folded, loc="upper left", borderaxespad=0, **look, **place)
    n_rows = 1 if shared else -(-len(places) // n_columns)
    figure.set_size_inches(width_in, height_in + n_rows * LEGEND_ROW_IN * max(rows))
