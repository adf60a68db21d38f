"""What holds for every source, and what each of them draws."""

import math
from dataclasses import replace
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.frailty import Frailty, Shocks
from cprsim.failures.injected import Injected
from cprsim.failures.replay import Replay
from cprsim.failures.sources import (
    MOST_DRAWN,
    FailureSource,
    Start,
    replications_for,
    trace_of,
)
from cprsim.job.distributions import (
    Constant,
    Exponential,
    Gamma,
    Weibull,
    with_mean,
)
from cprsim.job.records import Clock, Cluster, FailureTrace
from tests.fitting.logs import outages

WEIBULL = Weibull.from_mean(28.0, 0.7)
SHOCKS = Shocks(0.02, (2, 5), (0.75, 0.25), 40)
LEMONS = Frailty(0.2, 3.0, 20.0)
OUTAGES = outages(*((node, 3 + 7.9 * node, 4 + 8.2 * node) for node in range(12)), n_nodes=12)
GIVEN = Injected(50.0, (3, 5), together=2, at_h=(10.5, 3.0), repair=Constant(2.0))
SOURCES: list[FailureSource] = [
    JobClock(WEIBULL, range(8), together=3, repair=Exponential(5.0)),
    JobClock(WEIBULL, range(3, 7), start=Start.STATIONARY),
    NodeClocks({"emb_ps": WEIBULL, "trainer": Exponential(40.0)}, repair=Exponential(5.0)),
    NodeClocks({"emb_ps": WEIBULL}, start=Start.FRESH),
    CorrelatedNodes(Weibull(0.7, 100.0), Frailty(shape=2.5), SHOCKS),
    Injected(50.0, range(3, 7), together=2, count=5),
    Replay(OUTAGES),
    GIVEN,
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


def assert_mean(values: np.ndarray, expected: float) -> None:
    """The mean lies within 4 standard errors."""
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    assert abs(np.mean(values) - expected) <= 4 * error + 1e-12, f"{np.mean(values)} +- {error}"


@EVERY
def test_chunks_are_whole_in_order_and_the_same_however_many_are_drawn(
    source: FailureSource, cluster: Cluster
) -> None:
    many, few = chunks(source, cluster, 10), chunks(source, cluster, 3)
    assert [content(chunk) for chunk in many[: len(few)]] == [content(chunk) for chunk in few]
    from_h = 0.0
    for chunk in many:
        assert ((chunk.at_h >= from_h) & (chunk.at_h < chunk.until_h)).all()
        later = np.diff(chunk.at_h) > 0
        assert (later | (np.diff(chunk.replication) > 0)).all()
        sizes = np.diff(chunk.first_slot)
        assert (sizes > 0).all()
        assert chunk.first_slot[-1] == len(chunk.slot) == len(chunk.repair_h)
        of_failure = np.repeat(np.arange(chunk.n_failures), sizes)
        assert len(set(zip(of_failure, chunk.slot, strict=True))) == len(chunk.slot)
        from_h = chunk.until_h


# nothing is random about given failures of given servers
@pytest.mark.parametrize("source", SOURCES[:7], ids=lambda source: type(source).__name__)
def test_blocks_and_seeds_differ(source: FailureSource, cluster: Cluster) -> None:
    here = content(chunks(source, cluster, 1)[0])
    assert content(chunks(source, cluster, 1, block=1)[0]) != here
    assert content(chunks(source, cluster, 1, seed=8)[0]) != here


@EVERY
def test_replications_of_a_block_are_bounded(source: FailureSource, cluster: Cluster) -> None:
    assert source.block_replications(cluster, 50.0) == MOST_DRAWN
    # beyond progress of the job nothing is injected, however long it lasts
    if not isinstance(source, Injected):
        assert 1 <= source.block_replications(cluster, 5e5) < MOST_DRAWN


def test_bounds_of_a_block(cluster: Cluster) -> None:
    bounds = [replications_for(*n) for n in ((0.0,), (1e4,), (1.0, 1e5), (1e9,))]
    assert bounds == [MOST_DRAWN, 100, 10, 1]
    watched = CorrelatedNodes(Weibull(0.7, 100.0), start=Start.FRESH, watched_h=1e6)
    assert watched.block_replications(cluster, 50.0) < MOST_DRAWN  # for what was before


PAIRS = Injected(50.0, range(8), together=2, count=3)
NAMED = {"repair": Exponential(5.0)}


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        (JobClock(WEIBULL, range(8), together=2), NAMED),
        (CorrelatedNodes(WEIBULL, LEMONS, SHOCKS), NAMED),
        (NodeClocks({"emb_ps": WEIBULL}), NAMED),
        (NodeClocks({"emb_ps": WEIBULL}), {"lifetimes": {"trainer": WEIBULL, "emb_ps": WEIBULL}}),
        (PAIRS, NAMED | {"clock": Clock.UPTIME}),
        (PAIRS, {"clock": Clock.WALL}),
    ],
    ids=str,
)
def test_a_repair_another_role_or_another_clock_moves_no_failure(
    source: Any, changes: dict[str, Any], cluster: Cluster
) -> None:
    before, after = (chunks(one, cluster, 3)[-1] for one in (source, replace(source, **changes)))
    old = after.slot >= (3 if "lifetimes" in changes else 0)  # of a trainer the others are new
    assert after.slot[old].tolist() == before.slot.tolist()
    at_h, right_h = (np.repeat(one.at_h, np.diff(one.first_slot)) for one in (after, before))
    assert at_h[old].tolist() == right_h.tolist()
    assert ((after.repair_h > 0) == ("repair" in changes)).all()


