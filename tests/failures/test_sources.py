"""What holds for every source, and what the job clock, node clocks and injection promise."""

from __future__ import annotations

import math
from itertools import count, islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.correlated import CorrelatedNodes, Shocks
from cprsim.failures.distributions import (
    Constant,
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    Weibull,
)
from cprsim.failures.frailty import GammaFrailty
from cprsim.failures.injected import Injected
from cprsim.failures.outages import outages_of
from cprsim.failures.replay import Replay
from cprsim.failures.sources import (
    MOST_REPLICATIONS,
    FailureSource,
    Start,
    p_strikes,
    random_slots,
    replications_for,
    trace_of,
)
from cprsim.records import Clock, Cluster, FailureTrace, Holds, Role

WEIBULL = Weibull.from_mean(28.0, 0.7)
OUTAGES = outages_of(
    np.arange(12),
    np.linspace(3.0, 90.0, 12),
    np.linspace(4.0, 95.0, 12),
    ("",) * 12,
    n_nodes=12,
    window_h=100.0,
    origin="hour 0",
)
SOURCES: list[FailureSource] = [
    JobClock(WEIBULL, range(8), together=3, repair=Exponential(5.0)),
    JobClock(WEIBULL, range(3, 7), start=Start.STATIONARY),
    NodeClocks({"emb_ps": WEIBULL, "trainer": Exponential(40.0)}, repair=Exponential(5.0)),
    NodeClocks({"emb_ps": WEIBULL}, start=Start.FRESH),
    CorrelatedNodes(Weibull(0.7, 100.0), GammaFrailty(2.5), Shocks(0.02, (2, 5), (0.75, 0.25), 40)),
    Injected(50.0, range(3, 7), together=2, count=5),
    Injected(50.0, (3, 5), together=None, at_h=(10.5, 3.0), repair=Constant(2.0)),
    Replay(OUTAGES),
    Injected(50.0, range(3, 7), together=2, count=5, clock=Clock.WALL),
    Injected(50.0, range(3, 7), at_h=(4900.0, 3.0), clock=Clock.UPTIME, slots_at=((4,), (6, 3))),
]
EVERY = pytest.mark.parametrize("source", SOURCES, ids=lambda source: type(source).__name__)


def content(trace: FailureTrace) -> tuple[bytes, ...]:
    """Everything a trace holds, to the last bit."""
    arrays = (trace.first, trace.at_h, trace.first_slot, trace.slot, trace.repair_h)
    return tuple(array.tobytes() for array in arrays)


def chunks(
    source: FailureSource, cluster: Cluster, n: int, *, seed: int = 7, block: int = 0
) -> list[FailureTrace]:
    return list(islice(source.draw(cluster, seed, block, 40, count(10.0, 10.0)), n))


def per_replication(trace: FailureTrace, n_replications: int) -> np.ndarray:
    return np.bincount(trace.replication, minlength=n_replications)


