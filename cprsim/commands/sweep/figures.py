"""Figures of a sweep, chosen by its shape.

- One axis: overhead along it; over a save interval with its minimum, Young's, Daly's and CPR's
  choice.
- Two axes or more: a panel per strategy, with a curve for each value of the second axis; and a heat
  map: of the cheapest strategy and its cost, or of any quantity of one strategy.
- One at a time: a bar per axis from the lowest to the highest overhead along it.

Each is drawn again for the cost of a month, where the sweep has prices. Axes beyond the second are
at their middle value, which the caption names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.commands.sweep.folder import COST_MONTH, AxisColumn, SweepResult
from cprsim.errors import ParameterError
from cprsim.files.units import HOURS_OF, unit_factor
from cprsim.job.records import Floats
from cprsim.pages.chart import Band, Chart, Panel, Series, chart_figure, floats, merged
from cprsim.pages.figures import (
    OVERHEAD_LABEL,
    Draw,
    line_of_many,
    log_scale,
    panels,
    plain_number,
    style,
    title_figure,
    words_of_key,
)
from cprsim.results.metrics import OVERHEAD, parts_among
from cprsim.results.words import hours

RULES = {"young_h": "Young", "daly_h": "Daly", "cpr_h": "CPR"}
MOST_PANELS, MOST_CURVES = 6, 12
LOG_ROOM = 1.6  # factor by which a logarithmic axis extends below and above the values
TOO_WIDE = 20.0  # the highest value over the lowest, from which an axis is logarithmic
MOST_VALUES = 12, 20  # columns and rows of a map, up to which cells have their values, axes theirs
VECTOR_CELLS = 2_000  # cells of a map, beyond which an SVG holds it as an image
PALE = ListedColormap(matplotlib.colormaps["YlGnBu"](np.linspace(0.05, 0.6, 256)))  # below text


class Height(NamedTuple):
    """Vertical axis of a figure: a quantity of the table, times `scale`."""

    quantity: str
    scale: float
    label: str
    title: str
    from_zero: bool = True


def sweep_figures(result: SweepResult) -> dict[str, Draw]:
    """The figures that suit the sweep, by name."""
    is_grid = result.mode == "grid"
    overhead = Height(OVERHEAD, 100.0, OVERHEAD_LABEL, "Overhead")
    heights = {"curves" if is_grid else "tornado": overhead}
    if result.cheapest is not None:
        label = f"{result.currency or 'cost'} for 730.5 h of useful work"
        heights["money"] = Height(COST_MONTH, 1.0, label, "Cost of a month", from_zero=False)
    # a save interval first; then numbers, then words
    axes = sorted(result.axes, key=lambda axis: (not axis.is_interval, not axis.numeric))
    figures: dict[str, Draw] = {}
    for name, height in heights.items():
        chart = curves(result, height, *axes[:2]) if is_grid else tornado(result, height)
        figures[name] = partial(chart_figure, chart)
    if is_grid and len(axes) > 1:
        figures["map"] = partial(heat_map, result, axes[:2], height)
    return figures


def curves(
    result: SweepResult, height: Height, along: AxisColumn, second: AxisColumn | None = None
) -> Chart:
    """Every strategy along one axis; with a second one a panel each, and a curve per value."""
    rows, caption = rows_on(result, [along, *([] if second is None else [second])], height.quantity)
    by_strategy = {name: rows[rows["strategy"] == name] for name in result.strategies}
    vary = [name for name, mine in by_strategy.items() if _varies(mine)]
    about = [caption]
    if second is None:
        depend = rows[rows["strategy"].isin(vary)]
        bands, outside = _rules(along, depend) if along.is_interval else ([], [])
        panels = [_panel("", along, rows, by_strategy, height, bands)]
        about += outside
    else:
        values = list(dict.fromkeys(rows[second.column]))
        places = np.linspace(0, len(values) - 1, min(MOST_CURVES, len(values))).round()
        chosen = [values[int(place)] for place in places]
        somewhere_best = set(result.best["strategy"])
        first = sorted(vary or by_strategy, key=lambda name: name not in somewhere_best)
        panelled = [name for name in by_strategy if name in first[:MOST_PANELS]]
        panels = []
        for name in panelled:
            mine = by_strategy[name]
            lines = {value_text(v, second): mine[mine[second.column] == v] for v in chosen}
            panels.append(_panel(name, along, rows, lines, height))
        left = [name for name in by_strategy if name not in panelled]
        which = f"{len(chosen)} of {len(values)} values" if chosen != values else "each value"
        about = [f"a curve for {which} of {axis_words(second)}", caption]
        about += [f"not shown: {', '.join(left)}"] if left else []
    title = f"{height.title} over {axis_words(along)}: {result.name}"
    return Chart(title, "; ".join(about), tuple(panels))


def tornado(result: SweepResult, height: Height) -> Chart:
    """A panel per strategy: a bar per axis from lowest to highest, the longest on top."""
    rows, caption = rows_on(result, (), height.quantity)
    panels = []
    for name in result.strategies[:4]:
        mine = rows[(rows["strategy"] == name) & rows["mean"].notna()]
        swings = []
        for axis in result.axes:
            means = mine[mine["varied"] == axis.key].set_index(axis.column)["mean"] * height.scale
            if len(means):
                ends = (value_text(means.idxmin(), axis), value_text(means.idxmax(), axis))
                at = " to ".join(ends) if means.nunique() > 1 else "no effect"
                swings.append((f"{axis_words(axis)}: {at}", means.min(), means.max()))
        swings.sort(key=lambda one: (one[1] - one[2], one[0]))
        names, low, high = zip(*swings, strict=True) if swings else ((), (), ())
        base = rows[(rows["strategy"] == name) & (rows["varied"] == "")]["mean"]
        y = (height.scale * float(base.iloc[0]),) * len(names)
        bars = Series("the scenario's own values", names, y, floats(low), floats(high), "range")
        panels.append(Panel(name, "", height.label, (bars,)))
    title = f"{height.title}, from lowest to highest along each input: {result.name}"
    return Chart(title, f"{caption}; line: the scenario's own values", tuple(panels))


def _panel(
    title: str,
    along: AxisColumn,
    rows: pd.DataFrame,
    lines: dict[str, pd.DataFrame],
    height: Height,
    bands: Sequence[Band] = (),
) -> Panel:
    """Lines with their intervals; points at which jobs do not finish leave a gap."""
    series = [_series(label, along, line, height) for label, line in lines.items()]
    series = series if title else list(merged(series))  # strategies that cost the same
    depend = [line for line in lines.values() if _varies(line)]
    if along.is_interval and depend:
        series.append(_lowest(depend, along, height))
        series += [_young(depend, along, height)] if title else []
    means, highs = (height.scale * rows[name].dropna().to_numpy() for name in ("mean", "high"))
    wide = is_wide(means)
    y_range = None
    if len(means) and means.min() >= 0:  # a long interval leaves the axis: the values count
        top = max(1e-9, 1.08 * means.max(), min(1.02 * highs.max(initial=0), 2 * means.max()))
        bottom = 0.0 if height.from_zero else 0.95 * means.min()
        y_range = (means.min() / LOG_ROOM, LOG_ROOM * means.max()) if wide else (bottom, top)
    return Panel(
        title, axis_label(along), height.label, tuple(series), tuple(bands),
        x_log=along.numeric and (along.logarithmic or is_wide(rows[along.column].to_numpy())),
        y_log=wide, y_from_zero=height.from_zero, y_range=y_range,
    )  # fmt: skip


def _series(label: str, along: AxisColumn, line: pd.DataFrame, height: Height) -> Series:
    x = floats(line[along.column]) if along.numeric else tuple(map(str, line[along.column]))
    mean, low, high = (floats(height.scale * line[name]) for name in ("mean", "low", "high"))
    return Series(label, x, mean, low, high, kind="line" if along.numeric else "points")


def _varies(line: pd.DataFrame) -> bool:
    """Whether an axis changes it: all points meet the same failures."""
    return bool(line["mean"].nunique() > 1)


def _lowest(lines: Iterable[pd.DataFrame], along: AxisColumn, height: Height) -> Series:
    """The minimum of each line."""
    best = [line.iloc[int(np.nanargmin(line["mean"].to_numpy()))] for line in lines]
    x = floats(row[along.column] for row in best)
    return Series("lowest", x, floats(height.scale * row["mean"] for row in best), kind="paper")


def _young(lines: Iterable[pd.DataFrame], along: AxisColumn, height: Height) -> Series:
    """Young's choice on each curve, between the points that were simulated."""
    points = []
    for line in lines:
        finished = line[line["mean"].notna()]
        x = finished[along.column].to_numpy(np.float64)
        chosen = _on(along, line["young_h"].iloc[0])
        if len(x) > 1 and x.min() <= chosen <= x.max():
            mean = height.scale * finished["mean"].to_numpy(np.float64)
            points.append((chosen, np.interp(np.log(chosen), np.log(x), mean)))
    return Series("Young", floats(x for x, _ in points), floats(y for _, y in points), kind="paper")


