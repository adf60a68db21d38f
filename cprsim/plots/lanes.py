"""What the timeline shows of one strategy's event log, as plain numbers: no drawing here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd


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


def read_lane(events: pd.DataFrame) -> Lane:
    """The lane of one strategy's events, in order (rows of `cprsim.results.rows.timeline_rows`)."""
    instants = {kind: tuple(mine["at_h"].unique()) for kind, mine in events.groupby("kind")}
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


def visible(lane: Lane, window: tuple[float, float], n_bins: int = 2000) -> Lane:
    """What can be seen of a lane in a window of wall time [h].

    Where there is more than `n_bins` of anything, what falls into one bin of the window is drawn
    as one: the activity that took most of it, or one mark. A figure is no larger for a job with a
    million failures, and looks the same.
    """

    def thinned(instants_h: tuple[float, ...]) -> tuple[float, ...]:
        return _one_a_bin(instants_h, window, n_bins)

    beside = {max(s[0], window[0]): s for s in lane.background if overlaps(s, window)}
    kept = set(thinned(tuple(setback.at_h for setback in lane.setbacks)))
    return replace(
        lane,
        spans=_visible_spans(lane.spans, window, n_bins),
        saved_at_h=thinned(lane.saved_at_h),
        background=tuple(beside[at_h] for at_h in thinned(tuple(beside))),
        abandoned_at_h=thinned(lane.abandoned_at_h),
        failed_at_h=thinned(lane.failed_at_h),
        setbacks=tuple(setback for setback in lane.setbacks if setback.at_h in kept),
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
    activities = sorted({span.activity for span in inside})
    hours = [
        np.diff(np.interp(edges, bounds, np.cumsum([0.0, *_hours_of(activity, inside)])))
        for activity in activities
    ]
    most = np.argmax(hours, axis=0)
    firsts = np.flatnonzero(np.diff(most, prepend=-1))
    ends = edges[np.append(firsts[1:], len(most))]
    return tuple(
        Span(float(start_h), float(end_h), activities[number])
        for start_h, end_h, number in zip(edges[firsts], ends, most[firsts], strict=True)
    )


def _hours_of(activity: str, spans: tuple[Span, ...]) -> Iterator[float]:
    return (span.hours if span.activity == activity else 0.0 for span in spans)


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
    """Rollbacks and reloads, each with the instant whose state it went back to.

    That is the start of the last save that was committed, whose content it is; without one, the
    start of the job.
    """
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
