"""Which system is cheapest where, over two inputs; hatched where that can't be told."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from cprsim.plots.axes import title_axes, words_of_key
from cprsim.plots.save import Draw
from cprsim.plots.style import INK, series_line, style
from cprsim.records import Floats
from cprsim.results.words import count, hours
from cprsim.systems_compared.map_folder import MapAxis, SystemsMap
from cprsim.systems_compared.mapping import tied_with_best

PALE = 0.62  # of white in the fill of a cell, so that its mark and hatch are seen
HATCH = "////"


def systems_map_figures(made: SystemsMap) -> dict[str, Draw]:
    """The one figure of a map, by its name."""
    return {"map": partial(systems_map_figure, made)}


def systems_map_figure(made: SystemsMap) -> Figure:
    """A cell per point in the colour of the cheapest system, with that system's mark in it.

    Systems are told apart by their marks, so that colours are not needed.
    """
    first, second = made.axes
    looks = {name: series_line(number) for number, name in enumerate(made.bests)}
    x, y = edges(first), edges(second)
    with style():
        figure = Figure(figsize=(7.4, 4.6), layout="constrained")
        axes = figure.add_subplot()
        for (i, j), cell in made.cells.items():
            look = looks.get(cell["best"])
            tied = bool(tied_with_best(cell))
            corner = (x[i], y[j])
            axes.add_patch(
                Rectangle(
                    corner, x[i + 1] - x[i], y[j + 1] - y[j],
                    facecolor="white" if look is None else _pale(look.colour),
                    edgecolor=INK if tied else "white", hatch=HATCH if tied else None,
                    linewidth=0.0 if tied else 0.6,
                )
            )  # fmt: skip
            if look is not None:
                axes.plot(
                    [first.values[i]], [second.values[j]], marker=look.marker, color=look.colour,
                    mec=INK, mew=0.7, ms=6, ls="none",
                )  # fmt: skip
        _dress(axes, made, x, y)
        legend: dict[str, Any] = {"loc": "outside right upper"}
        figure.legend(handles=_handles(made, looks), fontsize=8, **legend)
        _title(axes, made)
    return figure


def edges(axis: MapAxis) -> Floats:
    """Borders of the cells around the values, halfway between them; on the axis's own scale."""
    values = np.array(axis.values)
    placed = np.log(values) if axis.logarithmic else values
    between = (placed[1:] + placed[:-1]) / 2
    ends = [2 * placed[0] - between[0]], [2 * placed[-1] - between[-1]]
    borders = np.concatenate([ends[0], between, ends[1]])
    return np.exp(borders) if axis.logarithmic else borders


def _pale(colour: str) -> tuple[float, float, float]:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    red, green, blue = (PALE + (1 - PALE) * part for part in parts)
    return red, green, blue


def _dress(axes: Axes, made: SystemsMap, x: Floats, y: Floats) -> None:
    first, second = made.axes
    if first.logarithmic:
        axes.set_xscale("log")
    if second.logarithmic:
        axes.set_yscale("log")
    axes.set_xlim(min(x[0], x[-1]), max(x[0], x[-1]))
    axes.set_ylim(min(y[0], y[-1]), max(y[0], y[-1]))
    for scale, axis in ((axes.xaxis, first), (axes.yaxis, second)):
        step = max(1, -(-len(axis.values) // 7))
        shown = axis.values[::step]
        scale.set_ticks(list(shown), [f"{float(f'{value:.3g}'):,g}" for value in shown])
        scale.set_ticks([], minor=True)
    axes.set_xlabel(_label(first))
    axes.set_ylabel(_label(second))


def _label(axis: MapAxis) -> str:
    """``mean time between failures [h]`` for ``failures.mtbf [h]``."""
    return words_of_key(axis.key) + axis.column.removeprefix(axis.key)


def _handles(made: SystemsMap, looks: Any) -> list[Line2D | Patch]:
    handles: list[Line2D | Patch] = [
        Line2D(
            [], [], marker=look.marker, color=look.colour, mec=INK, mew=0.7, ms=6, ls="none",
            label=name,
        )
        for name, look in looks.items()
    ]  # fmt: skip
    if any(tied_with_best(cell) for cell in made.cells.values()):
        handles.append(
            Patch(facecolor="white", edgecolor=INK, hatch=HATCH, lw=0, label="can't be told")
        )
    return handles


def _title(axes: Axes, made: SystemsMap) -> None:
    caption = (
        f"{hours(made.useful_h)} of useful work; {count(made.n_replications, 'replication')} at "
        "each point, on the same failures"
    )
    title_axes(axes, f"Cheapest system: {made.name}", caption)
