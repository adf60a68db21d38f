"""Trackers: which rows of the large tables a sub-save writes first.

A tracker runs on the embedding servers. It observes every access, chooses rows at the start of a
sub-save, is notified when the save commits, and loses its state of a server that fails.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np

from cprsim.compiling import compiled
from cprsim.errors import ParameterError
from cprsim.job.model_shape import TableLayout
from cprsim.job.records import Ints
from cprsim.training.kernel.loops import GOLDEN, Array, mix
from cprsim.training.kernel.shards import Segment
from cprsim.training.kernel.weights import Sliced

ABSENT = -1  # in place of a row, where a sample looks up fewer than others do


@dataclass(frozen=True)
class Tracked:
    """Inputs of a tracker: the segments of the large tables, and the rows themselves."""

    layout: TableLayout
    segments: tuple[Segment, ...]
    fraction: float  # r: the share of a segment's rows that one sub-save may write
    table: Sliced  # (n_rows, d), live
    saved_table: Sliced  # (n_rows, d) as last saved, live
    seed: int
    sample_period: int  # of SSU: it looks at every `sample_period`-th sample
    in_job: tuple[Segment, ...] = ()  # what the segments are there, where this is a server alone
    momentum: Sliced | None = None  # of each row, live; None: the optimizer keeps none

    @property
    def seeds(self) -> Array:
        """(n_segments,) uint64 random seeds, equal in the job and on a single server."""
        segments = self.in_job or self.segments
        tables, servers = np.array(
            [(segment.table, segment.server) for segment in segments], np.uint64
        ).T
        seeds: Array = mix(mix(np.uint64(self.seed) ^ tables) ^ servers)
        return seeds

    @property
    def tables(self) -> Ints:
        """Numbers of the large tables, ascending: the columns of a batch that count."""
        return np.unique([segment.table for segment in self.segments]).astype(np.int64)


class Tracker:
    """Chooses the rows of one sub-save after the other; this one notes nothing on the way."""

    def __init__(self, tracked: Tracked) -> None:
        self.tracked, self.segments = tracked, tracked.segments
        # most rows that one sub-save writes of each segment
        self.budgets = [ceil(tracked.fraction * segment.n_rows) for segment in tracked.segments]

    def observe(self, rows: Array) -> None:
        """Note the accesses of one batch: fused rows (n, n_tables).

        Where a sample looks up several rows of a table they are (n, k, n_tables), filled up with
        `ABSENT`.
        """

    def choose(self) -> Ints:
        """Fused ids of the rows that the sub-save which starts now writes; within the budgets."""
        urgent = [segment.ids(self._urgent(i, segment)) for i, segment in enumerate(self.segments)]
        return np.concatenate([np.zeros(0, np.int64), *urgent])

    def _urgent(self, number: int, segment: Segment) -> Ints:
        """Positions of these rows in one segment."""
        raise NotImplementedError

    def committed(self) -> None:
        """Record that the sub-save of the last `choose` was committed."""

    def abandoned(self) -> None:
        """Record that it was abandoned, and restore the state before it."""

    def forget(self, server: int) -> None:
        """Discard the tracker's state of the rows of a lost server."""

    @property
    def tracked_bytes(self) -> int:
        """Bytes of the rows that it tracks, without the optimiser's."""
        saved = self.tracked.saved_table
        starts = ((segment.rows.start, segment.n_rows) for segment in self.segments)
        return sum(n_rows * saved[first : first + 1].nbytes for first, n_rows in starts)

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


class MostFrequentlyUsed(Tracker):
    """MFU (Maeng et al. 2021): chooses the rows with the highest counts of each segment.

    A 4-byte counter per row counts each occurrence in a batch. A save that commits takes its own
    counts away: what was accessed while it was being written counts for the next one.
    """

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        self._tables = tracked.tables
        first, stop = (tracked.layout.first_row[self._tables + i] for i in (0, 1))
        ends = np.cumsum(stop - first)
        self.counts = np.zeros(int(ends[-1]), np.uint32)  # of the large tables, one after the other
        self._shift = np.append(0, ends[:-1]) - first  # (n large tables,) from row to counter
        # by number of a segment: its counts; where, and how many
        self._chosen: dict[int, tuple[Array, Ints, Array]] = {}

    def observe(self, rows: Array) -> None:
        flat = rows.reshape(-1, rows.shape[-1])
        count_accesses(self.counts, flat, self._tables, self._shift)

    def _urgent(self, number: int, segment: Segment) -> Ints:
        counts = self._of(segment)
        positions = most_urgent(self._scores(segment, counts), self.budgets[number])
        self._chosen[number] = counts, positions, counts[positions]
        return positions

    def _scores(self, segment: Segment, counts: Array) -> Array:
        """(n,) urgency of each row of a segment; 0 of those that were not used."""
        return counts

    def committed(self) -> None:
        for counts, positions, saved in self._chosen.values():
            counts[positions] -= saved

    def forget(self, server: int) -> None:
        for segment in self.segments:
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


