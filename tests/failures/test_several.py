"""Several sources in one job: what each draws alone, together, on one clock."""

from __future__ import annotations

from itertools import islice, takewhile
from math import inf, sqrt

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Constant, Exponential, Weibull
from cprsim.failures.injected import Injected
from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import FailureSource, Stretched
from cprsim.records import Clock, Cluster, Failure, Holds, Role

N_NODES, USEFUL_H, N = 12, 50.0, 200
CLUSTER = Cluster((Role("worker", N_NODES, Holds.SHARD),), 3, Constant(2.0))
NODES = JobClock(Exponential.from_mean(4.0), range(N_NODES), repair=Constant(2.0))
PAIRS = JobClock(Weibull.from_mean(30.0, 0.8), range(N_NODES), together=2)
ONCE = Injected(useful_h=USEFUL_H, slots=(1, 5), at_h=(62.5, 7.0), clock=Clock.WALL)
ALL = SeveralSources((("", NODES), ("pairs", PAIRS), ("once", ONCE)))


def failures_of(source: FailureSource, seed: int = 1) -> list[list[Failure]]:
    block = BlockFailures(source, CLUSTER, seed, 0, USEFUL_H).of_these(range(N))
    early = [takewhile(lambda one: one.at_h < 2 * USEFUL_H, block.of(i)) for i in range(N)]
    return [list(failures) for failures in early]


def test_each_source_is_there_and_the_first_draws_what_it_draws_alone() -> None:
    for together, alone in zip(failures_of(ALL), failures_of(NODES), strict=True):
        assert [one for one in together if one.source == 0] == alone
        assert [one.at_h for one in together if one.source == 2] == [7.0, 62.5]
        assert {len(one.slots) for one in together if one.source == 1} <= {2}
        instants = [one.at_h for one in together]
        assert instants == sorted(instants)


def test_another_source_does_not_move_the_failures_of_a_source() -> None:
    two = SeveralSources((("", NODES), ("pairs", PAIRS)))
    for all_of, some in zip(failures_of(ALL), failures_of(two), strict=True):
        assert [(one.at_h, one.slots) for one in all_of if one.source == 1] == [
            (one.at_h, one.slots) for one in some if one.source == 1
        ]


def test_sources_of_one_kind_are_independent() -> None:
    twins = SeveralSources((("", NODES), ("other", NODES)))
    gaps = [
        [next(one.at_h for one in job if one.source == source) for job in failures_of(twins)]
        for source in (0, 1)
    ]
    assert abs(np.corrcoef(*gaps)[0, 1]) < 4 / sqrt(N)


def test_chunks_hold_the_same_failures_as_one_by_one() -> None:
    block = BlockFailures(ALL, CLUSTER, 1, 0, USEFUL_H).of_these(range(N))
    flat = block.strikes(9)
    assert flat.source is not None
    for i in range(0, N, 50):
        spans = [slice(first[i], first[i + 1]) for first in flat.first]
        at_h = np.concatenate([flat.at_h[span] for span in spans])
        source = np.concatenate([flat.source[span] for span in spans])
        one_by_one = list(islice(block.of(i), len(at_h)))
        assert [one.at_h for one in one_by_one] == at_h.tolist()
        assert [one.source for one in one_by_one] == source.tolist()


def test_rates_add_up() -> None:
    n = [sum(one.at_h < USEFUL_H for one in job) for job in failures_of(ALL)]
    mean = USEFUL_H / ALL.expected(CLUSTER, USEFUL_H).mtbf_h
    assert abs(np.mean(n) - mean) <= 4 * np.std(n) / sqrt(N)
    assert mean == pytest.approx(
        sum(USEFUL_H * rate for rate in ALL.rates_per_h(CLUSTER, USEFUL_H))
    )
    nothing = SeveralSources((("", Injected(useful_h=1.0, slots=(0,), count=0)),))
    assert nothing.expected(CLUSTER, USEFUL_H).mtbf_h == inf


def test_a_stretched_pace_moves_every_source() -> None:
    faster = SeveralSources((("", NODES), ("pairs", PAIRS)))
    slow = failures_of(Stretched(faster, 2.0))
    for long, short in zip(slow, failures_of(faster), strict=True):
        both = list(zip(long, short, strict=False))
        assert both
        for one, other in both:
            assert one.at_h == 2.0 * other.at_h
            assert (one.slots, one.source) == (other.slots, other.source)


def test_two_clocks_are_refused() -> None:
    other = JobClock(Exponential.from_mean(4.0), range(N_NODES), clock=Clock.UPTIME)
    with pytest.raises(ParameterError, match="`uptime` and `wall`"):
        SeveralSources((("", NODES), ("late", other)))
