"""Simulated jobs as logs of events, and the ledgers of such logs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from cprsim.history.ledger import JobLedger, ledgers
from cprsim.history.reading import read_logs
from tests.history.exporting import write_events

NS = 10**9


def ledger_of(folder: Path, events: Iterable[dict[str, Any]], **how: Any) -> JobLedger:
    """The ledger of one job's events."""
    path = folder / "log.jsonl"
    write_events(path, list(events))
    (found,) = ledgers(read_logs([path]), **how)
    return found


def told(*events: tuple[float, str] | tuple[float, str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Events of one job: second, name, and what else they say."""
    return [
        {"time_unix_nano": round(at_s * NS), "event": name, "job": "j", **dict(*more)}
        for at_s, name, *more in events
    ]
