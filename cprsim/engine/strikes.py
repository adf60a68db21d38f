"""The failures of one chunk, as the engine looks at them."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.records import Bools, FailureTrace, Floats, Ints


@dataclass(frozen=True, slots=True)
class Strikes:
    """Failures of a stretch of the clock; those of replication i are ``first[i]:first[i + 1]``."""

    until_h: float
    first: Ints  # (n_replications + 1,)
    at_h: Floats  # (n_failures,)
    n_shards: Ints  # (n_failures,) embedding servers that it strikes
    n_replicas: Ints  # (n_failures,) trainers
    trace: FailureTrace
    shards: range

    @classmethod
    def of(
        cls, trace: FailureTrace, n_replications: int, shards: range, replicas: range
    ) -> Strikes:
        """Count who is struck by each failure."""
        n_of_each = np.bincount(trace.replication, minlength=n_replications)
        first = np.append(0, np.cumsum(n_of_each))
        return cls(
            trace.until_h,
            first,
            trace.at_h,
            _n_struck(trace, shards),
            _n_struck(trace, replicas),
            trace,
            shards,
        )

    def slots_reverted(self, failures: Ints, all_lost: Bools) -> tuple[Ints, Ints]:
        """Place in `failures` and slot of each shard that goes back, in the order of `failures`.

        Parameters
        ----------
        failures : (n,) numbers of failures within this chunk
        all_lost : (n,) whether all shards go back, whoever is struck
        """
        n_struck = np.diff(self.trace.first_slot)[failures]
        width = np.where(all_lost, len(self.shards), n_struck)
        place = np.repeat(np.arange(len(failures)), width)
        within = np.arange(len(place)) - np.repeat(np.cumsum(width) - width, width)
        whole = all_lost[place]
        of_trace = np.where(whole, 0, self.trace.first_slot[failures][place] + within)
        slot = np.where(whole, self.shards.start + within, self.trace.slot[of_trace])
        is_shard = (slot >= self.shards.start) & (slot < self.shards.stop)
        return place[is_shard], slot[is_shard]


def no_more(n_replications: int) -> Strikes:
    """Nothing, for ever: what comes after the last chunk of a source that ends."""
    none, never = np.zeros(0, dtype=np.int64), np.zeros(0)
    trace = FailureTrace(inf, none, never, np.zeros(1, dtype=np.int64), none, never)
    return Strikes.of(trace, n_replications, range(0), range(0))


def _n_struck(trace: FailureTrace, slots: range) -> Ints:
    """How many of some slots each failure strikes, (n_failures,)."""
    if not slots:
        return np.zeros(trace.n_failures, dtype=np.int64)
    struck = (trace.slot >= slots.start) & (trace.slot < slots.stop)
    if len(trace.slot) == trace.n_failures:
        return struck.astype(np.int64)
    so_far: Ints = np.append(0, np.cumsum(struck))
    return so_far[trace.first_slot[1:]] - so_far[trace.first_slot[:-1]]
