"""A job that hardly gets further ends after a stated number of failures, in both engines alike."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.cluster import Block
from cprsim.draws import CostDraws
from cprsim.engines import Arrays, Events
from cprsim.failures.block import BlockFailures
from cprsim.failures.distributions import Exponential
from cprsim.failures.job_clock import JobClock
from cprsim.records import Clock, EventKind, OnFailure
from cprsim.setting import HARDLY_AFTER, HARDLY_TIMES, JobSetting
from tests.cluster.building import FULL, NONE, PARTIAL, policy, setting
from tests.engine.agreeing import assert_same

MTBF_H = 0.02


def block_of(job: JobSetting, mtbf_h: float, n: int = 2) -> Block:
    source = JobClock(Exponential(mtbf_h), range(job.cluster.n_nodes), 1, job.clock, repair=None)
    failures = BlockFailures(source, job.cluster, 3, 0, job.useful_h, range(n))
    costs = CostDraws.of(job.costs, 3, 0, failures.n_of_block, failures.kept)
    return Block(job, 0, failures, costs)


@pytest.mark.parametrize("how", [FULL, PARTIAL, NONE])
@pytest.mark.parametrize("clock", [Clock.WALL, Clock.UPTIME])
def test_both_engines_give_the_same_verdict_after_so_many_failures(
    how: OnFailure, clock: Clock
) -> None:
    job = setting(200.0, clock=clock, n_emb_ps=2, save_h=0.002, load_h=0.3, detect_h=0.01)
    block = block_of(job, MTBF_H, n=1)
    plan = policy(how, 0.02)
    fast, events = (engine(plan).run(block, range(1)) for engine in (Arrays, Events))
    assert not fast.costs.finished.any()
    assert (fast.costs.n_failures <= HARDLY_AFTER).all()
    assert (fast.costs.wall_h < 90 * job.useful_h).all()
    assert_same(fast.costs, events.costs)
    assert_same(fast.losses, events.losses)


def test_the_verdict_comes_at_that_very_failure() -> None:
    job = setting(200.0, clock=Clock.UPTIME, n_emb_ps=2, save_h=0.002, load_h=0.3)
    costs = Arrays(policy(PARTIAL, 0.02)).run(block_of(job, MTBF_H), range(2)).costs
    assert costs.n_failures.tolist() == [HARDLY_AFTER] * 2
    assert (costs.wall_h > HARDLY_TIMES * costs.useful_h).all()


@pytest.mark.parametrize("engine", [Arrays, Events])
def test_a_job_with_as_many_failures_that_gets_further_is_done(
    engine: type[Arrays] | type[Events],
) -> None:
    job = setting(100.0, n_emb_ps=2, save_h=0.0001, load_h=0.01)
    costs = engine(policy(PARTIAL, 0.02)).run(block_of(job, 0.015, n=1), range(1)).costs
    assert costs.finished.all()
    assert (costs.n_failures > HARDLY_AFTER).all()
    assert (costs.wall_h < HARDLY_TIMES * job.useful_h).all()


def test_failures_that_meet_no_node_count_too() -> None:
    job = setting(100.0, n_emb_ps=2, n_trainers=1, n_spares=0, save_h=0.002, load_h=0.01)
    source = JobClock(Exponential(0.1), range(3), repair=Exponential(1e5))
    failures = BlockFailures(source, job.cluster, 3, 0, job.useful_h, range(1))
    costs = CostDraws.of(job.costs, 3, 0, failures.n_of_block, failures.kept)
    log = Block(job, 0, failures, costs).simulate(policy(PARTIAL, 1.0), [0])
    assert log.kind[-1] == EventKind.STOPPED
    n_met = np.isin(log.kind, [EventKind.FAILED, EventKind.MISSED]).sum()
    assert n_met == HARDLY_AFTER
    assert log.at_h[-1] < 90 * job.useful_h
