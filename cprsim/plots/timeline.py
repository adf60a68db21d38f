"""One replication along wall time, a lane per strategy, read out of its log of events."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Rectangle

from cprsim.plots.style import CAPTION, FAINT, INK, LOOKS, look_of, stacked, style
from cprsim.results.words import hours, percent, saves

if TYPE_CHECKING:
    from cprsim.recovery.policy import Policy
    from cprsim.results import Result

WIDTH_IN, LANE_IN = 10.5, 0.68
STRIP = (0.0, 0.42)  # bottom and top of the band of activities within a lane of height 1
TICKS = (-0.05, -0.22)  # of the saves, below the strip
MARKS = 0.57  # of the failures, above the strip
NOT_LANES_IN = 2.3  # width of all that stands beside the lanes, about
ARROW_HEAD_POINTS = 9.0  # a shorter arrow is a line: its head would stick out
# shares of the lanes' width: a narrower span has no hatch, a stall is at least as wide
WIDE, HAIRLINE = 0.004, 0.0012
MOST_HAIRLINES = 0.05  # of a lane's length: more of them would hide what else there is
CUT_ABOVE_TIMES = 4.0  # a lane so many times as long as the next is cut, to let others be seen
N_READABLE = 60  # marks of one kind in a lane that still stand apart
SHARE_OF_CLOSE_UP = 0.12  # of the whole time: a wider close-up would show nothing new


@dataclass(frozen=True, slots=True)
class Span:
    """The job was in one activity from one instant of wall time to another."""

    start_h: float
    end_h: float
    activity: str

    @property
    def hours(self) -> float:
        return self.end_h - self.start_h


@dataclass(frozen=True, slots=True)
class Setback:
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
    events = {str(k): v for k, v in result.timeline.groupby("strategy", sort=False)}
    lanes = [read_lane(events[policy.name]) for policy in result.policies]
    end_h = shown_until_h(lanes)
    window = close_up(lanes, end_h)
    lanes_in = LANE_IN * len(lanes)
    heights = [lanes_in] if window is None else [lanes_in, lanes_in]
    with style():
        size_in = (WIDTH_IN, sum(heights) + 0.9 + 0.75 * len(heights))
        figure = Figure(size_in, layout="constrained")
        panels = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        _whole(panels[0], lanes, result, end_h)
        if window is not None:
            _draw(panels[1], lanes, result, window)
            panels[1].set_facecolor("#fffbec")
            panels[1].set_title(
                "Close-up of the first failure", loc="left", fontsize=9, fontweight="bold"
            )
            panels[0].axvspan(*window, ymin=0, ymax=1, color="#fff3c4", zorder=-5, lw=0)
        for axes in panels:
            axes.locator_params(axis="x", nbins=10)
            axes.set_xlabel("wall time since the start of the job, h")
        _legend(figure, lanes)
    return figure


def shown_until_h(lanes: list[Lane]) -> float:
    """Where the axis of the whole timeline ends [h]."""
    ends = sorted((lane.end_h for lane in lanes), reverse=True)
    if len(ends) > 1 and ends[0] > CUT_ABOVE_TIMES * ends[1]:
        return min(ends[0], 2 * ends[1])
    return ends[0]


def close_up(lanes: list[Lane], end_h: float) -> tuple[float, float] | None:
    """Start and end [h] of a stretch around the first failure that shows how each recovers."""
    firsts = [lane.failed_at_h[0] for lane in lanes if lane.failed_at_h]
    if not firsts:
        return None
    begin_h = min(firsts)
    widest_h = SHARE_OF_CLOSE_UP * end_h
    recoveries_h = [1.5 * (_recovered_at_h(lane, end_h) - begin_h) for lane in lanes]
    width_h = max((hours for hours in recoveries_h if 0 < hours < widest_h), default=widest_h)
    return max(0.0, begin_h - width_h / 3), min(end_h, begin_h + width_h)


def _recovered_at_h(lane: Lane, end_h: float) -> float:
    """When the lane is back to work done for the first time after its first failure."""
    if not lane.failed_at_h:
        return 0.0
    after = (s.start_h for s in lane.spans if s.activity == "useful")
    return next((at_h for at_h in after if at_h > lane.failed_at_h[0]), end_h)


def _whole(axes: Axes, lanes: list[Lane], result: Result, end_h: float) -> None:
    _draw(axes, lanes, result, (0.0, end_h))
    if result.useful_h <= end_h:  # else all were given up before
        axes.axvline(result.useful_h, color=INK, lw=0.9, ls=(0, (4, 3)), zorder=0.5)
        axes.annotate(
            f"{hours(result.useful_h)}: without failures and saves", (result.useful_h, 1), (0, 3),
            xycoords=("data", "axes fraction"), textcoords="offset points",
            ha="right" if result.useful_h > end_h / 2 else "left", fontsize=7.5, color=CAPTION,
        )  # fmt: skip
    for y, lane in enumerate(reversed(lanes)):
        ending = _ending(lane, result.useful_h, end_h)
        axes.annotate(
            ending, (min(lane.end_h, end_h), y + 0.21), (6, 0),
            textcoords="offset points", va="center", fontsize=8, annotation_clip=False,
        )  # fmt: skip
    title = f"Replication {result.timeline_replication} of {result.name}"
    axes.set_title(title, loc="left", fontweight="bold", pad=18)


def _ending(lane: Lane, useful_h: float, shown_h: float) -> str:
    """What stands at the end of a lane; an arrow where the lane continues beyond the axis."""
    ended = hours(lane.end_h)
    if lane.end_h > shown_h:
        ended = f"\N{RIGHTWARDS ARROW} {ended}"
    if not lane.finished:
        return f"{ended},\nnot finished"
    return f"{ended}\n+{percent(lane.end_h / useful_h - 1)}"


def _draw(axes: Axes, lanes: list[Lane], result: Result, window: tuple[float, float]) -> None:
    """All lanes within a window, the first on top."""
    axes.set_xlim(*window)
    axes.set_ylim(-0.32, len(lanes) - 0.2)
    for i, (policy, whole) in enumerate(zip(result.policies, lanes, strict=True)):
        y, lane = float(len(lanes) - 1 - i), visible(whole, window)
        _draw_strip(axes, y, lane, window)
        _draw_saves(axes, y, lane)
        _draw_failures(axes, y + MARKS, lane, window)
        _name(axes, y, policy, result.useful_h)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.xaxis.grid(True)


def _name(axes: Axes, y: float, policy: Policy, useful_h: float) -> None:
    every = saves(policy, useful_h)
    place: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"),
        "textcoords": "offset points",
        "ha": "right",
    }
    axes.annotate(policy.name, (0, y + 0.21), (-8, 1), va="bottom", fontweight="bold", **place)
    axes.annotate(every, (0, y + 0.21), (-8, -1), va="top", fontsize=8, color=CAPTION, **place)


def _draw_strip(axes: Axes, y: float, lane: Lane, window: tuple[float, float]) -> None:
    bottom, top = STRIP
    wide_h, hairline_h = (share * (window[1] - window[0]) for share in (WIDE, HAIRLINE))
    for activity in activities([lane]):
        look = look_of(activity)
        spans = [span for span in lane.spans if span.activity == activity]
        crowded = len(spans) * hairline_h > MOST_HAIRLINES * lane.end_h
        # saves have their ticks
        least_h = 0.0 if activity in ("useful", "save") or crowded else hairline_h
        wide = [(span.start_h, span.hours) for span in spans if span.hours >= wide_h]
        thin = [(span.start_h, max(span.hours, least_h)) for span in spans if span.hours < wide_h]
        for parts, hatch in ((wide, look.hatch), (thin, "")):
            if parts:
                fill = look.fill() | {"hatch": hatch}
                # snapping to whole pixels would make some of many short spans wider than others
                axes.broken_barh(parts, (y + bottom, top - bottom), zorder=2, snap=False, **fill)
    outline = Rectangle((0, y + bottom), lane.end_h, top - bottom, fill=False, ec=FAINT, lw=0.6)
    outline.set_zorder(3)
    axes.add_patch(outline)


def _draw_saves(axes: Axes, y: float, lane: Lane) -> None:
    top, bottom = (y + end for end in TICKS)
    width = max(0.3, min(1.4, 1.4 * N_READABLE / max(len(lane.saved_at_h), 1)))
    colour = LOOKS["save"].colour
    ticks = [[(at_h, bottom), (at_h, top)] for at_h in lane.saved_at_h]
    axes.add_collection(LineCollection(ticks, colors=colour, linewidths=width), autolim=False)
    middle = (top + bottom) / 2
    behind = [[(start, middle), (end, middle)] for start, end in lane.background]
    axes.add_collection(
        LineCollection(behind, colors=colour, linewidths=2, alpha=0.45), autolim=False
    )
    axes.plot(
        lane.abandoned_at_h, [middle] * len(lane.abandoned_at_h),
        ls="", marker="x", ms=5, mew=1.4, color=INK, zorder=5,
    )  # fmt: skip


def _draw_failures(axes: Axes, y: float, lane: Lane, window: tuple[float, float]) -> None:
    """Marks over the strip, and arrows from each failure back to the state that it left."""
    crowded = len(lane.failed_at_h) > N_READABLE
    axes.plot(
        lane.failed_at_h, [y] * len(lane.failed_at_h),
        ls="", marker="v", ms=3 if crowded else 6.5, color=INK, mec="white", mew=0.4, zorder=6,
    )  # fmt: skip
    colour = LOOKS["lost"].colour
    if len(lane.setbacks) > N_READABLE:
        lines = [[(setback.at_h, y), (setback.back_to_h, y)] for setback in lane.setbacks]
        axes.add_collection(LineCollection(lines, colors=colour, alpha=0.35), autolim=False)
        return
    width_points = 72 * (WIDTH_IN - NOT_LANES_IN)
    for setback in lane.setbacks:
        points = (setback.at_h - setback.back_to_h) / (window[1] - window[0]) * width_points
        arrow = FancyArrowPatch(
            (setback.at_h, y), (setback.back_to_h, y),
            arrowstyle="-|>" if points > ARROW_HEAD_POINTS else "-",
            mutation_scale=7, shrinkA=0, shrinkB=0, lw=1.0, color=colour, zorder=4, clip_on=True,
            ls=(0, (1.5, 1.5)) if setback.shards_only else "-",
        )  # fmt: skip
        axes.add_patch(arrow)


def _legend(figure: Figure, lanes: list[Lane]) -> None:
    handles: list[object] = [look_of(activity).patch() for activity in activities(lanes)]
    lost, save = LOOKS["lost"].colour, LOOKS["save"].colour
    if any(lane.failed_at_h for lane in lanes):
        handles.append(Line2D([], [], ls="", marker="v", ms=6.5, color=INK, label="failure"))
    setbacks = [setback for lane in lanes for setback in lane.setbacks]
    if any(not setback.shards_only for setback in setbacks):
        handles.append(Line2D([], [], color=lost, marker="<", ms=4, label="all go back"))
    if any(setback.shards_only for setback in setbacks):
        label = "failed shards go back"
        handles.append(Line2D([], [], color=lost, ls=":", marker="<", ms=4, label=label))
    if any(lane.saved_at_h for lane in lanes):
        handles.append(Line2D([], [], ls="", marker="|", ms=8, mew=1.4, color=save, label="saved"))
    if any(lane.background for lane in lanes):
        handles.append(Line2D([], [], color=save, lw=2, alpha=0.45, label="saving beside the work"))
    if any(lane.abandoned_at_h for lane in lanes):
        handles.append(
            Line2D([], [], ls="", marker="x", mew=1.4, color=INK, label="save abandoned")
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=min(len(handles), 6))


# --------------------------------------------------------------------------- lanes from events


def read_lane(events: pd.DataFrame) -> Lane:
    """The lane of one strategy's events, in order (rows of `cprsim.results.rows.timeline_rows`)."""
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
    """What the jobs do in these lanes, in the order of the legend."""
    return stacked(sorted({span.activity for lane in lanes for span in lane.spans} - {"over"}))


