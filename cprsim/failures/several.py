"""Several sources of failures in one job, such as nodes and racks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import tee
from math import inf
from typing import Any
from zlib import crc32

import numpy as np

from cprsim.failures.sources import FailureSource, trace_of
from cprsim.job.records import Clock, Cluster, ExpectedFailures, FailureTrace

SEED_BITS = 64  # a name's number stands before the seed


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """The failures of independent sources on one clock, with separate random streams.

    `FailureTrace.source` says which one each failure is of.
    """

    sources: tuple[tuple[str, FailureSource], ...]  # by name; "" draws what it draws alone

    @property
    def clock(self) -> Clock:
        """The clock of all sources."""
        return self.sources[0][1].clock

    def rates_per_h(self, cluster: Cluster, useful_h: float) -> tuple[float, ...]:
        """Expected failures of each source per hour of the clock [1/h]."""
        expected = (source.expected(cluster, useful_h) for _, source in self.sources)
        return tuple(1.0 / part.mtbf_h for part in expected)

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Rates add up."""
        parts = [source.expected(cluster, useful_h, of) for _, source in self.sources]
        rate = sum(1.0 / part.mtbf_h for part in parts)
        of_shards = np.array([1.0 / part.mtbf_shard_h for part in parts])
        rate_of_shards = sum(of_shards.tolist())
        if not rate_of_shards:
            return ExpectedFailures(1.0 / rate if rate else inf, inf, 0.0)
        struck = of_shards @ np.array([part.n_shards_together for part in parts])
        return ExpectedFailures(1.0 / rate, 1.0 / rate_of_shards, float(struck / of_shards.sum()))

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Return the number of replications that every source can draw together."""
        return min(source.block_replications(cluster, useful_h) for _, source in self.sources)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        borders, *own_borders = tee(borders_h, 1 + len(self.sources))
        drawn = [
            source.draw(
                cluster, (crc32(name.encode()) << SEED_BITS) + seed, block, n_replications, own_h
            )
            for (name, source), own_h in zip(self.sources, own_borders, strict=True)
        ]
        chunk_of: dict[int, FailureTrace] = {}  # of each source, the last chunk
        from_h = 0.0
        for until_h in borders:
            for number, chunks in enumerate(drawn):
                if number not in chunk_of or chunk_of[number].until_h <= from_h:
                    chunk_of[number] = next(chunks)
            rows = [_rows(number, chunk, from_h, until_h) for number, chunk in chunk_of.items()]
            yield trace_of(until_h, n_replications, *map(np.concatenate, zip(*rows, strict=True)))
            from_h = until_h


def _rows(number: int, chunk: FailureTrace, from_h: float, until_h: float) -> tuple[Any, ...]:
    """A source's failed nodes from an instant on and before another, as columns of `trace_of`."""
    n_struck = np.diff(chunk.first_slot)
    at_h = np.repeat(chunk.at_h, n_struck)
    (inside,) = np.nonzero((at_h >= from_h) & (at_h < until_h))
    columns = np.repeat(chunk.replication, n_struck), at_h, chunk.slot, chunk.repair_h
    return *(column[inside] for column in columns), np.full(len(inside), number)
