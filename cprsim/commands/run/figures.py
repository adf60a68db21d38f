"""Overhead by part, as in the CPR paper, and by percentile; one replication along wall time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from cprsim.job.policy import Policy
from cprsim.job.records import Estimate
from cprsim.pages.chart import Chart, Panel, Series, chart_figure, floats
from cprsim.pages.figures import (
    CAPTION,
    FAINT,
    INK,
    LOOKS,
    OVERHEAD_LABEL,
    axis_top,
    fold,
    look_of,
    stacked,
    style,
    title_figure,
)
from cprsim.results.metrics import FINISHED, OVERHEAD, parts_among, share_of
from cprsim.results.run import Result
from cprsim.results.words import count, hours, percent, saves, significant

WIDTH_IN = 8.0
ROW_IN, BAR_WIDTH, NAME_WIDTH = 0.3, 0.62, 44  # of a bar; characters of a line of its name
ERRORS = "error bars: 95 % interval of the mean"
LEGEND_COLUMNS, FAINT_ALPHA = 5, 0.45
UNKNOWN = Estimate(nan)
READ_AT = 95  # the percentile by which the scale of all is chosen


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of a strategy or system: its name, its label, its quantities, its error bar."""

    name: str
    total: str
    summary: Mapping[str, Estimate]
    half_width: float  # of the error bar
    is_faint: bool = False


def overhead_figure(
    result: Result, today: Result | None = None, width_in: float = WIDTH_IN
) -> Figure:
    """A bar per strategy, in the order of the scenario; below each a faint one of `today`."""
    bars = {policy.name: [_bar(policy, result)] for policy in result.policies}
    if today is not None:
        for policy in today.policies:
            bar = _bar(policy, today)
            faint = replace(bar, name=f"today: {bar.name}", is_faint=True)
            bars.setdefault(policy.name, []).append(faint)
    listed = [bar for pair in bars.values() for bar in pair]
    return bars_figure(result, result.name, "strategy", listed, width_in=width_in)


def _bar(policy: Policy, result: Result) -> Bar:
    """Labelled with its overhead and, where there is a price, its cost; or the finished share."""
    summary, prices = result.summary[policy.name], result.prices
    overhead, share = summary[OVERHEAD], summary[FINISHED].mean
    total = percent(overhead.mean)
    if isnan(overhead.mean):
        total = f"only {percent(share)} finished" if share else "no replication finished"
    elif prices is not None and prices.node_hour:
        cost = significant(prices.node_hour * summary["overhead_node_h"].mean)
        total = f"{total}, {cost} {prices.prices.label}".rstrip()
    name = f"{policy.name}, {saves(policy, result.useful_h)}"
    return Bar(name, total, summary, overhead.half_width)


