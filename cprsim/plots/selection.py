"""Figures of a selection: overhead over the accuracy that is lost, or over the number of saves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from math import inf, isnan

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.axes import OVERHEAD_LABEL, percent_axis, title_axes
from cprsim.plots.chart import Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.save import Draw
from cprsim.plots.style import FAINT, INK, series_line, style
from cprsim.results.words import count, hours
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.words import quantity_of, saving

ABOVE_FULL = 1.25  # times full recovery's overhead, where the axis ends
AROUND = 0.35  # of the limit, on both sides: what the close-up shows
NAME_HEIGHT = 0.055  # of the close-up's height: names stand so far apart
FINE = 0.01  # limits below it are shown in ten-thousandths
BEYOND_LIMIT = 4.0  # times the limit, where the axis of the loss ends unless the choice is beyond
BELOW_ONE = 0.5  # where a job without saves stands on the logarithmic axis of saves

Fronts = Mapping[str, tuple[Candidate, ...]]


def selection_figures(selection: Selection, name: str) -> dict[str, Draw]:
    """The one figure of a selection, by its name."""
    return {"pareto": partial(selection_figure, selection, name)}


def selection_figure(selection: Selection, name: str) -> Figure:
    """All candidates, over their loss where the selection has a limit, else over their saves."""
    figure_of = pareto_figure if selection.limited else saves_figure
    return figure_of(selection, name)


# --------------------------------------------------------------------------- over the loss


def pareto_figure(selection: Selection, name: str) -> Figure:
    """Overhead over loss of each strategy, from many saves on the left to none on the right.

    The loss is the upper bound that is held to the limit. Full recovery loses nothing, nor do some
    recovery systems: each is a level line at its best overhead. Strategies with the same candidates
    share a line.
    """
    near = _around_limit(selection)
    n = 1 if near is None else 2
    with style():
        size_in = (7.6 if n == 1 else 10.2, 5.4)
        figure = Figure(figsize=size_in, layout="constrained")
        panels = figure.subplots(1, n, squeeze=False).flat
        axes = panels[0]
        _draw(axes, selection)
        _limit_axes(axes, selection)
        if near is not None:
            _draw(panels[1], selection)
            _zoom(panels[1], selection, near)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", fontsize=8,
            ncols=3,
        )  # fmt: skip
        caption = f"{_caption(selection)}; each line from many saves to none"
        title_axes(axes, f"Overhead against loss: {name}", caption)
    return figure


def _draw(axes: Axes, selection: Selection) -> None:
    """Draw everything, whatever the axes will show of it."""
    _level_lines(axes, selection)
    for number, (names, front) in enumerate(_fronts(selection).items()):
        look = series_line(number)
        finished = [one for one in front if not isnan(one.overhead.mean)]
        held, overhead = ([one.held for one in finished], [one.overhead.mean for one in finished])
        axes.plot(
            held, overhead, color=look.colour, marker=look.marker, ls=look.dashes, ms=3.6, lw=1.2,
            mec="white", mew=0.4, label=names,
        )  # fmt: skip
    _envelope(axes, selection)
    _full_and_limit(axes, selection)
    chosen = selection.chosen
    if not isnan(chosen.overhead.mean):
        axes.plot(
            [chosen.held], [chosen.overhead.mean], marker="*", ms=15, color="white", mec=INK,
            mew=1.3, ls="none", zorder=6, clip_on=False,
            label=f"chosen: {chosen.strategy}, {saving(chosen)}",
        )  # fmt: skip


def _fronts(selection: Selection) -> Fronts:
    """Fronts of the strategies that lose samples; those that coincide are one, by all names."""
    by_points: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for name, front in selection.front.items():
        if any(one.policy.leaves_stale for one in front):
            points = tuple((one.held, one.overhead.mean) for one in front)
            by_points.setdefault(points, []).append(name)
    return {", ".join(names): selection.front[names[0]] for names in by_points.values()}


def _around_limit(selection: Selection) -> dict[str, float] | None:
    """Overhead at the right end of the close-up, by line; None where two lines do not reach it.

    Between candidates it is read off the line that is drawn.
    """
    right = (1 + AROUND) * selection.limit.most
    ends = {}
    for names, front in _fronts(selection).items():
        points = sorted(
            (one.held, one.overhead.mean) for one in front if one.finished_fraction == 1
        )
        held, overhead = np.array(points).reshape(-1, 2).T
        if len(held) > 1 and held[0] <= right <= held[-1]:
            ends[names] = float(np.interp(right, held, overhead))
    return ends if len(ends) > 1 else None


def _zoom(axes: Axes, selection: Selection, near: dict[str, float]) -> None:
    """Limit the axes to the surroundings of the limit, each line with its name at its right end."""
    most = selection.limit.most
    axes.set_xlim((1 - AROUND) * most, (1 + AROUND) * most)
    inside = [
        one.overhead.mean
        for front in _fronts(selection).values()
        for one in front
        if abs(one.held / most - 1) <= AROUND and not isnan(one.overhead.mean)
    ]
    low, high = min([*inside, *near.values()]), max([*inside, *near.values()])
    room = 0.12 * (high - low) + 1e-9
    axes.set_ylim(max(0.0, low - room), high + room)
    _name_ends(axes, selection, near)
    _label_axes(axes, selection)
    axes.set_title("The limit from close up", loc="left", fontsize=9, fontweight="bold")


def _name_ends(axes: Axes, selection: Selection, near: dict[str, float]) -> None:
    """Write names beside the ends of lines, moved apart where they would stand on each other."""
    low, high = axes.get_ylim()
    line_height, below = NAME_HEIGHT * (high - low), low
    order = list(_fronts(selection))
    for names, overhead in sorted(near.items(), key=lambda item: item[1]):
        n_lines = names.count(", ") + 1
        middle = max(overhead, below + line_height * (n_lines + 1) / 2)
        below = middle + line_height * (n_lines - 1) / 2
        colour = series_line(order.index(names)).colour
        axes.annotate(
            names.replace(", ", ",\n"), (1, overhead), (1.03, middle),
            xycoords=("axes fraction", "data"), textcoords=("axes fraction", "data"), fontsize=8,
            color=colour, va="center", annotation_clip=False, arrowprops={
                "arrowstyle": "-", "color": colour, "lw": 0.6, "relpos": (0, 0.5), "shrinkA": 0,
            },
        )  # fmt: skip


def _level_lines(axes: Axes, selection: Selection) -> None:
    """Draw the recovery systems that lose nothing, after the lines of those that do."""
    level = [one for one in selection.best.values() if one and not one.policy.leaves_stale]
    for number, one in enumerate(level, len(_fronts(selection))):
        look, label = series_line(number), f"{one.strategy} ({saving(one)})"
        if not isnan(one.overhead.mean):
            axes.axhline(one.overhead.mean, color=look.colour, ls=look.dashes, lw=1.4, label=label)


def _envelope(axes: Axes, selection: Selection) -> None:
    """Draw the Pareto front: candidates that no other undercuts in both."""
    candidates = [one for front in _fronts(selection).values() for one in front]
    best = non_dominated([(one.held, one.overhead.mean) for one in candidates])
    if best:
        axes.plot(*zip(*best, strict=True), color="#d9d9d9", lw=7, zorder=0.5, label="Pareto front")


def non_dominated(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points for which no other is at most as large in both, in order of the first number."""
    front: list[tuple[float, float]] = []
    for x, y in sorted(points):
        if not isnan(y) and (not front or y < front[-1][1]):
            front.append((x, y))
    return front


