"""What jobs share: nodes, first come first served; bandwidth, against max-min fairness."""

from __future__ import annotations

from functools import partial
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import simpy

from cprsim.fleets.course import run_history
from cprsim.simulate.bandwidth import Flows, SharedStorage
from cprsim.simulate.running import JOB, SAVES, Alarm, Nodes
from tests.fleet.making import prepared

SAVE_H = 4 * 50e9 * 8 / 25e9 / 3600  # of one job alone: 4 servers over 25 Gbit/s
NO_FAILURES = ("failures={kind: job, family: exponential, mtbf: 90000000 h}", "job.useful=12 h",
               "recovery=[{strategy: full, interval: 2 h}]")  # fmt: skip
FAILS = ("failures={kind: injected, at: [5 h], role: emb_ps}", "costs.detect=0 s",
         "costs.reschedule=0 s", "job.useful=12 h")  # fmt: skip


def alarms_of(env: simpy.Environment) -> Any:
    return lambda hours, order, call: Alarm(env, hours, order, call, {})


def job_on(env: simpy.Environment) -> Any:
    """All that nodes know of a job."""
    return Mock(vacant=set(), queued=set(), at=alarms_of(env))


# --------------------------------------------------------------------------- nodes


def queue_jobs(n: int, jobs: list[tuple[float, int, float]]) -> list[float]:
    """When jobs start on n nodes: their arrival, nodes and wall hours."""
    env = simpy.Environment()
    nodes, alarm, start_h = Nodes(n), alarms_of(env), [0.0] * len(jobs)

    def start(number: int, n_nodes: int, wall_h: float) -> None:
        start_h[number] = env.now
        alarm(wall_h, JOB, partial(nodes.leave, job_on(env), n_nodes))

    for number, (at_h, n_nodes, wall_h) in enumerate(jobs):
        starts = partial(start, number, n_nodes, wall_h)
        alarm(at_h, JOB, partial(nodes.arrive, n_nodes, starts))
    env.run()
    return start_h


def test_a_job_that_fits_waits_for_one_that_came_before_it() -> None:
    jobs = [(0.0, 6, 10.0), (1.0, 8, 5.0), (2.0, 4, 3.0)]
    assert queue_jobs(10, jobs) == [0.0, 10.0, 15.0]


def test_nodes_are_neither_made_nor_lost() -> None:
    """A job ends while a node is in repair that nobody replaced: the pool has it again later."""
    env = simpy.Environment()
    nodes, job = Nodes(4, 0), job_on(env)
    nodes.arrive(4, lambda: None)
    nodes.lose(job, 2, 5.0)
    nodes.ask(job, [2])
    nodes.leave(job, 4)
    assert nodes.n_free == 3
    env.run()
    assert nodes.n_free == 4


def test_of_two_jobs_that_fail_at_once_one_gets_the_spare_and_the_other_waits(
    tmp_path: Path,
) -> None:
    """The first node back is sound again 3 h later."""
    fleet = prepared(
        tmp_path, "{jobs: 2, kinds: 1, arrivals: together, spares: 1}", *FAILS, "cluster.repair=3 h"
    )
    assert sorted(run_history(fleet, 0).hours["wait"]) == pytest.approx([0.0, 3.0])


# --------------------------------------------------------------------------- bandwidth


def level_of(pairs: list[tuple[int, float]], bandwidth: float) -> float:
    """The rate that no flow exceeds; pairs: how many flows, and the cap of each."""
    left, n_left = bandwidth, sum(n for n, _ in pairs)
    for n, cap in sorted(pairs, key=lambda pair: pair[1]):
        if cap * n_left > left:
            return left / n_left
        left, n_left = left - n * cap, n_left - n
    return inf


def flows_of(shared: SharedStorage, env: simpy.Environment, n: int, cap: float) -> Flows:
    return shared.start(alarms_of(env), n, 1.0, cap, SAVES, lambda: None)


def rates(shared: SharedStorage, some: list[Flows]) -> list[float]:
    level = shared.level_bytes_per_h
    return [one.cap_bytes_per_h if one.is_capped else level for one in some]


def test_flows_that_come_change_and_go_at_random_always_have_the_rates_by_definition() -> None:
    env, rng, some = simpy.Environment(), np.random.default_rng(5), list[Flows]()
    shared = SharedStorage(env, 20.0)
    for _ in range(600):
        choice = rng.random()
        if choice < 0.4 or not some:
            cap = float(rng.choice([0.5, 1.0, 3.0, rng.uniform(0.1, 9.0)]))
            some.append(flows_of(shared, env, int(rng.integers(1, 4)), cap))
        elif choice < 0.75:
            some.pop(int(rng.integers(len(some)))).cancel()
        else:
            shared.change({some[0]: int(rng.integers(1, 4))}, float(rng.uniform(0.1, 9.0)))
        level = level_of([(one.n, one.cap_bytes_per_h) for one in some], 20.0)
        expected = [min(one.cap_bytes_per_h, level) for one in some]
        assert rates(shared, some) == pytest.approx(expected, rel=1e-9)


def test_flows_of_different_begin_and_size_end_as_by_hand() -> None:
    env, ends = simpy.Environment(), {}
    shared, alarm = SharedStorage(env, 10.0), alarms_of(env)

    def start(name: str, each_bytes: float) -> None:
        over = lambda: ends.update({name: env.now})  # noqa: E731
        shared.start(alarm, 1, each_bytes, 10.0, SAVES, over)

    start("a", 40.0)  # alone for 1 h: 10 of 40 are moved
    alarm(1.0, JOB, partial(start, "b", 20.0))  # both at 5: b ends after 4 h, with a at 30 of 40
    env.run()
    assert ends == pytest.approx({"b": 5.0, "a": 6.0})


def test_jobs_that_save_or_load_at_once_take_twice_as_long(tmp_path: Path) -> None:
    """Of the loads: both jobs fail at 5 h, and load what they saved at 4 h."""
    fleet = "{{jobs: 2, kinds: 1, arrivals: together, storage: {} Gbit/s}}".format
    for bandwidth, times in ((25, 2), (50, 1)):
        jobs = run_history(prepared(tmp_path, fleet(bandwidth), *NO_FAILURES), 0).jobs
        np.testing.assert_allclose(jobs.wall_h, 12 + 6 * times * SAVE_H, rtol=1e-9)
    saves = ("costs.save=0 s", "recovery=[{strategy: full, interval: 2 h}]")
    hours = run_history(prepared(tmp_path, fleet(25), *FAILS, *saves), 0).hours
    np.testing.assert_allclose(hours["load"], 2 * SAVE_H, rtol=1e-9)
    np.testing.assert_allclose(hours["lost"], 1.0, rtol=1e-9)