def bars_figure(
    result: Result, name: str, of: str, bars: Sequence[Bar], about: str = "", errors: str = ERRORS,
    width_in: float = WIDTH_IN,
) -> Figure:  # fmt: skip
    """Stacked bars of mean overhead in percent of useful time, with 95 % intervals.

    Those with replications that did not finish have no bar.
    """
    finishing = [bar for bar in bars if bar.summary[FINISHED].mean == 1]
    parts = [
        part
        for part in stacked(parts_among(part for bar in bars for part in bar.summary))
        if any(bar.summary.get(share_of(part), UNKNOWN).mean > 0 for bar in finishing)
    ]
    ends = [bar.summary[OVERHEAD].mean + np.nan_to_num(bar.half_width) for bar in finishing]
    edge = axis_top(ends)
    name_width, n_columns = (int(of * width_in / WIDTH_IN) for of in (NAME_WIDTH, LEGEND_COLUMNS))
    with style():
        figure = Figure(figsize=(width_in, 1.9 + ROW_IN * len(bars)), layout="constrained")
        axes = figure.add_subplot()
        for y, bar in enumerate(bars):
            left = 0.0
            for part in parts if bar in finishing else ():
                of_part = bar.summary.get(share_of(part), UNKNOWN).mean
                width = float(np.nan_to_num(of_part))  # NaN: a part that only others have
                look = look_of(part) | ({"alpha": FAINT_ALPHA} if bar.is_faint else {})
                axes.barh(y, width, BAR_WIDTH, left, **look)
                left += width
            if bar.half_width > 0 and left < edge:
                axes.errorbar(left, y, xerr=bar.half_width, color=INK, capsize=3, lw=1.1)
            total = f" {bar.total}{' →' if left > edge else ''}"
            axes.text(1, y, total, transform=axes.get_yaxis_transform(), va="center", fontsize=8)
        axes.set_xlim(0, edge)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        axes.set_yticks(range(len(bars)), [fold(bar.name, name_width) for bar in bars])
        axes.tick_params(axis="y", length=0)
        axes.xaxis.set_major_formatter(lambda share, _: f"{round(100 * share, 9):g}")
        axes.xaxis.grid(True)
        axes.set_xlabel(OVERHEAD_LABEL)
        handles = [Patch(**look_of(part)) for part in parts]
        figure.legend(handles=handles, loc="outside lower left", ncols=n_columns, fontsize=8)
        n = count(max(bar.summary[FINISHED].n for bar in bars), "replication")
        caption = (
            f"{hours(result.useful_h)} of useful work on {count(result.n_nodes, 'node')}{about}; "
            f"mean of {n}; {errors}"
        )
        title_figure(figure, f"Overhead by {of}: {name}", caption)
    return figure


def percentiles_figure(overheads: Mapping[str, pd.DataFrame], *, run_name: str) -> Figure:
    """A line per strategy with the band of its 95 % intervals, by overhead as a share."""
    lines = tuple(
        Series(
            name, floats(frame.index), floats(100 * frame["value"]), floats(100 * frame["low"]),
            floats(100 * frame["high"]),
        )
        for name, frame in overheads.items()
    )  # fmt: skip
    at = [float(frame["value"][READ_AT]) for frame in overheads.values()]
    x_label = "percentile of the replications [%]"
    panel = Panel("", x_label, OVERHEAD_LABEL, lines, y_log=axis_top(at) < max(at))
    title = f"Percentiles of the overhead: {run_name}"
    return chart_figure(
        Chart(title, "share of replications with at most this overhead; bands: 95 %", (panel,))
    )


# --------------------------------------------------------------------------- along wall time

TIMELINE_IN, LANE_IN = 10.5, 0.68
STRIP = (0.0, 0.42)  # bottom and top of the band of activities within a lane of height 1
SAVES_AT = (-0.05, -0.22)  # of the saves, below the strip
FAILURES_AT = 0.57  # of the failures, above the strip
NOT_LANES_IN = 2.3  # width of all that stands beside the lanes, about
ARROW_HEAD_POINTS = 9.0  # a shorter arrow is a line: its head would stick out
# shares of the lanes' width: a narrower span has no hatch, a stall is at least as wide
WIDE, HAIRLINE = 0.004, 0.0012
MOST_HAIRLINES = 0.05  # of a lane's length: more of them would hide what else there is
CUT_ABOVE_TIMES = 4.0  # a lane so many times as long as the next is cut, to let others be seen
ENDS_OF_SAVES = ("save_committed", "save_abandoned")
N_READABLE = 60  # marks of one kind in a lane that still stand apart
SHARE_OF_CLOSE_UP = 0.12  # of the whole time: a wider close-up would show nothing new
LOST, SAVE = LOOKS["lost"]["facecolor"], LOOKS["save"]["facecolor"]
FAILURE_MARKER: dict[str, Any] = {
    "ls": "", "marker": "v", "ms": 6.5, "color": INK, "mec": "white", "mew": 0.4
}  # fmt: skip
ABANDONED: dict[str, Any] = {"ls": "", "marker": "x", "ms": 5, "mew": 1.4, "color": INK}