def visible(lane: Lane, window: tuple[float, float], n_bins: int = 2000) -> Lane:
    """What can be seen of a lane in a window of wall time [h].

    Where there is more than `n_bins` of anything, what falls into one bin of the window is drawn
    as one: the activity that took most of it, or one mark. A figure is no larger for a job with a
    million failures, and looks the same.
    """

    def thinned(instants_h: tuple[float, ...]) -> tuple[float, ...]:
        return _one_a_bin(instants_h, window, n_bins)

    beside = {max(s[0], window[0]): s for s in lane.background if overlaps(s, window)}
    visible_at_h = set(thinned(tuple(setback.at_h for setback in lane.setbacks)))
    return replace(
        lane,
        spans=_visible_spans(lane.spans, window, n_bins),
        saved_at_h=thinned(lane.saved_at_h),
        background=tuple(beside[at_h] for at_h in thinned(tuple(beside))),
        abandoned_at_h=thinned(lane.abandoned_at_h),
        failed_at_h=thinned(lane.failed_at_h),
        setbacks=tuple(setback for setback in lane.setbacks if setback.at_h in visible_at_h),
    )


def overlaps(stretch: tuple[float, float], window: tuple[float, float]) -> bool:
    """Whether two stretches of time have more than an instant in common."""
    return stretch[0] < window[1] and stretch[1] > window[0]


