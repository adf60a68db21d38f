"""Rows, words and axes that the charts and the map of a sweep share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from cprsim.plots.axes import words_of_key
from cprsim.records import Floats
from cprsim.results.words import count, hours
from cprsim.sweeps.costs import OVERHEAD
from cprsim.sweeps.folder import AxisColumn, SweepResult
from cprsim.units import HOURS_OF

TOO_WIDE = 20.0  # the highest value over the lowest, from which an axis is logarithmic


def rows_on(
    result: SweepResult, shown: Sequence[AxisColumn], quantity: str = OVERHEAD
) -> tuple[pd.DataFrame, str]:
    """Rows of a quantity with the other axes at their middle value, and the figure's caption."""
    rows, n = result.of(quantity), result.table["n"]
    low, high = int(n.min()), int(n.max())
    each = count(high, "replication") if low == high else f"{low:,} to {count(high, 'replication')}"
    words = [f"means of {each} at each point"]
    for axis in result.axes:
        if axis not in shown and result.mode == "grid":
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
