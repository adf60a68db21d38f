"""The two engines agree to 1e-9 in every row: a designed grid.

Orthogonal rather than complete: each scenario takes the next value of every factor, with periods
that have no common divisor, so that all pairs of neighbouring factors meet.
"""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from cprsim.experiments import pipeline
from cprsim.failures.block import BlockFailures
from cprsim.failures.clocks import JobClock, NodeClocks
from cprsim.failures.distributions import with_mean
from cprsim.failures.injected import Injected
from cprsim.failures.sources import FailureSource, Start
from cprsim.records import Clock, Cluster, OnFailure, Storage, Transfer
from tests.making import maker
from tests.simulate.agreeing import assert_both_agree
from tests.simulate.building import FULL, NONE, PARTIAL, JobSetting, policy, setting

LONG = """\
name: long
job: {useful: 1296 h, step: 10 s}
cluster: {workers: 64, state: 3 GB, link: 400 Gbit/s}
failures: {kind: job, family: exponential, mtbf: 3 h, role: worker}
scopes: [{name: node, share: 1, reach: node, detect: 1 min}]
costs: {save: 10 s, load: 20 s, reschedule: 4 min}
recovery: [{strategy: gemini, options: {remote_every: 3 h}}]
simulation: {seed: 1, replications: 20}
"""
N_SCENARIOS, N_REPLICATIONS = 66, 1000
USEFUL_H = 6.0

HOW = [FULL, PARTIAL, FULL, PARTIAL, NONE]
CLOCKS = list(Clock)
LIFETIMES = [
    ("exponential", None), ("gamma", 0.7), ("gamma", 2.5), ("weibull", 0.7), ("lognormal", 1.0),
    ("weibull", 3.0), ("exponential", None),
]  # fmt: skip
INTERVALS_H = [2.0, 1.7, inf, 6.0, 1.5, 4.5, 0.9, 5.9999, 3.0, 2.3, 7.0]
NODES = [(3, 2), (1, 0), (8, 0), (4, 1), (38, 20), (2, 3), (1000, 0), (5, 5)]
# how many fail together; 0: a clock per node; 99: all at once
TOGETHER = [1, 1, 2, 1, 3, 1, 0, 1, 1, 2, 1, 1, 99, 0, 1, 4, 0]
COSTS_H = [
    {"save_h": 0.05, "load_h": 0.1, "detect_h": 0.02, "reschedule_h": 0.05},
    {"save_h": 0.5, "load_h": 0.4, "detect_h": 0.1, "reschedule_h": 0.3},
    {"save_h": 0.0, "load_h": 0.0, "detect_h": 0.0, "reschedule_h": 0.2},
    {"save_h": "gamma", "load_h": "lognormal", "detect_h": 0.01, "reschedule_h": "exponential"},
    {"save_h": 0.2, "load_h": 0.7, "detect_h": 0.0, "reschedule_h": 0.0},
    {"save_h": "transfer", "load_h": "transfer", "detect_h": 0.05, "reschedule_h": 0.1},
    {},
    {"save_h": "exponential", "load_h": 0.2, "detect_h": 0.1},
    {"load_h": 0.3, "detect_h": 0.2, "save_h": 0.3},
    {"save_h": 0.05, "background_h": 0.6, "load_h": 0.2, "reschedule_h": 0.1},
    {"save_h": "gamma", "background_h": "lognormal", "load_h": "exponential", "detect_h": 0.1},
    {"save_h": 0.1, "background_h": 2.5, "load_h": 0.1, "detect_h": 0.02},
    {"save_h": 0.0, "background_h": "transfer", "load_h": "transfer", "reschedule_h": 0.3},
]
STORAGE = Storage(8e9, 4e9, 1e9)
MEANS_H = {"gamma": 0.1, "lognormal": 0.2, "exponential": 0.15}


def job(number: int) -> JobSetting:
    n_emb_ps, n_trainers = NODES[number % len(NODES)]
    costs = {name: cost(value) for name, value in COSTS_H[number % len(COSTS_H)].items()}
    clock = CLOCKS[number % len(CLOCKS)]
    return setting(
        USEFUL_H, clock=clock, n_emb_ps=n_emb_ps, n_trainers=n_trainers, storage=STORAGE,
        **costs,  # type: ignore[arg-type]
    )  # fmt: skip


def cost(value: float | str) -> object:
    if value == "transfer":
        return Transfer()
    if isinstance(value, str):
        shape = {"gamma": 4.0, "lognormal": 0.8}.get(value)
        return with_mean(value, MEANS_H[value], shape)
    return value


def source(number: int, cluster: Cluster, clock: Clock) -> FailureSource:
    family, shape = LIFETIMES[number % len(LIFETIMES)]
    together = min(TOGETHER[number % len(TOGETHER)], cluster.n_nodes)
    start = (Start.FRESH, Start.STATIONARY)[number % 2]
    mtbf_h = (4.0, 7.0, 3.0)[number // 3 % 3]
    if clock is Clock.PROGRESS and number % 4 == 0:
        return Injected(USEFUL_H, range(cluster.n_nodes), max(1, together), count=3)
    if together == 0:
        lifetime = with_mean(family, mtbf_h * cluster.n_nodes, shape)
        roles = {role.name: lifetime for role in cluster.roles}
        return NodeClocks(roles, clock, Start.STATIONARY)
    lifetime = with_mean(family, mtbf_h, shape)
    return JobClock(lifetime, range(cluster.n_nodes), together, clock, start)


@pytest.mark.parametrize("number", range(N_SCENARIOS))
def test_rows_agree(number: int) -> None:
    how = policy(HOW[number % len(HOW)], INTERVALS_H[number % len(INTERVALS_H)])
    setting_ = job(number)
    failing = source(number, setting_.cluster, setting_.clock)
    failures = BlockFailures(failing, setting_.cluster, 11 + number, 0, USEFUL_H)
    rows = assert_both_agree(setting_, how, failures, N_REPLICATIONS)
    assert rows.costs.n_replications == N_REPLICATIONS


@pytest.mark.parametrize("clock", [Clock.UPTIME, Clock.WALL])
@pytest.mark.parametrize("how", [FULL, PARTIAL])
def test_rows_agree_at_given_instants_of_a_clock(clock: Clock, how: OnFailure) -> None:
    job = setting(USEFUL_H, clock=clock, n_emb_ps=4, n_trainers=2, save_h=0.2, load_h=0.3)
    slots_at = ((2,), (0, 3), (5, 4), (1,))
    at_h = (0.9, 1.05, 6.5, 500.0)  # in a save, in a recovery, beyond the useful hours, after all
    failing = Injected(USEFUL_H, range(6), at_h=at_h, clock=clock, slots_at=slots_at)
    failures = BlockFailures(failing, job.cluster, 1, 0, USEFUL_H)
    rows = assert_both_agree(job, policy(how, 0.8), failures, 3)
    assert rows.costs.n_failures.tolist() == [3, 3, 3]


def test_a_long_job_that_saves_each_step_is_the_same_by_simpy(tmp_path: Path) -> None:
    """400 failures among 1.4 million instants: within 1e-9 of the job two of three would meet."""
    make = maker(tmp_path, LONG)
    experiment = make()
    (policy,) = experiment.policies
    engine = pipeline.engine_of(policy, experiment)
    block = next(pipeline.blocks_of(experiment, range(20)))
    rows = engine.run(block, range(20))
    (slow,) = pipeline.simulate(
        make("simulation.engine=simpy", "simulation.replications=2")
    ).strategies
    assert rows.costs.wall_h[:2] == pytest.approx(slow.costs.wall_h, rel=1e-9)
