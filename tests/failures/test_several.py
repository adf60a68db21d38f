"""Several sources of failures in one job."""

from __future__ import annotations

from itertools import takewhile
from math import inf, sqrt

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.injected import Injected
from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import FailureSource
from cprsim.job.distributions import Constant, Exponential, Weibull
from cprsim.job.records import Clock, Cluster, Failure, Holds, Role

N_NODES, USEFUL_H, N = 12, 50.0, 200
CLUSTER = Cluster((Role("worker", N_NODES, Holds.SHARD),), 3, Constant(2.0))
NODES = JobClock(Exponential(4.0), range(N_NODES), repair=Constant(2.0))
PAIRS = JobClock(Weibull.from_mean(30.0, 0.8), range(N_NODES), together=2)
ONCE = Injected(useful_h=USEFUL_H, slots=(1, 5), at_h=(62.5, 7.0), clock=Clock.WALL)
TWO = SeveralSources((("", NODES), ("pairs", PAIRS)))
ALL = SeveralSources((("", NODES), ("pairs", PAIRS), ("once", ONCE)))


def failures_of(source: FailureSource, seed: int = 1) -> list[list[Failure]]:
    block = BlockFailures(source, CLUSTER, seed, 0, USEFUL_H, range(N))
    early = [takewhile(lambda one: one.at_h < 2 * USEFUL_H, block.of(i)) for i in range(N)]
    return [list(failures) for failures in early]


def test_each_source_is_there_and_another_does_not_move_its_failures() -> None:
    for three, two, one in zip(*map(failures_of, (ALL, TWO, NODES)), strict=True):
        assert [failed for failed in three if failed.source == 0] == one
        assert [failed for failed in three if failed.source < 2] == two
        assert [failed.at_h for failed in three if failed.source == 2] == [7.0, 62.5]
        assert {len(failed.slots) for failed in two if failed.source == 1} <= {2}
        instants = [failed.at_h for failed in three]
        assert instants == sorted(instants)


def test_failures_of_one_instant_stand_in_the_order_of_the_sources() -> None:
    both = SeveralSources((("", ONCE), ("again", ONCE)))
    for failures in failures_of(both):
        assert [(one.at_h, one.source) for one in failures] == [
            (7.0, 0), (7.0, 1), (62.5, 0), (62.5, 1),
        ]  # fmt: skip


def test_sources_of_one_kind_are_independent() -> None:
    twins = failures_of(SeveralSources((("", NODES), ("other", NODES))))
    gaps = [[next(f.at_h for f in job if f.source == source) for job in twins] for source in (0, 1)]
    assert abs(np.corrcoef(*gaps)[0, 1]) < 4 / sqrt(N)


def test_rates_add_up() -> None:
    n = [sum(one.at_h < USEFUL_H for one in job) for job in failures_of(ALL)]
    mean = USEFUL_H / ALL.expected(CLUSTER, USEFUL_H).mtbf_h
    assert abs(np.mean(n) - mean) <= 4 * np.std(n) / sqrt(N)
    assert mean == pytest.approx(USEFUL_H * sum(ALL.rates_per_h(CLUSTER, USEFUL_H)))
    nothing = SeveralSources((("", Injected(useful_h=1.0, slots=(0,), count=0)),))
    assert nothing.expected(CLUSTER, USEFUL_H).mtbf_h == inf
