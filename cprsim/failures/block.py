"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import inf
from typing import NamedTuple

import numpy as np

from cprsim.failures.budget import require_room
from cprsim.failures.sources import (
    BYTES_OF_A_SLOT,
    FailureSource,
    are_no_hours,
    counting,
    joined_hours,
    no_hours,
)
from cprsim.records import STOPPED_BEYOND, Clock, Cluster, Failure, FailureTrace, Floats, Ints

COPIES = 1.7  # of what is there and of the next chunk, while that is added

FIRST_REPLICATIONS = 4000
"""Of the first block: most runs need no more. Others are larger: each block costs some overhead."""

BORDERS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 30.0, 45.0, 67.0, STOPPED_BEYOND)
"""Ends of the chunks, in useful times of the job. Most jobs are over before the first, and what is
drawn beyond a job's end is drawn in vain; a job on the progress clock needs one useful time."""


class Strikes(NamedTuple):
    """The failures of the first chunks of a block as flat arrays.

    Those of replication i in chunk c are ``first[c, i]:first[c, i + 1]``.
    """

    until_h: float  # of the clock; infinite where there are no more
    first: Ints  # (n_chunks, n_replications + 1)
    at_h: Floats  # (n_failures,)
    first_slot: Ints  # (n_failures + 1,)
    slot: Ints  # (n_failed_nodes,)
    source: Ints | None = None  # (n_failures,) that each is of; None: the job has one source


def replications_of(most: int, number: int) -> range:
    """The replications of a block, numbered among all; at most `most` can be drawn at once."""
    first = min(FIRST_REPLICATIONS, most)
    return range(first + (number - 1) * most, first + number * most) if number else range(first)


def block_of(most: int, replication: int) -> int:
    """The number of the block that a replication is in."""
    first = min(FIRST_REPLICATIONS, most)
    return 0 if replication < first else 1 + (replication - first) // most


