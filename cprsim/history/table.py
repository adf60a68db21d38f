"""Events of many jobs: steps reached, which are many, apart from everything else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd

NS_PER_S = 1e9


@dataclass(frozen=True, slots=True)
class Events:
    """What was read; numbers that an event does not say are NaN (attempts -1, instants 0)."""

    jobs: tuple[str, ...]
    steps: pd.DataFrame  # `progress` that says no more than a step: job, time_ns, step, attempt
    others: pd.DataFrame  # all other events, with all fields that are read
    notes: tuple[str, ...] = ()

    @property
    def n_events(self) -> int:
        return len(self.steps) + len(self.others)

    def each(self) -> Iterator[tuple[str, pd.DataFrame, pd.DataFrame]]:
        """Job after job: its name, and its rows in order of time; those of one instant as read."""
        steps, others = _by_job(self.steps), _by_job(self.others)
        for job in self.jobs:
            yield job, steps.get(job, self.steps[:0]), others.get(job, self.others[:0])


def _by_job(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    ordered = rows.sort_values("time_ns", kind="stable")
    groups: Any = ordered.groupby("job", observed=True, sort=False)
    return dict(iter(groups))
