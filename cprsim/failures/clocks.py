"""Clocks that age and are renewed: one of the whole job, or one of each node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from math import inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Distribution, positive
from cprsim.failures.node_sampling import nodes_of
from cprsim.failures.partial_draws import integers
from cprsim.failures.renewal import LifetimeQueue, expected_renewals, renewals_until
from cprsim.failures.sources import (
    Start,
    clocks_of,
    counting,
    expected_of_random_slots,
    firsts_of,
    joined_hours,
    only,
    random_slots,
    repairs,
    replications_for,
    rows_of,
    slots_array,
    trace_of,
)
from cprsim.failures.streams import stream
from cprsim.records import Clock, Cluster, Duration, ExpectedFailures, FailureTrace, Floats, Ints

# ------------------------------------------------------------------------------------------ the job


@dataclass(frozen=True, slots=True)
class JobClock:
    """Failures of the job with independent gaps, each striking `together` random ones of `slots`.

    Parameters
    ----------
    lifetime : gaps between failures of the job
    slots : the slots that can be struck
    together : how many of them fail at once, chosen anew at each failure
    clock : on which the gaps pass
    start : fresh: the first gap is like the others; stationary: the job starts somewhere in a gap
    repair : until a failed node is back in the pool; None for no time at all
    """

    lifetime: Distribution
    slots: range | tuple[int, ...]
    together: int = 1
    clock: Clock = Clock.WALL
    start: Start = Start.FRESH
    repair: Duration | None = None

    def __post_init__(self) -> None:
        positive("mean lifetime", self.lifetime.mean_h)
        random_slots(slots_array(self.slots), 0, self.together, np.random.default_rng(0))

    def n_failures(self, useful_h: float) -> float:
        """Expected failures within `useful_h` hours of the clock."""
        if self.start is Start.STATIONARY:
            return useful_h / self.lifetime.mean_h
        return expected_renewals(self.lifetime, useful_h)

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Exact up to the accuracy of `expected_renewals`."""
        n_failures = self.n_failures(useful_h)
        mtbf_h = useful_h / n_failures if n_failures > 0 else inf
        return expected_of_random_slots(cluster, slots_array(self.slots), self.together, mtbf_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        return replications_for(self.n_failures(useful_h) * self.together)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border; see `FailureSource`."""
        kept = only(kept, n_replications)
        keeps = clocks_of(kept, n_replications)
        gaps = stream(seed, block, "failures/job")
        nodes = stream(seed, block, "failures/job/slots")
        repairing = stream(seed, block, "failures/job/repair") if self.repair else None
        residual = self.start is Start.STATIONARY
        sample = self.lifetime.sample_residual if residual else self.lifetime.sample_unchecked
        next_at_h = sample(gaps, n_replications)
        lives = LifetimeQueue(self.lifetime, gaps)
        for until_h in borders_h:
            first, at_h = renewals_until(until_h, next_at_h, lives, kept=keeps)
            slot, repair_h = struck_slots(
                self.slots, self.together, int(first[-1]), rows_of(first, kept), nodes,
                self.repair, repairing,
            )  # fmt: skip
            first_slot = counting(len(at_h) + 1)
            yield FailureTrace(
                until_h,
                firsts_of(first, kept),
                at_h,
                first_slot if self.together == 1 else first_slot * self.together,
                slot,
                repair_h,
            )


def struck_slots(
    slots: range | tuple[int, ...], together: int, n_failures: int, kept: slice | None,
    rng: np.random.Generator, repair: Duration | None, repairing: np.random.Generator | None,
) -> tuple[Ints, Floats]:  # fmt: skip
    """Random slots of some failures, those of one in order, and repairs [h].

    Parameters
    ----------
    slots, together : to choose from, and how many of them each failure strikes
    n_failures, kept : how many there are, and those that are wanted; None: all
    rng, repairing : where the choice and the repairs are drawn from
    repair : of each node; None for no time at all

    Returns
    -------
    (n_kept * together,) each
    """
    if together == 1 and isinstance(slots, range) and slots.step == 1:
        slot = integers(rng, slots.start, slots.stop, n_failures, kept)
        return slot, repairs(repair, repairing, n_failures, kept)
    struck = random_slots(slots_array(slots), n_failures, together, rng, kept)
    struck.sort(axis=1)
    nodes = None if kept is None else slice(kept.start * together, kept.stop * together)
    return struck.ravel(), repairs(repair, repairing, n_failures * together, nodes)


# ---------------------------------------------------------------------------------------- the nodes


@dataclass(frozen=True, slots=True)
class NodeClocks:
    """Each node of the named roles fails and is renewed on its own; the others keep their age.

    A replacement's clock starts at the failure that made it necessary, so the failures do not
    depend on how the job recovers.

    Parameters
    ----------
    lifetimes : of the nodes, by the name of their role
    clock : on which the nodes age
    start : stationary: the nodes have been up and replaced for long; fresh: all are new
    repair : until a failed node is back in the pool; None for no time at all
    """

    lifetimes: Mapping[str, Distribution]
    clock: Clock = Clock.WALL
    start: Start = Start.STATIONARY
    repair: Duration | None = None

    def __post_init__(self) -> None:
        if not self.lifetimes:
            raise ParameterError("there is no role whose nodes could fail")
        for lifetime in self.lifetimes.values():
            positive("mean lifetime", lifetime.mean_h)

    def n_failures(self, cluster: Cluster, useful_h: float) -> dict[str, float]:
        """Expected failures of each role within `useful_h` hours of the clock."""
        return {
            role: len(_slots(cluster, role)) * self._n_failures_of_a_node(lifetime, useful_h)
            for role, lifetime in self.lifetimes.items()
        }

    def _n_failures_of_a_node(self, lifetime: Distribution, useful_h: float) -> float:
        if self.start is Start.STATIONARY:
            return useful_h / lifetime.mean_h
        return expected_renewals(lifetime, useful_h)

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Exact up to `expected_renewals`, as two nodes almost never fail at the same instant."""
        by_role = self.n_failures(cluster, useful_h)
        n_failures = sum(by_role.values())
        n_of_shards = sum(n for role, n in by_role.items() if _holds_shards(cluster, role))
        return ExpectedFailures(
            mtbf_h=useful_h / n_failures if n_failures > 0 else inf,
            mtbf_shard_h=useful_h / n_of_shards if n_of_shards > 0 else inf,
            n_shards_together=1.0 if n_of_shards > 0 else 0.0,
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failures of a block; nodes that do not fail cost nothing."""
        return replications_for(sum(self.n_failures(cluster, useful_h).values()))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """A chunk up to each border; see `FailureSource`."""
        n_kept = n_replications if kept is None else len(kept)
        kept = only(kept, n_replications)
        borders_h = iter(borders_h)
        first_border_h = next(borders_h)
        nodes = [
            nodes_of(
                _slots(cluster, role), lifetime, self.start is Start.STATIONARY, n_replications,
                first_border_h, stream(seed, block, f"failures/node/{role}"), kept,
            )
            for role, lifetime in self.lifetimes.items()
        ]  # fmt: skip
        repairing = stream(seed, block, "failures/node/repair")
        for until_h in chain([first_border_h], borders_h):
            of_roles = [role.until(until_h) for role in nodes]
            repair_h = [repairs(self.repair, repairing, role.n_all, role.kept) for role in of_roles]
            yield trace_of(
                until_h,
                n_kept,
                np.concatenate([role.replication for role in of_roles]),
                np.concatenate([role.at_h for role in of_roles]),
                np.concatenate([role.slot for role in of_roles]),
                joined_hours(repair_h),
            )


def _slots(cluster: Cluster, role: str) -> range:
    try:
        return cluster.slots(role)
    except KeyError:
        known = ", ".join(role.name for role in cluster.roles)
        raise ParameterError(f"the cluster has no role {role!r}; it has {known}") from None


def _holds_shards(cluster: Cluster, role: str) -> bool:
    return len(_slots(cluster, role)) > 0 and _slots(cluster, role) == cluster.shard_slots