class BlockFailures:
    """Extends the block's trace chunk by chunk, and keeps it for the strategies to come.

    What a chunk holds depends on the seed, the block and the chunk's number alone, so it does not
    matter which strategy or engine asks for how much, nor which replications are kept. Everything
    is kept once: the first chunks are the front part of the same arrays.

    Parameters
    ----------
    kept : the replications that are wanted, numbered within the block; default all. They are
        numbered from 0 on here, as if there were no others.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float,
        kept: range | None = None,
    ) -> None:  # fmt: skip
        most = source.block_replications(cluster, useful_h)
        whole = replications_of(most, block)
        self.kept = range(len(whole)) if kept is None else kept
        self.replications = whole[self.kept.start : self.kept.stop]  # numbered among all
        self.n_replications = len(self.replications)
        self.n_of_block = len(whole)
        self._borders_h = borders(source.clock, useful_h)

        self.seed, self.number = seed, block
        self._part_of = source, cluster, seed, block, useful_h

        def draw() -> Iterator[FailureTrace]:
            return source.draw(cluster, seed, block, len(whole), self._borders_h, self.kept)

        self._draw = draw
        self.forget()

    def forget(self) -> None:
        """Give the memory back; what is asked for from here on is drawn again."""
        self._more = self._draw()
        self._complete = False
        self._chunks = [_Chunk(0.0, 0, 0)]
        # where in each chunk the failures of each replication begin, with room for more chunks
        self._first: Ints = np.empty((len(self._borders_h), self.n_replications + 1), np.int64)
        self._first_of: dict[int, Ints] = {}  # the first rows: the same object for the same chunks
        self._at_h: Floats = np.zeros(0)
        self._first_slot: Ints = np.zeros(1, dtype=np.int64)
        self._slot: Ints = np.zeros(0, dtype=np.int64)
        self._repair_h: Floats = no_hours(0)
        self._source: Ints | None = None

    def of_these(self, kept: range) -> BlockFailures:
        """Those of some of these replications alone, drawn anew."""
        first = self.kept.start
        return BlockFailures(*self._part_of, range(first + kept.start, first + kept.stop))

    @property
    def n_drawn(self) -> int:
        """Failures of all replications, as far as anybody has asked."""
        return len(self._at_h)

    @property
    def n_bytes(self) -> int:
        """Memory that they take."""
        repair_bytes = 0 if are_no_hours(self._repair_h) else self._repair_h.nbytes
        return int(
            self._at_h.nbytes + self._first_slot.nbytes + self._slot.nbytes + repair_bytes
            + (len(self._chunks) - 1) * self._first[0].nbytes
            + (0 if self._source is None else self._source.nbytes)
        )  # fmt: skip

    def strikes(self, n_chunks: int) -> Strikes:
        """The failures of the first chunks, or of all that there are."""
        complete = not self._reach(n_chunks)
        n_chunks = min(n_chunks, len(self._chunks) - 1)
        last = self._chunks[n_chunks]
        if n_chunks not in self._first_of:
            self._first_of[n_chunks] = self._first[:n_chunks]
        return Strikes(
            until_h=inf if complete else last.until_h,
            first=self._first_of[n_chunks],
            at_h=self._at_h[: last.n_failures],
            first_slot=self._first_slot[: last.n_failures + 1],
            slot=self._slot[: last.n_slots],
            source=None if self._source is None else self._source[: last.n_failures],
        )

    def repair_h(self, n_slots: int) -> Floats:
        """Repair of the first so many failed nodes, in the order of `Strikes.slot` [h]."""
        return self._repair_h[:n_slots]

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in count():
            if not self._reach(number + 1):
                return
            yield from FailureTrace(
                self._chunks[number + 1].until_h, self._first[number],
                self._at_h, self._first_slot, self._slot, self._repair_h, self._source,
            ).of(replication)  # fmt: skip

    def _reach(self, n_chunks: int) -> bool:
        """Have so many chunks; False where there are fewer."""
        while n_chunks > len(self._chunks) - 1 and not self._complete:
            self._require_room()
            chunk = next(self._more, None)
            if chunk is None:
                self._complete = True
            else:
                self._add(chunk)
        return n_chunks <= len(self._chunks) - 1

    def _add(self, chunk: FailureTrace) -> None:
        """Have a further chunk behind those that are there."""
        last = self._chunks[-1]
        n_failures, n_slots = last.n_failures + chunk.n_failures, last.n_slots + len(chunk.slot)
        number = len(self._chunks) - 1
        if number == len(self._first):
            self._first = np.concatenate([self._first, np.empty_like(self._first)])
            self._first_of = {}
        np.add(chunk.first, last.n_failures, out=self._first[number])
        self._chunks.append(_Chunk(chunk.until_h, n_failures, n_slots))
        if not last.n_failures:
            self._at_h, self._slot, self._first_slot = chunk.at_h, chunk.slot, chunk.first_slot
            self._repair_h, self._source = chunk.repair_h, chunk.source
            return
        self._at_h = np.concatenate([self._at_h, chunk.at_h])
        self._slot = np.concatenate([self._slot, chunk.slot])
        self._repair_h = joined_hours([self._repair_h, chunk.repair_h])
        if self._source is not None and chunk.source is not None:
            self._source = np.concatenate([self._source, chunk.source])
        if n_slots == n_failures:
            self._first_slot = counting(n_failures + 1)
        else:
            more = chunk.first_slot[1:] + last.n_slots
            self._first_slot = np.concatenate([self._first_slot, more])

    def _require_room(self) -> None:
        """Refuse the next chunk where it should not fit, going by those before it."""
        n_chunks, last = len(self._chunks) - 1, self._chunks[-1]
        if not last.n_failures or n_chunks >= len(self._borders_h):
            return
        growth = self._borders_h[n_chunks] / self._borders_h[n_chunks - 1]
        n_slots_more = last.n_slots * (growth - 1.0)
        require_room(
            COPIES * growth * self.n_bytes + BYTES_OF_A_SLOT * n_slots_more,
            f"the failures of {self.n_replications} replications before "
            f"{self._borders_h[n_chunks]:g} h, in which a job is not done yet,",
            "an MTBF {} times as long would fit",
            fewer_fit=True,
        )


class _Chunk(NamedTuple):
    """Where a chunk ends in the arrays of a block."""

    until_h: float  # of the clock
    n_failures: int  # in this chunk and before it
    n_slots: int


def borders(clock: Clock, useful_h: float) -> tuple[float, ...]:
    """Ends of the chunks in which failures are drawn [h of the clock]; no clock gets further."""
    times = (1.0,) if clock is Clock.PROGRESS else BORDERS
    return tuple(useful_h * n for n in times)