# ----------------------------------------------------------------------- how many are expected


@pytest.mark.parametrize(
    "source",
    [
        *(
            JobClock(life, range(8), together=3, start=start)
            for life in (WEIBULL, Gamma.from_mean(28.0, 2.5))
            for start in Start
        ),
        *(
            NodeClocks({"emb_ps": with_mean(family, mean_h, shape)}, start=start)
            for family, mean_h, shape in (
                ("exponential", 80.0, None), ("weibull", 80.0, 0.7), ("weibull", 10.0, 0.7),
                ("lognormal", 80.0, 1.0), ("gamma", 10.0, 0.67),
            )
            for start in Start
        ),
        *(
            CorrelatedNodes(Weibull(0.7, 100.0), frailty, SHOCKS, start=start, watched_h=hours)
            for frailty in (Frailty(shape=2.5), Frailty(0.1, 4.0), LEMONS)
            for start, hours in ((Start.STATIONARY, 0), (Start.FRESH, 0), (Start.FRESH, 900))
        ),
        Injected(50.0, range(8), together=4, count=5),
    ],
    ids=repr,
)  # fmt: skip
def test_expected_failures_come_out(source: FailureSource, cluster: Cluster) -> None:
    n, useful_h = 2000, 50.0
    failures, shards, later = np.zeros(n), np.zeros(n), np.zeros(n)
    for chunk in islice(source.draw(cluster, 5, 0, n, count(25.0, 25.0)), 2):
        later = np.bincount(chunk.replication, minlength=n)
        failures += later
        of_failure = np.repeat(chunk.replication, np.diff(chunk.first_slot))
        struck = np.isin(chunk.slot, cluster.shard_slots)
        shards += np.bincount(of_failure[struck], minlength=n)
    expected = source.expected(cluster, useful_h)
    assert_mean(failures, useful_h / expected.mtbf_h)
    assert_mean(shards, useful_h / expected.mtbf_shard_h * expected.n_shards_together)
    if getattr(source, "start", None) is Start.STATIONARY:  # as often later as at first
        assert_mean(later, 0.5 * useful_h / expected.mtbf_h)


TRAINERS = Injected(50.0, range(3), at_h=(3.0,), slots_at=((1, 2),))
SLOTS_AT = ((3, 4, 5, 6), (6, 3, 4), (0, 5), (0,))


@pytest.mark.parametrize(
    ("source", "expected"),  # slots 3 to 6 of 8 are embedding servers
    [
        # 1 - C(4, 3) / C(8, 3) = 1 - 4/56
        (JobClock(Exponential(28.0), range(8), together=3), (28.0, 28 * 56 / 52, 1.5 * 56 / 52)),
        (JobClock(Exponential(28.0), range(3, 7), together=2), (28.0, 28.0, 2.0)),
        (NodeClocks({"trainer": Exponential(60.0)}), (20.0, math.inf, 0.0)),
        (Injected(50.0, range(3, 7), count=0), (math.inf, math.inf, 0.0)),
        (GIVEN, (25.0, 25.0, 2.0)),
        (
            Injected(
                50.0, range(7), at_h=(60.0, 3.0, 9.0, 20.0), clock=Clock.WALL, slots_at=SLOTS_AT
            ),
            (50.0 / 3, 25.0, 2.0),
        ),
        (TRAINERS, (50.0, math.inf, 0.0)),
        (Injected(50.0, (3, 5), at_h=(60.0,), clock=Clock.UPTIME), (math.inf, math.inf, 0.0)),
    ],
    ids=lambda one: type(one).__name__,
)
def test_expected_by_hand(
    source: FailureSource, expected: tuple[float, float, float], cluster: Cluster
) -> None:
    found = source.expected(cluster, 50.0)
    assert (found.mtbf_h, found.mtbf_shard_h, found.n_shards_together) == pytest.approx(expected)


