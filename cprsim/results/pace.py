"""How fast a job got on between the changes of its nodes, from the events of one replication."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pandas as pd

WORKS = ("useful", "lost", "save")  # a job whose state is whole


class WorkStretch(NamedTuple):
    """Useful work between two changes of a job."""

    from_h: float  # wall time: work stops, as nodes leave or come back
    to_h: float  # it stops next, or ends
    still_h: float  # of these, until it goes on
    useful_h: float  # first-time work that lasts: hours at full speed

    @property
    def speed(self) -> float:
        """Useful hours per wall hour, relative to all nodes that never stop."""
        return self.useful_h / (self.to_h - self.from_h)


def paces(events: pd.DataFrame) -> list[WorkStretch]:
    """The stretches from each stop of a job to the next, in order; useful hours add up to all."""
    at_h = events["at_h"].to_numpy(dtype=float)
    works = np.isin(events["activity"].to_numpy(dtype=object), WORKS)
    progress_h = events["progress_h"].to_numpy(dtype=float)
    frontier_h = np.minimum(np.maximum.accumulate(progress_h), progress_h[-1])
    stops = np.flatnonzero(~works & np.append(True, works[:-1]))
    places = np.unique([0, *stops, len(at_h) - 1])
    still_h = np.where(works[:-1], 0.0, np.diff(at_h))
    return [
        WorkStretch(
            float(at_h[first]),
            float(at_h[last]),
            float(still_h[first:last].sum()),
            float(frontier_h[last] - frontier_h[first]),
        )
        for first, last in pairwise(places.tolist())
        if at_h[last] > at_h[first]
    ]
