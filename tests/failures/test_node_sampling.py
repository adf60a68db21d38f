"""Lazy node clocks against a plain heap of them: counts, instants, gaps and who fails.

The heap below shares nothing with the package but the lifetimes' samplers. 24 comparisons by
z-score and Kolmogorov-Smirnov, at a family-wise level of 1e-3 (Bonferroni).
"""

from __future__ import annotations

import heapq
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from cprsim.failures.distributions import Distribution, with_mean
from cprsim.failures.node_sampling import Each, Lazy, Superposed, nodes_of
from cprsim.records import Floats, Ints

N_NODES, N_REPLICATIONS, CHUNK_H, N_CHUNKS = 12, 4000, 20.0, 2
LIFETIMES = [("exponential", None), ("gamma", 0.7), ("gamma", 2.5), ("weibull", 0.6),
             ("weibull", 2.0), ("lognormal", 1.0)]  # fmt: skip
LEVEL = 1e-3 / 48

Drawn = tuple[Ints, Floats, Ints]


def by_heap(lifetime: Distribution, stationary: bool) -> Drawn:
    """Every node's next failure in a heap, one replication after the other."""
    rng = np.random.default_rng(7)
    first = lifetime.sample_residual if stationary else lifetime.sample
    rows = []
    for replication in range(N_REPLICATIONS):
        heap = [(at_h, node) for node, at_h in enumerate(first(rng, N_NODES).tolist())]
        heapq.heapify(heap)
        while heap[0][0] < N_CHUNKS * CHUNK_H:
            at_h, node = heapq.heappop(heap)
            rows.append((replication, at_h, node))
            heapq.heappush(heap, (at_h + float(lifetime.sample(rng, 1)[0]), node))
    columns = np.array(rows).T
    return columns[0].astype(np.int64), columns[1], columns[2].astype(np.int64)


def by_chunks(lifetime: Distribution, stationary: bool) -> Drawn:
    rng = np.random.default_rng(8)
    nodes = nodes_of(range(N_NODES), lifetime, stationary, N_REPLICATIONS, CHUNK_H, rng)
    parts = [nodes.until(number * CHUNK_H) for number in range(1, N_CHUNKS + 1)]
    replication, at_h, slot = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((at_h, replication))
    return replication[order], at_h[order], slot[order]


def counts(drawn: Drawn) -> Floats:
    return np.bincount(drawn[0], minlength=N_REPLICATIONS).astype(float)


def gaps_of_a_node(drawn: Drawn) -> Floats:
    replication, at_h, slot = drawn
    order = np.lexsort((at_h, slot, replication))
    same = (np.diff(replication[order]) == 0) & (np.diff(slot[order]) == 0)
    return np.diff(at_h[order])[same]


@pytest.mark.parametrize("stationary", [False, True])
@pytest.mark.parametrize(("family", "shape"), LIFETIMES)
def test_the_sampler_is_the_heap(family: str, shape: float | None, stationary: bool) -> None:
    lifetime = with_mean(family, 60.0, shape)
    heap, ours = by_heap(lifetime, stationary), by_chunks(lifetime, stationary)
    a, b = counts(ours), counts(heap)
    z = (a.mean() - b.mean()) / sqrt((a.var() + b.var()) / N_REPLICATIONS)
    z_variance = (a.var() - b.var()) / sqrt(
        (((a - a.mean()) ** 2).var() + ((b - b.mean()) ** 2).var()) / N_REPLICATIONS
    )
    for score in (z, z_variance):
        assert 2 * stats.norm.sf(abs(score)) > LEVEL
    assert stats.ks_2samp(ours[1], heap[1]).pvalue > LEVEL
    assert stats.ks_2samp(gaps_of_a_node(ours), gaps_of_a_node(heap)).pvalue > LEVEL
    assert stats.chisquare(np.bincount(ours[2], minlength=N_NODES)).pvalue > LEVEL
    assert len(ours[1]) == len(np.unique(ours[1]))


def test_each_way_where_it_belongs() -> None:
    rng = np.random.default_rng(1)

    def way(family: str, mean_h: float, shape: float | None = None) -> type:
        return type(nodes_of(range(5), with_mean(family, mean_h, shape), True, 3, 20.0, rng))

    assert way("exponential", 60.0) is Superposed
    assert way("weibull", 60.0, 0.7) is Lazy
    assert way("weibull", 10.0, 0.7) is Each


def test_a_hundred_thousand_nodes_cost_what_their_failures_cost() -> None:
    lifetime = with_mean("weibull", 2e6, 0.7)
    rng = np.random.default_rng(2)
    nodes = nodes_of(range(100_000), lifetime, True, 1000, 50.0, rng)
    assert isinstance(nodes, Lazy)
    replication, at_h, slot = nodes.until(50.0)
    assert abs(len(at_h) - 2500) <= 4 * sqrt(2500)  # 100,000 x 50 / 2e6 per replication
    assert len(nodes._clock) == len(np.unique(replication * 100_000 + slot))