# ------------------------------------------------------------------------------- who is struck


def test_the_struck_slots_are_random_ones_of_the_given(cluster: Cluster) -> None:
    source = JobClock(Exponential(1.0), range(2, 8), together=3)
    drawn = next(source.draw(cluster, 1, 0, 5000, [50.0]))  # more than a piece of them
    assert (np.diff(drawn.slot.reshape(-1, 3), axis=1) > 0).all()
    hit, n = np.bincount(drawn.slot, minlength=8), drawn.n_failures
    assert (hit[:2] == 0).all()
    assert (np.abs(hit[2:] - n / 2) <= 4 * math.sqrt(n / 4)).all()


@pytest.mark.parametrize(
    ("source", "failures"),
    [
        (GIVEN, [(3.0, (3, 5), (2.0, 2.0)), (10.5, (3, 5), (2.0, 2.0))]),
        (
            Injected(
                50.0, range(7), at_h=(60.0, 3.0, 9.0), clock=Clock.WALL,
                slots_at=((0,), (6, 3, 4), (0, 5)),
            ),
            [(3.0, (3, 4, 6), (0.0,) * 3), (9.0, (0, 5), (0.0, 0.0)), (60.0, (0,), (0.0,))],
        ),
        (Injected(50.0, range(3, 7), count=0), []),
    ],
    ids=["the same nodes", "others at each instant", "none"],
)  # fmt: skip
def test_given_failures_come_as_given(
    source: Injected, failures: list[object], cluster: Cluster
) -> None:
    (only,) = source.draw(cluster, 1, 0, 2, [10.0])
    assert only.until_h == math.inf
    for found in map(only.of, range(2)):
        assert [(one.at_h, one.slots, one.repair_h) for one in found] == failures


def test_random_injections_are_uniform_and_exactly_so_many(cluster: Cluster) -> None:
    (only,) = Injected(50.0, range(3, 7), together=4, count=5).draw(cluster, 1, 0, 2000, [10.0])
    assert (np.bincount(only.replication, minlength=2000) == 5).all()
    assert_mean(only.at_h.reshape(2000, 5).mean(axis=1), 25.0)
    assert (only.at_h < 50.0).all()


@pytest.mark.parametrize("n_sources", [None, 2])
@pytest.mark.parametrize(("n", "n_replications"), [(0, 3), (1, 1), (300, 100), (3000, 7)])
def test_failures_stand_in_order_of_replication_instant_source_and_slot(
    n: int, n_replications: int, n_sources: int | None
) -> None:
    """Nodes of one instant and source are one failure."""
    rng = np.random.default_rng(n)
    replication, slot = rng.integers(0, n_replications, n), rng.permutation(n)
    at_h = rng.integers(0, 20, n) / 4.0  # many fail at the same instant
    source = rng.integers(0, n_sources or 1, n)
    given = None if n_sources is None else source
    trace = trace_of(9.0, n_replications, replication, at_h, slot, slot / 8.0, given)
    order = np.lexsort((slot, source, at_h, replication))
    assert trace.slot.tolist() == slot[order].tolist()
    assert np.array_equal(trace.repair_h, trace.slot / 8.0)
    keys = np.stack([replication, at_h, source])[:, order]
    first = np.unique(keys, axis=1, return_index=True)[1] if n else np.zeros(0, dtype=np.int64)
    assert trace.first_slot.tolist() == [*sorted(first.tolist()), n]
    assert np.array_equal(trace.at_h, keys[1, trace.first_slot[:-1]])
    assert np.array_equal(trace.replication, keys[0, trace.first_slot[:-1]])
    assert given is None or np.array_equal(trace.source, keys[2, trace.first_slot[:-1]])