class Span(NamedTuple):
    """The job was in one activity from one instant of wall time to another."""

    start_h: float
    end_h: float
    activity: str


class Setback(NamedTuple):
    """At an instant, all (or the failed shards alone) went back to the state of an earlier one."""

    at_h: float
    back_to_h: float  # wall time at which the state that is gone back to was reached
    shards_only: bool


@dataclass(frozen=True, slots=True)
class Lane:
    """One strategy's replication along wall time."""

    spans: tuple[Span, ...]
    saved_at_h: tuple[float, ...]  # commits
    background: tuple[tuple[float, float], ...]  # saves that went on beside the training
    abandoned_at_h: tuple[float, ...]
    failed_at_h: tuple[float, ...]  # one instant per failure, however many nodes it struck
    setbacks: tuple[Setback, ...]
    end_h: float
    finished: bool


def timeline_figure(result: Result) -> Figure:
    """Lanes over the whole replication, and below them the first failure from close up."""
    lanes = [*lanes_of(result).values()]
    ends = sorted((lane.end_h for lane in lanes), reverse=True)
    is_cut = len(ends) > 1 and ends[0] > CUT_ABOVE_TIMES * ends[1]
    end_h = min(ends[0], 2 * ends[1]) if is_cut else ends[0]
    window = close_up(lanes, end_h)
    windows = [(0.0, end_h), *([] if window is None else [window])]
    with style():
        size_in = (TIMELINE_IN, (LANE_IN * len(lanes) + 0.75) * len(windows) + 1.1)
        figure = Figure(size_in, layout="constrained")
        panels = list(figure.subplots(len(windows), 1, squeeze=False)[:, 0])
        for axes, shown_window in zip(panels, windows, strict=True):
            _draw(axes, lanes, result, shown_window)
        _draw_ends(panels[0], lanes, result, end_h)
        if window is not None:
            panels[1].set_facecolor("#fffbec")
            panels[1].set_title("Close-up of the first failure", loc="left", fontsize=9)
            panels[0].axvspan(*window, color="#fff3c4", zorder=-5, lw=0)
        _legend(figure, lanes)
        title = f"Timeline of replication {result.timeline_replication}: {result.name}"
        title_figure(figure, title, f"dashed: {hours(result.useful_h)}, the useful work alone")
    return figure


def close_up(lanes: list[Lane], end_h: float) -> tuple[float, float] | None:
    """Start and end [h] of a stretch around the first failure that shows how each recovers."""
    failed = [lane for lane in lanes if lane.failed_at_h]
    if not failed:
        return None
    begin_h, widest_h = min(lane.failed_at_h[0] for lane in failed), SHARE_OF_CLOSE_UP * end_h
    works_again_h = [
        next((at_h for at_h, _, activity in lane.spans
              if activity == "useful" and at_h > lane.failed_at_h[0]), end_h)
        for lane in failed
    ]  # fmt: skip
    recoveries_h = [1.5 * (at_h - begin_h) for at_h in works_again_h]
    width_h = max((hours for hours in recoveries_h if 0 < hours < widest_h), default=widest_h)
    return max(0.0, begin_h - width_h / 3), min(end_h, begin_h + width_h)


def _draw_ends(axes: Axes, lanes: list[Lane], result: Result, end_h: float) -> None:
    """Where the work would have ended, and how each lane ended; an arrow beyond the axis."""
    axes.axvline(result.useful_h, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0.5)
    for y, lane in enumerate(reversed(lanes)):
        arrow = "\N{RIGHTWARDS ARROW} " if lane.end_h > end_h else ""
        more = f"\n+{percent(lane.end_h / result.useful_h - 1)}"
        axes.annotate(
            f"{arrow}{hours(lane.end_h)}" + (more if lane.finished else ",\nnot finished"),
            (min(lane.end_h, end_h), y + 0.21), (6, 0), textcoords="offset points", va="center",
            fontsize=8, annotation_clip=False,
        )  # fmt: skip


