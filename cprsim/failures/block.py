"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from cprsim.failures.sources import FailureSource
from cprsim.records import STOPPED_BEYOND, Cluster, Failure

N_CHUNKS = ceil(STOPPED_BEYOND)  # of the useful hours each: no clock gets further


class BlockFailures:
    """Extends the block's trace chunk by chunk, and keeps it for the strategies to come.

    What a chunk holds depends on the seed, the block and the chunk's number alone, so it does not
    matter which strategy asks for how much.
    """

    def __init__(
        self, source: FailureSource, cluster: Cluster, seed: int, block: int, useful_h: float
    ) -> None:
        self.n_replications = source.block_replications(cluster, useful_h)
        self._drawn: list[list[list[Failure]]] = []  # by chunk, by replication
        self._more = source.draw(cluster, seed, block, self.n_replications, useful_h)

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        for number in range(N_CHUNKS):
            if number == len(self._drawn):
                chunk = next(self._more, None)
                if chunk is None:
                    return
                self._drawn.append(chunk.by_replication(self.n_replications))
            yield from self._drawn[number][replication]
