"""Round robin: each sub-save writes the next part of every segment, whatever was accessed.

The control of every claim about priorities: it writes as much and uses no
accesses. Its position belongs to the job and survives the failure of a server.
"""

from __future__ import annotations

import numpy as np

from cprsim.kernel.loops import Array
from cprsim.kernel.trackers.tracker import Tracked, Tracker
from cprsim.records import Ints


class RoundRobin(Tracker):
    """Goes through each segment in 1 / r parts, and on to the next part with each commit."""

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        self._n_parts = round(1 / tracked.fraction)
        self._part = np.zeros(1, np.int64)

    def choose(self) -> Ints:
        part = int(self._part[0])
        chosen = []
        for segment in self.tracked.segments:
            first, stop = (segment.n_rows * p // self._n_parts for p in (part, part + 1))
            chosen.append(segment.ids(np.arange(first, stop)))
        return np.concatenate(chosen)

    def go_to(self, n_committed: int) -> None:
        """Stand where so many committed sub-saves lead to."""
        self._part[0] = n_committed % self._n_parts

    def committed(self) -> None:
        self.go_to(int(self._part[0]) + 1)

    def state(self) -> dict[str, Array]:
        return {"tracker/part": self._part}
