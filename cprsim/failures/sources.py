"""Sources of failures: what they all can do, and what they share.

A source draws the failures of a block of replications before anything is simulated, chunk by chunk
of its clock's time. A chunk's content depends on (seed, block, length and number of the chunk)
alone, so that every strategy, engine and interval meets the same failures.

    JobClock    one renewal process for the job: random nodes fail        (clocks.py)
    NodeClocks  a renewal process per node                                (clocks.py)
    Injected    so many failures, or these ones, on a named clock         (injected.py)
    Replay      the outages of a real cluster                             (replay.py)
    SeveralSources   some of these on one clock                           (several.py)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from math import comb, inf
from typing import Protocol

import numpy as np

from cprsim.errors import ParameterError
from cprsim.failures.budget import require_room
from cprsim.failures.distributions import positive
from cprsim.failures.partial_draws import Kept, drawn, integers, n_kept
from cprsim.records import (
    Bools,
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
)

MOST_REPLICATIONS = 16_000  # that are drawn at once
MOST_FAILURES = 1e6  # that a block should draw over the useful hours
MOST_NODE_CLOCKS = 1e6  # that a block should keep
BYTES_OF_A_SLOT = 16  # of a struck node, while it is drawn
BYTES_OF_A_ROW = 100  # of a failed node, while failures are put in order


class Start(StrEnum):
    """The age of the clocks when the job starts."""

    FRESH = "fresh"  # everything was just renewed
    STATIONARY = "stationary"  # everything has been up and renewed for very long


class FailureSource(Protocol):
    """What draws the failures that a job meets."""

    @property
    def clock(self) -> Clock:
        """The clock on which these failures age."""
        ...

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """What the formulas need to know, over the first `useful_h` hours of the clock."""
        ...

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """How many replications can be drawn at once, at most `MOST_REPLICATIONS`."""
        ...

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """Successive chunks of the clock, up to each of `borders_h`.

        Those of all replications of the block or of the `kept` ones alone, numbered from 0 on: they
        are the same. Memory follows what is kept.
        """
        ...


def trace_of(
    until_h: float, n_replications: int,
    replication: Ints, at_h: Floats, slot: Ints, repair_h: Floats,
) -> FailureTrace:  # fmt: skip
    """A failure trace from one row per failed node, in any order.

    Nodes of a replication that fail at the same instant become one failure.

    Parameters
    ----------
    until_h : instant [h] before which all failures are here
    n_replications : of the block
    replication, at_h, slot, repair_h : (n_failed_nodes,) columns, times in [h]
    """
    from cprsim.failures.loops import in_order  # with numba, for which only who draws waits

    require_room(
        BYTES_OF_A_ROW * float(len(at_h)),
        f"{len(at_h)} failures before {until_h:g} h",
        "an MTBF {} times as long would fit",
        fewer_fit=True,
    )
    order = in_order(replication, at_h, slot, n_replications)
    replication, at_h = replication[order], at_h[order]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (replication[1:] != replication[:-1]) | (at_h[1:] != at_h[:-1])
    first_slot = np.flatnonzero(begins)
    return FailureTrace(
        until_h=until_h,
        first=firsts(replication[first_slot], n_replications),
        at_h=at_h[first_slot],
        first_slot=np.append(first_slot, len(order)).astype(np.int64),
        slot=slot[order],
        repair_h=repair_h if are_no_hours(repair_h) else repair_h[order],
    )


def firsts(numbers: Ints, n: int) -> Ints:
    """Where each number from 0 to n begins in sorted ones, (n + 1,)."""
    first = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(numbers, minlength=n), out=first[1:])
    return first


def repairs(
    repair: Duration | None, rng: np.random.Generator | None, n: int, kept: Kept | None = None
) -> Floats:
    """Repair times [h] of the `kept` ones of `n` nodes; `no_hours` where there are none."""
    if repair is None or rng is None:
        return no_hours(n_kept(kept, n))
    return drawn(partial(repair.sample, rng), n, kept)


def no_hours(n: int) -> Floats:
    """Zeros, (n,), not to be written to: they are one number."""
    return np.broadcast_to(np.zeros(1), n)


def are_no_hours(hours: Floats) -> bool:
    """Whether some repair times are `no_hours`."""
    return hours.strides == (0,)


def joined_hours(parts: Sequence[Floats]) -> Floats:
    """Repair times one after the other; `no_hours` where all parts are."""
    if all(are_no_hours(part) for part in parts):
        return no_hours(sum(map(len, parts)))
    return np.concatenate(parts)


_counting: Ints = np.zeros(0, dtype=np.int64)
MOST_SHARED = 2**20  # numbers that are kept for all blocks


def counting(n: int) -> Ints:
    """The numbers from 0 on, (n,); not to be written to: all blocks share them."""
    global _counting
    if n > MOST_SHARED:
        return np.arange(n)
    if n > len(_counting):
        _counting = np.arange(2 * n)
    return _counting[:n]


def only(kept: range | None, n_replications: int) -> range | None:
    """The replications that are kept; None where those are all."""
    return None if kept == range(n_replications) else kept


def rows_of(first: Ints, kept: range | None, n_each: int = 1) -> slice | None:
    """Where the rows of the replications that are kept stand among all; None for all.

    Parameters
    ----------
    first : (n_replications * n_each + 1,) where the rows of each begin, or those of its parts
    """
    if kept is None:
        return None
    return slice(int(first[kept.start * n_each]), int(first[kept.stop * n_each]))


def firsts_of(first: Ints, kept: range | None, n_each: int = 1) -> Ints:
    """As `first` in `rows_of`, of the replications that are kept alone."""
    if kept is None:
        return first
    mine: Ints = first[kept.start * n_each : kept.stop * n_each + 1]
    begins: Ints = mine - mine[0]
    return begins


def clocks_of(kept: range | None, n_replications: int, n_each: int = 1) -> Bools | None:
    """Whether the clocks of each replication are kept, (n_replications * n_each,); None for all."""
    if kept is None:
        return None
    chosen = np.zeros(n_replications * n_each, dtype=bool)
    chosen[kept.start * n_each : kept.stop * n_each] = True
    return chosen


def random_slots(
    slots: Ints, n_failures: int, together: int, rng: np.random.Generator,
    kept: slice | None = None,
) -> Ints:  # fmt: skip
    """Distinct random slots for each failure, every subset equally likely.

    Parameters
    ----------
    slots : (n_slots,) to choose from
    n_failures, together : how many failures, and how many slots each strikes
    rng : where the choice is drawn from
    kept : the failures whose slots are wanted; default all

    Returns
    -------
    (n_kept, together) slots
    """
    if together > len(slots):
        raise ParameterError(f"{together} nodes can't fail together where there are {len(slots)}")
    n = n_kept(kept, n_failures)
    require_room(
        BYTES_OF_A_SLOT * float(n) * together,
        f"the nodes of {n} failures that strike {together} each",
        "{} times fewer failures, or fewer nodes together, would fit",
        fewer_fit=True,
    )
    if together == len(slots):
        return np.tile(slots, (n, 1))
    if together == 1:
        return slots[integers(rng, 0, len(slots), n_failures, kept)][:, None]
    chosen = np.empty((n, together), dtype=np.int64)
    if n_failures == 0:
        return chosen
    from cprsim.failures.loops import give_way

    for i, last in enumerate(range(len(slots) - together, len(slots))):
        chosen[:, i] = integers(rng, 0, last + 1, n_failures, kept)
    give_way(chosen, len(slots))
    for i in range(together):
        chosen[:, i] = slots[chosen[:, i]]
    return chosen


def p_strikes(n_struck: int, n_marked: int, n_slots: int) -> float:
    """Probability that `n_struck` random ones of `n_slots` include a marked one."""
    return 1.0 - comb(n_slots - n_marked, n_struck) / comb(n_slots, n_struck)


def expected_of_random_slots(
    cluster: Cluster, slots: Ints, together: int, mtbf_h: float
) -> ExpectedFailures:
    """Expected failures where each strikes `together` random ones of `slots` (hypergeometric)."""
    n_shards = int(np.isin(slots, np.asarray(cluster.shard_slots)).sum())
    p_shard = p_strikes(together, n_shards, len(slots))
    if p_shard == 0 or mtbf_h == inf:
        return ExpectedFailures(mtbf_h, inf, 0.0)
    shards_per_failure = together * n_shards / len(slots)
    return ExpectedFailures(mtbf_h, mtbf_h / p_shard, shards_per_failure / p_shard)


def replications_for(n_failed_nodes: float, n_clocks: float = 1.0) -> int:
    """How many can be drawn at once, given what one of them draws and keeps."""
    affordable = min(MOST_FAILURES / max(n_failed_nodes, 1e-9), MOST_NODE_CLOCKS / n_clocks)
    return max(1, min(MOST_REPLICATIONS, int(affordable)))


def slots_array(slots: range | tuple[int, ...] | list[int]) -> Ints:
    """Slots as an array. Raises ParameterError where there are none or one comes twice."""
    array = np.asarray(slots, dtype=np.int64)
    if len(array) == 0:
        raise ParameterError("there is no node that could fail")
    if len(np.unique(array)) < len(array):
        raise ParameterError(f"a node can fail only once at a time, got {list(slots)}")
    return array


# ------------------------------------------------------------------------------------- another pace


@dataclass(frozen=True, slots=True)
class Stretched:
    """Every instant of a source, times `factor`; who fails, and their repairs, stay as they are.

    Both sources draw the same random numbers, so that what changes is the pace alone. Not for
    failures put at given instants of the job: those belong to a job of that length.

    Raises ParameterError for a factor that is not a positive number.
    """

    source: FailureSource
    factor: float

    def __post_init__(self) -> None:
        positive("factor", self.factor)

    @property
    def clock(self) -> Clock:
        """That of the source."""
        return self.source.clock

    def expected(self, cluster: Cluster, useful_h: float) -> ExpectedFailures:
        """Those of the source over the hours that become `useful_h`."""
        of_source = self.source.expected(cluster, useful_h / self.factor)
        return replace(
            of_source,
            mtbf_h=of_source.mtbf_h * self.factor,
            mtbf_shard_h=of_source.mtbf_shard_h * self.factor,
        )

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Those of the source, unless faster failures make a block too large."""
        return self.source.block_replications(cluster, useful_h / min(self.factor, 1.0))

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float], kept: range | None = None,
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """The chunks that the source has up to these borders and beyond, each stretched."""
        beyond_h = _and_beyond(borders_h)
        for chunk in self.source.draw(cluster, seed, block, n_replications, beyond_h, kept):
            until_h, at_h = chunk.until_h * self.factor, chunk.at_h * self.factor
            yield replace(chunk, until_h=until_h, at_h=at_h)


def _and_beyond(borders_h: Iterable[float]) -> Iterator[float]:
    """Borders, and endlessly further ones: what is pressed together has to reach as far."""
    border_h = 0.0
    for border_h in borders_h:
        yield border_h
    while True:
        border_h *= 1.5
        yield border_h
