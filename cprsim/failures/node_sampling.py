"""Failures of the nodes of one role, at a cost that grows with the failures, not the nodes.

Three exact ways, by what the lifetimes allow:

    Superposed  exponential: the role is one Poisson process, each failure of a random node
    Lazy        other lifetimes longer than a chunk: how many nodes fail for the first time in it is
                binomial, when is a draw from the lifetime cut to the chunk, which is a random one
                of those left; only nodes that have failed have a clock
    Each        lifetimes shorter than a chunk: a clock per node, for nearly all of them fail
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol

import numpy as np

from cprsim.failures.budget import require_room
from cprsim.failures.distributions import Distribution, Exponential
from cprsim.failures.partial_draws import Kept, integers
from cprsim.failures.renewal import LifetimeQueue, numbers, renewals_until
from cprsim.failures.sources import clocks_of, firsts_of, rows_of
from cprsim.records import Bools, Floats, Ints

BYTES_OF_A_CLOCK = 80  # of a node that has one, while it is drawn


class Struck(NamedTuple):
    """Some failures of one role: those of the replications that are kept, numbered from 0 on."""

    replication: Ints  # (n_kept,)
    at_h: Floats  # (n_kept,)
    slot: Ints  # (n_kept,)
    n_all: int  # of all replications
    kept: Kept | None  # which of them these are


class NodeClockSampler(Protocol):
    """The nodes of one role in all replications of a block."""

    def until(self, until_h: float) -> Struck:
        """The failures since the last call."""
        ...


def nodes_of(
    slots: range,
    lifetime: Distribution,
    stationary: bool,
    n_replications: int,
    chunk_h: float,
    rng: np.random.Generator,
    kept: range | None = None,
) -> NodeClockSampler:
    """The cheapest exact way for these nodes.

    Parameters
    ----------
    slots : of the role
    lifetime : of each node
    stationary : whether the nodes have been up and renewed for long, or all are new
    chunk_h : hours that are drawn at first [h]
    kept : the replications whose failures are wanted; default all
    """
    lifetime.simulable()
    if not slots:
        return Nobody()
    if isinstance(lifetime, Exponential):
        return Superposed.begin(slots, lifetime, n_replications, rng, kept)
    if chunk_h < lifetime.mean_h:
        return Lazy(slots, lifetime, stationary, n_replications, rng, kept)
    return Each.begin(slots, lifetime, stationary, n_replications, rng, kept)


class Nobody:
    """A role without nodes."""

    def until(self, until_h: float) -> Struck:
        none = np.zeros(0, dtype=np.int64)
        return Struck(none, np.zeros(0), none, 0, None)


@dataclass(slots=True)
class Superposed:
    """Exponential lifetimes: as age does not matter, n nodes fail at n times the rate of one."""

    slots: range
    lives: LifetimeQueue  # of all together
    next_at_h: Floats  # (n_replications,)
    kept: range | None

    @classmethod
    def begin(
        cls, slots: range, lifetime: Exponential, n_replications: int, rng: np.random.Generator,
        kept: range | None,
    ) -> Superposed:  # fmt: skip
        together = Exponential(lifetime.mean_h / len(slots))
        next_at_h = together.sample_unchecked(rng, n_replications)
        return cls(slots, LifetimeQueue(together, rng), next_at_h, kept)

    def until(self, until_h: float) -> Struck:
        keeps = clocks_of(self.kept, len(self.next_at_h))
        first, at_h = renewals_until(until_h, self.next_at_h, self.lives, kept=keeps)
        n_all, mine = int(first[-1]), rows_of(first, self.kept)
        slots = integers(self.lives.rng, self.slots.start, self.slots.stop, n_all, mine)
        return Struck(numbers(firsts_of(first, self.kept)), at_h, slots, n_all, mine)


@dataclass(slots=True)
class Each:
    """A clock per node and replication."""

    slots: range
    lives: LifetimeQueue
    next_at_h: Floats  # (n_replications * n_slots,)
    kept: range | None

    @classmethod
    def begin(
        cls, slots: range, lifetime: Distribution, stationary: bool, n_replications: int,
        rng: np.random.Generator, kept: range | None,
    ) -> Each:  # fmt: skip
        n_clocks = n_replications * len(slots)
        require_clocks(n_clocks)
        first = lifetime.sample_residual if stationary else lifetime.sample
        return cls(slots, LifetimeQueue(lifetime, rng), first(rng, n_clocks), kept)

    def until(self, until_h: float) -> Struck:
        n_slots = len(self.slots)
        keeps = clocks_of(self.kept, len(self.next_at_h) // n_slots, n_slots)
        first, at_h = renewals_until(until_h, self.next_at_h, self.lives, kept=keeps)
        n_all, mine = int(first[-1]), rows_of(first, self.kept, n_slots)
        clock = numbers(firsts_of(first, self.kept, n_slots))
        replication, place = np.divmod(clock, n_slots)
        return Struck(replication, at_h, place + self.slots.start, n_all, mine)


@dataclass(slots=True)
class Lazy:
    """Nodes get a clock when they fail for the first time; before that they are alike.

    A first failure is at age t with the density of the lifetime where nodes are new, and with
    ``survival(t) / mean`` where they have been renewed for long.
    """

    slots: range
    lifetime: Distribution
    stationary: bool
    n_replications: int
    rng: np.random.Generator
    kept: range | None = None
    _unused: Ints = field(init=False)  # (n_replications,) nodes that have not failed yet
    _clock: Ints = field(init=False)  # (n_clocks,) replication * n_slots + place
    # by chunk, (n_replications + 1,): where the clocks of each replication begin that it began
    _first: list[Ints] = field(init=False, default_factory=list)
    _marks: Ints = field(init=False)  # (n_slots,) for `settle`
    _next_at_h: Floats = field(init=False)  # (n_clocks,)
    _lives: LifetimeQueue = field(init=False)
    _from_h: float = field(init=False, default=0.0)  # end of the last chunk
    _survived: float = field(init=False, default=1.0)  # share that has no failure so far

    def __post_init__(self) -> None:
        self._unused = np.full(self.n_replications, len(self.slots))
        self._clock, self._next_at_h = np.zeros(0, dtype=np.int64), np.zeros(0)
        self._lives = LifetimeQueue(self.lifetime, self.rng)
        self._marks = np.zeros(len(self.slots), dtype=np.int64)

    def until(self, until_h: float) -> Struck:
        from_h, self._from_h = self._from_h, until_h
        p_first = self._p_first(from_h, until_h)
        n_first = self.rng.binomial(self._unused, p_first)
        self._unused -= n_first
        require_clocks(len(self._clock) + int(n_first.sum()))
        first_at_h = self._first_at_h(from_h, until_h, p_first, int(n_first.sum()))
        self._begin_clocks(n_first)
        self._next_at_h = np.concatenate([self._next_at_h, first_at_h])
        keeps, begin = self._kept_clocks()
        first, at_h = renewals_until(until_h, self._next_at_h, self._lives, kept=keeps)
        n_of, mine = np.diff(first), None
        clock = np.repeat(self._clock, n_of) if keeps is None else self._clock[keeps]
        if keeps is not None:
            clock = np.repeat(clock, n_of[keeps])
            mine = np.flatnonzero(np.repeat(keeps, n_of))
        replication, slot = np.divmod(clock, len(self.slots))
        return Struck(replication - begin, at_h, slot + self.slots.start, int(first[-1]), mine)

    def _kept_clocks(self) -> tuple[Bools | None, int]:
        """Whether each clock is of a replication that is kept, and the first of these."""
        if self.kept is None:
            return None, 0
        replication = self._clock // len(self.slots)
        keeps = (replication >= self.kept.start) & (replication < self.kept.stop)
        return keeps, self.kept.start

    def _p_first(self, from_h: float, until_h: float) -> float:
        """Probability of a first failure in a chunk, given none before it."""
        if self.stationary:
            failing = _survived_h(self.lifetime, from_h, until_h) / self.lifetime.mean_h
        else:
            failing = float(self.lifetime.survival(from_h) - self.lifetime.survival(until_h))
        p_first = 1.0 if self._survived <= failing else failing / self._survived
        self._survived = max(0.0, self._survived - failing)
        return p_first

    def _first_at_h(self, from_h: float, until_h: float, p_first: float, n: int) -> Floats:
        """Instants of `n` first failures within a chunk [h], in no order."""
        if self.stationary:
            at_h = self._where_survived(from_h, until_h, n)
        else:
            survived = float(self.lifetime.survival(from_h))
            p = 1.0 - survived + survived * p_first * self.rng.random(n)
            at_h = self.lifetime.quantile(p)
        return np.clip(at_h, from_h, np.nextafter(until_h, 0.0))

    def _where_survived(self, from_h: float, until_h: float, n: int) -> Floats:
        """Instants with a density as the survival, by rejection: it is highest at the start."""
        highest = self.lifetime.survival(from_h)
        at_h = np.zeros(n)
        missing = np.arange(n)
        while len(missing) > 0:
            tried_h = from_h + (until_h - from_h) * self.rng.random(len(missing))
            taken = self.rng.random(len(missing)) * highest < self.lifetime.survival(tried_h)
            at_h[missing[taken]] = tried_h[taken]
            missing = missing[~taken]
        return at_h

    def _begin_clocks(self, n_first: Ints) -> None:
        """Clocks for so many nodes of each replication that have none yet, all different.

        By rejection, which treats all nodes alike, so each choice is equally likely.
        """
        from cprsim.failures.loops import settle

        n_before, n_slots = len(self._clock), len(self.slots)
        self._first.append(n_before + np.concatenate([[0], n_first.cumsum()]))
        self._clock = np.concatenate([self._clock, np.full(n_first.sum(), -1)])
        first, missing = np.stack(self._first), np.arange(n_before, len(self._clock))
        while len(missing) > 0:
            place = self.rng.integers(0, n_slots, len(missing))
            n_missing = settle(first, self._clock, self._marks, missing, place)
            missing = missing[:n_missing]


def require_clocks(n_clocks: int) -> None:
    """Refuse clocks of the nodes of a block that would take more memory than there may be."""
    require_room(
        BYTES_OF_A_CLOCK * float(n_clocks),
        f"the clocks of {n_clocks} nodes that fail in a block of replications",
        "{} times fewer nodes, or as many times longer lives, would fit",
        # no fewer_fit: the stream is of the whole block
    )


@lru_cache(maxsize=1024)
def _survived_h(lifetime: Distribution, from_h: float, until_h: float) -> float:
    """Integral of the survival between two ages [h]."""

    def survival(age_h: float) -> float:
        return float(lifetime.survival(age_h))

    from scipy import integrate  # slow to load, and few sources need it

    return float(integrate.quad(survival, from_h, until_h, limit=200)[0])
