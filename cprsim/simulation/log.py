"""The event log of a replication, as the step notes it; compiled, it notes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cprsim.compiling import left_out
from cprsim.failures.sources import require_room
from cprsim.job.records import Activity, EventKind, EventLog
from cprsim.simulation.spec import COLUMNS, FINISHED, NONE, RUNNING, Spec

if TYPE_CHECKING:
    from cprsim.simulation.state import JobState, Sim

ACTIVITIES = {activity.part: activity for activity in Activity}
LINE = [("at_h", "f8"), ("kind", "i8"), ("activity", "i8"), ("progress_h", "f8"), ("slot", "i8")]
LINE_BYTES, LINES_SHARE, SOME_LINES = 400, 0.2, 2**10  # of a log, of the budget, between checks


@left_out
def note(sim: Sim, kind: int, slot: int) -> None:
    """Add a line to the log, if one is kept."""
    if sim.log is not None:
        sim.log.note(sim.job.now_h, EventKind(kind), sim.job.progress_h, slot)


class LogLines:
    """Lines of an `EventLog`; their activity is noted when all of their instant has happened."""

    def __init__(self) -> None:
        self.lines: list[list[Any]] = []  # fields of LINE
        self._n_named = 0  # lines with an activity
        self._blocked = False

    def note(self, at_h: float, kind: EventKind, progress_h: float, slot: int = -1) -> None:
        """Add a line."""
        n = len(self.lines)
        if n % SOME_LINES == SOME_LINES - 1:
            quantity, remedy = "the events of one replication", "those of a shorter job would fit"
            require_room(LINE_BYTES * n, quantity, remedy, share=LINES_SHARE)
        place = n
        while kind is EventKind.REPLACED and place > self._n_named:  # slots in ascending order
            before = self.lines[place - 1]
            if before[:2] != [at_h, kind] or before[4] < slot:
                break
            place -= 1
        self.lines.insert(place, [at_h, kind, None, progress_h, slot])

    def resumes(self, job: JobState) -> None:
        """Note that recoveries no longer block the job, if they did."""
        if self._blocked and job.blocked_by == NONE:
            self.note(job.now_h, EventKind.RESUMED, job.progress_h)
            self._blocked = False

    def end(self, job: JobState, spec: Spec) -> None:
        """Note the end of the job, which abandons the saves in flight."""
        for capture in range(spec.n_captures):
            for _ in range(job.saves[capture].n_in_flight + (job.stalled_by == capture)):
                self.note(job.now_h, EventKind.SAVE_ABANDONED, job.progress_h)
        kind = EventKind.FINISHED if job.status == FINISHED else EventKind.STOPPED
        self.note(job.now_h, kind, job.progress_h)
        self.name_activity(job)

    def name_activity(self, job: JobState) -> None:
        """Log the job's activity from now on.

        Only a change of activity adds a line: a stage adds none while another of its kind, or a
        less advanced one, is under way.
        """
        lines, n, at_h, progress_h = self.lines, self._n_named, job.now_h, job.progress_h
        activity = self._activity(job)
        self._blocked = job.blocked_by != NONE
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

    def _activity(self, job: JobState) -> Activity:
        if job.status != RUNNING:
            return Activity.OVER
        if job.blocked_by != NONE:
            return ACTIVITIES[COLUMNS[job.blocked_by]]
        if job.stalled_by != NONE or job.waits_for != NONE:
            return Activity.SAVE
        if job.speed == 0.0:
            return Activity.WAIT
        return Activity.LOST if job.progress_h < job.frontier_h else Activity.USEFUL

    def log(self) -> EventLog:
        """The log so far; its rows are of replication 0."""
        rows: Any = np.array([tuple(line) for line in self.lines], LINE)
        columns = [np.ascontiguousarray(rows[name]) for name, _ in LINE]
        return EventLog(np.zeros(len(rows), dtype=np.int64), *columns)
