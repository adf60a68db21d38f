"""Overhead against what is lost, strategy by strategy, with the choice and the limit marked."""

from __future__ import annotations

from math import isnan

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cprsim.plots.left_out import Shown
from cprsim.plots.style import CAPTION, FAINT, INK, series_line, style
from cprsim.results.words import count, hours
from cprsim.selector import Candidate, Selection
from cprsim.selector.words import quantity_of, saving

ABOVE_FULL = 1.25  # times full recovery's overhead, where the axis ends
AROUND = 0.35  # of the limit, on both sides: what the close-up shows
NAME_HEIGHT = 0.055  # of the close-up's height: names stand so far apart
FINE = 0.01  # limits below it are shown in ten-thousandths
BEYOND_LIMIT = 4.0  # times the limit, where the axis of the loss ends unless the choice is beyond


def pareto_figure(selection: Selection, name: str, *, narrow: bool = False) -> Figure:
    """Overhead over loss of each strategy, from many saves on the left to none on the right.

    The loss is the upper bound that is held to the limit. Full recovery loses nothing, nor do some
    recovery systems: each is a level line at its best overhead.

    Parameters
    ----------
    narrow : for a telephone: without a title, the legend below
    """
    near = _around_limit(selection)
    n = 1 if near is None else 2
    with style():
        size_in = (3.9, 2.6 + 3.0 * n) if narrow else (7.6 if n == 1 else 10.2, 5.4)
        figure = Figure(figsize=size_in, layout="constrained")
        panels = figure.subplots(*((n, 1) if narrow else (1, n)), squeeze=False).flat
        axes = panels[0]
        shown = _draw(axes, selection)
        _dress(axes, selection)
        shown.tell(axes, "of candidates that do not finish")
        if near is not None:
            _draw(panels[1], selection)
            _zoom(panels[1], selection, near)
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", fontsize=8,
            ncols=1 if narrow else 3,
        )  # fmt: skip
        if not narrow:
            _title(axes, selection, name)
    return figure


def _draw(axes: Axes, selection: Selection) -> Shown:
    """Everything that there is to see, whatever the axes will show of it."""
    shown = Shown()
    _level_lines(axes, selection)
    for number, (strategy, front) in enumerate(_losing(selection).items()):
        _line(axes, strategy, front, number)
        held, overhead = ([one.held for one in front], [one.overhead.mean for one in front])
        shown.add(held, overhead, colour=series_line(number).colour)
    _envelope(axes, selection)
    _full_and_limit(axes, selection)
    _choice(axes, selection)
    return shown


def _around_limit(selection: Selection) -> dict[str, float] | None:
    """Overhead at the right end of the close-up, by strategy; None where two lines do not reach it.

    Between candidates it is read off the line that is drawn.
    """
    right = (1 + AROUND) * selection.limit.most
    found = {}
    for strategy, front in _losing(selection).items():
        there = sorted((one.held, one.overhead.mean) for one in front if one.finished_fraction == 1)
        held, overhead = np.array(there).reshape(-1, 2).T
        if len(held) > 1 and held[0] <= right <= held[-1]:
            found[strategy] = float(np.interp(right, held, overhead))
    return found if len(found) > 1 else None


def _zoom(axes: Axes, selection: Selection, near: dict[str, float]) -> None:
    """The limit from close up, each line with its name at its right end."""
    most = selection.limit.most
    axes.set_xlim((1 - AROUND) * most, (1 + AROUND) * most)
    inside = [
        one.overhead.mean
        for front in _losing(selection).values()
        for one in front
        if abs(one.held / most - 1) <= AROUND and not isnan(one.overhead.mean)
    ]
    low, high = min([*inside, *near.values()]), max([*inside, *near.values()])
    room = 0.12 * (high - low) + 1e-9
    axes.set_ylim(max(0.0, low - room), high + room)
    _names(axes, selection, near)
    _labels(axes, selection)
    axes.set_title("The limit from close up", loc="left", fontsize=9, fontweight="bold")


