"""Failures of a fitted log: unequal nodes (frailty), and simultaneous failures (shocks)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from cprsim.failures.frailty import ALIKE, Frailty, Shocks, failures_of_a_node
from cprsim.failures.renewal import Clocks, numbers
from cprsim.failures.sources import (
    Start,
    asked,
    expected_of,
    repairs,
    replications_for,
    require_room,
    stream,
    trace_of,
)
from cprsim.job.distributions import Weibull
from cprsim.job.records import (
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
)

BYTES_OF_A_SHOCK = 120  # an array of its slots, and its rows


def draw_shocks(
    shocks: Shocks, from_h: float, until_h: float, n_replications: int, n_slots: int,
    rng: np.random.Generator,
) -> tuple[Ints, Floats, Ints]:  # fmt: skip
    """Replication, instant [h] and slot of each node of the job that is struck."""
    mean = shocks.rate_per_h * (until_h - from_h) * n_replications
    mean *= 1 + float(np.dot(shocks.sizes, shocks.shares)) * n_slots / shocks.n_nodes
    require_room(
        BYTES_OF_A_SHOCK * mean,
        f"about {mean:.3g} shocks and the nodes that they strike before {until_h:g} h",
        "shocks {} times rarer would fit",
    )
    n_events = rng.poisson(shocks.rate_per_h * (until_h - from_h), n_replications)
    replication = np.repeat(np.arange(n_replications), n_events)
    at_h = from_h + rng.random(len(replication)) * (until_h - from_h)
    sizes = rng.choice(shocks.sizes, len(replication), p=shocks.shares)
    n_struck = rng.hypergeometric(n_slots, shocks.n_nodes - n_slots, sizes)
    slots = [rng.choice(n_slots, n, replace=False) for n in n_struck[n_struck > 0].tolist()]
    slot = np.concatenate([np.zeros(0, dtype=np.int64), *slots])
    return np.repeat(replication, n_struck), np.repeat(at_h, n_struck), slot


@dataclass(frozen=True, slots=True)
class CorrelatedNodes:
    """A Weibull clock per node, with a factor on the hazard of each, and shocks.

    The factor stays with the slot through its repairs. A shock is a failure like any other, but
    renews no clock: it is independent of the wear of a node. The job starts at a random instant
    within `watched_h` hours since `start`: the length of the log, so that a fit is not extrapolated
    beyond the observed ages.
    """

    lifetime: Weibull  # of a node with the factor 1
    frailty: Frailty = ALIKE
    shocks: Shocks | None = None
    clock: Clock = Clock.WALL
    start: Start = Start.STATIONARY
    watched_h: float = 0.0
    repair: Duration | None = None  # until a failed node is back in the pool; None: no time

    def failures_of_a_node(self, useful_h: float) -> float:
        """Expected failures of one node's own clock within `useful_h` hours of the job."""
        if self.start is Start.FRESH:
            return failures_of_a_node(self.lifetime, self.frailty, useful_h, self.watched_h)
        factors, weights = self.frailty.quadrature()
        stretch = factors ** (-1 / self.lifetime.shape)
        return float(weights @ (useful_h / (self.lifetime.mean_h * stretch)))

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Exact up to quadrature and the accuracy of `expected_renewals`."""
        n_own = self.failures_of_a_node(useful_h)

        def of_slots(n_slots: int) -> tuple[float, float]:
            events, nodes = (0.0, 0.0) if self.shocks is None else self.shocks.striking(n_slots)
            return n_slots * n_own + events * useful_h, n_slots * n_own + nodes * useful_h

        n_any, _ = of_slots(cluster.n_nodes)
        return expected_of(useful_h, n_any, *of_slots(len(asked(cluster, of))))

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failures and by the node clocks of a block."""
        n_failed = cluster.n_nodes * self.failures_of_a_node(useful_h)
        # those before the job starts are drawn too, but not kept
        n_before = cluster.n_nodes * self.failures_of_a_node(self.watched_h) / 10
        return replications_for(n_failed + n_before, cluster.n_nodes)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        n_slots, n_clocks = cluster.n_nodes, n_replications * cluster.n_nodes
        factors, lives, shocks, repairing = (
            stream(seed, block, f"failures/correlated/{of}")
            for of in ("frailty", "lifetimes", "shocks", "repair")
        )
        # float_power is the C library's, the same on every processor; `**` is numpy's for this one
        stretch = np.float_power(self.frailty.sample(factors, n_clocks), -1 / self.lifetime.shape)
        stationary = self.start is Start.STATIONARY
        first_life = self.lifetime.sample_residual if stationary else self.lifetime.sample
        next_at_h = stretch * first_life(lives, n_clocks)
        # the job starts later than the clocks, each replication at its own instant
        later_h = np.repeat(self.watched_h * lives.random(n_replications), n_slots)
        clocks = Clocks(self.lifetime, lives, next_at_h - later_h, stretch)
        clocks.until(0.0)
        for from_h, until_h in pairwise(chain([0.0], borders_h)):
            first, at_h = clocks.until(until_h)
            replication, slot = np.divmod(numbers(first), n_slots)
            if self.shocks is not None:
                struck = draw_shocks(self.shocks, from_h, until_h, n_replications, n_slots, shocks)
                replication, at_h, slot = map(
                    np.concatenate, zip((replication, at_h, slot), struck, strict=True)
                )
            repair_h = repairs(self.repair, repairing, len(slot))
            yield trace_of(until_h, n_replications, replication, at_h, slot, repair_h)
