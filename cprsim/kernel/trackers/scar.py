"""SCAR: the rows that moved furthest since they were saved first (Qiao et al. 2019).

It compares each row with a second copy of it, as last saved: memory +100 % of the large tables,
and a pass over all of them at each sub-save. A server that reloads its rows makes the copy anew
from what it loads, so the copy is what the store holds.
"""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.kernel.loops import Array
from cprsim.kernel.shards import Segment
from cprsim.kernel.trackers.tracker import Tracker, most_urgent
from cprsim.records import Ints


class LargestChange(Tracker):
    """Chooses the rows of each segment with the largest L2 distance from their saved copy."""

    def choose(self) -> Ints:
        segments = zip(self.tracked.segments, self.tracked.budgets, strict=True)
        return np.concatenate(
            [segment.ids(most_urgent(self._changes(segment), k)) for segment, k in segments]
        )

    def _changes(self, segment: Segment) -> Array:
        """(n,) squared distance of each row of a segment from its copy."""
        rows = segment.rows
        return squared_changes(self.tracked.table[rows], self.tracked.saved_table[rows])

    @property
    def memory_bytes(self) -> int:
        return sum(
            segment.n_rows * self.tracked.saved_table[first : first + 1].nbytes
            for segment in self.tracked.segments
            for first in [segment.rows.start]
        )


@compiled
def squared_changes(rows: Array, saved: Array) -> Array:
    """(n,) sums of squared differences of rows (n, d) and saved (n, d)."""
    changes = np.zeros(rows.shape[0], np.float32)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            change = rows[i, k] - saved[i, k]
            changes[i] += change * change
    return changes
