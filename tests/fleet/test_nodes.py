"""Queues for nodes and spares against the M/M/c queue and the M/M/infinity repair shop."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import exp, factorial, sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
import simpy

from cprsim.fleets.course import run_history
from cprsim.fleets.nodes import NodePool, NodesOfJob
from cprsim.simulate.events.alarms import FAILURES, JOB, Alarm
from tests.fleet.making import prepared

N_RUNS, N_JOBS, WARM = 16, 1500, 300


def erlang_c(c: int, load: float) -> float:
    """Probability that an arrival of an M/M/c queue waits; load = arrival rate x mean service."""
    top = load**c / factorial(c) * c / (c - load)
    return top / (sum(load**k / factorial(k) for k in range(c)) + top)


def within_4_errors(found: list[float], expected: float) -> None:
    error = stdev(found) / sqrt(len(found))
    assert abs(fmean(found) - expected) <= 4 * error, (fmean(found), expected, error)


def queue_jobs(
    n: int, at_h: Sequence[float], n_nodes: Sequence[int], wall_h: Sequence[float]
) -> list[float]:
    """When jobs start on n nodes."""
    env, start_h = simpy.Environment(), [0.0] * len(at_h)
    pool = NodePool(env, n)

    def starts(number: int) -> None:
        start_h[number] = env.now
        Alarm(
            env,
            wall_h[number],
            JOB,
            lambda: pool.leave(n_nodes[number], NodesOfJob(pool, lambda: None)),
        )

    for number, at in enumerate(at_h):
        arrives = partial(pool.arrive, n_nodes[number], partial(starts, number))
        Alarm(env, at, JOB, arrives)
    env.run()
    return start_h


@pytest.mark.parametrize(("c", "load"), [(1, 0.6), (3, 2.0)])
def test_jobs_of_one_node_queue_as_in_m_m_c(c: int, load: float) -> None:
    rng, waits = np.random.default_rng(7), []
    for _ in range(N_RUNS):
        at_h = np.cumsum(rng.exponential(1 / load, N_JOBS))
        wall_h = rng.exponential(1.0, N_JOBS).tolist()
        start_h = queue_jobs(c, at_h.tolist(), [1] * N_JOBS, wall_h)
        waits.append(float(np.mean((np.array(start_h) - at_h)[WARM:])))
    within_4_errors(waits, erlang_c(c, load) / (c - load))


def test_a_job_that_fits_waits_for_one_that_came_before_it() -> None:
    assert queue_jobs(10, [0.0, 1.0, 2.0], [6, 8, 4], [10.0, 5.0, 3.0]) == [0.0, 10.0, 15.0]


def lacking(n_spares: int, rate: float, hours: float, seed: int) -> float:
    """Mean slots without a node, of slots that fail by Poisson, each once; repairs take 1 h."""
    env, rng = simpy.Environment(), np.random.default_rng(seed)
    nodes = NodesOfJob(NodePool(env, None, n_spares), lambda: None)
    at_h = np.cumsum(rng.exponential(1 / rate, int(rate * hours)))
    repair_h = rng.exponential(1.0, len(at_h))

    def fail(slot: int) -> None:
        nodes.lose(slot, float(repair_h[slot]))
        nodes.ask([slot])

    for slot, at in enumerate(at_h.tolist()):
        Alarm(env, at, FAILURES, partial(fail, slot))
    lacking_h, last_h = 0.0, 0.0
    while env.peek() < at_h[-1]:
        now_h = env.peek()
        lacking_h += len(nodes.vacant) * max(0.0, now_h - max(last_h, 20.0))
        last_h = now_h
        env.step()
    return lacking_h / (last_h - 20.0)


def test_slots_wait_as_long_as_more_nodes_are_in_repair_than_there_are_spares() -> None:
    """Those in repair are Poisson (M/M/infinity): E[(X - spares)+] wait."""
    rate, spares = 4.0, 4
    p = [exp(-rate) * rate**k / factorial(k) for k in range(60)]
    expected = sum((k - spares) * p[k] for k in range(spares, 60))
    within_4_errors([lacking(spares, rate, 250.0, seed) for seed in range(N_RUNS)], expected)


def test_of_two_jobs_that_fail_at_once_one_gets_the_spare_and_the_other_waits(
    tmp_path: Path,
) -> None:
    """The first node back is sound again 3 h later."""
    fleet = prepared(
        tmp_path, "{jobs: 2, kinds: 1, arrivals: together, spares: 1}",
        "failures={kind: injected, at: [5 h], role: emb_ps}", "cluster.repair=3 h",
        "costs.detect=0 s", "costs.reschedule=0 s",
    )  # fmt: skip
    assert sorted(run_history(fleet, 0).hours["wait"]) == pytest.approx([0.0, 3.0])


def test_nodes_are_neither_made_nor_lost() -> None:
    """A job ends while a node is in repair that nobody replaced: the pool has it again later."""
    env = simpy.Environment()
    pool = NodePool(env, 4, 0)
    nodes = NodesOfJob(pool, lambda: None)
    pool.arrive(4, lambda: None)
    nodes.lose(2, 5.0)
    nodes.ask([2])
    pool.leave(4, nodes)
    assert pool.n_free == 3
    env.run()
    assert pool.n_free == 4
