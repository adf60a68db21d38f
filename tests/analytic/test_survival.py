"""Survival of copies, against counts of every set of failures and against drawn ones."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from math import comb

import numpy as np
import pytest

from cprsim.analytic import survival
from cprsim.analytic.survival import (
    failures_to_loss_of_many,
    failures_to_loss_random,
    p_groups_survive,
    p_random_survives,
    p_ring_survives,
)
from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

Holders = tuple[frozenset[int], ...]
SIZES = [(6, 2), (6, 3), (8, 1), (8, 4), (10, 5), (12, 2), (12, 3), (12, 12)]


def groups(n: int, m: int) -> Holders:
    return tuple(frozenset(range(start, start + m)) for start in range(0, n, m))


def ring(n: int, m: int) -> Holders:
    return tuple(frozenset((start + i) % n for i in range(m)) for start in range(n))


@cache
def p_counted(holders: Holders, n: int, k: int) -> float:
    """The share of the sets of k of n machines that hold no set of holders whole."""
    surviving = sum(
        not any(shard <= set(failed) for shard in holders) for failed in combinations(range(n), k)
    )
    return surviving / comb(n, k)


@pytest.mark.parametrize(("n", "m"), SIZES)
def test_groups_survive_as_often_as_counted(n: int, m: int) -> None:
    for k in range(n + 1):
        counted = p_counted(groups(n, m), n, k)
        assert p_groups_survive(n, m, k) == pytest.approx(counted, abs=1e-12)
        bound = closed_forms.p_groups_survive_bound(n, m, k)
        assert bound <= counted + 1e-12
        if k < 2 * m:
            assert bound == pytest.approx(counted, abs=1e-12)


@pytest.mark.parametrize(("n", "m"), [*SIZES, (7, 2), (10, 3), (11, 4), (5, 5)])
def test_a_ring_survives_as_often_as_counted(n: int, m: int) -> None:
    for k in range(n + 1):
        counted = p_counted(ring(n, m), n, k)
        assert p_ring_survives(n, m, k) == pytest.approx(counted, abs=1e-12)


def test_the_published_numbers_of_sixteen_and_of_a_thousand_machines() -> None:
    in_groups = [p_groups_survive(16, 2, k) for k in (2, 3, 4)]
    in_a_ring = [p_ring_survives(16, 2, k) for k in (2, 3, 4)]
    assert in_groups == pytest.approx([0.9333, 0.8000, 0.6154], abs=5e-5)
    assert in_a_ring == pytest.approx([0.8667, 0.6286, 0.3626], abs=5e-5)
    assert closed_forms.p_groups_survive_bound(16, 2, 4) == pytest.approx(0.600, abs=5e-4)
    many = [p_groups_survive(1000, 2, k) for k in (2, 3)]
    assert many == pytest.approx([0.9990, 0.9970], abs=5e-5)


@pytest.mark.parametrize("placement", [groups, ring])
def test_many_machines_survive_as_often_as_drawn(placement) -> None:  # type: ignore[no-untyped-def]
    n, m, k = 60, 3, 18
    rng, holders = draws(f"survival/{placement.__name__}"), placement(n, m)
    members = np.array([sorted(shard) for shard in holders])
    alive = []
    for _ in range(10_000):
        failed = np.zeros(n, bool)
        failed[rng.permutation(n)[:k]] = True
        alive.append(float(not failed[members].all(axis=1).any()))
    name = {"groups": "p_groups_survive", "ring": "p_ring_survives"}[placement.__name__]
    assert_mean(alive, getattr(survival, name)(n, m, k))


def test_random_holders_survive_as_often_as_every_draw_of_them() -> None:
    """All draws of 2 shards on 2 of 4 machines, and all sets of failures."""
    sets = [frozenset(pair) for pair in combinations(range(4), 2)]
    for k in range(5):
        counted = np.mean([p_counted(pair, 4, k) for pair in product(sets, repeat=2)])
        assert p_random_survives(4, 2, k, 2) == pytest.approx(counted, abs=1e-12)


@pytest.mark.parametrize(
    ("n_groups", "size", "parity"), [(1, 5, 1), (2, 4, 1), (3, 3, 2), (2, 3, 0)]
)
def test_parity_survives_as_often_as_counted(n_groups: int, size: int, parity: int) -> None:
    p_lost, p = 0.3, 0.0
    for lost in product([False, True], repeat=n_groups * size):
        per_group = np.reshape(lost, (n_groups, size)).sum(axis=1)
        weight = p_lost ** sum(lost) * (1 - p_lost) ** (len(lost) - sum(lost))
        p += weight * bool((per_group <= parity).all())
    assert closed_forms.p_parity_survives(n_groups, size, parity, p_lost) == pytest.approx(
        p, abs=1e-12
    )


def test_xor_loses_a_group_that_loses_two() -> None:
    g, q = 8, 0.02
    lost = 1 - (1 - q) ** g - g * q * (1 - q) ** (g - 1)
    assert 1 - closed_forms.p_parity_survives(1, g, 1, q) == pytest.approx(lost)


def failures_to_loss(members: np.ndarray, n: int, rng: np.random.Generator) -> int:
    """One order of failures: when the first set of holders has lost its last member."""
    nth_failure = rng.permutation(n) + 1
    return int(nth_failure[members].max(axis=1).min())


@pytest.mark.parametrize("placement", [groups, ring])
def test_failures_until_a_loss_are_as_many_as_drawn(placement) -> None:  # type: ignore[no-untyped-def]
    n, m = 60, 3
    rng = draws(f"loss/{placement.__name__}")
    members = np.array([sorted(shard) for shard in placement(n, m)])
    found = [failures_to_loss(members, n, rng) for _ in range(10_000)]
    assert_mean(found, getattr(closed_forms, f"failures_to_loss_{placement.__name__}")(n, m))


def random_members(n: int, m: int, n_shards: int, rng: np.random.Generator) -> np.ndarray:
    return rng.random((n_shards, n)).argpartition(m, axis=1)[:, :m]


def stacked_members(n: int, r: int) -> np.ndarray:
    """Groups that hold r of n shards in a cyclic order; two groups share at most one shard."""
    return (np.arange(n)[:, None] + np.array([0, 1, 3])[:r]) % n


@pytest.mark.parametrize("m", [2, 3])
def test_failures_until_random_holders_lose_a_shard_are_as_many_as_drawn(m: int) -> None:
    n, rng = 40, draws(f"loss/random/{m}")
    found = [failures_to_loss(random_members(n, m, n, rng), n, rng) for _ in range(8_000)]
    assert_mean(found, failures_to_loss_random(n, m, n))


def spare_mu(n: int, r: int) -> float:
    """SPARe's formula with its integral taken step by step instead of by the gamma function."""
    x = (np.arange(400_000) + 0.5) / 400_000 * 12.0
    return float(np.exp(-(x**r)).mean() * 12.0 * n ** (1 - 1 / r))