def _draw(axes: Axes, lanes: list[Lane], result: Result, window: tuple[float, float]) -> None:
    """All lanes within a window, the first on top."""
    axes.set_xlim(*window)
    axes.set_ylim(-0.32, len(lanes) - 0.2)
    for i, (policy, full_lane) in enumerate(zip(result.policies, lanes, strict=True)):
        y, lane = float(len(lanes) - 1 - i), visible(full_lane, window)
        _draw_strip(axes, y, lane, window)
        _draw_marks(axes, y, lane, window)
        every = saves(policy, result.useful_h)
        place: dict[str, Any] = {
            "xy": (0, y + 0.21), "xycoords": ("axes fraction", "data"),
            "textcoords": "offset points", "ha": "right",
        }  # fmt: skip
        axes.annotate(policy.name, xytext=(-8, 1), va="bottom", fontweight="bold", **place)
        axes.annotate(every, xytext=(-8, -1), va="top", fontsize=8, color=CAPTION, **place)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.grid(True)
    axes.locator_params(axis="x", nbins=10)
    axes.set_xlabel("wall time since the start of the job [h]")


def _draw_strip(axes: Axes, y: float, lane: Lane, window: tuple[float, float]) -> None:
    bottom, top = STRIP
    wide_h, hairline_h = (share * (window[1] - window[0]) for share in (WIDE, HAIRLINE))
    for activity in activities([lane]):
        look = look_of(activity)
        hours_of = [(start, end - start) for start, end, kind in lane.spans if kind == activity]
        crowded = len(hours_of) * hairline_h > MOST_HAIRLINES * lane.end_h
        # saves have their ticks
        least_h = 0.0 if activity in ("useful", "save") or crowded else hairline_h
        wide = [(start, width) for start, width in hours_of if width >= wide_h]
        thin = [(start, max(width, least_h)) for start, width in hours_of if width < wide_h]
        for parts, hatch in ((wide, look["hatch"]), (thin, "")):
            if parts:
                fill = look | {"hatch": hatch}
                # snapping to whole pixels would make some of many short spans wider than others
                axes.broken_barh(parts, (y + bottom, top - bottom), zorder=2, snap=False, **fill)
    strip = Rectangle((0, y + bottom), lane.end_h, top - bottom, fill=False, ec=FAINT, lw=0.6)
    axes.add_patch(strip).set_zorder(3)


def _draw_marks(axes: Axes, y: float, lane: Lane, window: tuple[float, float]) -> None:
    """Saves below the strip; failures above it, with arrows back to the state that each left."""

    def lines(ends: Iterable[tuple[float, float, float, float]], **look: Any) -> None:
        segments = [[(x, y), (to_x, to_y)] for x, y, to_x, to_y in ends]
        axes.add_collection(LineCollection(segments, **look), autolim=False)

    top, bottom = (y + end for end in SAVES_AT)
    middle, above = (top + bottom) / 2, y + FAILURES_AT
    width = max(0.3, min(1.4, 1.4 * N_READABLE / max(len(lane.saved_at_h), 1)))
    lines(((at, bottom, at, top) for at in lane.saved_at_h), colors=SAVE, linewidths=width)
    behind = ((start, middle, end, middle) for start, end in lane.background)
    lines(behind, colors=SAVE, linewidths=2, alpha=0.45)
    small = {"ms": 3} if len(lane.failed_at_h) > N_READABLE else {}
    for instants_h, height, look in (
        (lane.abandoned_at_h, middle, ABANDONED),
        (lane.failed_at_h, above, FAILURE_MARKER | small),
    ):
        axes.plot(instants_h, [height] * len(instants_h), zorder=6, **look)
    if len(lane.setbacks) > N_READABLE:
        back = ((setback.at_h, above, setback.back_to_h, above) for setback in lane.setbacks)
        lines(back, colors=LOST, alpha=0.35)
        return
    per_h = 72 * (TIMELINE_IN - NOT_LANES_IN) / (window[1] - window[0])  # points
    for at_h, back_to_h, shards_only in lane.setbacks:
        head = (at_h - back_to_h) * per_h > ARROW_HEAD_POINTS
        arrow = FancyArrowPatch(
            (at_h, above), (back_to_h, above), arrowstyle="-|>" if head else "-",
            mutation_scale=7, shrinkA=0, shrinkB=0, lw=1.0, color=LOST, zorder=4, clip_on=True,
            ls=(0, (1.5, 1.5)) if shards_only else "-",
        )  # fmt: skip
        axes.add_patch(arrow)


