"""Failures put where an experiment wants them, in hours of the job's progress or another clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.budget import require_room
from cprsim.failures.partial_draws import drawn
from cprsim.failures.sources import (
    BYTES_OF_A_ROW,
    expected_of_random_slots,
    random_slots,
    repairs,
    replications_for,
    slots_array,
    trace_of,
)
from cprsim.failures.streams import stream
from cprsim.records import (
    STOPPED_BEYOND,
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
)


@dataclass(frozen=True, slots=True)
class Injected:
    """A given number of failures: on the progress clock every strategy meets all of them.

    On the others a strategy meets those that lie within the job as it takes it, so that a longer
    job may meet more.

    Parameters
    ----------
    useful_h : useful work of the job [h]
    slots : the slots that are struck, or chosen from
    together : how many random ones of `slots` fail at once; None for all of them
    at_h : instants of the clock [h] in ``[0, useful_h)``, of uptime and wall up to 100 times that;
        None for random ones
    count : number of failures, uniform over the first `useful_h` hours of the clock; only where
        `at_h` is None
    repair : until a failed node is back in the pool; None for no time at all
    clock : on which the instants lie
    slots_at : those of `slots` that are struck at each of `at_h`; None: as `together` says

    Raises
    ------
    ParameterError
        for instants outside the job or given twice, more nodes than there are, or slots of another
        number of instants.
    """

    useful_h: float
    slots: range | tuple[int, ...]
    together: int | None = 1
    at_h: tuple[float, ...] | None = None
    count: int = 0
    repair: Duration | None = None
    clock: Clock = Clock.PROGRESS
    slots_at: tuple[tuple[int, ...], ...] | None = None

    def __post_init__(self) -> None:
        random_slots(slots_array(self.slots), 0, self._n_chosen, np.random.default_rng(0))
        self._require_slots()
        if self.at_h is None:
            if self.count < 0:
                raise ParameterError(f"the number of failures can't be {self.count}")
            return
        if len(set(self.at_h)) < len(self.at_h):
            raise ParameterError(f"an instant is given twice: {sorted(self.at_h)} h")
        most_h = self.useful_h * (1.0 if self.clock is Clock.PROGRESS else STOPPED_BEYOND)
        for at_h in self.at_h:
            if not 0 <= at_h < most_h:
                raise ParameterError(
                    f"no instant {at_h!r} h of {self.clock.value} in a job of {self.useful_h!r} h"
                )

    def _require_slots(self) -> None:
        if self.slots_at is None:
            return
        if self.at_h is None or len(self.slots_at) != len(self.at_h):
            raise ParameterError("the nodes that fail are given for each instant, or for none")
        known = set(self.slots)
        for slots in self.slots_at:
            if not known.issuperset(slots_array(slots).tolist()):
                raise ParameterError(f"{list(slots)} are not all among the nodes that can fail")

    @property
    def n_failures(self) -> int:
        """Failures of each replication."""
        return self.count if self.at_h is None else len(self.at_h)

    @property
    def _n_chosen(self) -> int:
        return len(self.slots) if self.together is None else self.together

    @property
    def _sizes(self) -> Ints:
        """How many nodes each failure of a replication strikes, in order of time."""
        if self.slots_at is not None:
            return np.array([len(slots) for slots in self._slots_in_order], dtype=np.int64)
        return np.full(self.n_failures, self._n_chosen, dtype=np.int64)

    @property
    def _slots_in_order(self) -> list[tuple[int, ...]]:
        assert self.at_h is not None
        assert self.slots_at is not None
        return [slots for _, slots in sorted(zip(self.at_h, self.slots_at, strict=True))]

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Exact over the job's useful hours of the clock: the number of failures is known.

        Instants beyond are left out, which on uptime and wall a job that takes longer meets too.
        """
        n = self.n_failures
        if self.at_h is not None:
            n = sum(at_h < self.useful_h for at_h in self.at_h)
        mtbf_h = useful_h / n if n > 0 else inf
        if self.slots_at is None:
            slots = slots_array(self.slots)
            return expected_of_random_slots(cluster, slots, self._n_chosen, mtbf_h)
        shards = set(cluster.shard_slots)
        struck = [len(shards.intersection(each)) for each in self._slots_in_order[:n]]
        n_of_shards = sum(one > 0 for one in struck)
        if n_of_shards == 0:
            return ExpectedFailures(mtbf_h, inf, 0.0)
        return ExpectedFailures(mtbf_h, useful_h / n_of_shards, sum(struck) / n_of_shards)

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Bounded by the failed nodes of a block."""
        return replications_for(int(self._sizes.sum()))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """One chunk with all failures; the borders do not matter."""
        n_each, sizes = self.n_failures, self._sizes
        n_nodes = int(sizes.sum())  # that fail in a replication
        within = range(n_replications) if kept is None else kept
        instants = slice(within.start * n_each, within.stop * n_each)
        n_all = n_replications * n_each
        require_room(
            BYTES_OF_A_ROW * float(len(within)) * n_nodes,
            f"{n_each} failures of {n_nodes} nodes in all in each of {len(within)} replications",
            "{} times fewer would fit",
            fewer_fit=True,
        )
        at_h = self._instants(stream(seed, block, "failures/injected"), n_all, instants)
        choosing = stream(seed, block, "failures/injected/slots")
        struck = self._struck(choosing, n_all, instants, len(within))
        repairing = stream(seed, block, "failures/injected/repair")
        nodes = slice(within.start * n_nodes, within.stop * n_nodes)
        yield trace_of(
            inf,
            len(within),
            np.repeat(np.arange(len(within)), n_nodes),
            np.repeat(at_h, np.tile(sizes, len(within))),
            struck,
            repairs(self.repair, repairing, n_replications * n_nodes, nodes),
        )

    def _struck(self, rng: np.random.Generator, n_all: int, kept: slice, n_kept: int) -> Ints:
        """Slots of the failures that are kept, in order of time within each replication."""
        if self.slots_at is None:
            slots = slots_array(self.slots)
            return random_slots(slots, n_all, self._n_chosen, rng, kept).ravel()
        struck = [slot for each in self._slots_in_order for slot in each]
        return np.tile(np.array(struck, dtype=np.int64), n_kept)

    def _instants(self, rng: np.random.Generator, n_all: int, kept: slice) -> Floats:
        """The clock [h] at each failure that is kept, in order within each replication."""
        n_replications = (kept.stop - kept.start) // max(self.n_failures, 1)
        if self.at_h is not None:
            return np.tile(np.sort(self.at_h), n_replications)
        at_h = drawn(rng.random, n_all, kept) * self.useful_h
        return np.sort(at_h.reshape(n_replications, self.count), axis=1).ravel()
