"""A job that hardly gets further ends after a stated number of failures, in both engines alike."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock
from cprsim.failures.distributions import Exponential
from cprsim.records import Clock, EventKind
from cprsim.recovery.giving_up import HARDLY_AFTER, HARDLY_TIMES
from tests.simulate.agreeing import assert_rows_agree, both_ways
from tests.simulate.building import (
    FULL,
    NONE,
    PARTIAL,
    JobSetting,
    block_of,
    engine,
    policy,
    ran,
    setting,
)

MTBF_H = 0.02


def failing(job: JobSetting, mtbf_h: float, n: int = 2) -> BlockFailures:
    source = JobClock(Exponential(mtbf_h), range(job.cluster.n_nodes), 1, job.clock, repair=None)
    return BlockFailures(source, job.cluster, 3, 0, job.useful_h, range(n))


@pytest.mark.long
@pytest.mark.parametrize("how", [FULL, PARTIAL, NONE])
@pytest.mark.parametrize("clock", [Clock.WALL, Clock.UPTIME])
def test_both_engines_give_the_same_verdict_after_so_many_failures(how: str, clock: Clock) -> None:
    job = setting(200.0, clock=clock, n_emb_ps=2, save_h=0.002, load_h=0.3, detect_h=0.01)
    fast, simpy = both_ways(job, policy(how, 0.02), failing(job, MTBF_H), 2)
    assert not fast.costs.finished.any()
    assert (fast.costs.n_failures <= HARDLY_AFTER).all()
    assert (fast.costs.wall_h < 90 * job.useful_h).all()
    assert_rows_agree(fast, simpy)


def test_the_verdict_comes_at_that_very_failure() -> None:
    job = setting(200.0, clock=Clock.UPTIME, n_emb_ps=2, save_h=0.002, load_h=0.3)
    costs = ran(job, policy(PARTIAL, 0.02), failing(job, MTBF_H), range(2)).costs
    assert costs.n_failures.tolist() == [HARDLY_AFTER] * 2
    assert (costs.wall_h > HARDLY_TIMES * costs.useful_h).all()


def test_a_job_with_as_many_failures_that_gets_further_is_done() -> None:
    job = setting(100.0, n_emb_ps=2, save_h=0.0001, load_h=0.01)
    for rows in both_ways(job, policy(PARTIAL, 0.02), failing(job, 0.015, n=1), 1):
        assert rows.costs.finished.all()
        assert (rows.costs.n_failures > HARDLY_AFTER).all()
        assert (rows.costs.wall_h < HARDLY_TIMES * job.useful_h).all()


def test_failures_that_meet_no_node_count_too() -> None:
    job = setting(100.0, n_emb_ps=2, n_trainers=1, n_spares=0, save_h=0.002, load_h=0.01)
    source = JobClock(Exponential(0.1), range(3), repair=Exponential(1e5))
    failures = BlockFailures(source, job.cluster, 3, 0, job.useful_h, range(1))
    log = engine(job, policy(PARTIAL, 1.0)).log(block_of(job, failures), 0)
    assert log.kind[-1] == EventKind.STOPPED
    n_met = np.isin(log.kind, [EventKind.FAILED, EventKind.MISSED]).sum()
    assert n_met == HARDLY_AFTER
    assert log.at_h[-1] < 90 * job.useful_h