def _one_a_bin(
    instants_h: tuple[float, ...], window: tuple[float, float], n_bins: int
) -> tuple[float, ...]:
    inside = np.array([at_h for at_h in instants_h if window[0] <= at_h <= window[1]])
    if len(inside) > n_bins:
        bins = (inside - window[0]) * (n_bins / (window[1] - window[0]))
        inside = inside[np.unique(bins.astype(np.int64), return_index=True)[1]]
    return tuple(inside.tolist())


def _visible_spans(
    spans: tuple[Span, ...], window: tuple[float, float], n_bins: int
) -> tuple[Span, ...]:
    inside = tuple(span for span in spans if overlaps((span.start_h, span.end_h), window))
    if len(inside) <= n_bins:
        return inside
    edges = np.linspace(max(window[0], inside[0].start_h), min(window[1], inside[-1].end_h), n_bins)
    bounds = np.array([inside[0].start_h, *(span.end_h for span in inside)])
    names = sorted({span.activity for span in inside})
    hours = []
    for name in names:
        of_name = [span.hours if span.activity == name else 0.0 for span in inside]
        hours.append(np.diff(np.interp(edges, bounds, np.cumsum([0.0, *of_name]))))
    most = np.argmax(hours, axis=0)
    firsts = np.flatnonzero(np.diff(most, prepend=-1))
    ends = edges[np.append(firsts[1:], len(most))]
    return tuple(
        Span(float(start_h), float(end_h), names[number])
        for start_h, end_h, number in zip(edges[firsts], ends, most[firsts], strict=True)
    )


