"""Sources of failures: their interface, and functions that they share.

A source draws the failures of a whole block of replications before anything is simulated, chunk by
chunk of its clock's time. A chunk's content depends on (seed, block, length and number of the
chunk) alone, so that every strategy, driver and interval has the same failures. `BlockFailures`
keeps the requested replications.

    JobClock         one renewal process for the job: random nodes fail       (clocks.py)
    NodeClocks       a renewal process per node                               (clocks.py)
    CorrelatedNodes  the same with unequal nodes (frailty) and shocks         (correlated.py)
    Injected         a number of failures, or a list, on a named clock        (injected.py)
    Replay           the outages of a real cluster                            (replay.py)
    SeveralSources   several of these sources on one clock                    (several.py)
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import Protocol
from zlib import crc32

import numpy as np

from cprsim.errors import BudgetError, ParameterError, TooManyReplicationsError
from cprsim.files.units import SIZE
from cprsim.job.distributions import p_strikes
from cprsim.job.records import (
    Clock,
    Cluster,
    Duration,
    ExpectedFailures,
    FailureTrace,
    Floats,
    Ints,
)

MEMORY_KEY = "CPRSIM_MEMORY"  # the environment variable that says so, such as "4 GB"
DEFAULT_MEMORY = "1 GB"


def memory_bytes() -> float:
    """Memory that the data of one process may take [bytes]."""
    text = os.environ.get(MEMORY_KEY, DEFAULT_MEMORY)
    try:
        size = SIZE.parse(text)
    except ParameterError as error:
        raise ParameterError(f"{MEMORY_KEY}={text}: {error}") from None
    if size <= 0:
        raise ParameterError(f"{MEMORY_KEY}={text}: must be above 0")
    return size


def how_to_raise() -> str:
    """The end of a `BudgetError`'s message."""
    size = SIZE.format(memory_bytes())
    return f"the budget is {size}; {MEMORY_KEY}=... in the environment raises it"


def require_room(
    n_bytes: float, contents: str, remedy: str, *, fewer_fit: bool = False, share: float = 0.5
) -> None:
    """Refuse what would take more than its share of the budget, before it is allocated."""
    most = share * memory_bytes()
    if n_bytes <= most:
        return
    kind = TooManyReplicationsError if fewer_fit else BudgetError
    raise kind(
        f"{contents} would take {megabytes(n_bytes)} of memory, where {megabytes(most)} are left "
        f"for that: {remedy.format(f'{n_bytes / most:.3g}')}; {how_to_raise()}"
    )


def megabytes(n_bytes: float) -> str:
    """An amount of memory, for a message."""
    return f"{n_bytes / 1e6:,.3g} MB" if n_bytes < 1e9 else f"{n_bytes / 1e9:,.3g} GB"


MOST_DRAWN = 16_000  # that are drawn at once
MOST_STRIKES = 1e6  # that a block should draw over the useful hours
MOST_NODE_CLOCKS = 1e6  # that a block should keep
BYTES_OF_A_SLOT = 24  # of a struck node, while it is drawn
BYTES_OF_A_ROW = 100  # of a failed node, while failures are put in order
PIECE = 2**20  # numbers of a table of slots, while they are chosen


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

    def expected(
        self, cluster: Cluster, useful_h: float, of: range | None = None
    ) -> ExpectedFailures:
        """Return the inputs of the formulas, over the first `useful_h` hours of the clock.

        Of failures that strike shards, or others of the slots.
        """
        ...

    def block_replications(self, cluster: Cluster, useful_h: float) -> int:
        """Return the number of replications to draw together, at most `MOST_DRAWN`."""
        ...

    def draw(
        self, cluster: Cluster, seed: int, block: int, n_replications: int,
        borders_h: Iterable[float],
    ) -> Iterator[FailureTrace]:  # fmt: skip
        """Successive chunks of the clock, up to each of `borders_h`."""
        ...


