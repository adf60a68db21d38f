"""Overhead along an axis of a sweep: a line per strategy, or a family of lines for each."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import title_axes, title_figure
from cprsim.plots.style import CAPTION, FAINT, INK, Line, line_of_many, series_line, style
from cprsim.plots.sweep_axes import (
    OVERHEAD_HEIGHT,
    Height,
    axis_words,
    dress_x,
    dress_y,
    evenly,
    hours_on,
    panels,
    places,
    rows_on,
    subtitle,
    value_text,
)
from cprsim.sweeps.folder import AxisColumn, SweepResult

RULES = {"young_h": ("Young", (0, (1, 1))), "daly_h": ("Daly", (0, (4, 2))),
         "cpr_h": ("CPR", (0, (6, 2, 1, 2)))}  # fmt: skip
MOST_PANELS = 6
MOST_CURVES = 12
FEW = 14  # points of a line, up to which each has a marker with its interval
MINIMUM: Any = {"marker": "o", "ms": 11, "mfc": "none", "mec": INK, "mew": 1.3, "ls": "none"}
CHOICE: Any = {"marker": "X", "ms": 7, "mfc": "white", "mec": INK, "ls": "none", "zorder": 5}


def curves_figure(
    result: SweepResult, along: AxisColumn, height: Height = OVERHEAD_HEIGHT
) -> Figure:
    """Overhead of every strategy along one axis, with 95 % intervals.

    Over a save interval: the minimum of each strategy that saves, and what Young's, Daly's and
    CPR's formulas choose.
    """
    rows, held = rows_on(result, [along], height.quantity)
    names = list(dict.fromkeys(rows[along.column]))
    with style():
        figure, (axes,) = panels(1, (7.6, 4.6))
        for number, (label, line) in enumerate(_lines(result.strategies, rows).items()):
            look = series_line(number)
            _draw_line(axes, along, names, line, height.scale, look, label)
            if along.is_interval and line["mean"].nunique() > 1:
                _mark_minimum(axes, along, names, line, height.scale)
        if along.is_interval:
            axes.plot([], [], **MINIMUM, label="lowest")
            _rules(axes, along, rows)
        _dress(axes, along, names, rows, height, height.label)
        title_axes(axes, f"{height.title}: {result.name}", subtitle(result, held))
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def family_figure(
    result: SweepResult, along: AxisColumn, second: AxisColumn, height: Height = OVERHEAD_HEIGHT
) -> Figure:
    """A panel per strategy: its overhead along one axis, a curve for each value of a second one.

    Over a save interval a ring marks the minimum of each curve, a cross Young's choice.
    """
    rows, held = rows_on(result, [along, second], height.quantity)
    names = list(dict.fromkeys(rows[along.column]))
    values = list(dict.fromkeys(rows[second.column]))
    chosen = evenly(values, MOST_CURVES)
    rows = rows[rows[second.column].isin(chosen)]
    shown = _that_vary(result, rows)[:MOST_PANELS]
    with style():
        size_in = (max(7.0, min(3, len(shown)) * 3.0 + 1.4), 4.4)
        figure, every = panels(len(shown), size_in)
        for axes, strategy in zip(every, shown, strict=True):
            for number, value in enumerate(chosen):
                line = rows[(rows["strategy"] == strategy) & (rows[second.column] == value)]
                look = line_of_many(number, len(chosen))
                label = value_text(value, second)
                _draw_line(axes, along, names, line, height.scale, look, label)
                if along.is_interval:
                    _mark_minimum(axes, along, names, line, height.scale)
                    _mark_young(axes, along, line, height.scale)
            _dress(axes, along, names, rows, height, "")
            axes.set_title(fill(strategy, 28), fontsize=9.5)
        for axes in every:
            place = axes.get_subplotspec()
            if place is not None and place.is_first_col():
                axes.set_ylabel(height.label)
        left = _not_shown(result.strategies, shown, values, chosen, second)
        if left:
            figure.supxlabel(left, fontsize=6.5, color=CAPTION)
        if along.is_interval:
            every[-1].plot([], [], **MINIMUM, label="lowest")
            every[-1].plot([], [], **CHOICE, label="Young")
        handles, labels = every[-1].get_legend_handles_labels()
        second_words = fill(axis_words(second), 18)
        figure.legend(handles, labels, title=second_words, loc="outside right center")
        title_figure(figure, f"{height.title}: {result.name}", subtitle(result, held))
    return figure


def _not_shown(
    strategies: Sequence[str],
    shown: Sequence[str],
    values: Sequence[Any],
    chosen: Sequence[Any],
    axis: AxisColumn,
) -> str:
    """Strategies that have no panel and values that have no curve, in words; empty without any."""
    names = [name for name in strategies if name not in shown]
    others = [value_text(value, axis) for value in values if value not in chosen]
    parts = [", ".join(names)] if names else []
    parts += [f"{axis_words(axis)} {', '.join(others)}"] if others else []
    return f"not shown here: {'; '.join(parts)}" if parts else ""


def _that_vary(result: SweepResult, rows: pd.DataFrame) -> list[str]:
    """Strategies whose overhead depends on the axes; all of them where none does."""
    vary = [
        name
        for name in result.strategies
        if rows.loc[rows["strategy"] == name, "mean"].nunique() > 1
    ]
    return vary or list(result.strategies)


def _lines(strategies: Sequence[str], rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each line by its label; strategies that cost the same everywhere share a line."""
    names_by_means: dict[bytes, list[str]] = {}
    for name in strategies:
        means = rows.loc[rows["strategy"] == name, "mean"].to_numpy(np.float64)
        names_by_means.setdefault(means.tobytes(), []).append(name)
    return {
        ", ".join(names): rows[rows["strategy"] == names[0]] for names in names_by_means.values()
    }