def _spans(events: pd.DataFrame) -> tuple[Span, ...]:
    """Stretches of one activity; neighbours of the same activity are one."""
    changed = events["activity"] != events["activity"].shift()
    starts = events.loc[changed, ["at_h", "activity"]]
    ends = [*starts["at_h"].iloc[1:], events["at_h"].iloc[-1]]
    return tuple(
        Span(float(start), float(end), str(activity))
        for start, end, activity in zip(starts["at_h"], ends, starts["activity"], strict=True)
        if end > start
    )


def _background(events: pd.DataFrame) -> tuple[tuple[float, float], ...]:
    """From the end of the stall to the commit, or to where the save was abandoned."""
    stretches, since = [], None
    for kind, at_h in zip(events["kind"], events["at_h"], strict=True):
        if kind == "save_resumed":
            since = float(at_h)
        elif kind in ("save_committed", "save_abandoned") and since is not None:
            stretches.append((since, float(at_h)))
            since = None
    return tuple(stretches)


def _setbacks(events: pd.DataFrame) -> tuple[Setback, ...]:
    """Rollbacks and reloads, each with the instant whose state it went back to."""
    found: dict[tuple[float, bool], Setback] = {}
    save_started_h = last_save_h = 0.0
    columns = (events["kind"], events["at_h"], events["progress_h"])
    for kind, at_h, progress_h in zip(*columns, strict=True):
        if kind == "save_started":
            save_started_h = float(at_h)
        elif kind == "save_committed":
            last_save_h = save_started_h
        elif kind in ("rolled_back", "reverted"):
            shards_only = kind == "reverted"
            from_nothing = not shards_only and progress_h == 0
            back_to_h = 0.0 if from_nothing else last_save_h
            found[float(at_h), shards_only] = Setback(float(at_h), back_to_h, shards_only)
    return tuple(found.values())