def trace_of(
    until_h: float, n_replications: int,
    replication: Ints, at_h: Floats, slot: Ints, repair_h: Floats, source: Ints | None = None,
) -> FailureTrace:  # fmt: skip
    """The failures before an instant from a row for each failed node, (n,) columns in any order.

    Nodes of a replication (and source) that fail at the same instant become one failure.
    """
    require_room(
        BYTES_OF_A_ROW * float(len(at_h)),
        f"{len(at_h)} failures before {until_h:g} h",
        "an MTBF {} times as long would fit",
        share=1.0,
    )
    order = np.argsort(at_h)
    number = replication[order].astype(np.min_scalar_type(n_replications))  # short ones sort fast
    order = order[np.argsort(number, kind="stable")]
    begins = np.ones(len(order), dtype=bool)
    begins[1:] = (np.diff(replication[order]) > 0) | (np.diff(at_h[order]) > 0)
    if not begins.all():  # nodes of one instant stand in order of source and slot
        within = slot if source is None else source * (1 + slot.max()) + slot
        order = order[np.argsort(np.cumsum(begins) * (1 + within.max()) + within[order])]
        if source is not None:
            begins[1:] |= np.diff(source[order]) > 0
    first_slot = np.flatnonzero(begins)
    n_of = np.bincount(replication[order][first_slot], minlength=n_replications)
    return FailureTrace(
        until_h=until_h,
        first=np.concatenate([[0], np.cumsum(n_of)]),
        at_h=at_h[order][first_slot],
        first_slot=np.append(first_slot, len(order)),
        slot=slot[order],
        repair_h=repair_h[order],
        source=None if source is None else source[order][first_slot],
    )


def repairs(repair: Duration | None, rng: np.random.Generator, n: int) -> Floats:
    """Repair times [h] of `n` nodes; none take any time where no repair is named."""
    return np.zeros(n) if repair is None else repair.sample(rng, n)


def random_slots(
    slots: Sequence[int], n_failures: int, together: int, rng: np.random.Generator
) -> Ints:
    """Distinct random slots for each failure, every subset equally likely.

    By Floyd's sampling without replacement, (n_failures, together): the nth slot is drawn from the
    first ones, and one that is taken gives way to the last of these.
    """
    require_room(
        BYTES_OF_A_SLOT * float(n_failures) * together,
        f"the nodes of {n_failures} failures that strike {together} each",
        "{} times fewer failures, or fewer nodes together, would fit",
        share=1.0,
    )
    n_slots = len(slots)
    if together == n_slots:
        return np.tile(np.asarray(slots, np.int64), (n_failures, 1))
    lasts = range(n_slots - together, n_slots)
    place = np.stack([rng.integers(0, last + 1, n_failures) for last in lasts], axis=1)
    if together > 1:
        step = max(1, PIECE // n_slots)
        for some in (place[begin : begin + step] for begin in range(0, n_failures, step)):
            is_used, row = np.zeros((len(some), n_slots), dtype=bool), np.arange(len(some))
            for nth, last in enumerate(lasts):
                some[is_used[row, some[:, nth]], nth] = last
                is_used[row, some[:, nth]] = True
    return np.asarray(slots, np.int64)[place]


def expected_of(
    hours: float, n_failures: float, n_of_shards: float, n_shards_struck: float
) -> ExpectedFailures:
    """Return expected failures from their numbers within `hours` and the shards struck."""
    return ExpectedFailures(
        mtbf_h=hours / n_failures if n_failures > 0 else inf,
        mtbf_shard_h=hours / n_of_shards if n_of_shards > 0 else inf,
        n_shards_together=n_shards_struck / n_of_shards if n_of_shards > 0 else 0.0,
    )


def asked(cluster: Cluster, of: range | None) -> range:
    """The slots whose failures are counted: by default those that hold shards."""
    return cluster.shard_slots if of is None else of


def expected_of_random_slots(
    shards: range, slots: Sequence[int], together: int, mtbf_h: float
) -> ExpectedFailures:
    """Expected failures where each strikes `together` random ones of `slots` (hypergeometric)."""
    n_shards = int(np.isin(slots, np.asarray(shards)).sum())
    p_shard = p_strikes(together, n_shards, len(slots))
    if p_shard == 0 or mtbf_h == inf:
        return ExpectedFailures(mtbf_h, inf, 0.0)
    shards_per_failure = together * n_shards / len(slots)
    return ExpectedFailures(mtbf_h, mtbf_h / p_shard, shards_per_failure / p_shard)


def replications_for(n_failed_nodes: float, n_clocks: float = 1.0) -> int:
    """Return the number of replications to draw together, given the memory of one."""
    affordable = min(MOST_STRIKES / max(n_failed_nodes, 1e-9), MOST_NODE_CLOCKS / n_clocks)
    return max(1, min(MOST_DRAWN, int(affordable)))


def stream(seed: int, block: int, name: str) -> np.random.Generator:
    """The generator of one purpose, e.g. ``"failures/job"``, in one block of replications."""
    purpose = np.random.SeedSequence(seed, spawn_key=(block, crc32(name.encode())))
    return np.random.Generator(np.random.SFC64(purpose))