def _on(along: AxisColumn, value_h: float) -> float:
    return float(value_h) * float(unit_factor("h", along.unit))


def _rules(along: AxisColumn, rows: pd.DataFrame) -> tuple[list[Band], list[str]]:
    """Intervals that the formulas choose along the axis, and beyond it in words; each once."""
    inside, outside = [], []
    low, high = rows[along.column].min(), rows[along.column].max()
    for rule, name in RULES.items():
        for x in sorted({round(_on(along, h), 9) for h in rows[rule].dropna()}):
            label = f"{name}: {x:.3g} {along.unit}"
            if low <= x <= high:
                inside.append(Band(label, x, x, "x"))
            else:
                outside.append(f"{label}, outside")
    return inside, outside


# ------------------------------------------------------------------------------ the map


def heat_map(
    result: SweepResult, on: list[AxisColumn], cost: Height, strategy: str = "", metric: str = ""
) -> Figure:
    """The least cost at each point, coloured by whose it is; or a metric of one strategy.

    Raises ParameterError for a metric of none of several strategies.
    """
    one = strategy or (result.strategies[0] if len(result.strategies) == 1 else "")
    if metric and not one:
        raise ParameterError(f"metric: say of which strategy: {', '.join(result.strategies)}")
    shown = _height_of(metric, result) if metric else cost
    rows, caption = rows_on(result, on, shown.quantity)
    at = rows.set_index([axis.column for axis in reversed(on)])
    best = at[rows.index.isin(result.best.index)]  # at other points no strategy finishes every job
    leads = [name for name in result.strategies if name in set(best["strategy"])]
    everywhere = not one and len(leads) == 1  # then its values say more than one colour
    one = leads[0] if everywhere else one
    chosen = at[at["strategy"] == one] if one else best.reindex(at.index.unique())
    grid = shown.scale * chosen["mean"].unstack()
    cells: Any = {"edgecolors": "white", "lw": 0.6, "rasterized": grid.size > VECTOR_CELLS}
    with style():
        figure, (axes,) = panels(1, beside_in=1.6)
        if not one:
            numbers = chosen["strategy"].map(leads.index, na_action="ignore")
            places = numbers.unstack().to_numpy(np.float64)
            colours = [line_of_many(n, len(leads))["color"] for n in range(len(leads))]
            axes.pcolormesh(places, cmap=ListedColormap(colours or ["w"]), alpha=0.5, **cells)
            handles = [
                Patch(facecolor=colour, alpha=0.5, label=f"{name} is the cheapest")
                for name, colour in zip(leads, colours, strict=True)
            ]
            figure.legend(handles=handles, loc="outside lower left", ncols=3)
            title, about = "Cheapest strategy at each point", f"; in each cell: its {shown.label}"
        else:
            norm = LogNorm() if is_wide(chosen["mean"].dropna().to_numpy()) else None
            drawn = axes.pcolormesh(grid.to_numpy(np.float64), cmap=PALE, norm=norm, **cells)
            scale = figure.colorbar(drawn, label=shown.label).ax
            if norm is not None:
                log_scale(scale, "y")
            title, about = f"{shown.title} of {one}", "; blank: not all jobs finish"
            title += ", the cheapest at each point" * everywhere
        _label_cells(axes, grid, on)
        title_figure(figure, f"{title}: {result.name}", caption + about * bool(one or axes.texts))
    return figure


