"""How far each axis of a one-at-a-time sweep moves overhead or cost: a tornado per strategy."""

from __future__ import annotations

from textwrap import fill
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from cprsim.plots.axes import title_figure
from cprsim.plots.style import INK, SERIES, style
from cprsim.plots.sweep_axes import (
    OVERHEAD_HEIGHT,
    Height,
    axis_words,
    panels,
    subtitle,
    value_text,
)
from cprsim.sweeps.folder import SweepResult

MOST_PANELS = 4
BELOW: Any = {"facecolor": SERIES[5].colour, "hatch": "////", "edgecolor": "white", "linewidth": 0}
ABOVE: Any = {"facecolor": SERIES[1].colour, "edgecolor": "white", "linewidth": 0}
BAR = 0.6


End = tuple[float, str]  # in per cent of useful time or in money; at which value of the axis


def tornado_figure(result: SweepResult, height: Height = OVERHEAD_HEIGHT) -> Figure:
    """A bar per axis from the lowest to the highest value along it, the widest on top."""
    rows = result.of(height.quantity)
    shown = result.strategies[:MOST_PANELS]
    with style():
        size_in = (1.8 + 3.6 * len(shown), 2.0 + 0.5 * len(result.axes))
        figure, every = panels(len(shown), size_in, share_y=False)
        for axes, name in zip(every, shown, strict=True):
            of_strategy = rows[rows["strategy"] == name]
            base = of_strategy[of_strategy["varied"] == ""]
            swings = _swings(result, of_strategy, height.scale)
            _panel(axes, height.scale * float(base["mean"].iloc[0]), swings)
            axes.set_title(fill(name, 28), fontsize=9.5)
            axes.set_xlabel(height.label)
        figure.legend(
            handles=[Patch(**BELOW, label="below the scenario's"), Patch(**ABOVE, label="above")],
            loc="outside lower left", ncols=2,
        )  # fmt: skip
        moved = "overhead" if height is OVERHEAD_HEIGHT else "cost of a month"
        title_figure(figure, f"What moves the {moved}: {result.name}", subtitle(result, ""))
    return figure


def _swings(
    result: SweepResult, of_strategy: pd.DataFrame, scale: float
) -> list[tuple[str, End, End]]:
    """Axes along which jobs finish, each with its ends; the one that moves least comes first."""
    found = []
    for axis in result.axes:
        rows = of_strategy[(of_strategy["varied"] == axis.key) & of_strategy["mean"].notna()]
        if len(rows):
            mean = scale * rows["mean"].to_numpy(np.float64)
            at = [value_text(value, axis) for value in rows[axis.column]]
            least, most = ((float(mean[i]), at[i]) for i in (mean.argmin(), mean.argmax()))
            found.append((fill(axis_words(axis), 20), least, most))
    return sorted(found, key=lambda one: (one[2][0] - one[1][0], one[0]))


def _note(axes: Axes, x: float, place: int, text: str, side: int) -> None:
    """The value on the axis, beside the end of the bar that it makes."""
    axes.annotate(
        text, (x, place), (3 * side, 0), textcoords="offset points", fontsize=7,
        ha="left" if side > 0 else "right", va="center",
    )  # fmt: skip


def _panel(axes: Axes, base: float, swings: list[tuple[str, End, End]]) -> None:
    for place, (_, least, most) in enumerate(swings):
        low, high = min(least[0], base), max(most[0], base)
        axes.barh(place, base - low, BAR, left=low, **BELOW)
        axes.barh(place, high - base, BAR, left=base, **ABOVE)
        if least[0] == most[0]:
            _note(axes, base, place, "no effect", 1)
            continue
        for (value, text), end, side in ((least, low, -1), (most, high, 1)):
            _note(axes, end, place, text, side)
            if value != end:
                axes.plot([value, value], [place - BAR / 2, place + BAR / 2], color=INK, lw=1.2)
    axes.axvline(base, color=INK, lw=1.2)
    axes.set_yticks(range(len(swings)), [label for label, *_ in swings])
    axes.tick_params(axis="y", length=0)
    low = min([base, *(least for _, (least, _), _ in swings)])
    high = max([base, *(most for *_, (most, _) in swings)])
    room = 0.22 * max(high - low, 1e-9)  # for the notes
    axes.set_xlim(low - room, high + room)
    axes.xaxis.grid(True)
