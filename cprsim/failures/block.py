"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from typing import NamedTuple

import numpy as np

from cprsim.failures.sources import FailureSource, counting
from cprsim.records import STOPPED_BEYOND, Clock, Cluster, Failure, FailureTrace, Floats, Ints

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
    matter which strategy or engine asks for how much.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float
    ) -> None:
        most = source.block_replications(cluster, useful_h)
        self.replications = replications_of(most, block)  # numbered among all
        self.n_replications = len(self.replications)
        self._chunks: list[FailureTrace] = []
        self._strikes: list[Strikes] = []  # of so many chunks
        borders_h = borders(source.clock, useful_h)
        self._more = source.draw(cluster, seed, block, self.n_replications, borders_h)

    @property
    def n_drawn(self) -> int:
        """Failures of all replications, as far as anybody has asked."""
        return sum(chunk.n_failures for chunk in self._chunks)

    def chunk(self, number: int) -> FailureTrace | None:
        """The failures of all replications in one stretch of the clock; None after the last."""
        while number >= len(self._chunks):
            chunk = next(self._more, None)
            if chunk is None:
                return None
            self._chunks.append(chunk)
        return self._chunks[number]

    def strikes(self, n_chunks: int) -> Strikes:
        """The failures of the first chunks, or of all that there are."""
        while n_chunks > len(self._strikes):
            there = self.chunk(len(self._strikes)) is not None
            chunks = self._chunks[: len(self._strikes) + 1]
            self._strikes.append(strikes_of(chunks, not there))
        return self._strikes[n_chunks - 1]

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in count():
            chunk = self.chunk(number)
            if chunk is None:
                return
            yield from chunk.of(replication)


def borders(clock: Clock, useful_h: float) -> tuple[float, ...]:
    """Ends of the chunks in which failures are drawn [h of the clock]; no clock gets further."""
    times = (1.0,) if clock is Clock.PROGRESS else BORDERS
    return tuple(useful_h * n for n in times)


def strikes_of(chunks: Sequence[FailureTrace], complete: bool) -> Strikes:
    """Some chunks as flat arrays; `complete` where there are no failures beyond them."""
    until_h = inf if complete else chunks[-1].until_h
    if len(chunks) == 1:
        only = chunks[0]
        return Strikes(until_h, only.first[None], only.at_h, only.first_slot, only.slot)
    n_failures = np.cumsum([0, *(chunk.n_failures for chunk in chunks)])
    at_h = np.concatenate([chunk.at_h for chunk in chunks])
    slot = np.concatenate([chunk.slot for chunk in chunks])
    return Strikes(
        until_h=until_h,
        first=np.stack([c.first for c in chunks]) + n_failures[:-1, None],
        at_h=at_h,
        first_slot=counting(len(slot) + 1) if len(slot) == len(at_h) else _first_slots(chunks),
        slot=slot,
    )


def _first_slots(chunks: Sequence[FailureTrace]) -> Ints:
    sizes = [np.diff(chunk.first_slot) for chunk in chunks]
    first_slot: Ints = np.concatenate([[0], *sizes]).cumsum()
    return first_slot
