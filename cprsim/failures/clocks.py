"""Clocks that age and are renewed: one of the whole job, or one of each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import tee
from math import inf

import numpy as np

from cprsim.failures.node_sampling import failures_of_nodes
from cprsim.failures.renewal import Clocks, expected_renewals
from cprsim.failures.sources import (
    Start,
    asked,
    expected_of,
    expected_of_random_slots,
    random_slots,
    repairs,
    replications_for,
    stream,
    trace_of,
)
from cprsim.job.distributions import Distribution
from cprsim.job.records import Clock, Cluster, Duration, ExpectedFailures, FailureTrace


@dataclass(frozen=True, slots=True)
class JobClock:
    """Failures of the job with independent gaps; each strikes `together` random ones of `slots`."""

    lifetime: Distribution  # gaps between failures of the job
    slots: Sequence[int]
    together: int = 1  # chosen anew at each failure
    clock: Clock = Clock.WALL
    start: Start = Start.FRESH  # stationary: the job starts somewhere in a gap
    repair: Duration | None = None  # until a failed node is back in the pool; None: no time

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Exact up to the accuracy of `expected_renewals`."""
        n_failures = _n_failures(self.lifetime, self.start, useful_h)
        mtbf_h = useful_h / n_failures if n_failures > 0 else inf
        return expected_of_random_slots(asked(cluster, of), self.slots, self.together, mtbf_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        return replications_for(self.together * _n_failures(self.lifetime, self.start, useful_h))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        gaps, choosing, repairing = (
            stream(seed, block, f"failures/job{of}") for of in ("", "/slots", "/repair")
        )
        fresh = self.start is Start.FRESH
        first_gap = self.lifetime.sample if fresh else self.lifetime.sample_residual
        clocks = Clocks(self.lifetime, gaps, first_gap(gaps, n_replications))
        for until_h in borders_h:
            first, at_h = clocks.until(until_h)
            struck = random_slots(self.slots, len(at_h), self.together, choosing)
            if self.together > 1:
                struck.sort(axis=1)
            first_slot = self.together * np.arange(len(at_h) + 1)
            repair_h = repairs(self.repair, repairing, struck.size)
            yield FailureTrace(until_h, first, at_h, first_slot, struck.ravel(), repair_h)


@dataclass(frozen=True, slots=True)
class NodeClocks:
    """Each node of the named roles fails and is renewed on its own; the others keep their age.

    A replacement's clock starts at the failure that made it necessary, so the failures do not
    depend on how the job recovers.
    """

    lifetimes: Mapping[str, Distribution]  # by the name of the role
    clock: Clock = Clock.WALL
    start: Start = Start.STATIONARY
    repair: Duration | None = None  # until a failed node is back in the pool; None: no time

    def _n_failures(self, cluster: Cluster, useful_h: float) -> dict[str, float]:
        """Expected failures of each role within `useful_h` hours of the clock."""
        return {
            role: len(cluster.slots(role)) * _n_failures(lifetime, self.start, useful_h)
            for role, lifetime in self.lifetimes.items()
        }

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Exact up to `expected_renewals`, as two nodes almost never fail at the same instant."""
        by_role = self._n_failures(cluster, useful_h)
        n_failures, shards, n_of_shards = sum(by_role.values()), asked(cluster, of), 0.0
        for role, n in by_role.items():
            slots = cluster.slots(role)
            inside = range(max(slots.start, shards.start), min(slots.stop, shards.stop))
            n_of_shards += n if inside == slots else n * len(inside) / len(slots)
        return expected_of(useful_h, n_failures, n_of_shards, n_of_shards)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failures of a block; nodes that do not fail cost nothing."""
        return replications_for(sum(self._n_failures(cluster, useful_h).values()))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        borders, *of_roles = tee(borders_h, 1 + len(self.lifetimes))
        nodes = [
            failures_of_nodes(
                cluster.slots(role), lifetime, self.start is Start.STATIONARY, n_replications,
                own_borders, stream(seed, block, f"failures/node/{role}"),
            )
            for (role, lifetime), own_borders in zip(self.lifetimes.items(), of_roles, strict=True)
        ]  # fmt: skip
        repairing = stream(seed, block, "failures/node/repair")
        for until_h, *rows in zip(borders, *nodes, strict=True):
            replication, at_h, slot = map(np.concatenate, zip(*rows, strict=True))
            repair_h = repairs(self.repair, repairing, len(slot))
            yield trace_of(until_h, n_replications, replication, at_h, slot, repair_h)


def _n_failures(lifetime: Distribution, start: Start, useful_h: float) -> float:
    """Expected failures of one clock within `useful_h` hours."""
    if start is Start.STATIONARY:
        return useful_h / lifetime.mean_h
    return expected_renewals(lifetime, useful_h)
