"""Overhead along an axis of a sweep: a line per strategy, or a family of lines for each."""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

import numpy as np
import pandas as pd

from cprsim.plots.chart import Band, Chart, Panel, Series, floats
from cprsim.plots.sweep_axes import (
    OVERHEAD_HEIGHT,
    Height,
    axis_label,
    axis_words,
    evenly,
    hours_on,
    is_wide,
    rows_on,
    subtitle,
    value_text,
)
from cprsim.records import Floats
from cprsim.sweeps.folder import AxisColumn, SweepResult

RULES = {"young_h": "Young", "daly_h": "Daly", "cpr_h": "CPR"}
MOST_PANELS = 6
MOST_CURVES = 12
LOG_ROOM = 1.6  # factor by which a logarithmic axis goes on below and above the values


def curves_chart(result: SweepResult, along: AxisColumn, height: Height = OVERHEAD_HEIGHT) -> Chart:
    """Overhead of every strategy along one axis, with 95 % intervals."""
    rows, held = rows_on(result, [along], height.quantity)
    lines = _lines(result.strategies, rows)
    series = [_series(label, along, line, height) for label, line in lines.items()]
    inside, outside = _rules(along, rows) if along.is_interval else ([], [])
    if along.is_interval:
        vary = [line for line in lines.values() if line["mean"].nunique() > 1]
        series.append(_lowest(along, vary, height))
    panel = _panel("", along, rows, height, series, tuple(inside))
    about = "; ".join([subtitle(result, held), *outside])
    return Chart(f"{height.title}: {result.name}", about, (panel,))


def family_chart(
    result: SweepResult, along: AxisColumn, second: AxisColumn, height: Height = OVERHEAD_HEIGHT
) -> Chart:
    """A panel per strategy: its overhead along one axis, a curve for each value of a second one."""
    rows, held = rows_on(result, [along, second], height.quantity)
    values = list(dict.fromkeys(rows[second.column]))
    chosen = evenly(values, MOST_CURVES)
    rows = rows[rows[second.column].isin(chosen)]
    shown = _that_vary(result, rows)[:MOST_PANELS]
    panels = []
    for strategy in shown:
        mine = rows[rows["strategy"] == strategy]
        lines = {value_text(v, second): mine[mine[second.column] == v] for v in chosen}
        series = [_series(label, along, line, height) for label, line in lines.items()]
        if along.is_interval:
            series += [_lowest(along, list(lines.values()), height)]
            series += [_young(along, list(lines.values()), height)]
        panels.append(_panel(strategy, along, rows, height, series))
    left = _not_shown(result.strategies, shown, values, chosen, second)
    about = [f"a curve for each {axis_words(second)}", subtitle(result, held), *left]
    return Chart(f"{height.title}: {result.name}", "; ".join(about), tuple(panels))


def _not_shown(
    strategies: Sequence[str],
    shown: Sequence[str],
    values: Sequence[Any],
    chosen: Sequence[Any],
    axis: AxisColumn,
) -> list[str]:
    """Strategies that have no panel and values that have no curve, in words; none without any."""
    names = [name for name in strategies if name not in shown]
    others = [value_text(value, axis) for value in values if value not in chosen]
    parts = [", ".join(names)] if names else []
    parts += [f"{axis_words(axis)} {', '.join(others)}"] if others else []
    return [f"not shown here: {', '.join(parts)}"] if parts else []


def _that_vary(result: SweepResult, rows: pd.DataFrame) -> list[str]:
    """Strategies whose overhead depends on the axes; all of them where none does."""
    means = rows.groupby("strategy", sort=False)["mean"].nunique()
    return [name for name in result.strategies if means[name] > 1] or list(result.strategies)


def _lines(strategies: Sequence[str], rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The rows of each line by its label; strategies that cost the same everywhere share a line."""
    names_by_means: dict[bytes, list[str]] = {}
    for name in strategies:
        means = rows.loc[rows["strategy"] == name, "mean"].to_numpy(np.float64)
        names_by_means.setdefault(means.tobytes(), []).append(name)
    return {
        ", ".join(names): rows[rows["strategy"] == names[0]] for names in names_by_means.values()
    }


def _series(label: str, along: AxisColumn, line: pd.DataFrame, height: Height) -> Series:
    """A line with its intervals; points at which jobs do not finish leave a gap."""
    x = floats(line[along.column]) if along.numeric else tuple(map(str, line[along.column]))
    mean, low, high = (floats(height.scale * line[name]) for name in ("mean", "low", "high"))
    return Series(label, x, mean, low, high, kind="line" if along.numeric else "points")


def _lowest(along: AxisColumn, lines: Sequence[pd.DataFrame], height: Height) -> Series:
    """The minimum of each line."""
    finished = (line[line["mean"].notna()] for line in lines)
    best = [one.iloc[int(one["mean"].to_numpy().argmin())] for one in finished if len(one)]
    x = floats(one[along.column] for one in best)
    return Series("lowest", x, floats(height.scale * one["mean"] for one in best), kind="paper")


def _young(along: AxisColumn, lines: Sequence[pd.DataFrame], height: Height) -> Series:
    """Young's choice on each curve, between the points that were simulated."""
    found = []
    for line in lines:
        finished = line[line["mean"].notna()]
        x = finished[along.column].to_numpy(np.float64)
        chosen = hours_on(along, float(line["young_h"].iloc[0]))
        if len(x) > 1 and x.min() <= chosen <= x.max():
            mean = height.scale * finished["mean"].to_numpy(np.float64)
            found.append((chosen, np.interp(np.log(chosen), np.log(x), mean)))
    return Series("Young", floats(x for x, _ in found), floats(y for _, y in found), kind="paper")


def _rules(along: AxisColumn, rows: pd.DataFrame) -> tuple[list[Band], list[str]]:
    """What the formulas choose along the axis, and beyond it in words; each value once."""
    inside, outside = [], []
    low, high = rows[along.column].min(), rows[along.column].max()
    for rule, name in RULES.items():
        for x in sorted({round(hours_on(along, h), 9) for h in rows[rule] if not isnan(h)}):
            label = f"{name}: {x:.3g} {along.unit}"
            if low <= x <= high:
                inside.append(Band(label, x, x, "x"))
            else:
                outside.append(f"{label}, outside")
    return inside, outside


def _panel(
    title: str,
    along: AxisColumn,
    rows: pd.DataFrame,
    height: Height,
    series: Sequence[Series],
    bands: tuple[Band, ...] = (),
) -> Panel:
    means, highs = (height.scale * rows[name].to_numpy(np.float64) for name in ("mean", "high"))
    finite = means[np.isfinite(means)]
    wide = height.from_zero and is_wide(finite)
    x_log = along.numeric and (
        along.logarithmic or is_wide(rows[along.column].to_numpy(np.float64))
    )
    return Panel(
        title, axis_label(along), height.label, tuple(series), bands,
        x_log=x_log, y_log=wide, y_from_zero=height.from_zero,
        y_range=_range(finite, highs, wide) if height.from_zero and len(finite) else None,
    )  # fmt: skip


def _range(means: Floats, highs: Floats, wide: bool) -> tuple[float, float] | None:
    """From zero or logarithmic: up to the highest mean, and its interval where that is near."""
    most, ends = means.max(), highs[np.isfinite(highs)].max(initial=0.0)
    if wide:
        return means.min() / LOG_ROOM, LOG_ROOM * min(max(most, ends), LOG_ROOM * most)
    top = max(1e-9, 1.08 * most, min(1.02 * ends, 2.0 * most))
    return (0.0, top) if means.min() >= 0 else None