def _names(axes: Axes, selection: Selection, near: dict[str, float]) -> None:
    """Names beside the ends of lines, moved apart where they would stand on each other."""
    low, high = axes.get_ylim()
    least, below = NAME_HEIGHT * (high - low), low
    for strategy, overhead in sorted(near.items(), key=lambda item: item[1]):
        below = max(overhead, below + least)
        colour = series_line(list(_losing(selection)).index(strategy)).colour
        axes.annotate(
            strategy, (1, overhead), (1.03, below), xycoords=("axes fraction", "data"),
            textcoords=("axes fraction", "data"), fontsize=8, color=colour, va="center",
            annotation_clip=False, arrowprops={
                "arrowstyle": "-", "color": colour, "lw": 0.6, "relpos": (0, 0.5), "shrinkA": 0,
            },
        )  # fmt: skip


def _losing(selection: Selection) -> dict[str, tuple[Candidate, ...]]:
    """The fronts of strategies that lose samples."""
    return {
        name: front
        for name, front in selection.front.items()
        if any(one.policy.leaves_stale for one in front)
    }


def _level_lines(axes: Axes, selection: Selection) -> None:
    """Recovery systems that lose nothing, after the lines of those that do."""
    level = [one for one in selection.best.values() if one and not one.policy.leaves_stale]
    for number, one in enumerate(level, len(_losing(selection))):
        if not isnan(one.overhead.mean):
            colour, _, dashes = series_line(number)
            axes.axhline(
                one.overhead.mean, color=colour, lw=1.4, ls=dashes,
                label=f"{one.strategy} ({saving(one)})",
            )  # fmt: skip


def _line(axes: Axes, strategy: str, front: tuple[Candidate, ...], number: int) -> None:
    colour, marker, dashes = series_line(number)
    there = [one for one in front if not isnan(one.overhead.mean)]
    axes.plot(
        [one.held for one in there], [one.overhead.mean for one in there],
        color=colour, marker=marker, ls=dashes, ms=3.6, lw=1.2, mec="white", mew=0.4,
        label=strategy,
    )  # fmt: skip


def _envelope(axes: Axes, selection: Selection) -> None:
    """The Pareto front: candidates that nothing else undercuts in both."""
    shown = [one for front in _losing(selection).values() for one in front]
    best = non_dominated([(one.held, one.overhead.mean) for one in shown])
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


def _choice(axes: Axes, selection: Selection) -> None:
    chosen = selection.chosen
    if isnan(chosen.overhead.mean):
        return
    axes.plot(
        [chosen.held], [chosen.overhead.mean], marker="*", ms=15, color="white", mec=INK, mew=1.3,
        ls="none", zorder=6, clip_on=False, label=f"chosen: {chosen.strategy}, {saving(chosen)}",
    )  # fmt: skip


def _dress(axes: Axes, selection: Selection) -> None:
    limit, full = selection.limit, selection.full.overhead.mean
    shown = [one for front in _losing(selection).values() for one in front]
    furthest = max((one.held for one in shown if not isnan(one.held)), default=1.0)
    axes.set_xlim(0, min(furthest * 1.05, BEYOND_LIMIT * limit.most) or furthest * 1.05 or 1.0)
    if not isnan(full) and full > 0:
        axes.set_ylim(0, full * ABOVE_FULL)
    _labels(axes, selection)


def _labels(axes: Axes, selection: Selection) -> None:
    """What the axes are, losses of accuracy in ten-thousandths."""
    limit = selection.limit
    fine = limit.most < FINE
    scale, unit = (1e4, " [10⁻⁴]") if fine else (1.0, "")
    axes.xaxis.set_major_formatter(lambda value, _: f"{round(scale * value, 9):g}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{round(100 * value, 9):g}")
    axes.grid(True)
    axes.set_ylabel("overhead, % of useful time")
    axes.set_xlabel(f"{quantity_of(limit)}{unit}, {100 * limit.confidence:g} % upper bound")


def _title(axes: Axes, selection: Selection, name: str) -> None:
    axes.set_title(f"Overhead against loss: {name}", loc="left", fontweight="bold", pad=22)
    axes.annotate(
        f"{hours(selection.useful_h)} of useful work; mean of "
        f"{count(selection.n_replications, 'replication')}; each line from many saves to none",
        (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points",
        fontsize=8, color=CAPTION, va="bottom",
    )  # fmt: skip
