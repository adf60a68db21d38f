"""Some replications of a block are those that the whole block has, in the memory of the few."""

from __future__ import annotations

from itertools import count, islice, pairwise
from typing import Any

import numpy as np
import pytest

from cprsim.errors import BudgetError, TooManyReplicationsError
from cprsim.failures import partial_draws, renewal
from cprsim.failures.block import BlockFailures
from cprsim.failures.budget import MEMORY
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.distributions import Constant, Exponential, Gamma, LogNormal, Weibull
from cprsim.failures.frailty import GammaFrailty, Lemons
from cprsim.failures.injected import Injected
from cprsim.failures.replay import Replay
from cprsim.failures.sources import FailureSource, Start, Stretched, random_slots
from cprsim.records import Cluster, FailureTrace, Floats, Ints
from tests.failures.test_sources import OUTAGES

N = 60
REPAIR = Gamma.from_mean(2.0, 0.7)
SOURCES: dict[str, FailureSource] = {
    "job, one node": JobClock(Weibull.from_mean(5.0, 0.7), range(8), repair=REPAIR),
    "job, of a list": JobClock(Exponential(5.0), (1, 4, 6), start=Start.STATIONARY),
    "job, together": JobClock(Gamma.from_mean(5.0, 0.7), range(8), together=3, repair=REPAIR),
    "job, all together": JobClock(LogNormal.from_mean(5.0, 1.0), range(8), together=8),
    "superposed": NodeClocks({"emb_ps": Exponential(20.0)}, repair=REPAIR),
    "a clock for each node": NodeClocks({"emb_ps": Weibull.from_mean(5.0, 0.7)}, repair=REPAIR),
    "lazy": NodeClocks({"emb_ps": Weibull.from_mean(30.0, 0.7)}, repair=REPAIR),
    "lazy, fresh": NodeClocks({"trainer": Gamma.from_mean(30.0, 2.5)}, start=Start.FRESH),
    "roles of all kinds": NodeClocks(
        {
            "trainer": Weibull.from_mean(30.0, 0.7),
            "emb_ps": Gamma.from_mean(5.0, 2.5),
            "reader": Exponential(9.0),
        },
        repair=REPAIR,
    ),
    "correlated": CorrelatedNodes(
        Weibull.from_mean(40.0, 0.8), Lemons(0.2, 5.0, GammaFrailty(2.0)),
        Shocks(0.05, (1, 3), (0.5, 0.5), 20), watched_h=30.0, repair=REPAIR,
    ),
    "injected": Injected(50.0, range(8), together=3, count=5, repair=REPAIR),
    "injected at": Injected(50.0, (1, 4), together=None, at_h=(3.0, 1.0), repair=REPAIR),
    "a replay": Replay(OUTAGES),
    "stretched": Stretched(JobClock(Gamma.from_mean(5.0, 0.7), range(8), together=2), 0.3),
}  # fmt: skip


def some_of(whole: FailureTrace, kept: range) -> tuple[Any, ...]:
    """The rows of some replications of a whole chunk."""
    failures = slice(whole.first[kept.start], whole.first[kept.stop])
    slots = slice(whole.first_slot[failures.start], whole.first_slot[failures.stop])
    first_slot = whole.first_slot[failures.start : failures.stop + 1]
    return (
        whole.first[kept.start : kept.stop + 1] - failures.start, whole.at_h[failures],
        first_slot - slots.start, whole.slot[slots], whole.repair_h[slots],
    )  # fmt: skip


