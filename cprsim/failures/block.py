"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

from cprsim.failures.sources import FailureSource
from cprsim.records import Cluster, Failure, FailureTrace


class BlockFailures:
    """Extends the block's trace chunk by chunk, and keeps it for the strategies to come.

    What a chunk holds depends on the seed, the block and the chunk's number alone, so it does not
    matter which strategy or engine asks for how much.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float
    ) -> None:
        self.n_replications = source.block_replications(cluster, useful_h)
        self._chunks: list[FailureTrace] = []
        self._by_replication: list[list[list[Failure]]] = []  # by chunk, by replication
        self._more = source.draw(cluster, seed, block, self.n_replications, useful_h)

    def chunk(self, number: int) -> FailureTrace | None:
        """The failures of all replications in one stretch of the clock; None after the last."""
        while number >= len(self._chunks):
            chunk = next(self._more, None)
            if chunk is None:
                return None
            self._chunks.append(chunk)
        return self._chunks[number]

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in count():
            chunk = self.chunk(number)
            if chunk is None:
                return
            while number >= len(self._by_replication):
                made = self._chunks[len(self._by_replication)]
                self._by_replication.append(made.by_replication(self.n_replications))
            yield from self._by_replication[number][replication]
