"""Writing the event log: rows while a replication runs, arrays when a block is done."""

from __future__ import annotations

import numpy as np

from cprsim.records import Activity, EventKind, EventLog

NO_SLOT = -1

Row = tuple[int, float, EventKind, Activity, float, int]
"""(replication, at_h, kind, activity, progress_h, slot)"""


def event_log(rows: list[Row]) -> EventLog:
    """The rows of some replications, in the order in which they were written, as arrays."""
    table = np.array(rows, dtype=np.float64).reshape(-1, 6)
    return EventLog(
        replication=table[:, 0].astype(np.int64),
        at_h=table[:, 1].copy(),
        kind=table[:, 2].astype(np.int64),
        activity=table[:, 3].astype(np.int64),
        progress_h=table[:, 4].copy(),
        slot=table[:, 5].astype(np.int64),
    )
