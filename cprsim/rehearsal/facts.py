"""What the supervisor notes of a run, with instants as they were measured."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class What(StrEnum):
    """Kinds of facts."""

    RUNNING = "running"  # the trainer works from here on
    PASSED = "passed"  # work done again has come to where the job had been
    STOOD = "stood"  # where the trainer stopped, or was when it died
    SAVE_STARTED = "save started"
    SAVE_COMMITTED = "save committed"
    SAVE_ABANDONED = "save abandoned"
    STRUCK = "struck"  # a process was killed or stopped
    MISSED = "missed"  # a kill that met no process
    DETECTED = "detected"
    LOADING = "loading"  # the replacement is there
    BACK = "back"  # its state is loaded
    FINISHED = "finished"


@dataclass(frozen=True, slots=True)
class Fact:
    """One of them."""

    at_s: float  # since the start of the job
    what: What
    slot: int = -1
    position: int = 0  # samples
    number: int = -1  # of a save
    ends_interval: bool = True
