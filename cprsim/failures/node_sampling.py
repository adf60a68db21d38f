"""Failures of the nodes of one role, at a cost that grows with the failures, not the nodes.

Three exact methods, depending on the lifetimes:

    superposed  exponential: the role is one Poisson process, each failure of a random node
    lazy        other lifetimes longer than a chunk: how many nodes fail for the first time in it is
                binomial, when is a draw from the lifetime cut to the chunk, which is a random one
                of those left; only nodes that have failed have a clock
    individual  lifetimes shorter than a chunk: a clock per node, for nearly all of them fail
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain

import numpy as np

from cprsim.failures.renewal import Clocks, numbers, settle
from cprsim.job.distributions import Distribution, Exponential
from cprsim.job.records import Floats, Ints

Rows = tuple[Ints, Floats, Ints]
"""Replication, instant [h] and slot of some failures, (n,) each."""


def failures_of_nodes(
    slots: range, lifetime: Distribution, stationary: bool, n_replications: int,
    borders_h: Iterable[float], rng: np.random.Generator,
) -> Iterator[Rows]:  # fmt: skip
    """The failures up to each border, by the cheapest exact way for these nodes."""
    borders_h = iter(borders_h)
    chunk_h = next(borders_h)
    borders_h = chain([chunk_h], borders_h)
    if isinstance(lifetime, Exponential):
        return superposed(slots, lifetime, n_replications, borders_h, rng)
    sampler = lazy if chunk_h < lifetime.mean_h else individual
    return sampler(slots, lifetime, stationary, n_replications, borders_h, rng)


def superposed(
    slots: range, lifetime: Exponential, n_replications: int,
    borders_h: Iterable[float], rng: np.random.Generator,
) -> Iterator[Rows]:  # fmt: skip
    """Exponential lifetimes: as age does not matter, n nodes fail at n times the rate of one."""
    of_role = Exponential(lifetime.mean_h / len(slots))
    clocks = Clocks(of_role, rng, of_role.sample(rng, n_replications))
    for until_h in borders_h:
        first, at_h = clocks.until(until_h)
        yield numbers(first), at_h, rng.integers(slots.start, slots.stop, len(at_h))


def individual(
    slots: range, lifetime: Distribution, stationary: bool, n_replications: int,
    borders_h: Iterable[float], rng: np.random.Generator,
) -> Iterator[Rows]:  # fmt: skip
    """A clock per node and replication."""
    first_life = lifetime.sample_residual if stationary else lifetime.sample
    clocks = Clocks(lifetime, rng, first_life(rng, n_replications * len(slots)))
    for until_h in borders_h:
        first, at_h = clocks.until(until_h)
        replication, place = np.divmod(numbers(first), len(slots))
        yield replication, at_h, slots.start + place


def lazy(
    slots: range, lifetime: Distribution, stationary: bool, n_replications: int,
    borders_h: Iterable[float], rng: np.random.Generator,
) -> Iterator[Rows]:  # fmt: skip
    """Nodes get a clock when they fail for the first time; before that they are alike.

    A first failure is at age t with the density of the lifetime where nodes are new, and with
    ``survival(t) / mean`` where they have been renewed for long.
    """
    n_slots, from_h, survived = len(slots), 0.0, 1.0  # share of nodes without a failure so far
    n_unused, marks = np.full(n_replications, n_slots), np.zeros(n_slots, dtype=np.int64)
    node = np.zeros(0, dtype=np.int64)  # of each clock: replication * n_slots + place
    begins: list[Ints] = []  # by chunk: where the clocks of each replication begin that it began
    clocks = Clocks(lifetime, rng, np.zeros(0))
    for until_h in borders_h:
        if stationary:
            failing = _survived_h(lifetime, from_h, until_h) / lifetime.mean_h
        else:
            failing = float(lifetime.survival(from_h) - lifetime.survival(until_h))
        p_first = 1.0 if survived <= failing else failing / survived
        survived = max(0.0, survived - failing)
        n_first = rng.binomial(n_unused, p_first)
        n_unused -= n_first
        n_before, n_clocks = len(node), len(node) + int(n_first.sum())
        first_at_h = _first_at_h(lifetime, stationary, from_h, until_h, p_first, n_first.sum(), rng)
        clocks.next_at_h = np.concatenate([clocks.next_at_h, first_at_h])
        # which nodes: by rejection, which treats all alike, so each choice is equally likely
        begins.append(n_before + np.concatenate([[0], n_first.cumsum()]))
        node = np.concatenate([node, np.full(n_clocks - n_before, -1)])
        missing = np.arange(n_before, n_clocks)
        while len(missing) > 0:
            place = rng.integers(0, n_slots, len(missing))
            missing = missing[: settle(np.stack(begins), node, marks, missing, place)]
        first, at_h = clocks.until(until_h)
        replication, place = np.divmod(np.repeat(node, np.diff(first)), n_slots)
        yield replication, at_h, slots.start + place
        from_h = until_h


def _first_at_h(
    lifetime: Distribution, stationary: bool, from_h: float, until_h: float, p_first: float,
    n: int, rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Instants of `n` first failures within a chunk [h], in no order."""
    at_first = lifetime.survival(from_h)
    if not stationary:
        p = 1.0 - at_first + at_first * p_first * rng.random(n)
        return np.clip(lifetime.quantile(p), from_h, np.nextafter(until_h, 0.0))
    at_h, missing = np.zeros(n), np.arange(n)
    while len(missing) > 0:  # by rejection: the density is the survival, highest at the start
        candidate_h = from_h + (until_h - from_h) * rng.random(len(missing))
        accepted = rng.random(len(missing)) * at_first < lifetime.survival(candidate_h)
        at_h[missing[accepted]] = candidate_h[accepted]
        missing = missing[~accepted]
    return np.clip(at_h, from_h, np.nextafter(until_h, 0.0))


@lru_cache(maxsize=1024)
def _survived_h(lifetime: Distribution, from_h: float, until_h: float) -> float:
    """Integral of the survival between two ages [h]."""
    from scipy import integrate  # slow to load, and few sources need it

    def survival(age_h: float) -> float:
        return float(lifetime.survival(age_h))

    return float(integrate.quad(survival, from_h, until_h, limit=200)[0])