def assert_mean(values: np.ndarray, expected: float) -> None:
    """The mean lies within 4 standard errors."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - expected) <= 4 * error, f"{np.mean(values)} +- {error}"


@EVERY
def test_a_chunk_does_not_depend_on_how_many_are_drawn(
    source: FailureSource, cluster: Cluster
) -> None:
    many, few = chunks(source, cluster, 10), chunks(source, cluster, 3)
    assert [content(chunk) for chunk in many[: len(few)]] == [content(chunk) for chunk in few]


# nothing is random about given failures of given servers
@pytest.mark.parametrize("source", [*SOURCES[:6], SOURCES[7]], ids=lambda s: type(s).__name__)
def test_blocks_and_seeds_differ(source: FailureSource, cluster: Cluster) -> None:
    here = content(chunks(source, cluster, 1)[0])
    assert content(chunks(source, cluster, 1, block=1)[0]) != here
    assert content(chunks(source, cluster, 1, seed=8)[0]) != here


@EVERY
def test_chunks_are_in_order_and_whole(source: FailureSource, cluster: Cluster) -> None:
    from_h = 0.0
    for chunk in chunks(source, cluster, 10):
        assert ((chunk.at_h >= from_h) & (chunk.at_h < chunk.until_h)).all()
        later = np.diff(chunk.at_h) > 0
        assert (later | (np.diff(chunk.replication) > 0)).all()
        sizes = np.diff(chunk.first_slot)
        assert (sizes > 0).all()
        assert chunk.first_slot[-1] == len(chunk.slot) == len(chunk.repair_h)
        of_failure = np.repeat(np.arange(chunk.n_failures), sizes)
        assert len(set(zip(of_failure, chunk.slot, strict=True))) == len(chunk.slot)
        from_h = chunk.until_h


@EVERY
def test_replications_of_a_block_are_bounded(source: FailureSource, cluster: Cluster) -> None:
    assert source.block_replications(cluster, 50.0) == MOST_REPLICATIONS
    # beyond progress of the job nothing is injected, however long it lasts
    if not isinstance(source, Injected):
        assert 1 <= source.block_replications(cluster, 5e5) < MOST_REPLICATIONS


def test_bounds_of_a_block() -> None:
    assert replications_for(0.0) == MOST_REPLICATIONS
    assert replications_for(1e4) == 100
    assert replications_for(1.0, n_clocks=1e5) == 10
    assert replications_for(1e9) == 1


@pytest.mark.parametrize("with_repair", ["job", "node", "injected"])
def test_naming_a_repair_moves_no_failure(with_repair: str, cluster: Cluster) -> None:
    def source(repair: Distribution | None) -> FailureSource:
        match with_repair:
            case "job":
                return JobClock(WEIBULL, range(8), together=2, repair=repair)
            case "node":
                return NodeClocks({"emb_ps": WEIBULL}, repair=repair)
        return Injected(50.0, range(8), together=2, count=3, repair=repair)

    bare, named = (chunks(source(r), cluster, 3)[-1] for r in (None, Exponential(5.0)))
    assert content(bare)[:4] == content(named)[:4]
    assert (bare.repair_h == 0).all()
    assert (named.repair_h > 0).all()


def test_adding_a_role_moves_no_failure_of_the_others(cluster: Cluster) -> None:
    alone = chunks(NodeClocks({"emb_ps": WEIBULL}), cluster, 3)[-1]
    beside = chunks(NodeClocks({"trainer": WEIBULL, "emb_ps": WEIBULL}), cluster, 3)[-1]
    servers = beside.slot >= 3
    assert len(alone.slot) < len(beside.slot)
    np.testing.assert_array_equal(alone.slot, beside.slot[servers])


# ------------------------------------------------------------------------------- node clocks


@pytest.mark.parametrize(
    ("lifetime", "start", "failures"),
    [
        (Exponential(2400.0), Start.FRESH, 100.0),
        (Weibull.from_mean(2400.0, 0.7), Start.FRESH, 244.37),
        (LogNormal.from_mean(2400.0, 1.0), Start.FRESH, 35.84),
        (Exponential(2400.0), Start.STATIONARY, 100.0),
        (Weibull.from_mean(2400.0, 0.7), Start.STATIONARY, 100.0),
        (LogNormal.from_mean(2400.0, 1.0), Start.STATIONARY, 100.0),
        (Gamma.from_mean(2400.0, 0.67), Start.STATIONARY, 100.0),
    ],
    ids=str,
)
def test_failures_of_a_thousand_nodes(
    lifetime: Distribution, start: Start, failures: float
) -> None:
    cluster = Cluster((Role("emb_ps", 1000, Holds.SHARD),))
    source = NodeClocks({"emb_ps": lifetime}, start=start)
    drawn = list(islice(source.draw(cluster, 1, 0, 400, count(60.0, 60.0)), 4))
    assert_mean(sum(per_replication(chunk, 400) for chunk in drawn), failures)
    assert 240.0 / source.expected(cluster, 240.0).mtbf_h == pytest.approx(failures, abs=0.005)


def test_stationary_nodes_fail_as_often_later_as_at_first() -> None:
    cluster = Cluster((Role("emb_ps", 100, Holds.SHARD),))
    source = NodeClocks({"emb_ps": WEIBULL})
    for chunk in islice(source.draw(cluster, 2, 0, 200, count(7.0, 7.0)), 6):
        assert_mean(per_replication(chunk, 200), 25.0)


def test_expected_failures_of_several_roles(cluster: Cluster) -> None:
    source = NodeClocks({"emb_ps": Exponential(80.0), "trainer": Exponential(60.0)})
    expected = source.expected(cluster, 50.0)
    assert expected.mtbf_h == pytest.approx(1 / (4 / 80 + 3 / 60))
    assert expected.mtbf_shard_h == pytest.approx(20.0)
    assert expected.n_shards_together == 1.0
    trainers = NodeClocks({"trainer": Exponential(60.0)}).expected(cluster, 50.0)
    assert (trainers.mtbf_h, trainers.mtbf_shard_h) == (pytest.approx(20.0), math.inf)
    assert trainers.n_shards_together == 0.0


# ---------------------------------------------------------------------------------- job clock


@pytest.mark.parametrize(
    "lifetime", [WEIBULL, Gamma.from_mean(28.0, 2.5)], ids=lambda life: life.family
)
@pytest.mark.parametrize("start", Start)
def test_failures_of_a_job(lifetime: Distribution, start: Start, cluster: Cluster) -> None:
    source = JobClock(lifetime, range(8), start=start)
    drawn = next(source.draw(cluster, 3, 0, 4000, [50.0]))
    assert_mean(per_replication(drawn, 4000), 50.0 / source.expected(cluster, 50.0).mtbf_h)


def test_the_struck_slots_are_random_ones_of_the_given(cluster: Cluster) -> None:
    drawn = next(
        JobClock(Exponential(1.0), range(2, 8), together=3).draw(cluster, 1, 0, 50, [50.0])
    )
    assert set(np.diff(drawn.first_slot)) == {3}
    hit = np.bincount(drawn.slot, minlength=8)
    p = 1 / 2
    assert (hit[:2] == 0).all()
    error = math.sqrt(drawn.n_failures * p * (1 - p))
    assert (np.abs(hit[2:] - drawn.n_failures * p) <= 4 * error).all()


def test_expected_shards_are_hypergeometric(cluster: Cluster) -> None:
    # 3 of 8 nodes, 4 of them embedding servers: 1 - C(4, 3) / C(8, 3) = 1 - 4/56
    expected = JobClock(Exponential(28.0), range(8), together=3).expected(cluster, 50.0)
    assert expected.mtbf_h == 28.0
    assert expected.mtbf_shard_h == pytest.approx(28.0 / (52 / 56))
    assert expected.n_shards_together == pytest.approx(1.5 / (52 / 56))
    alone = JobClock(Exponential(28.0), range(3, 7), together=2).expected(cluster, 50.0)
    assert (alone.mtbf_shard_h, alone.n_shards_together) == (28.0, 2.0)


@given(n_slots=st.integers(1, 12), data=st.data())
def test_random_slots_are_distinct(n_slots: int, data: st.DataObject) -> None:
    together = data.draw(st.integers(1, n_slots))
    slots = np.arange(n_slots) * 3 + 1
    chosen = random_slots(slots, 20, together, np.random.default_rng(1))
    assert chosen.shape == (20, together)
    assert all(len(set(row)) == together for row in chosen)
    assert np.isin(chosen, slots).all()


def test_places_that_are_taken_give_way_as_floyd_says() -> None:
    n, together, slots = 50, 7, np.arange(9)
    rng = np.random.default_rng(1)
    chosen: list[list[int]] = [[] for _ in range(n)]
    for last in range(len(slots) - together, len(slots)):
        for row, place in zip(chosen, rng.integers(0, last + 1, n).tolist(), strict=True):
            row.append(last if place in row else place)
    found = random_slots(slots, n, together, np.random.default_rng(1))
    assert found.tolist() == chosen


def test_p_strikes_at_its_limits() -> None:
    assert p_strikes(1, 4, 8) == 0.5
    assert p_strikes(5, 4, 8) == 1.0
    assert p_strikes(3, 0, 8) == 0.0


# ---------------------------------------------------------------------------------- injected


def test_given_failures_come_as_given(cluster: Cluster) -> None:
    source = Injected(50.0, (3, 5), together=None, at_h=(10.5, 3.0), repair=Constant(2.0))
    (only,) = source.draw(cluster, 1, 0, 2, [10.0])
    assert only.until_h == math.inf
    for failures in map(only.of, range(2)):
        assert [(f.at_h, f.slots, f.repair_h) for f in failures] == [
            (3.0, (3, 5), (2.0, 2.0)),
            (10.5, (3, 5), (2.0, 2.0)),
        ]
    assert source.expected(cluster, 50.0).mtbf_h == 25.0


def test_random_injections_are_uniform_and_exactly_so_many(cluster: Cluster) -> None:
    (only,) = Injected(50.0, range(3, 7), together=4, count=5).draw(cluster, 1, 0, 2000, [10.0])
    assert (per_replication(only, 2000) == 5).all()
    assert_mean(only.at_h.reshape(2000, 5).mean(axis=1), 25.0)
    assert (only.at_h < 50.0).all()


def test_no_injected_failure_at_all(cluster: Cluster) -> None:
    source = Injected(50.0, range(3, 7), count=0)
    (only,) = source.draw(cluster, 1, 0, 10, [10.0])
    assert only.n_failures == 0
    assert source.expected(cluster, 50.0).mtbf_h == math.inf
    assert source.expected(cluster, 50.0).n_shards_together == 0.0


@pytest.mark.parametrize("clock", [Clock.UPTIME, Clock.WALL])
def test_the_clock_moves_no_draw(clock: Clock, cluster: Cluster) -> None:
    repair = Exponential(5.0)
    here, there = (
        Injected(50.0, range(8), together=2, count=3, repair=repair, clock=one)
        for one in (Clock.PROGRESS, clock)
    )
    assert content(chunks(here, cluster, 1)[0]) == content(chunks(there, cluster, 1)[0])
    assert here.expected(cluster, 50.0) == there.expected(cluster, 50.0)


def test_each_instant_may_strike_other_nodes(cluster: Cluster) -> None:
    at_h, slots_at = (60.0, 3.0, 9.0), ((0,), (6, 3, 4), (0, 5))
    source = Injected(50.0, range(7), at_h=at_h, clock=Clock.WALL, slots_at=slots_at)
    (only,) = source.draw(cluster, 1, 0, 3, [10.0])
    for failures in map(only.of, range(3)):
        struck = [(f.at_h, f.slots) for f in failures]
        assert struck == [(3.0, (3, 4, 6)), (9.0, (0, 5)), (60.0, (0,))]


def test_expected_are_the_injected_failures_of_the_useful_hours(cluster: Cluster) -> None:
    at_h, slots_at = (60.0, 3.0, 9.0, 20.0), ((3, 4, 5, 6), (6, 3, 4), (0, 5), (0,))
    source = Injected(50.0, range(7), at_h=at_h, clock=Clock.WALL, slots_at=slots_at)
    expected = source.expected(cluster, 50.0)  # slots 3 to 6 are embedding servers
    assert (expected.mtbf_h, expected.mtbf_shard_h) == (50.0 / 3, 25.0)
    assert expected.n_shards_together == 2.0
    trainers = Injected(50.0, range(3), at_h=(3.0,), slots_at=((1, 2),))
    assert trainers.expected(cluster, 50.0).mtbf_shard_h == math.inf
    late = Injected(50.0, (3, 5), at_h=(60.0,), clock=Clock.UPTIME)
    assert late.expected(cluster, 50.0).mtbf_h == math.inf


# ------------------------------------------------------------------------------- the trace


def test_rows_of_one_instant_become_one_failure() -> None:
    trace = trace_of(
        9.0,
        2,
        np.array([1, 0, 1, 1]),
        np.array([2.0, 2.0, 2.0, 1.0]),
        np.array([5, 4, 3, 7]),
        np.array([0.5, 0.4, 0.3, 0.7]),
    )
    assert trace.n_failures == 3
    assert [(f.at_h, f.slots, f.repair_h) for f in trace.of(1)] == [
        (1.0, (7,), (0.7,)),
        (2.0, (3, 5), (0.3, 0.5)),
    ]


@pytest.mark.parametrize("n_sources", [None, 2])
@pytest.mark.parametrize(("n", "n_replications"), [(0, 3), (1, 1), (300, 100), (3000, 7)])
def test_failures_stand_in_order_of_replication_instant_source_and_slot(
    n: int, n_replications: int, n_sources: int | None
) -> None:
    rng = np.random.default_rng(n)
    replication, slot = rng.integers(0, n_replications, n), rng.permutation(n)
    at_h = rng.integers(0, 20, n) / 4.0  # many fail at the same instant
    source = rng.integers(0, n_sources or 1, n)
    given = None if n_sources is None else source
    trace = trace_of(9.0, n_replications, replication, at_h, slot, np.zeros(n), given)
    order = np.lexsort((slot, source, at_h, replication))
    assert trace.slot.tolist() == slot[order].tolist()
    keys = np.stack([replication, at_h, source])[:, order]
    first = np.unique(keys, axis=1, return_index=True)[1] if n else np.zeros(0, dtype=np.int64)
    assert trace.first_slot.tolist() == [*sorted(first.tolist()), n]
    assert np.array_equal(trace.at_h, keys[1, trace.first_slot[:-1]])
    assert np.array_equal(trace.replication, keys[0, trace.first_slot[:-1]])
    assert given is None or np.array_equal(trace.source, keys[2, trace.first_slot[:-1]])
