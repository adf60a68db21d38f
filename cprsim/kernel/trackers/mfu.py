"""MFU: the most frequently used rows first (Maeng et al. 2021).

A 4-byte counter per row counts each occurrence in a batch. A save that commits takes its own
counts away: what was accessed while it was being written counts for the next one.
"""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.kernel.loops import Array
from cprsim.kernel.shards import Segment
from cprsim.kernel.trackers.tracker import Tracked, Tracker, most_urgent
from cprsim.records import Ints


class MostFrequentlyUsed(Tracker):
    """Counts accesses; chooses the rows with the highest counts of each segment."""

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        self._tables = tracked.tables
        first, stop = (tracked.layout.first_row[self._tables + i] for i in (0, 1))
        ends = np.cumsum(stop - first)
        self.counts = np.zeros(int(ends[-1]), np.uint32)  # of the large tables, one after the other
        self._shift = np.append(0, ends[:-1]) - first  # (n large tables,) from row to counter
        self._chosen: list[tuple[Array, Ints, Array]] = []  # counts of a segment; where, how many

    def observe(self, rows: Array) -> None:
        flat = rows.reshape(-1, rows.shape[-1])
        count_accesses(self.counts, flat, self._tables, self._shift)

    def choose(self) -> Ints:
        self._chosen, ids = [], []
        for segment, k in zip(self.tracked.segments, self.tracked.budgets, strict=True):
            counts = self._of(segment)
            positions = most_urgent(counts, k)
            self._chosen.append((counts, positions, counts[positions]))
            ids.append(segment.ids(positions))
        return np.concatenate(ids)

    def committed(self) -> None:
        for counts, positions, saved in self._chosen:
            counts[positions] -= saved

    def forget(self, server: int) -> None:
        for segment in self.tracked.segments:
            if segment.server == server:
                self._of(segment)[:] = 0

    def _of(self, segment: Segment) -> Array:
        """(n,) counts of the rows of a segment, a view."""
        shift = int(self._shift[np.searchsorted(self._tables, segment.table)])
        counts: Array = self.counts[
            segment.rows.start + shift : segment.rows.stop + shift : segment.rows.step
        ]
        return counts

    def state(self) -> dict[str, Array]:
        return {"tracker/counts": self.counts}


@compiled
def count_accesses(counts: Array, rows: Array, tables: Array, shift: Array) -> None:
    """Count each occurrence of a row, of rows (n, n_tables), in the columns `tables`."""
    for column in range(tables.shape[0]):
        table, by = tables[column], shift[column]
        for i in range(rows.shape[0]):
            row = rows[i, table]
            if row >= 0:  # else ABSENT
                counts[np.uint64(row + by)] += np.uint32(1)
