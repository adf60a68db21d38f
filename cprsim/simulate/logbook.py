"""The event log of one replication, line by line as it happens."""

from __future__ import annotations

from typing import Any

import numpy as np

from cprsim.failures.budget import require_room
from cprsim.records import Activity, EventKind, EventLog

LINE = [("at_h", "f8"), ("kind", "i8"), ("activity", "i8"), ("progress_h", "f8"), ("slot", "i8")]
LINE_BYTES, LINES_SHARE, SOME_LINES = 400, 0.2, 2**10  # of a log, of the budget, between checks


class LogLines:
    """Lines of an `EventLog`; their activity is noted when all of their instant has happened."""

    def __init__(self) -> None:
        self.lines: list[list[Any]] = []  # fields of LINE
        self._n_named = 0  # lines with an activity

    def note(
        self, at_h: float, kind: EventKind, progress_h: float, slot: int = -1,
        place: int | None = None,
    ) -> None:  # fmt: skip
        """Add a line, before the one at `place` or as the last."""
        n = len(self.lines)
        if n % SOME_LINES == SOME_LINES - 1:
            what, remedy = "the events of one replication", "an MTBF {} times as long would fit"
            require_room(LINE_BYTES * n, what, remedy, share=LINES_SHARE)
        self.lines.insert(n if place is None else place, [at_h, kind, None, progress_h, slot])

    def name_activity(self, at_h: float, activity: Activity, progress_h: float) -> None:
        """Note what the job does from now on.

        A change has a line. A stage without a change has
        none: another of its kind, or of one less advanced, is under way.
        """
        lines, n = self.lines, self._n_named
        changes = n == 0 or lines[n - 1][2] is not activity
        if n == len(lines) and changes:
            waits_for_save = activity is Activity.SAVE
            kind = EventKind.SAVE_DUE if waits_for_save else EventKind.STAGE
            self.note(at_h, kind, progress_h)
        lines[n:] = [
            [at_h, kind, activity, progress_h, slot]
            for place, (at_h, kind, _, progress_h, slot) in enumerate(lines[n:])
            if kind is not EventKind.STAGE or (place == 0 and changes)
        ]
        self._n_named = len(lines)

    def log(self) -> EventLog:
        """The log so far; its rows are of replication 0."""
        rows: Any = np.array([tuple(line) for line in self.lines], LINE)
        columns = [np.ascontiguousarray(rows[name]) for name, _ in LINE]
        return EventLog(np.zeros(len(rows), dtype=np.int64), *columns)
