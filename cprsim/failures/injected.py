"""Failures put where an experiment wants them, in hours of the job's progress."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.budget import require_room
from cprsim.errors import ParameterError
from cprsim.failures.pieces import drawn
from cprsim.failures.sources import (
    BYTES_OF_A_ROW,
    expected_of_random_slots,
    random_slots,
    repairs,
    replications_for,
    slots_array,
    trace_of,
)
from cprsim.records import (
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
)
from cprsim.streams import stream


@dataclass(frozen=True, slots=True)
class Injected:
    """A given number of failures, whatever the strategy: they lie on the progress clock.

    Parameters
    ----------
    useful_h : useful work of the job [h]
    slots : the slots that are struck, or chosen from
    together : how many random ones of `slots` fail at once; None for all of them
    at_h : instants of progress [h] in ``[0, useful_h)``; None for random ones
    count : number of failures at uniformly random progress; only where `at_h` is None
    repair : until a failed node is back in the pool; None for no time at all

    Raises
    ------
    ParameterError
        for instants outside the job or given twice, or more nodes than there are.
    """

    useful_h: float
    slots: range | tuple[int, ...]
    together: int | None = 1
    at_h: tuple[float, ...] | None = None
    count: int = 0
    repair: Duration | None = None

    def __post_init__(self) -> None:
        random_slots(slots_array(self.slots), 0, self._n_struck, np.random.default_rng(0))
        if self.at_h is None:
            if self.count < 0:
                raise ParameterError(f"the number of failures can't be {self.count}")
            return
        if len(set(self.at_h)) < len(self.at_h):
            raise ParameterError(f"an instant is given twice: {sorted(self.at_h)} h")
        for at_h in self.at_h:
            if not 0 <= at_h < self.useful_h:
                raise ParameterError(f"no progress of {at_h!r} h in a job of {self.useful_h!r} h")

    @property
    def clock(self) -> Clock:
        """Always progress, so that each strategy meets exactly these failures."""
        return Clock.PROGRESS

    @property
    def n_failures(self) -> int:
        """Failures of each replication."""
        return self.count if self.at_h is None else len(self.at_h)

    @property
    def _n_struck(self) -> int:
        return len(self.slots) if self.together is None else self.together

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Exact: the number of failures is known."""
        mtbf_h = useful_h / self.n_failures if self.n_failures > 0 else inf
        return expected_of_random_slots(cluster, slots_array(self.slots), self._n_struck, mtbf_h)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        return replications_for(self.n_failures * self._n_struck)

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """One chunk with all failures; the borders do not matter."""
        n_each, n_struck = self.n_failures, self._n_struck
        within = range(n_replications) if kept is None else kept
        mine = slice(within.start * n_each, within.stop * n_each)
        n_all = n_replications * n_each
        require_room(
            BYTES_OF_A_ROW * float(len(within)) * n_each * n_struck,
            f"{n_each} failures of {n_struck} nodes in each of {len(within)} replications",
            "{} times fewer would fit",
            fewer_fit=True,
        )
        at_h = self._instants(stream(seed, block, "failures/injected"), n_all, mine)
        choosing = stream(seed, block, "failures/injected/slots")
        struck = random_slots(slots_array(self.slots), n_all, n_struck, choosing, mine).ravel()
        repairing = stream(seed, block, "failures/injected/repair")
        nodes = slice(mine.start * n_struck, mine.stop * n_struck)
        yield trace_of(
            inf,
            len(within),
            np.repeat(np.arange(len(within)), n_each * n_struck),
            np.repeat(at_h, n_struck),
            struck,
            repairs(self.repair, repairing, n_all * n_struck, nodes),
        )

    def _instants(self, rng: np.random.Generator, n_all: int, kept: slice) -> Floats:
        """Progress [h] at each failure that is kept, in order within each replication."""
        n_replications = (kept.stop - kept.start) // max(self.n_failures, 1)
        if self.at_h is not None:
            return np.tile(np.sort(self.at_h), n_replications)
        at_h = drawn(rng.random, n_all, kept) * self.useful_h
        return np.sort(at_h.reshape(n_replications, self.count), axis=1).ravel()
