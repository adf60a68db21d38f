"""Figures of a selection: overhead over the accuracy that is lost, or over the number of saves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf, isnan
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cprsim.plots.axes import OVERHEAD_LABEL
from cprsim.plots.chart import Band, Chart, Panel, Series, floats
from cprsim.plots.draw_chart import chart_figure
from cprsim.plots.save import Draw
from cprsim.results.words import count, hours
from cprsim.selector.choice import Candidate, Selection
from cprsim.selector.words import quantity_of, saving

ABOVE_FULL = 1.25  # times full recovery's overhead, where the axis ends
AROUND = 0.35  # of the limit, on both sides: what the close-up shows
CLOSE_UP = "The limit from close up"
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
    """Overhead over loss of each strategy, from many saves on the left to none on the right."""
    limit, full = selection.limit, 100 * selection.full.overhead.mean
    scale, unit = (1e4, " [10⁻⁴]") if limit.most < FINE else (1.0, "")
    fronts, most = _fronts(selection), scale * limit.most
    lines = [_line(names, front, scale) for names, front in fronts.items()]
    chosen = selection.chosen
    label = f"chosen: {chosen.strategy}, {saving(chosen)}"
    series = (*lines, replace(_line(label, (chosen,), scale), kind="paper"))
    bands = (*_levels(selection), Band(f"limit ({limit.most:g})", most, most, "x"))
    furthest = max((x for line in lines for x in line.x if isinstance(x, float)), default=1.0)
    right = min(furthest * 1.05, BEYOND_LIMIT * most) or furthest * 1.05 or 1.0
    words = f"{quantity_of(limit)}{unit}, {100 * limit.confidence:g} % upper bound"
    whole = Panel(
        "", words, OVERHEAD_LABEL, series, bands, x_range=(0.0, right),
        y_range=(0.0, full * ABOVE_FULL) if full > 0 else None,
    )  # fmt: skip
    near = _close_up(lines, most)
    panels = (whole,) if near is None else (whole, replace(whole, title=CLOSE_UP, **near))
    caption = f"{_caption(selection)}; each line from many saves to none"
    return chart_figure(Chart(f"Overhead against loss: {name}", caption, panels))


def _fronts(selection: Selection) -> Fronts:
    """Fronts of the strategies that lose samples; those that coincide are one, by all names."""
    by_points: dict[tuple[tuple[float, float], ...], list[str]] = {}
    for name, front in selection.front.items():
        if any(one.policy.leaves_stale for one in front):
            points = tuple((one.held, one.overhead.mean) for one in front)
            by_points.setdefault(points, []).append(name)
    return {", ".join(names): selection.front[names[0]] for names in by_points.values()}


def _line(label: str, front: Sequence[Candidate], scale: float) -> Series:
    """Overhead over loss of the candidates that finish, by rising loss."""
    points = [(scale * one.held, one) for one in front if not isnan(one.overhead.mean)]
    return _series(label, sorted(points, key=lambda point: point[0]))


def _levels(selection: Selection) -> Iterator[Band]:
    """Full recovery at its best, and the recovery systems that lose nothing."""
    level = [one for one in selection.best.values() if one and not one.policy.leaves_stale]
    labels = {f"full recovery at its best ({saving(selection.full)})": selection.full}
    labels |= {f"{one.strategy} ({saving(one)})": one for one in level}
    for label, one in labels.items():
        if not isnan(one.overhead.mean):
            yield Band(label, 100 * one.overhead.mean, 100 * one.overhead.mean)


def _close_up(lines: Sequence[Series], most: float) -> dict[str, Any] | None:
    """Ranges of the axes around the limit; None where two lines do not reach it."""
    left, right = (1 - AROUND) * most, (1 + AROUND) * most
    reach = [(np.array(one.x, float), one.y) for one in lines if len(one.x) > 1]
    reach = [(x, y) for x, y in reach if x[0] <= right <= x[-1]]
    if len(reach) < 2:
        return None
    shown = np.concatenate([np.interp([left, right], x, y) for x, y in reach])
    room = 0.12 * (shown.max() - shown.min()) + 1e-9
    ends = max(0.0, float(shown.min() - room)), float(shown.max() + room)
    return {"x_range": (left, right), "y_range": ends}


# --------------------------------------------------------------------------- over the saves


def saves_figure(selection: Selection, name: str) -> Figure:
    """Overhead over the number of saves, full recovery and every recovery system a line."""
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
