"""Another source's failures at another pace."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Exponential, Weibull
from cprsim.failures.job_clock import JobClock
from cprsim.failures.stretched import Stretched
from cprsim.records import Cluster, FailureTrace, Holds, Role

CLUSTER = Cluster((Role("emb_ps", 8, Holds.SHARD),))
SOURCE = JobClock(Weibull.from_mean(10.0, 0.7), range(8), together=3)


def drawn(source: JobClock | Stretched, n: int, chunk_h: float = 50.0) -> list[FailureTrace]:
    return list(islice(source.draw(CLUSTER, 1, 0, 500, chunk_h), n))


@pytest.mark.parametrize("factor", [0.13, 0.5, 1.0, 3.0])
def test_every_instant_is_stretched_and_nothing_else(factor: float) -> None:
    stretched = drawn(Stretched(SOURCE, factor), 3)
    n_in_one = round(np.ceil(1 / factor)) if factor < 1 else 1
    chunks = drawn(SOURCE, 3 * n_in_one)
    at_h = np.sort(np.concatenate([chunk.at_h for chunk in chunks])) * factor
    assert np.allclose(np.sort(np.concatenate([chunk.at_h for chunk in stretched])), at_h)
    assert sum(len(c.slot) for c in stretched) == 3 * len(at_h)
    for before, chunk in zip([0.0, *(c.until_h for c in stretched)], stretched, strict=False):
        assert chunk.until_h - before >= 50.0 * (1 - 1e-12)
        assert ((chunk.at_h >= before) & (chunk.at_h <= chunk.until_h)).all()


def test_a_chunk_of_several_is_one_in_order_with_its_nodes() -> None:
    (joined,) = drawn(Stretched(SOURCE, 0.25), 1)
    parts = drawn(SOURCE, 4)
    for replication in (0, 17, 499):
        mine = [
            (failure.at_h * 0.25, failure.slots)
            for part in parts
            for failure in part.by_replication(500)[replication]
        ]
        there = joined.by_replication(500)[replication]
        assert [(failure.at_h, failure.slots) for failure in there] == mine


def test_it_fails_as_often_as_a_source_of_that_mtbf() -> None:
    source = JobClock(Exponential(10.0), range(8))
    (chunk,) = drawn(Stretched(source, 0.4), 1)
    within = chunk.at_h < 50.0
    mean, error = within.sum() / 500, np.sqrt(50 / 4 / 500)
    assert abs(mean - 50 / 4) < 4 * error, error
    expected = Stretched(source, 0.4).expected(CLUSTER, 50.0)
    assert expected.mtbf_h == pytest.approx(4.0)
    assert expected.mtbf_shard_h == pytest.approx(4.0)


@pytest.mark.parametrize("factor", [0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_is_positive(factor: float) -> None:
    with pytest.raises(ParameterError, match="factor"):
        Stretched(SOURCE, factor)
