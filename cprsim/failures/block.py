"""The failures of one block of replications, drawn on request."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from math import inf
from typing import Any

import numpy as np

from cprsim.failures.sources import FailureSource, require_room
from cprsim.job.records import STOPPED_BEYOND, Clock, Cluster, Failure, FailureTrace

COPIES = 2.0  # the chunks, and the same one after another

FIRST_REPLICATIONS = 4000
"""Of the first block: most runs need no more. Others are larger: each block costs some overhead."""

BORDERS = (1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 9.0, 13.0, 20.0, 30.0, 45.0, 67.0, STOPPED_BEYOND)
"""Ends of the chunks, in useful times of the job. Most jobs are over before the first, and what is
drawn beyond a job's end is drawn in vain; a job on the progress clock needs one useful time."""


def replications_of(most: int, number: int) -> range:
    """The replications of a block, numbered among all; at most `most` are drawn together."""
    first = min(FIRST_REPLICATIONS, most)
    return range(first + (number - 1) * most, first + number * most) if number else range(first)


def block_of(most: int, replication: int) -> int:
    """The number of the block that a replication is in."""
    first = min(FIRST_REPLICATIONS, most)
    return 0 if replication < first else 1 + (replication - first) // most


class BlockFailures:
    """Draws a block's failures chunk by chunk, and keeps them for later strategies.

    The content of a chunk depends on the seed, the block and the chunk's number alone, not on the
    requests of a strategy or driver, nor on the replications `kept`, which are numbered from 0 on
    here.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float,
        kept: range | None = None,
    ) -> None:  # fmt: skip
        of_block = replications_of(source.block_replications(cluster, useful_h), block)
        self.kept = range(len(of_block)) if kept is None else kept
        self.replications = of_block[self.kept.start : self.kept.stop]  # numbered among all
        self.n_replications = len(self.replications)
        self.n_of_block = len(of_block)
        self.seed, self.number = seed, block
        times = (1.0,) if source.clock is Clock.PROGRESS else BORDERS
        self._borders_h = [useful_h * n for n in times]  # no clock gets further
        self._part_of = source, cluster, seed, block, useful_h
        self.forget()

    def forget(self) -> None:
        """Free the memory; failures requested afterwards are drawn again."""
        source, cluster, seed, block, _ = self._part_of
        self._more = source.draw(cluster, seed, block, self.n_of_block, self._borders_h)
        self._complete = False
        self._chunks: list[FailureTrace] = []

    def of_these(self, kept: range) -> BlockFailures:
        """Those of some of these replications alone, drawn anew."""
        first = self.kept.start
        return BlockFailures(*self._part_of, range(first + kept.start, first + kept.stop))

    @property
    def n_drawn(self) -> int:
        """Number of failures drawn until now, over all replications."""
        return sum(chunk.n_failures for chunk in self._chunks)

    @property
    def n_bytes(self) -> int:
        """Memory that they take."""
        arrays = (array for chunk in self._chunks for array in columns_of(chunk))
        return sum(array.nbytes for array in arrays if array is not None)

    def strikes(self, n_chunks: int) -> FailureTrace:
        """Return the failures of the first `n_chunks` chunks, or of all chunks, one after another.

        Those of replication i in chunk c are ``first[c, i]:first[c, i + 1]``. `until_h` is infinite
        where there are no more.
        """
        complete = not self._reach(n_chunks)
        chunks = self._chunks[:n_chunks]
        n_failures = np.cumsum([0, *(chunk.n_failures for chunk in chunks)])
        n_slots = np.cumsum([0, *(len(chunk.slot) for chunk in chunks)])
        _, at_h, _, slot, repair_h, source = zip(*map(columns_of, chunks), strict=True)
        first_slots = [n + chunk.first_slot[1:] for n, chunk in zip(n_slots, chunks, strict=False)]
        return FailureTrace(
            inf if complete else chunks[-1].until_h,
            np.stack([n + chunk.first for n, chunk in zip(n_failures, chunks, strict=False)]),
            np.concatenate(at_h),
            np.concatenate([[0], *first_slots]),
            np.concatenate(slot),
            np.concatenate(repair_h),
            None if source[0] is None else np.concatenate(source),
        )

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in count():
            if not self._reach(number + 1):
                return
            yield from self._chunks[number].of(replication)

    def _reach(self, n_chunks: int) -> bool:
        """Draw until `n_chunks` chunks are drawn; return False if the source has fewer."""
        while n_chunks > len(self._chunks) and not self._complete:
            self._require_room()
            chunk = next(self._more, None)
            self._complete = chunk is None
            if chunk is not None:
                self._chunks.append(part_of(chunk, self.kept))
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


def columns_of(trace: FailureTrace) -> tuple[Any, ...]:
    """All arrays of a trace."""
    return trace.first, trace.at_h, trace.first_slot, trace.slot, trace.repair_h, trace.source


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
