import math
from dataclasses import replace
from itertools import count, islice

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.replay import Replay
from cprsim.job.records import Clock, Cluster, Holds, Role
from tests.fitting.logs import outages

TRACE = outages((0, 10, 12), (1, 10, 30), (2, 40, 40), (0, 70, 75))


def servers(n: int) -> Cluster:
    return Cluster((Role("emb_ps", n, Holds.SHARD),))


def assert_expected(source: Replay, n_any: float, n_shard: float, n_shards: float) -> None:
    """Of failures, of those that strike servers, and of servers struck in the trace's 100 h."""
    cluster = Cluster((Role("emb_ps", 3, Holds.SHARD), Role("trainer", 2, Holds.REPLICA)))
    expected = source.expected(cluster, 50.0)
    assert expected.mtbf_h == pytest.approx(100 / n_any)
    assert expected.mtbf_shard_h == pytest.approx(100 / n_shard)
    assert expected.n_shards_together == pytest.approx(n_shards / n_shard)
    n = 3000
    counted, shards = np.zeros(n), np.zeros(n)
    for chunk in islice(source.draw(cluster, 5, 0, n, count(37.0, 37.0)), 2):
        counted += np.bincount(chunk.replication, minlength=n)
        of_failure = np.repeat(chunk.replication, np.diff(chunk.first_slot))
        shards += np.bincount(of_failure[chunk.slot < 3], minlength=n)
    for values, mean in ((counted, 0.74 * n_any), (shards, 0.74 * n_shards)):
        assert abs(values.mean() - mean) <= 4 * values.std() / math.sqrt(n)


def test_overlapping_outages_of_a_node_are_one() -> None:
    log = outages(
        (1, 10, 20, "first"), (1, 15, 18, ""), (1, 19, 30, ""), (1, 30, 40, "next"),
        (2, 15, 16, "other"), (1, 12, 12, ""), (1, 50, 50, "point"),
    )  # fmt: skip
    rows = zip(log.node, log.start_h, log.end_h, log.cause, strict=True)
    assert [tuple(row) for row in rows] == [
        (1, 10, 30, "first"),
        (2, 15, 16, "other"),
        (1, 30, 40, "next"),  # it begins when the one before has ended
        (1, 50, 50, "point"),  # no length, yet a failure
    ]


def test_outages_that_touch_the_window_are_kept() -> None:
    cut = outages((1, -5, 3), (2, -5, -1), (3, 90, math.nan), (4, 95, 120), (5, 101, 102))
    assert cut.node.tolist() == [1, 3, 4]
    assert cut.end_h.tolist() == [3, 100, 120]
    assert cut.ended.tolist() == [True, False, True]
    assert cut.in_window.tolist() == [False, True, True]


def test_each_replication_walks_the_trace_and_wraps() -> None:
    whole = next(Replay(TRACE).draw(servers(8), 1, 0, 50, [250.0]))
    for failures in map(whole.of, range(50)):
        gaps = np.diff([failure.at_h for failure in failures])
        after = {10.0: 30.0, 40.0: 30.0, 70.0: 40.0}
        assert {round(gap, 9) for gap in gaps} <= set(after.values())
        assert all(len(f.slots) == (2 if f.repair_h[0] in (2, 20) else 1) for f in failures)
        assert len(failures) in (7, 8)  # three per 100 h
    assert sorted(set(whole.repair_h.tolist())) == [0.0, 2.0, 5.0, 20.0]  # as long as the outages


def test_a_trace_node_keeps_its_slot() -> None:
    trace = outages((3, 10, 12), (3, 60, 65))
    whole = next(Replay(trace).draw(servers(5), 1, 0, 400, [500.0]))
    struck = [{f.slots for f in failures} for failures in map(whole.of, range(400))]
    assert all(len(slots) <= 1 for slots in struck)
    p = 5 / 8  # the job gets the failing node
    assert abs(np.mean([len(slots) for slots in struck]) - p) <= 4 * math.sqrt(p * (1 - p) / 400)


def test_expected_failures_are_exact_over_windows_and_assignments() -> None:
    # groups of 2, 1 and 1 among 8 trace nodes; a job of 3 servers and 2 trainers
    p_any = (1 - 3 / 28) + 2 * 5 / 8  # 1 - C(3, 2) / C(8, 2) for the pair
    p_shard = (1 - 10 / 28) + 2 * 3 / 8
    assert_expected(Replay(TRACE), p_any, p_shard, 4 * 3 / 8)


def test_a_job_has_only_nodes_that_are_there() -> None:
    """Of 8 nodes two join at 30 h and three leave at 60 h; each fails once while it is there."""
    rows = [(node, 5.0 + node, 6.0 + node) for node in range(6)]
    trace = outages(*rows, (6, 35, 36), (7, 45, 45), (0, 70, 71), (0, 80, 81), (4, 80, 81))
    enters_h = np.array([0.0] * 6 + [30, 30])
    leaves_h = np.array([100.0] * 5 + [60, 60, 60])
    trace = replace(trace, lives=(enters_h, enters_h, leaves_h))
    # 6, 8, then 5 nodes are there: the job of 5 has all of them in the end
    n_any = 6 * 5 / 6 + 2 * 5 / 8 + 2
    n_shard = 6 * 3 / 6 + 2 * 3 / 8 + 3 / 5 + (1 - 1 / 10)
    assert_expected(Replay(trace), n_any, n_shard, 6 * 3 / 6 + 2 * 3 / 8 + 9 / 5)


def test_a_job_may_not_have_more_nodes_than_are_there_at_any_time() -> None:
    lives = np.zeros(8), np.zeros(8), np.array([100.0] * 4 + [60.0] * 4)
    trace = replace(outages((0, 10, 12), (1, 30, 31)), lives=lives)
    with pytest.raises(ParameterError, match="the trace only 4 at hour 60 of it: choose another"):
        Replay(trace).expected(servers(5), 10.0)


def test_replay_refuses_what_it_cannot_replay() -> None:
    small = Replay(outages((0, 10, 12), n_nodes=4))
    assert small.clock is Clock.WALL
    for ask in (lambda: next(small.draw(servers(5), 1, 0, 5, [10.0])),
                lambda: small.expected(servers(5), 10.0)):  # fmt: skip
        with pytest.raises(ParameterError, match="the job has 5 nodes, the trace only 4"):
            ask()
    with pytest.raises(ParameterError, match="no failure"):
        Replay(outages((0, -10, 12)))
