"""The event log: packed rows while a replication runs, columns when a block is done."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

import numpy as np

from cprsim.records import EventLog

NO_SLOT = -1

pack = Struct("=qdqqdq").pack  # an object for each event would cost more than simulating it
COLUMNS = np.dtype(
    [
        ("replication", "i8"),
        ("at_h", "f8"),
        ("kind", "i8"),
        ("activity", "i8"),
        ("progress_h", "f8"),
        ("slot", "i8"),
    ]
)


def event_log(rows: Iterable[bytes | bytearray]) -> EventLog:
    """The packed rows of some replications, in order, as columns."""
    table = np.frombuffer(b"".join(rows), COLUMNS)
    return EventLog(*(np.ascontiguousarray(table[name]) for name in COLUMNS.names or ()))