class LargestMomentum(MostFrequentlyUsed):
    """Of the rows used since their save those with the largest momentum in the optimizer.

    As MOMENTUM_LAST of TorchRec's ModelDeltaTracker. The momentum is what the optimizer keeps first
    of a row: the sum of squared gradients of row-wise Adagrad, the mean gradient of Adam.
    """

    def __init__(self, tracked: Tracked) -> None:
        if tracked.momentum is None:
            raise ParameterError(
                "`momentum` ranks rows by the optimizer's state of each, and sgd keeps nothing: "
                "take adagrad or adam (`kernel.optimizer`), or another strategy"
            )
        super().__init__(tracked)
        self._momentum = tracked.momentum

    def _scores(self, segment: Segment, counts: Array) -> Array:
        momentum = self._momentum[segment.rows].reshape(len(counts), -1)
        return np.where(counts > 0, np.square(momentum).sum(axis=1), 0)


class LargestChange(Tracker):
    """SCAR (Qiao et al. 2019): the rows with the largest L2 distance from their saved copy.

    The second copy of each row takes +100 % of the large tables, and each sub-save a pass over all
    of them. A server that reloads its rows makes the copy anew from what it loads, so the copy is
    what the store holds.
    """

    def _urgent(self, number: int, segment: Segment) -> Ints:
        table, saved = self.tracked.table[segment.rows], self.tracked.saved_table[segment.rows]
        return most_urgent(squared_changes(table, saved), self.budgets[number])

    @property
    def memory_bytes(self) -> int:
        return self.tracked_bytes


@compiled
def squared_changes(rows: Array, saved: Array) -> Array:
    """(n,) sums of squared differences of rows (n, d) and saved (n, d)."""
    changes = np.zeros(rows.shape[0], np.float32)
    for i in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            change = rows[i, k] - saved[i, k]
            changes[i] += change * change
    return changes


class RoundRobin(Tracker):
    """Goes through each segment in 1 / r parts, and on to the next part with each commit.

    The control of every claim about priorities: it writes as much and uses no accesses. Its
    position belongs to the job and survives the failure of a server.
    """

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        self._n_parts = round(1 / tracked.fraction)
        self._part = np.zeros(1, np.int64)

    def _urgent(self, number: int, segment: Segment) -> Ints:
        part = int(self._part[0])
        first, stop = (segment.n_rows * p // self._n_parts for p in (part, part + 1))
        return np.arange(first, stop)

    def go_to(self, n_committed: int) -> None:
        """Set the state after a number of committed sub-saves."""
        self._part[0] = n_committed % self._n_parts

    def committed(self) -> None:
        self.go_to(int(self._part[0]) + 1)

    def state(self) -> dict[str, Array]:
        return {"tracker/part": self._part}


BUCKET = 8
EMPTY = -1


class SubSampledUsed(Tracker):
    """SSU (Maeng et al. 2021): rows that a sub-sample of the inputs used, a cheap stand-in for MFU.

    The rows of every second sample go into a list of r x N ids per segment, 4 bytes each and
    nothing more. So that it is known without further memory whether a row is listed, the list is
    kept in buckets of 8 and a row's hash names its bucket; a full bucket evicts one of its ids at
    random. A segment's list is rounded down to whole buckets. It begins empty after each save.

    A segment's list and draws depend on nothing outside it: a server alone has the same. A server
    that is replaced begins both anew.
    """

    def __init__(self, tracked: Tracked) -> None:
        super().__init__(tracked)
        budgets = np.array(self.budgets)
        self._tables = tracked.tables
        self._segment_of = segment_of(tracked)
        self._first_row = np.array([segment.rows.start for segment in self.segments])
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
        """Set the state after a number of samples of the job."""
        self._n_seen[0] = n_seen

    def choose(self) -> Ints:
        self._chosen = self.listed.copy()
        self.listed[:] = EMPTY
        return super().choose()

    def _urgent(self, number: int, segment: Segment) -> Ints:
        places = self._chosen[self._buckets(number)]
        return np.sort(places[places != EMPTY]).astype(np.int64)

    def abandoned(self) -> None:
        put_back(self.listed, self._random, self._chosen, self._first_bucket, self._ways)

    def forget(self, server: int) -> None:
        for number, segment in enumerate(self.segments):
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
    """Add a place to a bucket (8,) that lacks it; evict a random one if none is free."""
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


TRACKER_CLASSES: dict[str, Callable[[Tracked], Tracker]] = {
    "scar": LargestChange,
    "mfu": MostFrequentlyUsed,
    "ssu": SubSampledUsed,
    "momentum": LargestMomentum,
    "round-robin": RoundRobin,
}