def _legend(figure: Figure, lanes: list[Lane]) -> None:
    """Draw the legend, with each mark of the lanes once."""
    back = {setback.shards_only for lane in lanes for setback in lane.setbacks}
    marks: list[tuple[str, bool, dict[str, Any]]] = [
        ("failure", any(lane.failed_at_h for lane in lanes), FAILURE_MARKER),
        ("all go back", False in back, {"color": LOST, "marker": "<", "ms": 4}),
        ("failed shards go back", True in back, {"color": LOST, "ls": ":", "marker": "<", "ms": 4}),
        ("saved", any(lane.saved_at_h for lane in lanes),
         {"color": SAVE, "ls": "", "marker": "|", "ms": 8, "mew": 1.4}),
        ("saving beside the work", any(lane.background for lane in lanes),
         {"color": SAVE, "lw": 2, "alpha": 0.45}),
        ("save abandoned", any(lane.abandoned_at_h for lane in lanes), ABANDONED),
    ]  # fmt: skip
    handles: list[Artist] = [Patch(**look_of(activity)) for activity in activities(lanes)]
    handles += [Line2D([], [], label=label, **look) for label, is_shown, look in marks if is_shown]
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6))


# --------------------------------------------------------------------------- lanes from events


def lanes_of(result: Result) -> dict[str, Lane]:
    """The lanes of its timeline by strategy, in the order of the scenario."""
    events = {str(name): mine for name, mine in result.timeline.groupby("strategy", sort=False)}
    return {policy.name: read_lane(events[policy.name]) for policy in result.policies}


def read_lane(events: pd.DataFrame) -> Lane:
    """The lane of one strategy's events, in order (rows of `timeline_rows`)."""
    instants = {kind: tuple(rows["at_h"].unique()) for kind, rows in events.groupby("kind")}
    return Lane(
        spans=_spans(events),
        saved_at_h=instants.get("save_committed", ()),
        background=_background(events),
        abandoned_at_h=instants.get("save_abandoned", ()),
        failed_at_h=instants.get("failed", ()),
        setbacks=_setbacks(events),
        end_h=float(events["at_h"].iloc[-1]),
        finished=events["kind"].iloc[-1] == "finished",
    )


def activities(lanes: list[Lane]) -> tuple[str, ...]:
    """Activities of the jobs in these lanes, in the order of the legend."""
    return stacked(sorted({span.activity for lane in lanes for span in lane.spans} - {"over"}))


