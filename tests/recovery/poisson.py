"""Poisson failures of several scopes for many replications, as the fast engine takes them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.strikes import ScopedFailures, ScopedStrikes


class PoissonFailures(ScopedFailures):
    """Failures up to an instant of the clock, after which there are none.

    `rates_per_h` by scope of the job; `together` slots drawn at random each time, of `slots`.
    """

    @classmethod
    def draw(
        cls,
        job: SimulatedJob,
        rates_per_h: Sequence[float],
        n_replications: int,
        *,
        until_h: float,
        seed: int = 0,
        slots: range | None = None,
        together: int = 1,
        repair_h: float = 0.0,
    ) -> PoissonFailures:
        rng = np.random.default_rng(seed)
        slots = range(job.cluster.n_nodes) if slots is None else slots
        counts = rng.poisson(sum(rates_per_h) * until_h, n_replications)
        n = int(counts.sum())
        row = np.repeat(np.arange(n_replications), counts)
        at_h = rng.uniform(0.0, until_h, n)
        at_h = at_h[np.lexsort((at_h, row))]
        shares = np.array(rates_per_h) / sum(rates_per_h)
        scope = rng.choice(len(shares), n, p=shares)
        if together == 1:
            slot = rng.integers(slots.start, slots.stop, n)
        else:
            slot = slots.start + np.argsort(rng.random((n, len(slots))), axis=1)[:, :together]
        drawn = ScopedStrikes(
            inf,
            np.concatenate([[0], np.cumsum(counts)])[None, :],
            at_h,
            scope.astype(np.int64),
            together * np.arange(n + 1),
            slot.reshape(-1).astype(np.int64),
            np.full(together * n, repair_h),
        )
        return cls(drawn)