@pytest.mark.parametrize("r", [2, 3])
def test_the_limit_is_approached_by_stacked_shards(r: int) -> None:
    """The mean lies at most r/2 failures above the limit, which grows with the number of groups."""
    rng = draws(f"loss/stacked/{r}")
    for n in (30, 300, 3000):
        limit = failures_to_loss_of_many(n, r, n)
        assert limit == pytest.approx(spare_mu(n, r), rel=1e-6)
        found = [failures_to_loss(stacked_members(n, r), n, rng) for _ in range(2_000)]
        mean, standard_error = np.mean(found), np.std(found, ddof=1) / np.sqrt(len(found))
        print(f"N {n}: mean {mean:.3f}, limit {limit:.3f}, SE {standard_error:.2g}")
        assert -4 * standard_error <= mean - limit <= r / 2 + 4 * standard_error, standard_error


@pytest.mark.parametrize(("n", "r"), [(4000, 2), (20_000, 3)])
def test_the_limit_of_many_machines_is_that_of_every_placement(n: int, r: int) -> None:
    limit = failures_to_loss_of_many(n, r, n)
    assert failures_to_loss_random(n, r, n) == pytest.approx(limit + r / 2, rel=2e-3)


REFUSED = [
    ("p_groups_survive", (10, 3, 2)),
    ("p_groups_survive", (10, 2, 11)),
    ("p_groups_survive_bound", (10, 0, 2)),
    ("p_ring_survives", (10, 11, 2)),
    ("p_ring_survives", (10, 2, -1)),
    ("p_random_survives", (10, 2, 1, 0)),
    ("p_parity_survives", (1, 4, 5, 0.1)),
    ("p_parity_survives", (1, 4, 1, 1.1)),
    ("failures_to_loss_of_many", (10, 11, 10)),
    ("failures_to_loss_groups", (10, 3)),
]


@pytest.mark.parametrize(("name", "numbers"), REFUSED)
def test_placements_that_can_not_be_are_refused(name: str, numbers: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError):
        getattr(survival if hasattr(survival, name) else closed_forms, name)(*numbers)