@pytest.mark.parametrize("what", SOURCES)
@pytest.mark.parametrize("kept", [range(3), range(17, 29), range(59, 60), range(N)], ids=str)
def test_some_replications_are_to_the_bit_those_of_the_whole_block(
    what: str, kept: range, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, borders_h = SOURCES[what], [10.0, 25.0, 31.0]
    whole = list(islice(source.draw(cluster, 3, 1, N, borders_h), 3))
    monkeypatch.setattr(partial_draws, "PIECE", 7)
    monkeypatch.setattr(renewal, "PIECE", 11)
    some = list(islice(source.draw(cluster, 3, 1, N, borders_h, kept), 3))
    assert sum(chunk.n_failures for chunk in whole) > N
    for a, b in zip(some, whole, strict=True):
        assert a.until_h == b.until_h
        columns = (a.first, a.at_h, a.first_slot, a.slot, a.repair_h)
        for ours, theirs in zip(columns, some_of(b, kept), strict=True):
            assert np.array_equal(ours, theirs)


def test_blocks_number_the_replications_that_they_keep_from_0(cluster: Cluster) -> None:
    source = SOURCES["job, together"]
    whole = BlockFailures(source, cluster, 3, 1, 10.0)
    some = BlockFailures(source, cluster, 3, 1, 10.0, range(40, 43))
    assert list(some.replications) == list(whole.replications)[40:43]
    assert list(islice(some.of(1), 30)) == list(islice(whole.of(41), 30))


def arrays(failures: BlockFailures) -> list[Ints | Floats]:
    """All that a block holds."""
    numbers = [failures._first, failures._first_slot, failures._slot]
    return [*numbers, failures._at_h, failures._repair_h]


def test_no_prefix_of_a_block_is_kept_twice(cluster: Cluster) -> None:
    failures = BlockFailures(SOURCES["job, together"], cluster, 3, 0, 10.0, range(500))
    many = [failures.strikes(n) for n in range(1, 10)]
    for few, more in pairwise(many):
        again = failures.strikes(few.first.shape[0])
        last = failures.strikes(more.first.shape[0])
        for name in ("first", "at_h", "slot", "first_slot"):
            assert np.shares_memory(getattr(again, name), getattr(last, name))
            assert np.array_equal(getattr(few, name), getattr(again, name))
    held = sum(array.nbytes for array in arrays(failures))
    assert failures.n_bytes <= held
    assert len(failures.strikes(9).slot) == 3 * failures.n_drawn


def test_forgotten_failures_are_drawn_again_as_they_were(cluster: Cluster) -> None:
    failures = BlockFailures(SOURCES["roles of all kinds"], cluster, 3, 0, 50.0)
    before = failures.strikes(3)
    failures.forget()
    assert failures.n_drawn == 0
    for ours, theirs in zip(failures.strikes(3), before, strict=True):
        assert np.array_equal(ours, theirs)


class TestBudget:
    """What would not fit is refused before it is drawn, and what would fit is said."""

    def test_fewer_replications_fit_where_more_do_not(
        self, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv(MEMORY, "3 MB")
        source = JobClock(Exponential(1.0), range(8))
        with pytest.raises(TooManyReplicationsError, match=f"MTBF .* times as long.*{MEMORY}"):
            BlockFailures(source, cluster, 3, 0, 50.0).strikes(14)
        few = BlockFailures(source, cluster, 3, 0, 50.0, range(2)).strikes(14)
        monkeypatch.delenv(MEMORY)
        whole = BlockFailures(source, cluster, 3, 0, 50.0, range(20)).strikes(14)
        last_few, last_whole = (np.ptp(one.first[13, [1, 2]]) for one in (few, whole))
        assert last_few == last_whole

    @pytest.mark.parametrize(
        "source",
        [
            JobClock(Exponential(2e-5), range(8)),
            NodeClocks({"emb_ps": Exponential(8e-5)}),
            NodeClocks({"emb_ps": Constant(8e-5)}, start=Start.FRESH),
            Injected(50.0, range(8), together=8, count=3_000_000),
        ],
        ids=lambda source: type(source).__name__,
    )
    def test_what_no_replication_can_hold_names_what_would_fit(
        self, source: FailureSource, cluster: Cluster
    ) -> None:
        assert source.block_replications(cluster, 1000.0) == 1
        with pytest.raises(BudgetError, match=r"(raise the MTBF|would fit)"):
            BlockFailures(source, cluster, 3, 0, 1000.0).strikes(1)

    def test_nodes_by_failures_are_counted_before_they_are_drawn(self) -> None:
        slots = np.arange(100_000)
        with pytest.raises(BudgetError, match="fewer nodes together, would fit"):
            random_slots(slots, 10**9, 50_000, np.random.default_rng(1))

    def test_shocks_are_counted_before_they_are_drawn(self, cluster: Cluster) -> None:
        often = Shocks(1e6, (3,), (1.0,), 20)
        source = CorrelatedNodes(Weibull.from_mean(40.0, 0.8), shocks=often)
        with pytest.raises(BudgetError, match=r"shocks .* times rarer would fit"):
            next(source.draw(cluster, 1, 0, 16_000, count(10.0)))
