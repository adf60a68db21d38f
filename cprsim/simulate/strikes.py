"""Failures with what each of them kills, for both engines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from cprsim.records import Floats, Ints
from cprsim.simulate.job import ScopedFailure


class ScopedStrikes(NamedTuple):
    """The failures of the first chunks of a block as flat arrays.

    Those of replication i in chunk c are ``first[c, i]:first[c, i + 1]``.
    """

    until_h: float  # of the clock; infinite where there are no more
    first: Ints  # (n_chunks, n_replications + 1)
    at_h: Floats  # (n_failures,)
    scope: Ints  # (n_failures,) number among the job's
    first_slot: Ints  # (n_failures + 1,)
    slot: Ints  # (n_failed_nodes,)
    repair_h: Floats  # (n_failed_nodes,)


@dataclass(frozen=True, slots=True)
class GivenFailures:
    """Failures that are all there is, one list a replication."""

    lists: tuple[tuple[ScopedFailure, ...], ...]

    @property
    def n_replications(self) -> int:
        return len(self.lists)

    def strikes(self, n_chunks: int) -> ScopedStrikes:
        flat = [failure for failures in self.lists for failure in failures]
        return ScopedStrikes(
            inf,
            np.cumsum([0, *(len(failures) for failures in self.lists)])[None, :],
            np.array([failure.at_h for failure in flat], dtype=np.float64),
            np.array([failure.scope for failure in flat], dtype=np.int64),
            np.cumsum([0, *(len(failure.slots) for failure in flat)]),
            np.array([slot for failure in flat for slot in failure.slots], dtype=np.int64),
            np.array([hours for failure in flat for hours in failure.repair_h], dtype=np.float64),
        )

    def of(self, replication: int) -> Iterator[ScopedFailure]:
        return iter(self.lists[replication])
