"""The failures of another source at another pace: what if the MTBF were longer or shorter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import ceil

import numpy as np

from cprsim.failures.distributions import positive
from cprsim.failures.sources import FailureSource
from cprsim.records import Clock, Cluster, ExpectedFailures, FailureTrace


@dataclass(frozen=True, slots=True)
class Stretched:
    """Every instant of a source, times `factor`; who fails, and their repairs, stay as they are.

    Both sources draw the same random numbers, so that what changes is the pace alone. Not for
    failures put at given instants of the job: those belong to a job of that length.

    Raises ParameterError for a factor that is not a positive number.
    """

    source: FailureSource
    factor: float

    def __post_init__(self) -> None:
        positive("factor", self.factor)

    @property
    def clock(self) -> Clock:
        """That of the source."""
        return self.source.clock

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Those of the source over the hours that become `useful_h`."""
        of_source = self.source.expected(cluster, useful_h / self.factor)
        return replace(
            of_source,
            mtbf_h=of_source.mtbf_h * self.factor,
            mtbf_shard_h=of_source.mtbf_shard_h * self.factor,
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Those of the source, unless faster failures make a block too large."""
        return self.source.block_replications(cluster, useful_h / min(self.factor, 1.0))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int, chunk_h: float
    ) -> Iterator[FailureTrace]:
        """Chunks of the source, stretched; at least `chunk_h` long, several in one if need be."""
        chunks = self.source.draw(cluster, seed, block, n_replications, chunk_h)
        n_in_one = max(1, ceil(1 / self.factor))
        while some := list(islice(chunks, n_in_one)):
            yield _stretched(_joined(some), self.factor)


def _stretched(trace: FailureTrace, factor: float) -> FailureTrace:
    return replace(trace, until_h=trace.until_h * factor, at_h=trace.at_h * factor)


def _joined(chunks: list[FailureTrace]) -> FailureTrace:
    """Successive chunks as one."""
    if len(chunks) == 1:
        return chunks[0]
    replication = np.concatenate([chunk.replication for chunk in chunks])
    n_slots = np.concatenate([np.diff(chunk.first_slot) for chunk in chunks])
    starts = np.concatenate(
        [chunk.first_slot[:-1] + n for chunk, n in zip(chunks, _before(chunks), strict=True)]
    )
    order = np.argsort(replication, kind="stable")  # in order of time already
    first_slot = np.append(0, np.cumsum(n_slots[order])).astype(np.int64)
    places = np.repeat(starts[order] - first_slot[:-1], n_slots[order]) + np.arange(n_slots.sum())
    return FailureTrace(
        until_h=chunks[-1].until_h,
        replication=replication[order],
        at_h=np.concatenate([chunk.at_h for chunk in chunks])[order],
        first_slot=first_slot,
        slot=np.concatenate([chunk.slot for chunk in chunks])[places],
        repair_h=np.concatenate([chunk.repair_h for chunk in chunks])[places],
    )


def _before(chunks: list[FailureTrace]) -> list[int]:
    """How many failed nodes stand before each chunk."""
    return [0, *np.cumsum([len(chunk.slot) for chunk in chunks])[:-1].tolist()]
