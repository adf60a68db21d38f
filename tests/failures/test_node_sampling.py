"""Samplers of node clocks against the lives of each node: counts, instants, gaps and who fails.

The lives below share nothing with the package but the lifetimes' samplers. Every comparison is a
score that is standard normal where both are the same process: z-scores, and p-values of
Kolmogorov-Smirnov and F tests turned into scores. All are held to a family-wise level of 1e-3
(Bonferroni), and together to the standard normal.
"""

from functools import cache
from math import sqrt

import numpy as np
import pytest
from scipy import stats

from cprsim.failures.node_sampling import failures_of_nodes
from cprsim.job.distributions import Distribution, with_mean
from cprsim.job.records import Floats, Ints

N_NODES, N_REPLICATIONS, CHUNK_H, N_CHUNKS = 12, 2000, 20.0, 2
CASES = [
    (way, family, shape, mean_h, stationary)
    for way, mean_h, families in [
        ("superposed", 60.0, [("exponential", None)]),
        ("lazy", 60.0, [("gamma", 0.7), ("gamma", 2.5), ("weibull", 0.6), ("weibull", 2.0),
                        ("lognormal", 1.0)]),
        ("individual", 15.0, [("gamma", 0.7), ("gamma", 2.5), ("weibull", 0.6),
                              ("lognormal", 1.0)]),
    ]
    for family, shape in families
    for stationary in (False, True)
]  # fmt: skip
SCORES = ("mean count", "its variance", "instants", "gaps of a node", "who fails")
LEVEL = 1e-3 / (len(CASES) * len(SCORES))

Case = tuple[str, str, float | None, float, bool]
Drawn = tuple[Ints, Floats, Ints]


def by_lives(lifetime: Distribution, stationary: bool) -> Drawn:
    """Lives of every node one after the other, more of them than end in time."""
    rng, shape = np.random.default_rng(7), (N_REPLICATIONS, N_NODES, 60)
    lives_h = lifetime.sample(rng, np.prod(shape)).reshape(shape)
    if stationary:
        lives_h[..., 0] = lifetime.sample_residual(rng, np.prod(shape[:2])).reshape(shape[:2])
    ends_h = lives_h.cumsum(axis=2)
    assert ends_h[..., -1].min() > N_CHUNKS * CHUNK_H
    replication, node, number = np.nonzero(ends_h < N_CHUNKS * CHUNK_H)
    at_h = ends_h[replication, node, number]
    order = np.lexsort((at_h, replication))
    return replication[order], at_h[order], node[order]


@cache
def by_chunks(lifetime: Distribution, stationary: bool) -> Drawn:
    rng = np.random.default_rng(8)
    borders_h = [number * CHUNK_H for number in range(1, N_CHUNKS + 1)]
    parts = failures_of_nodes(range(N_NODES), lifetime, stationary, N_REPLICATIONS, borders_h, rng)
    replication, at_h, slot = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((at_h, replication))
    return replication[order], at_h[order], slot[order]


def counts(drawn: Drawn) -> Floats:
    return np.bincount(drawn[0], minlength=N_REPLICATIONS).astype(float)


def counts_of_nodes(drawn: Drawn) -> Floats:
    """Failures of each node in each replication, (N_NODES, N_REPLICATIONS)."""
    cell = drawn[2] * N_REPLICATIONS + drawn[0]
    n = np.bincount(cell, minlength=N_NODES * N_REPLICATIONS)
    return n.reshape(N_NODES, N_REPLICATIONS).astype(float)


def gaps_of_a_node(drawn: Drawn) -> Floats:
    replication, at_h, slot = drawn
    order = np.lexsort((at_h, slot, replication))
    same = (np.diff(replication[order]) == 0) & (np.diff(slot[order]) == 0)
    return np.diff(at_h[order])[same]


@cache
def scores(case: Case) -> tuple[float, ...]:
    """How far the sampler is from the lives, in standard deviations; one for each of SCORES."""
    _, family, shape, mean_h, stationary = case
    lifetime = with_mean(family, mean_h, shape)
    lives, ours = by_lives(lifetime, stationary), by_chunks(lifetime, stationary)
    a, b = counts(ours), counts(lives)
    spread_a, spread_b = (a - a.mean()) ** 2, (b - b.mean()) ** 2
    p_values = (
        stats.ks_2samp(ours[1], lives[1]).pvalue,
        stats.ks_2samp(gaps_of_a_node(ours), gaps_of_a_node(lives)).pvalue,
        stats.f_oneway(*counts_of_nodes(ours)).pvalue,
    )
    return (
        float((a.mean() - b.mean()) / sqrt((a.var() + b.var()) / N_REPLICATIONS)),
        float((a.var() - b.var()) / sqrt((spread_a.var() + spread_b.var()) / N_REPLICATIONS)),
        *(float(stats.norm.isf(p)) for p in p_values),
    )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_sampler_draws_the_lives_of_the_nodes(case: Case) -> None:
    for name, score in zip(SCORES, scores(case), strict=True):
        assert 2 * stats.norm.sf(abs(score)) > LEVEL, (name, score)


def test_together_the_scores_are_standard_normal() -> None:
    z = np.concatenate([scores(case) for case in CASES])
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_together_no_two_failures_share_an_instant_and_each_way_is_where_it_belongs() -> None:
    for way, family, shape, mean_h, stationary in CASES:
        lifetime = with_mean(family, mean_h, shape)
        at_h = by_chunks(lifetime, stationary)[1]
        assert len(at_h) == len(np.unique(at_h))
        rng = np.random.default_rng(1)
        rows = failures_of_nodes(range(5), lifetime, stationary, 3, [CHUNK_H], rng)
        assert rows.__name__ == way
