"""The failures of one block of replications, drawn as far as anybody has asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from math import ceil

import numpy as np

from cprsim.failures.sources import FailureSource
from cprsim.records import STOPPED_BEYOND, Cluster, Failure, FailureTrace

N_CHUNKS = ceil(STOPPED_BEYOND)  # of the useful hours each: no clock gets further


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
        if number >= N_CHUNKS:
            return None
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


class StackedFailures:
    """Several blocks side by side, as one: what one step of an engine costs, it costs once."""

    def __init__(self, blocks: Sequence[BlockFailures]) -> None:
        self._blocks = blocks
        self._of_a_block = blocks[0].n_replications
        self.n_replications = len(blocks) * self._of_a_block
        self._chunks: list[FailureTrace] = []

    def chunk(self, number: int) -> FailureTrace | None:
        """The failures of all blocks in one stretch of the clock; None after the last."""
        while number >= len(self._chunks):
            chunks = [block.chunk(len(self._chunks)) for block in self._blocks]
            there = [chunk for chunk in chunks if chunk is not None]
            if len(there) < len(chunks):
                return None
            self._chunks.append(_side_by_side(there, self._of_a_block))
        return self._chunks[number]

    def of(self, replication: int) -> Iterator[Failure]:
        """The failures of one replication, in order, for as long as anybody asks."""
        block, within = divmod(replication, self._of_a_block)
        return self._blocks[block].of(within)


def _side_by_side(chunks: Sequence[FailureTrace], n_replications: int) -> FailureTrace:
    n_slots = np.cumsum([0, *(len(chunk.slot) for chunk in chunks)])
    return FailureTrace(
        until_h=chunks[0].until_h,
        replication=np.concatenate(
            [chunk.replication + i * n_replications for i, chunk in enumerate(chunks)]
        ),
        at_h=np.concatenate([chunk.at_h for chunk in chunks]),
        first_slot=np.concatenate(
            [*(c.first_slot[:-1] + n for c, n in zip(chunks, n_slots, strict=False)), n_slots[-1:]]
        ),
        slot=np.concatenate([chunk.slot for chunk in chunks]),
        repair_h=np.concatenate([chunk.repair_h for chunk in chunks]),
    )
