"""Several sources of failures in one job: such as nodes that fail, and racks that lose power.

The sources are independent, and age on one clock. Each draws from streams of its own: the failures
of one do not depend on which others there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import tee
from math import inf
from zlib import crc32

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.sources import FailureSource, are_no_hours, firsts, joined_hours, no_hours
from cprsim.records import Clock, Cluster, ExpectedFailures, FailureTrace, Ints

SEED_BITS = 64  # a name's number stands before the seed


@dataclass(frozen=True, slots=True)
class SeveralSources:
    """The failures of all sources; `FailureTrace.source` says which one each is of.

    Parameters
    ----------
    sources : by name, one or more; one that is named "" draws what it draws alone
    """

    sources: tuple[tuple[str, FailureSource], ...]

    def __post_init__(self) -> None:
        clocks = {source.clock for _, source in self.sources}
        if len(clocks) > 1:
            names = " and ".join(sorted(f"`{clock.value}`" for clock in clocks))
            raise ParameterError(f"failures of one job age on one clock; these age on {names}")

    @property
    def clock(self) -> Clock:
        """The clock of all sources."""
        return self.sources[0][1].clock

    def rates_per_h(self, cluster: Cluster, useful_h: float) -> tuple[float, ...]:
        """Expected failures of each source per hour of the clock [1/h]."""
        expected = (source.expected(cluster, useful_h) for _, source in self.sources)
        return tuple(1.0 / each.mtbf_h for each in expected)

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Rates add up."""
        each = [source.expected(cluster, useful_h) for _, source in self.sources]
        of_shards = np.array([1.0 / one.mtbf_shard_h for one in each])
        together = np.array([one.n_shards_together for one in each])
        mean = float(of_shards @ together / of_shards.sum()) if of_shards.any() else 0.0
        return ExpectedFailures(
            _mtbf_h([one.mtbf_h for one in each]), _mtbf_h([one.mtbf_shard_h for one in each]), mean
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """As many as every source can draw at once."""
        return min(source.block_replications(cluster, useful_h) for _, source in self.sources)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border, or one with all failures; see `FailureSource`."""
        drawn = [
            source.draw(
                cluster, (crc32(name.encode()) << SEED_BITS) + seed, block, n_replications,
                borders, kept,
            )
            for (name, source), borders in zip(
                self.sources, tee(borders_h, len(self.sources)), strict=True
            )
        ]  # fmt: skip
        known: list[FailureTrace | None] = [None] * len(drawn)  # drawn, and not given yet
        until_h = 0.0
        while until_h < inf:
            for number, chunks in enumerate(drawn):
                there = known[number]
                if there is None or there.until_h <= until_h:
                    known[number] = next(chunks, None)
            rest = [chunk for chunk in known if chunk is not None]
            if not rest:
                return
            from_h, until_h = until_h, min(chunk.until_h for chunk in rest)
            yield _merged(
                [(number, _between(chunk, from_h, until_h))
                 for number, chunk in enumerate(known) if chunk is not None],
                until_h,
            )  # fmt: skip


def _mtbf_h(each: Sequence[float]) -> float:
    rate = sum(1.0 / mtbf_h for mtbf_h in each)
    return 1.0 / rate if rate else inf


def _between(chunk: FailureTrace, from_h: float, until_h: float) -> FailureTrace:
    """The failures of a chunk from an instant on and before another."""
    return _chosen(chunk, np.flatnonzero((chunk.at_h >= from_h) & (chunk.at_h < until_h)))


def _chosen(trace: FailureTrace, order: Ints, replication: Ints | None = None) -> FailureTrace:
    """Some failures of a trace in an order that has those of a replication together.

    Parameters
    ----------
    replication : (n_failures,) of each; default: as `trace.first` says
    """
    if replication is None:
        replication = trace.replication
    n_nodes = np.diff(trace.first_slot)
    n = n_nodes[order]
    first_slot = np.concatenate([[0], np.cumsum(n)])
    nodes = np.repeat(trace.first_slot[:-1][order] - first_slot[:-1], n) + np.arange(n.sum())
    hours = trace.repair_h
    return replace(
        trace,
        first=firsts(replication[order], len(trace.first) - 1),
        at_h=trace.at_h[order],
        first_slot=first_slot,
        slot=trace.slot[nodes],
        repair_h=no_hours(len(nodes)) if are_no_hours(hours) else hours[nodes],
        source=None if trace.source is None else trace.source[order],
    )


def _merged(chunks: Sequence[tuple[int, FailureTrace]], until_h: float) -> FailureTrace:
    """The failures of some sources, those of one instant in the order of the sources."""
    numbers, traces = zip(*chunks, strict=True)
    n_nodes = np.concatenate([np.diff(trace.first_slot) for trace in traces])
    replication = np.concatenate([trace.replication for trace in traces])
    at_h = np.concatenate([trace.at_h for trace in traces])
    source = np.repeat(numbers, [trace.n_failures for trace in traces])
    one_after_another = FailureTrace(
        until_h,
        firsts(replication, len(traces[0].first) - 1),
        at_h,
        np.concatenate([[0], np.cumsum(n_nodes)]),
        np.concatenate([trace.slot for trace in traces]),
        joined_hours([trace.repair_h for trace in traces]),
        source,
    )
    return _chosen(one_after_another, np.lexsort((source, at_h, replication)), replication)
