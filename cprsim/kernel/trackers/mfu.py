"""MFU: the most frequently used rows first (Maeng et al. 2021).

A 4-byte counter per row counts each occurrence in a batch. A save that commits takes its own
counts away: what was accessed while it was being written counts for the next one.
"""

from __future__ import annotations

import numpy as np

from cprsim.kernel.loops import Array, compiled
from cprsim.kernel.trackers.tracker import Tracked, most_urgent
from cprsim.records import Ints


class MostFrequentlyUsed:
    """Counts accesses; chooses the rows with the highest counts of each segment."""

    def __init__(self, tracked: Tracked) -> None:
        self._tracked = tracked
        self.counts = np.zeros(len(tracked.table), np.uint32)
        self._chosen: Ints = np.zeros(0, np.int64)
        self._chosen_counts = np.zeros(0, np.uint32)

    def observe(self, rows: Array) -> None:
        count_accesses(self.counts, rows, self._tracked.tables)

    def choose(self) -> Ints:
        segments = zip(self._tracked.segments, self._tracked.budgets, strict=True)
        self._chosen = np.concatenate(
            [segment.ids(most_urgent(self.counts[segment.rows], k)) for segment, k in segments]
        )
        self._chosen_counts = self.counts[self._chosen]
        return self._chosen

    def committed(self) -> None:
        self.counts[self._chosen] -= self._chosen_counts

    def abandoned(self) -> None:
        pass  # the counts still stand

    def forget(self, server: int) -> None:
        for segment in self._tracked.segments:
            if segment.server == server:
                self.counts[segment.rows] = 0

    @property
    def memory_bytes(self) -> int:
        return self.counts.nbytes

    def state(self) -> dict[str, Array]:
        return {"tracker/counts": self.counts}


@compiled
def count_accesses(counts: Array, rows: Array, tables: Array) -> None:
    """Count each occurrence in the columns `tables` of rows (n, n_tables)."""
    for i in range(rows.shape[0]):
        for t in tables:
            counts[rows[i, t]] += np.uint32(1)
