"""Jobs under way, in columns: where each stands when it works on after its last failure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from cprsim.records import Floats, Ints


@dataclass(slots=True)
class Jobs:
    """A row per replication that is still under way; all columns (n_jobs,).

    The hours of a recovery are booked when it begins, as if nothing could strike it; what a
    further failure cuts off is taken back then.
    """

    row: Ints  # number of the replication within its block
    resumes_at_h: Floats  # on the clock on which failures age: when recovery is over
    wall_h: Floats  # the same instant in wall time
    n_committed: Ints  # saves that its progress contains: the last one holds n intervals
    beyond_h: Floats  # progress since that save
    frontier_h: Floats  # the furthest that it has ever been
    frontier_at_failure_h: Floats  # that, as of its last failure
    worked_h: Floats  # work, for the first time or again
    save_h: Floats
    detect_h: Floats
    reschedule_h: Floats
    load_h: Floats
    n_saves: Ints  # committed, also those that a restart has thrown away
    n_attempts: Ints  # at a save: the number of its draw
    n_failures: Ints
    fruitless_since: Ints  # number of the first failure without first-time work since
    loading_h: Floats  # what the recovery from the last failure ends with
    replicas_down: Ints  # trainers struck since it last worked, at most

    @classmethod
    def new(cls, rows: Ints) -> Jobs:
        """Jobs at their start."""
        floats = {f.name: np.zeros(len(rows)) for f in fields(cls) if f.type == "Floats"}
        ints = {f.name: np.zeros(len(rows), dtype=np.int64) for f in fields(cls)}
        columns = {**ints, **floats, "row": rows, "frontier_at_failure_h": np.full(len(rows), -1.0)}
        return cls(**columns)

    def __len__(self) -> int:
        return len(self.row)

    def take(self, places: Ints) -> Jobs:
        """Some of the jobs, as copies."""
        return Jobs(*(getattr(self, name).take(places) for name in COLUMNS))

    @classmethod
    def together(cls, parts: Sequence[Jobs]) -> Jobs:
        """The jobs of several parts."""
        if len(parts) == 1:
            return parts[0]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in COLUMNS))


COLUMNS = tuple(column.name for column in fields(Jobs))
