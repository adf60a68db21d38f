"""Another source's failures at another pace."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Exponential, Weibull
from cprsim.failures.sources import Stretched
from cprsim.records import Cluster, FailureTrace, Holds, Role

CLUSTER = Cluster((Role("emb_ps", 8, Holds.SHARD),))
SOURCE = JobClock(Weibull.from_mean(10.0, 0.7), range(8), together=3)


def drawn(source: JobClock | Stretched, borders_h: Iterable[float], n: int) -> list[FailureTrace]:
    return list(islice(source.draw(CLUSTER, 1, 0, 500, borders_h), n))


@pytest.mark.parametrize("factor", [0.13, 0.5, 1.0, 3.0])
def test_every_instant_is_stretched_and_nothing_else(factor: float) -> None:
    borders_h = [50.0, 100.0, 120.0]
    for ours, theirs in zip(
        drawn(Stretched(SOURCE, factor), borders_h, 3), drawn(SOURCE, borders_h, 3), strict=True
    ):
        assert np.array_equal(ours.at_h, theirs.at_h * factor)
        assert ours.until_h == theirs.until_h * factor
        for name in ("replication", "first_slot", "slot", "repair_h"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_what_is_pressed_together_reaches_as_far() -> None:
    chunks = drawn(Stretched(SOURCE, 0.1), [50.0, 100.0], 10)
    assert [chunk.until_h for chunk in chunks[:3]] == pytest.approx([5.0, 10.0, 15.0])
    assert chunks[-1].until_h > 100.0


def test_it_fails_as_often_as_a_source_of_that_mtbf() -> None:
    source = JobClock(Exponential(10.0), range(8))
    (chunk,) = drawn(Stretched(source, 0.4), [125.0], 1)
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