def visible(lane: Lane, window: tuple[float, float], n_bins: int = 2000) -> Lane:
    """The part of a lane in a window of wall time [h].

    Where there is more than `n_bins` of anything, what falls into one bin of the window is drawn
    as one: the activity that took most of it, or one mark. A figure is no larger for a job with a
    million failures, and looks the same.
    """
    low, high = window

    def thinned(instants_h: Iterable[float]) -> tuple[float, ...]:
        inside = np.array([at_h for at_h in instants_h if low <= at_h <= high])
        if len(inside) > n_bins:
            bins = ((inside - low) * (n_bins / (high - low))).astype(np.int64)
            inside = inside[np.unique(bins, return_index=True)[1]]
        return tuple(inside.tolist())

    background = {max(start, low): (start, end) for start, end in lane.background
              if start < high and end > low}  # fmt: skip
    back_at_h = set(thinned(setback.at_h for setback in lane.setbacks))
    spans = tuple(span for span in lane.spans if span.start_h < high and span.end_h > low)
    return replace(
        lane,
        spans=spans if len(spans) <= n_bins else _longest(spans, window, n_bins),
        saved_at_h=thinned(lane.saved_at_h),
        background=tuple(background[at_h] for at_h in thinned(background)),
        abandoned_at_h=thinned(lane.abandoned_at_h),
        failed_at_h=thinned(lane.failed_at_h),
        setbacks=tuple(setback for setback in lane.setbacks if setback.at_h in back_at_h),
    )


def _longest(spans: tuple[Span, ...], window: tuple[float, float], n_bins: int) -> tuple[Span, ...]:
    """One span per bin, of the activity that took most of it; equal neighbours are one."""
    edges = np.linspace(max(window[0], spans[0].start_h), min(window[1], spans[-1].end_h), n_bins)
    bounds = np.array([spans[0].start_h, *(span.end_h for span in spans)])
    lengths_h, names = np.diff(bounds), np.array([span.activity for span in spans])
    kinds = np.unique(names)
    spent_h = [np.append(0.0, np.cumsum(np.where(names == kind, lengths_h, 0))) for kind in kinds]
    most = np.argmax([np.diff(np.interp(edges, bounds, total_h)) for total_h in spent_h], axis=0)
    firsts = np.flatnonzero(np.diff(most, prepend=-1))
    ends = edges[np.append(firsts[1:], len(most))]
    places = zip(edges[firsts], ends, most[firsts], strict=True)
    return tuple(Span(float(start), float(end), str(kinds[kind])) for start, end, kind in places)


def _spans(events: pd.DataFrame) -> tuple[Span, ...]:
    """Stretches of one activity; neighbours of the same activity are one."""
    starts = events[events["activity"] != events["activity"].shift()]
    ends = [*starts["at_h"].iloc[1:], events["at_h"].iloc[-1]]
    work_periods = zip(starts["at_h"], ends, starts["activity"], strict=True)
    return tuple(
        Span(float(x), float(end), str(activity)) for x, end, activity in work_periods if end > x
    )


def _background(events: pd.DataFrame) -> tuple[tuple[float, float], ...]:
    """From the end of the stall to the commit, or to where the save was abandoned."""
    saves = events[events["kind"].isin(["save_resumed", *ENDS_OF_SAVES])]
    goes_on = (saves["kind"] == "save_resumed") & saves["kind"].shift(-1).isin(ENDS_OF_SAVES)
    ends = zip(saves["at_h"][goes_on], saves["at_h"].shift(-1)[goes_on], strict=True)
    return tuple((float(start), float(end)) for start, end in ends)


def _setbacks(events: pd.DataFrame) -> tuple[Setback, ...]:
    """Rollbacks and reloads, each with the instant whose state it went back to."""
    kind, at_h = events["kind"], events["at_h"]
    started_h = at_h.where(kind == "save_started").ffill()
    saved_h = started_h.where(kind == "save_committed").ffill().fillna(0.0)
    from_nothing = (kind == "rolled_back") & (events["progress_h"] == 0)
    rows = events.assign(back_to_h=saved_h.where(~from_nothing, 0.0), shards=kind == "reverted")
    rows = rows[kind.isin(["rolled_back", "reverted"])].drop_duplicates(
        ["at_h", "shards"], keep="last"
    )
    columns = zip(rows["at_h"], rows["back_to_h"], rows["shards"], strict=True)
    return tuple(
        Setback(float(at_h), float(back_h), bool(shards)) for at_h, back_h, shards in columns
    )
