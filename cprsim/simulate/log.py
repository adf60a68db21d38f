"""What SimPy logs of a replication under a recovery system, as an event log like any other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cprsim.records import Activity, EventKind, EventLog
from cprsim.simulate.events import Entry, What

NO_SLOT = -1
KINDS: dict[What, EventKind] = {
    What.STARTED: EventKind.STARTED,
    What.SAVE_AWAITED: EventKind.SAVE_DUE,
    What.SAVE_STARTED: EventKind.SAVE_STARTED,
    What.SAVE_RESUMED: EventKind.SAVE_RESUMED,
    What.SAVE_COMMITTED: EventKind.SAVE_COMMITTED,
    What.SAVE_FAILED: EventKind.SAVE_ABANDONED,
    What.SAVE_ABANDONED: EventKind.SAVE_ABANDONED,
    What.FAILED: EventKind.FAILED,
    What.MISSED: EventKind.MISSED,
    What.REVERTED: EventKind.REVERTED,
    What.ROLLED_BACK: EventKind.ROLLED_BACK,
    What.STAGE: EventKind.STAGE,
    What.BACK: EventKind.REPLACED,
    What.RESUMED: EventKind.RESUMED,
    What.CAUGHT_UP: EventKind.CAUGHT_UP,
    What.FINISHED: EventKind.FINISHED,
    What.STOPPED: EventKind.STOPPED,
}
"""What is not here (cycles taken at once, saves left out) is no event of the log."""


def event_log(entries: Sequence[Entry], replication: int) -> EventLog:
    """The log of one replication.

    Parameters
    ----------
    replication : number that its rows carry
    """
    kept = [entry for entry in entries if entry.what in KINDS]
    n = len(kept)
    over = (What.FINISHED, What.STOPPED)
    activities = [
        Activity.OVER if entry.what in over else Activity[entry.part.upper()] for entry in kept
    ]
    return EventLog(
        np.full(n, replication, dtype=np.int64),
        np.array([entry.at_h for entry in kept]),
        np.array([KINDS[entry.what] for entry in kept], dtype=np.int64),
        np.array(activities, dtype=np.int64),
        np.array([entry.progress_h for entry in kept]),
        np.array(
            [entry.detail if isinstance(entry.detail, int) else NO_SLOT for entry in kept],
            dtype=np.int64,
        ),
    )
