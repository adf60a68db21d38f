"""The failures of a block: which replications it holds, what is kept, and several sources."""

from itertools import islice, takewhile
from math import inf, sqrt

import numpy as np
import pytest

from cprsim.errors import BudgetError, TooManyReplicationsError
from cprsim.failures.block import (
    FIRST_REPLICATIONS,
    BlockFailures,
    block_of,
    columns_of,
    replications_of,
)
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.frailty import Shocks
from cprsim.failures.injected import Injected
from cprsim.failures.several import SeveralSources
from cprsim.failures.sources import MEMORY_KEY, MOST_DRAWN, FailureSource
from cprsim.job.distributions import Constant, Exponential, Gamma, Weibull
from cprsim.job.records import Clock, Cluster, Failure, Holds, Role

TOGETHER = JobClock(Gamma.from_mean(5.0, 0.7), range(8), together=3, repair=Exponential(2.0))
NODES = NodeClocks({"trainer": Weibull.from_mean(30.0, 0.7), "emb_ps": Exponential(9.0)})
SOURCES = {"job": TOGETHER, "several": SeveralSources((("", TOGETHER), ("nodes", NODES)))}


@pytest.mark.parametrize("most", [1, 7, FIRST_REPLICATIONS, 5000, MOST_DRAWN])
def test_blocks_follow_each_other_and_each_replication_is_in_one(most: int) -> None:
    blocks = [replications_of(most, number) for number in range(4)]
    assert len(blocks[0]) == min(most, FIRST_REPLICATIONS)
    assert [block.start for block in blocks] == [0, *(block.stop for block in blocks[:-1])]
    for number, block in enumerate(blocks):
        assert 1 <= len(block) <= most
        for replication in (block.start, block[len(block) // 2], block[-1]):
            assert block_of(most, replication) == number


@pytest.mark.parametrize("what", SOURCES)
@pytest.mark.parametrize("kept", [range(3), range(40, 43), range(3999, 4000)], ids=str)
def test_some_replications_are_those_of_the_whole_block(
    what: str, kept: range, cluster: Cluster
) -> None:
    whole = BlockFailures(SOURCES[what], cluster, 3, 1, 10.0)
    some = BlockFailures(SOURCES[what], cluster, 3, 1, 10.0, kept)
    assert list(some.replications) == list(whole.replications)[kept.start : kept.stop]
    for number, replication in enumerate(kept):
        assert list(islice(some.of(number), 30)) == list(islice(whole.of(replication), 30))
    part = whole.of_these(kept).of_these(range(1))
    assert list(islice(part.of(0), 9)) == list(islice(some.of(0), 9))


@pytest.mark.parametrize("what", SOURCES)
def test_chunks_stand_one_after_another(what: str, cluster: Cluster) -> None:
    failures = BlockFailures(SOURCES[what], cluster, 3, 0, 10.0, range(500))
    whole = failures.strikes(9)
    for n in range(1, 9):
        few = failures.strikes(n)
        assert few.until_h < whole.until_h
        for ours, theirs in zip(columns_of(few), columns_of(whole), strict=True):
            assert ours is theirs is None or np.array_equal(ours, theirs[: len(ours)])
    assert len(whole.at_h) == failures.n_drawn
    assert failures.n_bytes >= 8 * (2 * failures.n_drawn + 2 * len(whole.slot))
    for replication in (0, 499):
        spans = [np.arange(*first[[replication, replication + 1]]) for first in whole.first]
        mine = np.concatenate(spans)
        one_by_one = list(islice(failures.of(replication), len(mine)))
        assert [one.at_h for one in one_by_one] == whole.at_h[mine].tolist()
        if whole.source is not None:
            assert [one.source for one in one_by_one] == whole.source[mine].tolist()


def test_forgotten_failures_are_drawn_again_as_they_were(cluster: Cluster) -> None:
    failures = BlockFailures(NODES, cluster, 3, 0, 50.0)
    before = failures.strikes(3)
    failures.forget()
    assert failures.n_drawn == failures.n_bytes == 0
    for ours, theirs in zip(*map(columns_of, (failures.strikes(3), before)), strict=True):
        assert np.array_equal(ours, theirs)


def test_fewer_replications_fit_where_more_do_not(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cprsim.failures.block.FIRST_REPLICATIONS", 20)
    monkeypatch.setenv(MEMORY_KEY, "2 MB")
    source = JobClock(Exponential(1.0), range(8))
    with pytest.raises(TooManyReplicationsError, match=f"MTBF .* times as long.*{MEMORY_KEY}"):
        BlockFailures(source, cluster, 3, 0, 50.0).strikes(13)
    few = BlockFailures(source, cluster, 3, 0, 50.0, range(2)).strikes(13)
    monkeypatch.delenv(MEMORY_KEY)
    whole = BlockFailures(source, cluster, 3, 0, 50.0).strikes(13)
    assert np.ptp(few.first[12, [1, 2]]) == np.ptp(whole.first[12, [1, 2]])


TOO_MUCH: list[tuple[FailureSource, str]] = [
    (JobClock(Exponential(2.2e-5), range(8)), r"an MTBF .* times as long would fit"),
    (NodeClocks({"emb_ps": Exponential(8e-5)}), r"an MTBF .* times as long would fit"),
    (Injected(50.0, range(8), together=8, count=9_000_000), "fewer failures, or fewer nodes"),
    (
        CorrelatedNodes(Weibull.from_mean(4e6, 0.8), shocks=Shocks(1e7, (3,), (1.0,), 20)),
        r"shocks .* times rarer would fit",
    ),
]


@pytest.mark.parametrize(("source", "message"), TOO_MUCH, ids=lambda one: type(one).__name__)
def test_what_no_replication_can_hold_is_refused_before_it_is_drawn(
    source: FailureSource, message: str, cluster: Cluster
) -> None:
    with pytest.raises(BudgetError, match=message):
        next(source.draw(cluster, 3, 0, 1, [1000.0]))


# ------------------------------------------------------------------------- several sources


N_NODES, USEFUL_H, N = 12, 50.0, 200
WORKERS_ALONE = Cluster((Role("worker", N_NODES, Holds.SHARD),), 3, Constant(2.0))
WORKERS = JobClock(Exponential(4.0), range(N_NODES), repair=Constant(2.0))
PAIRS = JobClock(Weibull.from_mean(30.0, 0.8), range(N_NODES), together=2)
ONCE = Injected(useful_h=USEFUL_H, slots=(1, 5), at_h=(62.5, 7.0), clock=Clock.WALL)
TWO = SeveralSources((("", WORKERS), ("pairs", PAIRS)))
ALL = SeveralSources((("", WORKERS), ("pairs", PAIRS), ("once", ONCE)))


def failures_of(source: FailureSource, seed: int = 1) -> list[list[Failure]]:
    block = BlockFailures(source, WORKERS_ALONE, seed, 0, USEFUL_H, range(N))
    early = [takewhile(lambda one: one.at_h < 2 * USEFUL_H, block.of(i)) for i in range(N)]
    return [list(failures) for failures in early]


def test_each_source_is_there_and_another_does_not_move_its_failures() -> None:
    for three, two, one in zip(*map(failures_of, (ALL, TWO, WORKERS)), strict=True):
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
    twins = failures_of(SeveralSources((("", WORKERS), ("other", WORKERS))))
    gaps = [[next(f.at_h for f in job if f.source == source) for job in twins] for source in (0, 1)]
    assert abs(np.corrcoef(*gaps)[0, 1]) < 4 / sqrt(N)


def test_rates_add_up() -> None:
    n = [sum(one.at_h < USEFUL_H for one in job) for job in failures_of(ALL)]
    mean = USEFUL_H / ALL.expected(WORKERS_ALONE, USEFUL_H).mtbf_h
    assert abs(np.mean(n) - mean) <= 4 * np.std(n) / sqrt(N)
    assert mean == pytest.approx(USEFUL_H * sum(ALL.rates_per_h(WORKERS_ALONE, USEFUL_H)))
    nothing = SeveralSources((("", Injected(useful_h=1.0, slots=(0,), count=0)),))
    assert nothing.expected(WORKERS_ALONE, USEFUL_H).mtbf_h == inf
