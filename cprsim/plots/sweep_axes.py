"""What the figures of a sweep share: which rows, which panels, and axes in the field's words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import OVERHEAD_LABEL, words_of_key
from cprsim.records import Floats
from cprsim.results.words import count
from cprsim.sweeps.costs import COST_MONTH, OVERHEAD
from cprsim.sweeps.folder import AxisColumn, SweepResult
from cprsim.units import unit_factor

WIDEST_IN = 10.4  # of a figure that a page of 1,280 pixels shows whole
MOST_BESIDE, BY_TWO = 3, 4  # panels in a row; so many stand two by two
TOO_WIDE = 20.0  # the highest value over the lowest, from which an axis is logarithmic


def panels(
    n: int, size_in: tuple[float, float], *, share_y: bool = True
) -> tuple[Figure, list[Axes]]:
    """A figure with panels side by side, at most three; `size_in` is that of one row."""
    width_in, height_in = size_in
    n_columns = min(n, MOST_BESIDE) if n != BY_TWO else 2
    n_rows = -(-n // n_columns)
    if n_rows > 1:
        size_in = (min(width_in, WIDEST_IN), 0.8 * height_in * n_rows)
    figure = Figure(figsize=size_in, layout="constrained")
    shape = (n_rows, n_columns)
    axes = list(figure.subplots(*shape, sharey=share_y, squeeze=False).flat)
    for empty in axes[n:]:
        empty.remove()
    return figure, axes[:n]


@dataclass(frozen=True, slots=True)
class Height:
    """What a figure shows upwards: a quantity of the table, times `scale`."""

    quantity: str
    scale: float
    label: str
    title: str
    from_zero: bool = True


OVERHEAD_HEIGHT = Height(OVERHEAD, 100.0, OVERHEAD_LABEL, "Overhead")


def money_height(result: SweepResult) -> Height:
    """What 730.5 h of useful work cost in all, where the sweep has prices."""
    label = f"{result.currency or 'cost'} for 730.5 h of useful work"
    return Height(COST_MONTH, 1.0, label, "Cost of a month", from_zero=False)


def rows_on(
    result: SweepResult, shown: Sequence[AxisColumn], quantity: str = OVERHEAD
) -> tuple[pd.DataFrame, str]:
    """Rows of a quantity with the other axes at their middle value, and words that say so."""
    rows, held = result.of(quantity), []
    for axis in result.axes:
        if axis not in shown:
            values = list(dict.fromkeys(rows[axis.column]))
            middle = values[len(values) // 2]
            rows = rows[rows[axis.column] == middle]
            held.append(f"{axis_words(axis)} = {value_text(middle, axis)}")
    return rows, ", ".join(held)


def value_text(value: Any, axis: AxisColumn) -> str:
    """A value on an axis with its unit: ``94 s``, ``gamma``."""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return f"{text} {axis.unit}".rstrip()


def evenly(values: Sequence[Any], at_most: int) -> list[Any]:
    """So many of the values, both ends among them."""
    if len(values) <= at_most:
        return list(values)
    places = np.linspace(0, len(values) - 1, at_most).round().astype(int)
    return [values[place] for place in places]


def hours_on(axis: AxisColumn, value_h: float) -> float:
    """Hours in the unit of an axis of times."""
    return value_h * float(unit_factor("h", axis.unit))


def is_wide(values: Floats) -> bool:
    """Whether values are better told apart by factors."""
    return bool(len(values) and values.min() > 0 and values.max() / values.min() > TOO_WIDE)


def subtitle(result: SweepResult, held: str) -> str:
    """What the numbers of a figure are."""
    n = result.table["n"]
    low, high = int(n.min()), int(n.max())
    each = count(high, "replication") if low == high else f"{low:,} to {count(high, 'replication')}"
    return f"means of {each} at each point" + (f"; {held}" if held else "")


def axis_words(axis: AxisColumn) -> str:
    """``cost of a save`` for ``costs.save``."""
    return words_of_key(axis.key)


def axis_label(axis: AxisColumn) -> str:
    """What stands along an axis: words, and the unit in brackets."""
    return f"{axis_words(axis)} [{axis.unit}]" if axis.unit else axis_words(axis)
