"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from math import inf
from typing import NamedTuple

import numpy as np

from cprsim.failures.budget import require_room
from cprsim.failures.sources import FailureSource
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
    repair_h: Floats  # (n_failed_nodes,)
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
    """Draws a block's failures chunk by chunk, and keeps them for the strategies to come.

    What a chunk holds depends on the seed, the block and the chunk's number alone, so it does not
    matter which strategy or engine asks for how much, nor which replications are kept.

    Parameters
    ----------
    kept : the replications that are wanted, numbered within the block; default all. They are
        numbered from 0 on here, as if there were no others.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float,
        kept: range | None = None,
    ) -> None:  # fmt: skip
        whole = replications_of(source.block_replications(cluster, useful_h), block)
        self.kept = range(len(whole)) if kept is None else kept
        self.replications = whole[self.kept.start : self.kept.stop]  # numbered among all
        self.n_replications = len(self.replications)
        self.n_of_block = len(whole)
        self.seed, self.number = seed, block
        times = (1.0,) if source.clock is Clock.PROGRESS else BORDERS
        self._borders_h = [useful_h * n for n in times]  # no clock gets further
        self._part_of = source, cluster, seed, block, useful_h
        self.forget()

    def forget(self) -> None:
        """Give the memory back; what is asked for from here on is drawn again."""
        source, cluster, seed, block, _ = self._part_of
        self._more = source.draw(cluster, seed, block, self.n_of_block, self._borders_h)
        self._complete = False
        self._chunks: list[_Chunk] = []
        self._drawn: FailureTrace | None = None  # the chunks one after another

    def of_these(self, kept: range) -> BlockFailures:
        """Those of some of these replications alone, drawn anew."""
        first = self.kept.start
        return BlockFailures(*self._part_of, range(first + kept.start, first + kept.stop))

    @property
    def n_drawn(self) -> int:
        """Failures of all replications, as far as anybody has asked."""
        return self._chunks[-1].n_failures if self._chunks else 0

    @property
    def n_bytes(self) -> int:
        """Memory that they take."""
        drawn = self._drawn
        if drawn is None:
            return 0
        arrays = drawn.at_h, drawn.first_slot, drawn.slot, drawn.repair_h, drawn.source
        own = sum(array.nbytes for array in arrays if array is not None)
        return own + sum(chunk.first.nbytes for chunk in self._chunks)

    def strikes(self, n_chunks: int) -> Strikes:
        """The failures of the first chunks, or of all that there are."""
        complete = not self._reach(n_chunks)
        chunks, drawn = self._chunks[:n_chunks], self._drawn
        assert drawn is not None, "a source has one chunk at least"
        last = chunks[-1]
        return Strikes(
            until_h=inf if complete else last.until_h,
            first=np.stack([chunk.first for chunk in chunks]),
            at_h=drawn.at_h[: last.n_failures],
            first_slot=drawn.first_slot[: last.n_failures + 1],
            slot=drawn.slot[: last.n_slots],
            repair_h=drawn.repair_h[: last.n_slots],
            source=None if drawn.source is None else drawn.source[: last.n_failures],
        )

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in count():
            if not self._reach(number + 1) or self._drawn is None:
                return
            yield from replace(self._drawn, first=self._chunks[number].first).of(replication)

    def _reach(self, n_chunks: int) -> bool:
        """Have so many chunks; False where there are fewer."""
        while n_chunks > len(self._chunks) and not self._complete:
            self._require_room()
            chunk = next(self._more, None)
            self._complete = chunk is None
            if chunk is not None:
                chunk = part_of(chunk, self.kept)
                first = self.n_drawn + chunk.first
                self._drawn = chunk if self._drawn is None else joined(self._drawn, chunk)
                ends = len(self._drawn.at_h), len(self._drawn.slot)
                self._chunks.append(_Chunk(chunk.until_h, first, *ends))
        return n_chunks <= len(self._chunks)

    def _require_room(self) -> None:
        """Refuse the next chunk where it should not fit, going by those before it."""
        n = len(self._chunks)
        if 0 < n < len(self._borders_h):
            require_room(
                COPIES * self._borders_h[n] / self._borders_h[n - 1] * self.n_bytes,
                f"the failures of {self.n_replications} replications before "
                f"{self._borders_h[n]:g} h, in which a job is not done yet,",
                "an MTBF {} times as long would fit",
                fewer_fit=True,
            )


class _Chunk(NamedTuple):
    """One chunk of those that stand one after another."""

    until_h: float  # of the clock
    first: Ints  # (n_replications + 1,) where the failures of each begin among all
    n_failures: int  # in this chunk and before it
    n_slots: int


def part_of(trace: FailureTrace, kept: range) -> FailureTrace:
    """The failures of some replications alone, numbered from 0 on."""
    if len(kept) == len(trace.first) - 1:
        return trace
    first = trace.first[kept.start : kept.stop + 1]
    failures = slice(first[0], first[-1])
    first_slot = trace.first_slot[failures.start : failures.stop + 1]
    nodes = slice(first_slot[0], first_slot[-1])
    return FailureTrace(
        trace.until_h,
        first - first[0],
        trace.at_h[failures].copy(),  # not views of the whole
        first_slot - first_slot[0],
        trace.slot[nodes].copy(),
        trace.repair_h[nodes].copy(),
        None if trace.source is None else trace.source[failures].copy(),
    )


def joined(before: FailureTrace, after: FailureTrace) -> FailureTrace:
    """The failures of two chunks one after another; `first` is that of the second."""
    source = before.source
    if source is not None and after.source is not None:
        source = np.concatenate([source, after.source])
    return FailureTrace(
        after.until_h,
        after.first,
        np.concatenate([before.at_h, after.at_h]),
        np.concatenate([before.first_slot, after.first_slot[1:] + len(before.slot)]),
        np.concatenate([before.slot, after.slot]),
        np.concatenate([before.repair_h, after.repair_h]),
        source,
    )
