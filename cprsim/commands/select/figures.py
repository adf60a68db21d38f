"""Figures of a selection: overhead against accuracy loss, or against the number of saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import inf, isnan

from matplotlib.figure import Figure

from cprsim.commands.select.record import CandidateSummary, Selection
from cprsim.pages.chart import Band, Chart, Panel, Series, chart_figure, floats, merged
from cprsim.pages.figures import OVERHEAD_LABEL
from cprsim.results.words import count, hours

LOSS_AXIS_END = 4.0  # in limits
PAD = 1.25  # factor from the outermost points, and full recovery, to the ends of the axes
BELOW_ONE = 0.5  # position of a job without saves on the logarithmic axis of saves


def selection_figure(selection: Selection, name: str) -> Figure:
    """Overhead of the figure's candidates, against loss if limited, else against saves."""
    draw = _over_loss if selection.limited else _over_saves
    caption = (
        f"{hours(selection.useful_h)} of useful work; "
        f"mean of {count(selection.n_replications, 'replication')}"
    )
    return chart_figure(draw(selection, name, caption))


def _over_loss(selection: Selection, name: str, caption: str) -> Chart:
    """A line per strategy with a point per candidate, and the limit."""
    limit, full = selection.limit, 100 * selection.full.overhead.mean
    lines = merged(
        _points(strategy, [(candidate.upper_bound, candidate) for candidate in points])
        for strategy, points in selection.points.items()
        if any(candidate.loses for candidate in points)
    )
    best = (candidate for candidate in selection.best.values() if candidate)
    lossless = [candidate for candidate in best if not candidate.loses]
    levels = {f"full recovery ({selection.full.interval_words})": selection.full}
    levels |= {f"{system.strategy} ({system.interval_words})": system for system in lossless}
    bands = [
        Band(label, 100 * level.overhead.mean, 100 * level.overhead.mean)
        for label, level in levels.items()
        if not isnan(level.overhead.mean)
    ]
    top = full * PAD if full > 0 else inf
    shown = [
        (float(x), float(y))
        for line in lines
        for x, y in zip(line.x, line.y, strict=True)
        if 0 < float(x) <= LOSS_AXIS_END * limit.most and 0 < y <= top
    ]
    heights = [*(y for _, y in shown), *(band.low for band in bands if 0 < band.low <= top)]
    left = min((x for x, _ in shown), default=0.0) / PAD  # and x of a choice without loss
    bands.append(Band(f"limit ({limit.most:g})", limit.most, limit.most, "x"))
    panel = Panel(
        "", f"{limit.words}, {limit.bound_words}", OVERHEAD_LABEL,
        (*lines, _chosen(selection, max(left, selection.chosen.upper_bound))), tuple(bands),
        x_range=(left, LOSS_AXIS_END * limit.most) if shown else None, x_log=bool(shown),
        y_range=(min(heights) / PAD, max(heights) * PAD) if shown else None, y_log=bool(shown),
    )  # fmt: skip
    title = f"Overhead against {limit.words}, by strategy and interval: {name}"
    return Chart(title, f"{caption}; a point per interval", (panel,))


def _over_saves(selection: Selection, name: str, caption: str) -> Chart:
    """A line for full recovery and for each recovery system."""
    full = selection.full.overhead.mean
    most = 2 * full * PAD if full > 0 else inf
    every = [_place(candidate) for points in selection.points.values() for candidate in points]
    lines = []
    for strategy in dict.fromkeys([*selection.points, *selection.best]):
        points, single = selection.points.get(strategy, ()), selection.best.get(strategy)
        if points:
            near = [
                (_place(candidate), candidate)
                for candidate in points
                if candidate.overhead.mean <= most
            ]
            lines.append(_points(strategy, near))
        elif single is not None:
            ends = [(x, single) for x in (BELOW_ONE, max(every, default=1.0))]
            lines.append(_points(f"{strategy} ({single.interval_words})", ends))
    lines.append(_chosen(selection, _place(selection.chosen)))
    panel = Panel("", "saves per job", OVERHEAD_LABEL, tuple(lines), x_log=True)
    if BELOW_ONE in [*every, _place(selection.chosen)]:
        caption += f"; {BELOW_ONE:g}: no saves"
    return Chart(f"Overhead against the number of saves: {name}", caption, (panel,))


def _place(candidate: CandidateSummary) -> float:
    return max(float(candidate.n_saves), BELOW_ONE)


def _chosen(selection: Selection, x: float) -> Series:
    candidate = selection.chosen
    label = f"chosen: {candidate.strategy}, {candidate.interval_words}"
    return replace(_points(label, [(x, candidate)]), kind="paper")


def _points(label: str, points: Sequence[tuple[float, CandidateSummary]]) -> Series:
    """Overhead of the candidates that finish, in the order of x."""
    finished = [
        (x, 100 * candidate.overhead.mean)
        for x, candidate in points
        if not isnan(candidate.overhead.mean)
    ]
    ordered = sorted(finished, key=lambda point: point[0])
    x, y = floats(x for x, _ in ordered), floats(y for _, y in ordered)
    return Series(label, x, y)
