"""What a tracker is: it decides which rows of the large tables a sub-save writes.

A tracker runs on the embedding servers. It is told every access, chooses at the start of a
sub-save, is told whether that save committed, and loses its state of a server that fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from cprsim.kernel.loops import Array, mix
from cprsim.kernel.shape import TableLayout
from cprsim.kernel.shards import Segment
from cprsim.kernel.weights import Sliced
from cprsim.records import Ints

ABSENT = -1  # in place of a row, where a sample looks up fewer than others do


@dataclass(frozen=True)
class Tracked:
    """What a tracker may look at: the segments of the large tables, and the rows themselves."""

    layout: TableLayout
    segments: tuple[Segment, ...]
    fraction: float  # r: the share of a segment's rows that one sub-save may write
    table: Sliced  # (n_rows, d), live
    saved_table: Sliced  # (n_rows, d) as last saved, live
    seed: int
    sample_period: int  # of SSU: it looks at every `sample_period`-th sample
    in_job: tuple[Segment, ...] = ()  # what the segments are there, where this is a server alone

    @property
    def seeds(self) -> Array:
        """(n_segments,) uint64, of what is drawn for each: the same in the job and on a server."""
        known = self.in_job or self.segments
        tables, servers = np.array([(one.table, one.server) for one in known], np.uint64).T
        seeds: Array = mix(mix(np.uint64(self.seed) ^ tables) ^ servers)
        return seeds

    @property
    def budgets(self) -> list[int]:
        """Most rows that one sub-save writes of each segment."""
        return [ceil(self.fraction * segment.n_rows) for segment in self.segments]

    @property
    def tables(self) -> Ints:
        """Numbers of the large tables, ascending: the columns of a batch that count."""
        return np.unique([segment.table for segment in self.segments]).astype(np.int64)


class Tracker:
    """Chooses the rows of one sub-save after the other; this one notes nothing on the way."""

    def __init__(self, tracked: Tracked) -> None:
        self.tracked = tracked

    def observe(self, rows: Array) -> None:
        """Note the accesses of one batch: fused rows (n, n_tables).

        Where a sample looks up several rows of a table they are (n, k, n_tables), filled up with
        `ABSENT`.
        """

    def choose(self) -> Ints:
        """Fused ids of the rows that the sub-save which starts now writes; within the budgets."""
        raise NotImplementedError

    def committed(self) -> None:
        """The sub-save that `choose` was asked for counts."""

    def abandoned(self) -> None:
        """It does not; all is as if it had not been asked for."""

    def forget(self, server: int) -> None:
        """The server is lost, and with it what the tracker knew of its rows."""

    @property
    def memory_bytes(self) -> int:
        """Memory that it takes on the servers, all together."""
        return sum(array.nbytes for array in self.state().values())

    def state(self) -> dict[str, Array]:
        """The arrays that it keeps from batch to batch, live."""
        return {}


def most_urgent(scores: Array, k: int) -> Ints:
    """Positions of the k largest scores above 0, ascending; of equals the lower position wins."""
    if np.count_nonzero(scores) <= k:
        return np.flatnonzero(scores)
    threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
    above = np.flatnonzero(scores > threshold)
    ties = np.flatnonzero(scores == threshold)[: k - len(above)]
    return np.sort(np.concatenate([above, ties]))