def _draw_line(
    axes: Axes,
    along: AxisColumn,
    names: Sequence[Any],
    line: pd.DataFrame,
    scale: float,
    look: Line,
    label: str,
) -> None:
    """Draw a line with its intervals; points at which jobs do not finish leave a gap."""
    colour, marker, dashes = look
    x = places(along, line[along.column], names)
    mean, low, high = (scale * line[name].to_numpy(np.float64) for name in ("mean", "low", "high"))
    few = len(x) <= FEW
    every = None if few else max(1, len(x) // 8)
    axes.plot(
        x, mean, color=colour, marker=marker, ms=4.5, markevery=every,
        ls=dashes if along.numeric else "none", lw=1.4, label=fill(label, 24),
    )  # fmt: skip
    if few:
        ends = np.nan_to_num(np.array([mean - low, high - mean]))
        axes.errorbar(x, mean, ends, fmt="none", color=colour, capsize=2.5, lw=1.0)
    else:
        axes.fill_between(x, low, high, color=colour, alpha=0.2, lw=0)


def _mark_minimum(
    axes: Axes, along: AxisColumn, names: Sequence[Any], line: pd.DataFrame, scale: float
) -> None:
    finished = line[line["mean"].notna()]
    if not len(finished):
        return
    best = finished.iloc[[int(finished["mean"].to_numpy().argmin())]]
    x = places(along, best[along.column], names)
    axes.plot(x, scale * best["mean"].to_numpy(), **MINIMUM)


def _mark_young(axes: Axes, along: AxisColumn, line: pd.DataFrame, scale: float) -> None:
    """Mark Young's choice on a curve, between the points that were simulated."""
    finished = line[line["mean"].notna()]
    x = finished[along.column].to_numpy(np.float64)
    chosen = hours_on(along, float(line["young_h"].iloc[0]))
    if len(x) > 1 and x.min() <= chosen <= x.max():
        y = np.interp(np.log(chosen), np.log(x), scale * finished["mean"].to_numpy(np.float64))
        axes.plot([chosen], [y], **CHOICE)


def _rules(axes: Axes, along: AxisColumn, rows: pd.DataFrame) -> None:
    """What the formulas choose, as upright lines; each once where several strategies share it."""
    low, high = rows[along.column].min(), rows[along.column].max()
    for rule, (name, dashes) in RULES.items():
        chosen = sorted({round(hours_on(along, h), 9) for h in rows[rule] if not isnan(h)})
        for x in chosen:
            where = "" if low <= x <= high else ", outside"
            label = f"{name}: {x:.3g} {along.unit}{where}"
            if where:
                axes.plot([], [], color=FAINT, ls=dashes, lw=1.3, label=label)
            else:
                axes.axvline(x, color=INK, ls=dashes, lw=1.1, label=label, zorder=1)


def _dress(
    axes: Axes,
    along: AxisColumn,
    names: Sequence[Any],
    rows: pd.DataFrame,
    height: Height,
    label: str,
) -> None:
    dress_x(axes, along, names)
    means, highs = (height.scale * rows[name].to_numpy(np.float64) for name in ("mean", "high"))
    if height.from_zero:
        dress_y(axes, means, highs)
    else:
        axes.yaxis.grid(True)
    axes.set_ylabel(label)