def _label_cells(axes: Axes, grid: pd.DataFrame, on: list[AxisColumn]) -> None:
    """Ticks at the values of the axes, and the values of the cells where there is room."""
    for axis, values, drawn, most in zip(
        on, (grid.columns, grid.index), (axes.xaxis, axes.yaxis), MOST_VALUES, strict=True
    ):
        some = slice(None, None, -(-len(values) // most))
        labels = [value_text(value, axis) for value in values[some]]
        drawn.set_ticks(np.arange(len(values))[some] + 0.5, labels)
        drawn.set_label_text(axis_words(axis))
    if all(n <= most for n, most in zip(reversed(grid.shape), MOST_VALUES, strict=True)):
        for (y, x), value in np.ndenumerate(grid.to_numpy(float)):
            if not np.isnan(value):
                axes.text(x + 0.5, y + 0.5, plain_number(value), ha="center", va="center", size=8)


def _height_of(column: str, result: SweepResult) -> Height:
    """The quantity of a column of the frame of points."""
    quantity, words = result.columns[column], column.replace("_", " ")
    if quantity == OVERHEAD or parts_among([quantity]):
        words = words.removesuffix(" fraction")
        return Height(quantity, 100.0, f"{words}, % of useful time", words)
    return Height(quantity, 1.0, words, words)


# ------------------------------------------------------------------------------ axes


def rows_on(
    result: SweepResult, axes_shown: Sequence[AxisColumn], quantity: str = OVERHEAD
) -> tuple[pd.DataFrame, str]:
    """Rows of a quantity with the other axes at their middle value, and the figure's caption."""
    rows, words = result.of(quantity), [f"means of {result.replications} at each point"]
    for axis in result.axes:
        if axis not in axes_shown and result.mode == "grid":
            values = list(dict.fromkeys(rows[axis.column]))
            middle = values[len(values) // 2]
            rows = rows[rows[axis.column] == middle]
            words.append(f"{axis_words(axis)} = {value_text(middle, axis)}")
    return rows, "; ".join(words)


def value_text(value: Any, axis: AxisColumn) -> str:
    """A value on an axis with the unit that suits it: ``94 s``, ``38.7 h``, ``gamma``."""
    if not axis.numeric:
        return str(value)
    if value and axis.unit in HOURS_OF and not 1 <= abs(value) < 1000:
        return hours(value * float(HOURS_OF[axis.unit]))
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return f"{text} {axis.unit}".rstrip()


def is_wide(values: Floats) -> bool:
    """Whether values suit a logarithmic axis."""
    return bool(len(values) and values.min() > 0 and values.max() / values.min() > TOO_WIDE)


def axis_words(axis: AxisColumn) -> str:
    """``cost of a save`` for ``costs.save``."""
    return words_of_key(axis.key)


def axis_label(axis: AxisColumn) -> str:
    """The axis in words, with its unit in brackets."""
    return f"{axis_words(axis)} [{axis.unit}]" if axis.unit else axis_words(axis)
