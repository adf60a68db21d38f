"""Nodes that differ, and failures that come together: what a fitted trace asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, pairwise
from math import inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.budget import require_room
from cprsim.failures.distributions import Weibull
from cprsim.failures.frailty import ALIKE, Frailty
from cprsim.failures.node_sampling import require_clocks
from cprsim.failures.renewal import LifetimeQueue, numbers, renewals_by_lives, renewals_until
from cprsim.failures.sources import (
    Start,
    clocks_of,
    firsts_of,
    joined_hours,
    only,
    p_strikes,
    repairs,
    replications_for,
    rows_of,
    trace_of,
)
from cprsim.failures.streams import stream
from cprsim.records import (
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
)

BYTES_OF_A_SHOCK = 120  # an array of its slots, and its rows
STARTS = (np.arange(64) + 0.5) / 64  # instants of the watched time, for means over them


@dataclass(frozen=True, slots=True)
class Shocks:
    """Events that strike several nodes of a cluster at once, as a Poisson process.

    Parameters
    ----------
    rate_per_h : of all sizes together [1/h]
    sizes, shares : how many nodes an event strikes, and with which probability
    n_nodes : of the cluster in which this was observed; a job has some of its nodes at random
    """

    rate_per_h: float
    sizes: tuple[int, ...]
    shares: tuple[float, ...]
    n_nodes: int

    def striking(self, n_slots: int) -> tuple[float, float]:
        """Rate [1/h] of events that strike any of `n_slots` nodes, and of nodes struck."""
        events = sum(
            share * p_strikes(size, n_slots, self.n_nodes)
            for size, share in zip(self.sizes, self.shares, strict=True)
        )
        mean_size = float(np.dot(self.sizes, self.shares))
        return float(self.rate_per_h * events), self.rate_per_h * mean_size * n_slots / self.n_nodes

    def draw(
        self, from_h: float, until_h: float, n_replications: int, n_slots: int,
        rng: np.random.Generator,
    ) -> tuple[Ints, Floats, Ints]:  # fmt: skip
        """Replication, instant [h] and slot of each node of the job that is struck."""
        mean = self.rate_per_h * (until_h - from_h) * n_replications
        mean *= 1 + float(np.dot(self.sizes, self.shares)) * n_slots / self.n_nodes
        require_room(
            BYTES_OF_A_SHOCK * mean,
            f"about {mean:.3g} shocks and the nodes that they strike before {until_h:g} h",
            "shocks {} times rarer would fit",
            # no fewer_fit: the stream is of the whole block
        )
        n_events = rng.poisson(self.rate_per_h * (until_h - from_h), n_replications)
        replication = np.repeat(np.arange(n_replications), n_events)
        at_h = from_h + rng.random(len(replication)) * (until_h - from_h)
        sizes = rng.choice(self.sizes, len(replication), p=self.shares)
        n_struck = rng.hypergeometric(n_slots, self.n_nodes - n_slots, sizes)
        slots = [rng.choice(n_slots, n, replace=False) for n in n_struck[n_struck > 0].tolist()]
        slot = np.concatenate([np.zeros(0, dtype=np.int64), *slots])
        return np.repeat(replication, n_struck), np.repeat(at_h, n_struck), slot


@dataclass(frozen=True, slots=True)
class CorrelatedNodes:
    """A Weibull clock per node, each with its own factor on the hazard, and shocks besides.

    The factor stays with the slot through its repairs. A shock is a failure like any other, but
    renews no clock: what strikes many at once says nothing of the wear of each.

    Parameters
    ----------
    lifetime : of a node with the factor 1
    frailty : how the factors are spread
    shocks : failures of several nodes at once; None for none
    clock : on which all of it passes
    start : stationary: the nodes have been up and renewed for long; fresh: all are new
    watched_h : the job starts at a random instant within so many hours [h] since `start`; the
        length of the log, where a fit should not be stretched beyond the ages that were seen
    repair : until a failed node is back in the pool; None for no time at all
    """

    lifetime: Weibull
    frailty: Frailty = ALIKE
    shocks: Shocks | None = None
    clock: Clock = Clock.WALL
    start: Start = Start.STATIONARY
    watched_h: float = 0.0
    repair: Duration | None = None

    def failures_of_a_node(self, useful_h: float) -> float:
        """Expected failures of one node's own clock within `useful_h` hours of the job."""
        factors, weights = self.frailty.quadrature()
        stretch = factors ** (-1 / self.lifetime.shape)
        if self.start is Start.STATIONARY:
            return float(weights @ (useful_h / (self.lifetime.mean_h * stretch)))
        begins_h = self.watched_h * STARTS if self.watched_h > 0 else np.zeros(1)
        lives = renewals_by_lives(Weibull.from_mean(1.0, self.lifetime.shape))
        scale = self.lifetime.mean_h * stretch[:, None]
        seen = lives((begins_h + useful_h) / scale) - lives(begins_h / scale)
        return float(weights @ seen.mean(axis=1))

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Exact up to quadrature and the accuracy of `expected_renewals`."""
        self._check_slots(cluster)
        own = self.failures_of_a_node(useful_h)

        def of(n_slots: int) -> tuple[float, float]:
            events, nodes = (0.0, 0.0) if self.shocks is None else self.shocks.striking(n_slots)
            return n_slots * own + events * useful_h, n_slots * own + nodes * useful_h

        n_any, _ = of(cluster.n_nodes)
        n_shard, n_shards_struck = of(cluster.n_emb_ps)
        return ExpectedFailures(
            mtbf_h=useful_h / n_any if n_any > 0 else inf,
            mtbf_shard_h=useful_h / n_shard if n_shard > 0 else inf,
            n_shards_together=n_shards_struck / n_shard if n_shard > 0 else 0.0,
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failures and by the node clocks of a block."""
        n_failed = cluster.n_nodes * self.failures_of_a_node(useful_h)
        # those before the job starts are drawn too, but not kept
        n_before = cluster.n_nodes * self.failures_of_a_node(self.watched_h) / 10
        return replications_for(n_failed + n_before, cluster.n_nodes)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border; see `FailureSource`."""
        self._check_slots(cluster)
        n_slots = cluster.n_nodes
        n_kept = n_replications if kept is None else len(kept)
        kept = only(kept, n_replications)
        keeps = clocks_of(kept, n_replications, n_slots)
        require_clocks(n_replications * n_slots)
        lives = stream(seed, block, "failures/correlated/lifetimes")
        shocks = stream(seed, block, "failures/correlated/shocks")
        repairing = stream(seed, block, "failures/correlated/repair")
        factors = self.frailty.sample(
            stream(seed, block, "failures/correlated/frailty"), n_replications * n_slots
        )
        clocks = _Clocks.begin(self, factors, n_slots, lives)
        for from_h, until_h in pairwise(chain([0.0], borders_h)):
            first, at_h = renewals_until(
                until_h, clocks.next_at_h, clocks.lives, clocks.stretch, kept=keeps
            )
            replication, slot = np.divmod(numbers(firsts_of(first, kept, n_slots)), n_slots)
            rows = rows_of(first, kept, n_slots)
            repair_h = repairs(self.repair, repairing, int(first[-1]), rows)
            if self.shocks is not None:
                struck = self.shocks.draw(from_h, until_h, n_replications, n_slots, shocks)
                n_struck, places = len(struck[0]), None
                if kept is not None:
                    places = np.flatnonzero((struck[0] >= kept.start) & (struck[0] < kept.stop))
                    struck = struck[0][places] - kept.start, struck[1][places], struck[2][places]
                replication, at_h, slot = (
                    np.concatenate(pair)
                    for pair in zip((replication, at_h, slot), struck, strict=True)
                )
                of_shocks = repairs(self.repair, repairing, n_struck, places)
                repair_h = joined_hours([repair_h, of_shocks])
            yield trace_of(until_h, n_kept, replication, at_h, slot, repair_h)

    def _check_slots(self, cluster: Cluster) -> None:
        if self.shocks is not None and cluster.n_nodes > self.shocks.n_nodes:
            raise ParameterError(
                f"the job has {cluster.n_nodes} nodes; the shocks were observed in a cluster "
                f"of {self.shocks.n_nodes}"
            )


@dataclass(frozen=True, slots=True)
class _Clocks:
    """The clocks of all nodes, each running by its own factor."""

    lives: LifetimeQueue
    stretch: Floats  # (n_clocks,) of lifetimes
    next_at_h: Floats  # (n_clocks,) moved on as they fail

    @classmethod
    def begin(
        cls, source: CorrelatedNodes, factors: Floats, n_slots: int, rng: np.random.Generator
    ) -> _Clocks:
        stretch = factors ** (-1 / source.lifetime.shape)
        stationary = source.start is Start.STATIONARY
        first = source.lifetime.sample_residual if stationary else source.lifetime.sample
        next_at_h = stretch * first(rng, len(stretch))
        # the job starts later than the clocks, each replication at its own instant
        later_h = np.repeat(source.watched_h * rng.random(len(stretch) // n_slots), n_slots)
        next_at_h -= later_h
        lives = LifetimeQueue(source.lifetime, rng)
        renewals_until(0.0, next_at_h, lives, stretch, from_h=-inf)
        return cls(lives, stretch, next_at_h)
