"""Where which strategy costs less: a map over two axes of a sweep, with the break-even line."""

from __future__ import annotations

from textwrap import fill

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import AsinhNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.patheffects import AbstractPathEffect, withStroke

from cprsim.plots.axes import log_scale, panels, title_figure
from cprsim.plots.style import INK, style
from cprsim.plots.sweep_axes import axis_label, is_wide, rows_on
from cprsim.records import Floats
from cprsim.sweeps.costs import OVERHEAD
from cprsim.sweeps.folder import AxisColumn, SweepResult

MOST_PANELS = 3
MOST_VECTORS = 2_000  # cells of a map, beyond which an SVG holds it as an image
HALO: list[AbstractPathEffect] = [withStroke(linewidth=2.2, foreground="white")]
SIZES = [digit * 10.0**decade for decade in range(-9, 9) for digit in (1, 2, 5)]
COLOURS = "PuOr_r"  # both ends differ from the middle in grey too


def map_figure(result: SweepResult, across: AxisColumn, up: AxisColumn) -> Figure:
    """What the other strategies cost more than the reference, in percentage points, over two axes.

    Along the thick line both cost the same; hatched where the reference costs less. Thin lines
    join equal differences, so that the map can be read without colours.
    """
    rows, caption = rows_on(result, [across, up])
    grids = {
        name: _grid(rows[rows["strategy"] == name], across, up)
        for name in compared(result)[:MOST_PANELS]
    }
    with style():
        figure, every = panels(len(grids), beside_in=1.6, sharey=True)
        found = np.concatenate([z[np.isfinite(z)] for _, _, z in grids.values()])
        far = max(float(np.abs(found).max(initial=0.0)), 1e-9)
        norm = AsinhNorm(far / 20, -far, far)  # white at no difference, finer near it
        positive = [size for size in SIZES if far / 20 <= size <= far]
        ticks = [*(-size for size in reversed(positive)), 0.0, *positive]
        meshes = []
        for axes, (name, grid) in zip(every, grids.items(), strict=True):
            meshes.append(_panel(axes, grid, norm, ticks))
            axes.set_title(fill(f"{name} – {result.reference}", 30), fontsize=9.5)
            axes.set_xlabel(axis_label(across))
            for which, axis, values in (("x", across, grid[0]), ("y", up, grid[1])):
                if axis.logarithmic or is_wide(values):
                    log_scale(axes, which)
        every[0].set_ylabel(axis_label(up))
        bar = figure.colorbar(meshes[0], ax=every, shrink=0.85, ticks=ticks, format=_signed)
        bar.minorticks_off()
        bar.set_label("difference of overheads [percentage points]")
        handles: list[Artist] = []
        if len(found) and found.min() < 0 < found.max():
            handles.append(Line2D([], [], color=INK, lw=2.2, label="break-even"))
        if len(found) and found.max() > 0:
            text = f"{result.reference} costs less"
            handles.append(Patch(facecolor="none", edgecolor=INK, hatch="//", label=text))
        if handles:
            figure.legend(handles=handles, loc="outside lower left", ncols=2)
        title = f"Overhead less that of {result.reference}: {result.name}"
        title_figure(figure, title, caption)
    return figure


def compared(result: SweepResult) -> list[str]:
    """The strategies to set beside the reference: those that do not start all over again."""
    rows = result.of(OVERHEAD)
    restarts = set(rows.loc[rows["on_failure"] == "restart", "strategy"])
    return [name for name in result.strategies if name not in restarts | {result.reference}]


def _grid(rows: pd.DataFrame, across: AxisColumn, up: AxisColumn) -> tuple[Floats, Floats, Floats]:
    """Rising x (n,) and y (m,), and the differences (m, n) in percentage points."""
    table = rows.pivot_table("difference", up.column, across.column, dropna=False)
    table = table.sort_index(axis=0).sort_index(axis=1)
    return (
        table.columns.to_numpy(np.float64),
        table.index.to_numpy(np.float64),
        100 * table.to_numpy(np.float64),
    )


def _signed(value: float, _: object = None) -> str:
    return f"{value:+g}" if value else "0"


def _panel(
    axes: Axes, grid: tuple[Floats, Floats, Floats], norm: AsinhNorm, levels: list[float]
) -> QuadMesh:
    x, y, z = grid
    many = z.size > MOST_VECTORS
    mesh = axes.pcolormesh(x, y, z, norm=norm, cmap=COLOURS, shading="nearest", rasterized=many)
    finite = z[np.isfinite(z)]
    if min(z.shape) < 2 or not len(finite) or finite.min() == finite.max():
        return mesh
    inside = [level for level in levels if finite.min() < level < finite.max()]
    if inside:
        widths = [0.6 if level else 2.2 for level in inside]  # thick where both cost the same
        lines = axes.contour(x, y, z, inside, colors=INK, linewidths=widths, linestyles="solid")
        lines.set_path_effects(HALO)  # on dark ground, too
        texts = axes.clabel(lines, [one for one in inside if one], fmt=_signed, fontsize=7)
        for text in texts:
            text.set(path_effects=HALO, clip_on=False)
    if finite.max() > 0:
        axes.contourf(x, y, z, [0.0, finite.max() * 2], colors="none", hatches=["//"])
    axes.set(xlim=(x.min(), x.max()), ylim=(y.min(), y.max()))
    return mesh
