"""MFU: the most frequently used rows first (Maeng et al. 2021).

A 4-byte counter per row counts each occurrence in a batch. A save that commits takes its own
counts away: what was accessed while it was being written counts for the next one.
"""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.kernel.loops import Array
from cprsim.kernel.shards import Segment
from cprsim.kernel.trackers.tracker import Tracked, most_urgent
from cprsim.records import Ints


class MostFrequentlyUsed:
    """Counts accesses; chooses the rows with the highest counts of each segment."""

    def __init__(self, tracked: Tracked) -> None:
        self._tracked = tracked
        self._rows = {table: tracked.layout.of(table) for table in tracked.tables.tolist()}
        n_rows = [rows.stop - rows.start for rows in self._rows.values()]
        self.counts = np.zeros(sum(n_rows), np.uint32)  # of the large tables, one after the other
        parts = np.split(self.counts, np.cumsum(n_rows)[:-1])
        self._counts = dict(zip(self._rows, parts, strict=True))  # views, by table
        self._chosen: list[tuple[Array, Ints, Array]] = []  # counts of a segment; where, how many

    def observe(self, rows: Array) -> None:
        flat = rows.reshape(-1, rows.shape[-1])
        for table, counts in self._counts.items():
            count_accesses(counts, flat[:, table], self._rows[table].start)

    def choose(self) -> Ints:
        self._chosen, ids = [], []
        for segment, k in zip(self._tracked.segments, self._tracked.budgets, strict=True):
            counts = self._of(segment)
            positions = most_urgent(counts, k)
            self._chosen.append((counts, positions, counts[positions]))
            ids.append(segment.ids(positions))
        return np.concatenate(ids)

    def committed(self) -> None:
        for counts, positions, saved in self._chosen:
            counts[positions] -= saved

    def abandoned(self) -> None:
        pass  # the counts still stand

    def forget(self, server: int) -> None:
        for segment in self._tracked.segments:
            if segment.server == server:
                self._of(segment)[:] = 0

    def _of(self, segment: Segment) -> Array:
        """(n,) counts of the rows of a segment, a view."""
        first = segment.rows.start - self._rows[segment.table].start
        counts: Array = self._counts[segment.table][first :: segment.rows.step]
        return counts

    @property
    def memory_bytes(self) -> int:
        return self.counts.nbytes

    def state(self) -> dict[str, Array]:
        return {"tracker/counts": self.counts}


@compiled
def count_accesses(counts: Array, rows: Array, first: int) -> None:
    """Count each occurrence of a row (n,) of the table that begins at `first`."""
    for i in range(rows.shape[0]):
        if rows[i] >= 0:  # else ABSENT
            counts[rows[i] - first] += np.uint32(1)
