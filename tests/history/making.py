"""Simulated jobs as logs of events, whole or damaged, and the ledgers of such logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cprsim.events import STAGES
from cprsim.job.records import Activity, EventKind, EventLog
from cprsim.logs.jobs.ledger import JobLedger, ledgers
from cprsim.logs.jobs.reading import read_logs

NS = 10**9
BEGINS_NS = 1_700_000_000 * NS
WORKING = (Activity.USEFUL, Activity.LOST)
WRITTEN: dict[EventKind, dict[str, str]] = {
    EventKind.SAVE_STARTED: {"event": "save.start"},
    EventKind.SAVE_RESUMED: {"event": "save.resume"},
    EventKind.SAVE_COMMITTED: {"event": "save.commit"},
    EventKind.SAVE_ABANDONED: {"event": "save.abandon"},
    EventKind.FAILED: {"event": "failure"},
    EventKind.MISSED: {"event": "failure", "outcome": "missed"},
    EventKind.ROLLED_BACK: {"event": "rollback"},
    EventKind.RESUMED: {"event": "train.resume"},
    EventKind.CAUGHT_UP: {"event": "progress"},
    EventKind.FINISHED: {"event": "job.end", "outcome": "finished"},
    EventKind.STOPPED: {"event": "job.end", "outcome": "stopped"},
    EventKind.REPLACED: {"event": "replaced"},
}
BEGINS = {part: event for event, part in STAGES.items()}


def exported(
    log: EventLog, job: str, *, step_s: float = 1.0, progress_every_h: float | None = None,
    says_step_seconds: bool = True,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The events of one replication as a real job under full recovery would write them.

    With `progress` now and then.
    """
    part = "start"

    def line(at_h: float, progress_h: float, **event: Any) -> dict[str, Any]:
        step = round(progress_h * 3600.0 / step_s, 9)
        return {"time_unix_nano": BEGINS_NS + round(at_h * 3600e9), "job": job, "step": step,
                **event}  # fmt: skip

    for place in range(len(log.at_h)):
        activity = Activity(int(log.activity[place]))
        at_h, progress_h = float(log.at_h[place]), float(log.progress_h[place])
        for event in _events(EventKind(int(log.kind[place])), activity, part):
            part = "work" if activity in WORKING else activity.part
            says = event["event"] == "job.start" and says_step_seconds
            yield line(at_h, progress_h, **event, **({"step_seconds": step_s} if says else {}))
        if progress_every_h and activity in WORKING and place + 1 < len(log.at_h):
            until_h, after_h = float(log.at_h[place + 1]), float(log.progress_h[place + 1])
            if after_h <= progress_h:
                after_h = progress_h + until_h - at_h  # a rollback comes at once: as fast as ever
            numbers = np.arange(
                np.floor(at_h / progress_every_h) + 1, np.ceil(until_h / progress_every_h)
            )
            for one_h in (numbers * progress_every_h).tolist():
                done_h = progress_h + (after_h - progress_h) * (one_h - at_h) / (until_h - at_h)
                yield line(one_h, done_h, event="progress")


def _events(kind: EventKind, activity: Activity, part: str) -> Iterator[dict[str, Any]]:
    """What is written for an event of the simulator."""
    if kind is EventKind.STARTED:
        yield {"event": "job.start", "attempt": 0}
        yield {"event": "train.resume"}
    elif kind is EventKind.STAGE:
        if part == "detect" and activity is not Activity.DETECT:
            yield {"event": "failure.detected"}
        yield {"event": BEGINS.get(activity.part, "progress")}
    else:
        yield WRITTEN[kind]


def damaged(
    events: list[dict[str, Any]], rng: np.random.Generator, *, missing: float, unseen_deaths: float
) -> list[dict[str, Any]]:
    """Each event but the first missing at random, failures also by themselves, no step at death."""
    kept = []
    for event in events:
        one = dict(event)
        if one["event"] == "failure":
            one.pop("step", None)
            if rng.random() < unseen_deaths:
                continue
        if one["event"] == "job.start" or rng.random() >= missing:
            kept.append(one)
    return kept


def write_events(path: Path, events: Iterable[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(event) + "\n" for event in events), "utf-8")


def ledger_of(
    folder: Path, log: str | Iterable[dict[str, Any]], unit: str | None = None, **how: Any
) -> JobLedger:  # fmt: skip
    """The ledger of one job's table of attempts, or of its events."""
    path = folder / "log"
    if isinstance(log, str):
        path.write_text(log, "utf-8")
    else:
        write_events(path, log)
    (found,) = ledgers(read_logs([path], unit), **how)
    return found


def told(*events: tuple[float, str] | tuple[float, str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events of one job: second since `BEGINS_NS`, name, and what else they say."""
    return [
        {"time_unix_nano": BEGINS_NS + round(at_s * NS), "event": name, "job": "j", **dict(*more)}
        for at_s, name, *more in events
    ]
