"""A job under a recovery system: what is the same in all replications, and what one does."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np

from cprsim.errors import AccountingError
from cprsim.failures.sources import require_room
from cprsim.records import Activity, Bools, Clock, Cluster, CostBreakdown, EventKind, EventLog
from cprsim.recovery.intervals import ROUNDING
from cprsim.recovery.policy import Policy, Scope

TOLERANCE_H = 1e-6  # of sums over one replication, in hours
HOPELESS_AFTER = 1000  # failures in a row without any first-time work between them: given up
NO_WORK_H = 1e-9  # first-time work up to this is rounding, which differs between engines
HARDLY_AFTER = 5000  # failures, after which a job that is this slow is given up ...
HARDLY_TIMES = 10.0  # ... over so many times the work that it has done so far


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedJob:
    """A job under a policy. Ends at `useful_h` of progress or at `horizon_h` of wall time.

    Two of them are never equal, so that what follows from one can be kept by it.
    """

    useful_h: float
    cluster: Cluster
    clock: Clock
    scopes: tuple[Scope, ...]  # of a failure: by number
    policy: Policy
    horizon_h: float | None = None


NOTICE = -1  # in place of a scope: this is no failure, but the notice of one


@dataclass(frozen=True, slots=True)
class ScopedFailure:
    """One failure of one replication: an instant of its clock, its slots, and what it kills.

    Or the notice of one (scope `NOTICE`): it strikes no slot.
    """

    at_h: float
    slots: tuple[int, ...]
    scope: int  # number among the job's
    repair_h: tuple[float, ...]  # of each slot's node; not asked for where no node is needed


@dataclass(frozen=True, slots=True)
class StaleShard:
    """A shard that went back while the job went on.

    `fresh_h` is the later of the content and its own last reload since the job last went back.
    """

    progress_h: float
    slot: int
    content_h: float
    fresh_h: float = nan


@dataclass(frozen=True, slots=True)
class ReplicationOutcome:
    """What became of one replication; `hours` are of the policy's parts, in their order."""

    finished: bool
    wall_h: float
    useful_h: float
    hours: tuple[float, ...]
    n_failures: int
    n_saves: int  # committed
    stale: tuple[StaleShard, ...]


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
            quantity, remedy = "the events of one replication", "an MTBF {} times as long would fit"
            require_room(LINE_BYTES * n, quantity, remedy, share=LINES_SHARE)
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


def require_sums(costs: CostBreakdown) -> None:
    """Raise AccountingError where the parts of a replication do not add up to its wall time."""
    off_h = np.abs(costs.useful_h + costs.hours.sum(axis=1) - costs.wall_h)
    off = off_h > TOLERANCE_H + ROUNDING * costs.wall_h
    refuse(costs, off, "does not add up to its wall time")


def refuse(costs: CostBreakdown, off: Bools, problem: str) -> None:
    """Raise AccountingError where something is wrong with a replication."""
    if off.any():
        raise AccountingError(f"replication {costs.replication[off][0]} {problem}")