def _full_and_limit(axes: Axes, selection: Selection) -> None:
    full, limit = selection.full, selection.limit
    if not isnan(full.overhead.mean):
        axes.axhline(
            full.overhead.mean, color=INK, lw=1.4, ls=(0, (2, 2)),
            label=f"full recovery at its best ({saving(full)})",
        )  # fmt: skip
    axes.axvline(limit.most, color=FAINT, lw=1.4, label=f"limit ({limit.most:g})")
    axes.axvspan(limit.most, 1e6, facecolor="#f0f0f0", hatch="//", edgecolor="white", lw=0)


def _limit_axes(axes: Axes, selection: Selection) -> None:
    limit, full = selection.limit, selection.full.overhead.mean
    candidates = [one for front in _fronts(selection).values() for one in front]
    furthest = max((one.held for one in candidates if not isnan(one.held)), default=1.0)
    axes.set_xlim(0, min(furthest * 1.05, BEYOND_LIMIT * limit.most) or furthest * 1.05 or 1.0)
    if not isnan(full) and full > 0:
        axes.set_ylim(0, full * ABOVE_FULL)
    _label_axes(axes, selection)


def _label_axes(axes: Axes, selection: Selection) -> None:
    """Label the axes; losses of accuracy are in ten-thousandths."""
    limit = selection.limit
    fine = limit.most < FINE
    scale, unit = (1e4, " [10⁻⁴]") if fine else (1.0, "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{round(scale * value, 9):g}")
    axes.set_xlabel(f"{quantity_of(limit)}{unit}, {100 * limit.confidence:g} % upper bound")
    percent_axis(axes.yaxis)
    axes.grid(True)
    axes.set_ylabel(OVERHEAD_LABEL)


# --------------------------------------------------------------------------- over the saves


def saves_figure(selection: Selection, name: str) -> Figure:
    """Overhead over the number of saves, full recovery and every recovery system a line.

    A system without an interval is a level line.
    """
    full, chosen = selection.full.overhead.mean, selection.chosen
    most = 2 * full * ABOVE_FULL if full > 0 else inf
    every = [_place(one) for front in selection.front.values() for one in front]
    lines = []
    for strategy in dict.fromkeys([*selection.front, *selection.best]):
        front = sorted(selection.front.get(strategy, ()), key=lambda one: one.n_saves)
        near = [one for one in front if one.overhead.mean <= most]
        alone = selection.best.get(strategy)
        if front:
            lines.append(_series(strategy, [(_place(one), one) for one in near]))
        elif alone is not None:
            ends = [(x, alone) for x in (BELOW_ONE, max(every, default=1.0))]
            lines.append(_series(f"{strategy} ({saving(alone)})", ends))
    label = f"chosen: {chosen.strategy}, {saving(chosen)}"
    lines.append(replace(_series(label, [(_place(chosen), chosen)]), kind="points"))
    x_label = f"saves per job ({BELOW_ONE:g}: none)"
    panel = Panel("", x_label, OVERHEAD_LABEL, tuple(lines), x_log=True)
    return chart_figure(Chart(f"Overhead against saves: {name}", _caption(selection), (panel,)))


def _place(one: Candidate) -> float:
    return max(float(one.n_saves), BELOW_ONE)


def _series(label: str, points: list[tuple[float, Candidate]]) -> Series:
    x, y = [x for x, _ in points], [100 * one.overhead.mean for _, one in points]
    return Series(label, floats(x), floats(y))


def _caption(selection: Selection) -> str:
    replications = count(selection.n_replications, "replication")
    return f"{hours(selection.useful_h)} of useful work; mean of {replications}"
