"""SSU: rows that a sub-sample of the inputs used (Maeng et al. 2021), a cheap stand-in for MFU.

The rows of every second sample go into a list of r x N ids per segment, 4 bytes each and nothing
more. So that it is known without further memory whether a row is listed, the list is kept in
buckets of 8 and a row's hash names its bucket; a full bucket evicts one of its ids at random.
A segment's list is rounded down to whole buckets. It begins empty after each save.

A segment's list and draws depend on nothing outside it: a server alone has the same. A server that
is replaced begins both anew.
"""

from __future__ import annotations

import numpy as np

from cprsim.compiling import compiled
from cprsim.kernel.loops import GOLDEN, Array, mix
from cprsim.kernel.trackers.tracker import Tracked, Tracker
from cprsim.records import Ints

BUCKET = 8
EMPTY = -1


class SubSampledUsed(Tracker):
    """Lists rows that sampled inputs used, as places in their segment; chooses all listed."""

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        budgets = np.array(tracked.budgets)
        self._tables = tracked.tables
        self._segment_of = segment_of(tracked)
        self._first_row = np.array([segment.rows.start for segment in tracked.segments])
        self._ways = np.minimum(budgets, BUCKET)  # (n_segments,) usable places of a bucket
        n_buckets = np.maximum(budgets // BUCKET, 1)
        self._first_bucket = np.concatenate([[0], np.cumsum(n_buckets)])
        self.listed = np.full((int(self._first_bucket[-1]), BUCKET), EMPTY, np.int32)
        self._n_seen = np.zeros(1, np.int64)  # samples, to look at every period-th
        self._seeds = tracked.seeds
        self._random = self._seeds.copy()
        self._chosen = self.listed[:0]

    def observe(self, rows: Array) -> None:
        period = self.tracked.sample_period
        first = -int(self._n_seen[0]) % period
        list_rows(
            self.listed,
            self._random,
            self._seeds,
            rows[first::period].reshape(-1, rows.shape[-1]),
            self._tables,
            self._segment_of,
            self._first_row,
            self._first_bucket,
            self._ways,
        )
        self._n_seen += len(rows)

    def go_to(self, n_seen: int) -> None:
        """Stand where so many samples of the job lead to."""
        self._n_seen[0] = n_seen

    def choose(self) -> Ints:
        self._chosen = self.listed.copy()
        self.listed[:] = EMPTY
        return np.concatenate(
            [
                segment.ids(np.sort(places[places != EMPTY]).astype(np.int64))
                for number, segment in enumerate(self.tracked.segments)
                for places in [self._chosen[self._buckets(number)]]
            ]
        )

    def abandoned(self) -> None:
        put_back(self.listed, self._random, self._chosen, self._first_bucket, self._ways)

    def forget(self, server: int) -> None:
        for number, segment in enumerate(self.tracked.segments):
            if segment.server == server:
                self.listed[self._buckets(number)] = EMPTY
                self._random[number] = self._seeds[number]

    def _buckets(self, segment: int) -> slice:
        first, stop = self._first_bucket[segment : segment + 2]
        return slice(first, stop)

    @property
    def memory_bytes(self) -> int:
        return self.listed.nbytes

    def state(self) -> dict[str, Array]:
        return {
            "tracker/listed": self.listed,
            "tracker/n_seen": self._n_seen,
            "tracker/random": self._random,
        }


def segment_of(tracked: Tracked) -> Ints:
    """(n large tables, step) number of the segment that holds row i of a table, at i mod step."""
    step = tracked.segments[0].rows.step
    numbers = np.full((len(tracked.tables), step), -1)
    for number, segment in enumerate(tracked.segments):
        column = np.searchsorted(tracked.tables, segment.table)
        numbers[column, segment.rows.start % step] = number
    return numbers


@compiled
def put(bucket: Array, ways: int, place: int, random: Array) -> None:
    """Add a place to a bucket (8,) unless it is there; evict a random one if none is free."""
    for way in range(ways):
        if bucket[way] == place:
            return
        if bucket[way] == EMPTY:
            bucket[way] = place
            return
    random[0] += np.uint64(GOLDEN)
    bucket[np.int64(mix(random[0]) % np.uint64(ways))] = place


@compiled
def list_rows(
    listed: Array,
    random: Array,
    seeds: Array,
    rows: Array,
    tables: Array,
    segment_of: Array,
    first_row: Array,
    first_bucket: Array,
    ways: Array,
) -> None:
    """Put what rows (n, n_tables) hold in the columns `tables` into listed (n_buckets, 8)."""
    step = segment_of.shape[1]
    for i in range(rows.shape[0]):
        for column in range(tables.shape[0]):
            row = rows[i, tables[column]]
            if row < 0:  # ABSENT
                continue
            segment = segment_of[column, row % step]
            place = (row - first_row[segment]) // step
            n_buckets = first_bucket[segment + 1] - first_bucket[segment]
            within = np.int64(mix(np.uint64(place) ^ seeds[segment]) % np.uint64(n_buckets))
            bucket = first_bucket[segment] + within
            put(listed[bucket], ways[segment], place, random[segment : segment + 1])


@compiled
def put_back(listed: Array, random: Array, chosen: Array, first_bucket: Array, ways: Array) -> None:
    """Put the places of chosen (n_buckets, 8) back into the buckets that they came from."""
    for segment in range(ways.shape[0]):
        for bucket in range(first_bucket[segment], first_bucket[segment + 1]):
            for place in chosen[bucket]:
                if place != EMPTY:
                    put(listed[bucket], ways[segment], place, random[segment : segment + 1])
