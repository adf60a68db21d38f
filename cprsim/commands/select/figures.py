"""Figures of a selection: overhead over the accuracy that is lost, or over the number of saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan

from matplotlib.figure import Figure

from cprsim.commands.select.choice import PricedInterval, Selection
from cprsim.pages.axes import OVERHEAD_LABEL
from cprsim.pages.chart import Band, Chart, Panel, Series, floats, merged
from cprsim.pages.draw_chart import chart_figure
from cprsim.results.words import count, hours

ABOVE_FULL = 1.25  # times full recovery's overhead, where the axis ends
AROUND = 0.35  # of the limit, on both sides: what the close-up shows
TEN_THOUSANDTHS_BELOW = 0.01  # limits below it are shown in ten-thousandths
BEYOND_LIMIT = 4.0  # times the limit, where the axis of the loss ends unless the choice is beyond
BELOW_ONE = 0.5  # where a job without saves stands on the logarithmic axis of saves


def selection_figure(selection: Selection, name: str) -> Figure:
    """All candidates, over their loss where the selection has a limit, else over their saves."""
    draw = _over_loss if selection.limited else _over_saves
    caption = (
        f"{hours(selection.useful_h)} of useful work; "
        f"mean of {count(selection.n_replications, 'replication')}"
    )
    return chart_figure(draw(selection, name, caption))


def _over_loss(selection: Selection, name: str, caption: str) -> Chart:
    """A point per candidate, and the limit from close up."""
    limit, full = selection.limit, 100 * selection.full.overhead.mean
    scale, unit = (1e4, " [10⁻⁴]") if limit.most < TEN_THOUSANDTHS_BELOW else (1.0, "")
    most = scale * limit.most
    fronts = merged(
        _points(strategy, [(scale * candidate.held, candidate) for candidate in front])
        for strategy, front in selection.front.items()
        if any(candidate.policy.leaves_stale for candidate in front)
    )
    chosen = _chosen(selection, scale * selection.chosen.held)
    best = (candidate for candidate in selection.best.values() if candidate)
    lossless = [candidate for candidate in best if not candidate.policy.leaves_stale]
    levels = {f"full recovery at its best ({selection.full.saving})": selection.full}
    levels |= {f"{system.strategy} ({system.saving})": system for system in lossless}
    bands = [
        Band(label, 100 * level.overhead.mean, 100 * level.overhead.mean)
        for label, level in levels.items()
        if not isnan(level.overhead.mean)
    ]
    bands.append(Band(f"limit ({limit.most:g})", most, most, "x"))
    furthest = 1.05 * max((float(x) for front in fronts for x in front.x), default=1.0)
    words = f"{limit.words}, {100 * limit.confidence:g} % upper bound{unit}"
    overview = Panel(
        "", words, OVERHEAD_LABEL, (*fronts, chosen), tuple(bands),
        x_range=(0.0, min(furthest, BEYOND_LIMIT * most) or furthest or 1.0),
        y_range=(0.0, full * ABOVE_FULL) if full > 0 else None,
    )  # fmt: skip
    left, right = (1 - AROUND) * most, (1 + AROUND) * most
    near = [
        [y for x, y in zip(front.x, front.y, strict=True) if left <= float(x) <= right]
        for front in fronts
    ]
    panels, heights_near = [overview], [y for heights in near for y in heights]
    if sum(map(bool, near)) > 1:  # more than one strategy to compare
        room = 0.12 * (max(heights_near) - min(heights_near)) + 1e-9
        ends = max(0.0, min(heights_near) - room), max(heights_near) + room
        panels.append(
            replace(overview, title="Near the limit", x_range=(left, right), y_range=ends)
        )
    title = f"Overhead over {limit.words}, by strategy and interval: {name}"
    return Chart(title, f"{caption}; a point per interval", tuple(panels))


def _over_saves(selection: Selection, name: str, caption: str) -> Chart:
    """Full recovery and every recovery system a line."""
    full = selection.full.overhead.mean
    most = 2 * full * ABOVE_FULL if full > 0 else inf
    every = [_place(candidate) for front in selection.front.values() for candidate in front]
    lines = []
    for strategy in dict.fromkeys([*selection.front, *selection.best]):
        front, single = selection.front.get(strategy, ()), selection.best.get(strategy)
        if front:
            near = [
                (_place(candidate), candidate)
                for candidate in front
                if candidate.overhead.mean <= most
            ]
            lines.append(replace(_points(strategy, near), kind="line"))
        elif single is not None:
            ends = [(x, single) for x in (BELOW_ONE, max(every, default=1.0))]
            lines.append(replace(_points(f"{strategy} ({single.saving})", ends), kind="line"))
    lines.append(replace(_chosen(selection, _place(selection.chosen)), kind="points"))
    panel = Panel("", "saves per job", OVERHEAD_LABEL, tuple(lines), x_log=True)
    caption += f"; at {BELOW_ONE:g}: without saves"
    return Chart(f"Overhead over the number of saves: {name}", caption, (panel,))


def _place(candidate: PricedInterval) -> float:
    return max(float(candidate.n_saves), BELOW_ONE)


def _chosen(selection: Selection, x: float) -> Series:
    candidate = selection.chosen
    label = f"chosen: {candidate.strategy}, {candidate.saving}"
    return replace(_points(label, [(x, candidate)]), kind="paper")


def _points(label: str, points: Sequence[tuple[float, PricedInterval]]) -> Series:
    """Overhead of the candidates that finish, by rising x."""
    finished = [
        (x, 100 * candidate.overhead.mean)
        for x, candidate in points
        if not isnan(candidate.overhead.mean)
    ]
    ordered = sorted(finished, key=lambda point: point[0])
    x, y = floats(x for x, _ in ordered), floats(y for _, y in ordered)
    return Series(label, x, y, kind="points")
