"""What the timeline shows of one strategy's event log, as plain numbers: no drawing here."""

from __future__ import annotations

from dataclasses import dataclass

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
