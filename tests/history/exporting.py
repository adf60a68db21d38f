"""The event log of a simulated job as a real job would have written it: the ledger's truth."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.events import STAGES
from cprsim.records import Activity, EventKind, EventLog

NS_PER_H = 3600e9
SECONDS_PER_H = 3600.0
BEGINS_NS = 1_700_000_000 * 10**9
WORKING = (Activity.USEFUL, Activity.LOST)
PLAIN: dict[EventKind, str | dict[str, str]] = {
    EventKind.SAVE_DUE: "save.wait",
    EventKind.SAVE_STARTED: "save.start",
    EventKind.SAVE_RESUMED: "save.resume",
    EventKind.SAVE_COMMITTED: "save.commit",
    EventKind.SAVE_ABANDONED: "save.abandon",
    EventKind.SUB_SAVE_STARTED: {"event": "save.start", "mode": "part"},
    EventKind.SUB_SAVE_COMMITTED: {"event": "save.commit", "mode": "part"},
    EventKind.FAILED: "failure",
    EventKind.MISSED: {"event": "failure", "outcome": "missed"},
    EventKind.REVERTED: "revert",
    EventKind.ROLLED_BACK: "rollback",
    EventKind.RESUMED: "train.resume",
    EventKind.CAUGHT_UP: "progress",
    EventKind.FINISHED: {"event": "job.end", "outcome": "finished"},
    EventKind.STOPPED: {"event": "job.end", "outcome": "stopped"},
    EventKind.REPLACED: "replaced",
}
BEGINS = {part: event for event, part in STAGES.items()}


def exported(
    log: EventLog,
    job: str,
    *,
    step_s: float = 1.0,
    progress_every_h: float | None = None,
    says_step_seconds: bool = True,
) -> Iterator[dict[str, Any]]:
    """The events of one replication, in order; `progress` every so many hours."""
    per_h = SECONDS_PER_H / step_s
    part = "start"
    for place in range(len(log.at_h)):
        activity = Activity(int(log.activity[place]))
        at_h, progress_h = float(log.at_h[place]), float(log.progress_h[place])
        for event in _events(EventKind(int(log.kind[place])), activity, part):
            follows = _part_after(event["event"], part)
            part = "work" if activity in WORKING else activity.name.lower()
            if activity is not Activity.OVER and follows != part:
                event["part"] = part
            if event["event"] == "job.start" and says_step_seconds:
                event["step_seconds"] = step_s
            yield {
                "time_unix_nano": BEGINS_NS + round(at_h * NS_PER_H),
                "job": job,
                "step": round(progress_h * per_h, 9),
                **event,
            }
        if progress_every_h and activity in WORKING and place + 1 < len(log.at_h):
            yield from _steps(log, place, progress_every_h, per_h, job)


def _events(kind: EventKind, activity: Activity, part: str) -> Iterator[dict[str, Any]]:
    """What is written for an event of the simulator."""
    if kind is EventKind.STARTED:
        yield {"event": "job.start", "attempt": 0, "part": "start"}
        yield {"event": "train.resume"}
    elif kind is EventKind.STAGE:
        if part == "detect" and activity is not Activity.DETECT:
            yield {"event": "failure.detected", "part": activity.name.lower()}
        name = BEGINS.get(activity.name.lower(), "progress")
        yield {"event": name}
    else:
        plain = PLAIN[kind]
        yield {"event": plain} if isinstance(plain, str) else dict(plain)


def _part_after(event: str, part: str) -> str:
    """What a job is taken to do after an event that does not say it."""
    if event in STAGES:
        return STAGES[event]
    if event in ("save.commit", "save.abandon"):
        return "work" if part == "save" else part
    return {
        "job.start": "start",
        "train.resume": "work",
        "failure": "detect",
        "failure.detected": "reschedule",
        "save.wait": "save",
        "save.start": "save",
        "save.resume": "work",
    }.get(event, part)


def _steps(
    log: EventLog, place: int, every_h: float, per_h: float, job: str
) -> Iterator[dict[str, Any]]:
    """Steps reached within a stretch of work, at the whole multiples of `every_h` of wall time."""
    first_h, last_h = float(log.at_h[place]), float(log.at_h[place + 1])
    before_h, after_h = float(log.progress_h[place]), float(log.progress_h[place + 1])
    if after_h <= before_h:
        after_h = before_h + last_h - first_h  # a rollback comes at once: as fast as ever
    at_h = np.arange(np.floor(first_h / every_h) + 1, np.ceil(last_h / every_h)) * every_h
    reached_h = before_h + (after_h - before_h) * (at_h - first_h) / (last_h - first_h)
    for one_h, done_h in zip(at_h.tolist(), reached_h.tolist(), strict=True):
        yield {
            "time_unix_nano": BEGINS_NS + round(one_h * NS_PER_H),
            "event": "progress",
            "job": job,
            "step": round(done_h * per_h, 9),
        }


def write_events(path: Path, events: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")
