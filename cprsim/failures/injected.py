"""Failures put where an experiment wants them, in hours of the job's progress or another clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.failures.sources import (
    asked,
    expected_of,
    expected_of_random_slots,
    random_slots,
    repairs,
    replications_for,
    stream,
)
from cprsim.job.records import MAX_NODES, Clock, Cluster, Duration, ExpectedFailures, FailureTrace


@dataclass(frozen=True, slots=True)
class Injected:
    """A given number of failures: on the progress clock every strategy meets all of them.

    On the others a strategy meets those that lie within the job as it takes it, so that a longer
    job may meet more.
    """

    useful_h: float  # useful work of the job
    slots: Sequence[int]  # that are struck, or chosen from
    together: int = 1  # random ones of `slots` that fail at once
    at_h: tuple[float, ...] | None = None  # all different; None: random ones
    count: int = 0  # of random instants, uniform over the first `useful_h` hours of the clock
    repair: Duration | None = None  # until a failed node is back in the pool; None: no time
    clock: Clock = Clock.PROGRESS
    slots_at: tuple[tuple[int, ...], ...] | None = None  # at each of `at_h`; None: see `together`

    @property
    def n_failures(self) -> int:
        """Failures of each replication."""
        return self.count if self.at_h is None else len(self.at_h)

    @property
    def _slots_in_order(self) -> list[tuple[int, ...]]:
        """Of each instant, in order of time; empty where they are chosen at random."""
        if self.at_h is None or self.slots_at is None:
            return []
        return [slots for _, slots in sorted(zip(self.at_h, self.slots_at, strict=True))]

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Exact over the job's useful hours of the clock: the number of failures is known.

        Instants beyond are left out, which on uptime and wall a job that takes longer meets too.
        """
        n = self.n_failures
        if self.at_h is not None:
            n = sum(at_h < self.useful_h for at_h in self.at_h)
        if self.slots_at is None:
            mtbf_h = useful_h / n if n > 0 else inf
            return expected_of_random_slots(asked(cluster, of), self.slots, self.together, mtbf_h)
        shards = set(asked(cluster, of))
        struck = [len(shards.intersection(slots)) for slots in self._slots_in_order[:n]]
        return expected_of(useful_h, n, sum(n_shards > 0 for n_shards in struck), sum(struck))

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        n_given = sum(map(len, self._slots_in_order))
        return replications_for(n_given or self.n_failures * self.together)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """One chunk with all failures; the borders do not matter."""
        n, in_order = self.n_failures, self._slots_in_order
        rng, choosing, repairing = (
            stream(seed, block, f"failures/injected{of}") for of in ("", "/slots", "/repair")
        )
        n_struck = np.array(
            [len(slots) for slots in in_order] or n * [self.together], dtype=np.int64
        )
        shape = n_replications, int(n_struck.sum())
        if in_order:
            struck = np.broadcast_to(np.concatenate(in_order), shape)
        else:
            drawn = random_slots(self.slots, n_replications * n, self.together, choosing)
            struck = drawn.reshape(shape)
        if self.at_h is None:
            at_h = np.sort(self.useful_h * rng.random((n_replications, n)), axis=1)
        else:
            at_h = np.tile(np.sort(self.at_h), (n_replications, 1))
        repair_h = repairs(self.repair, repairing, struck.size).reshape(shape)
        failure = np.repeat(np.arange(n), n_struck)
        order = np.argsort(failure * MAX_NODES + struck, axis=1)
        yield FailureTrace(
            inf,
            n * np.arange(n_replications + 1),
            at_h.ravel(),
            np.concatenate([[0], np.cumsum(np.tile(n_struck, n_replications))]),
            np.take_along_axis(struck, order, axis=1).ravel(),
            np.take_along_axis(repair_h, order, axis=1).ravel(),
        )
