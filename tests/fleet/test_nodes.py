"""Queues for nodes and spares against the M/M/c queue and the M/M/infinity repair shop."""

from __future__ import annotations

from math import exp, factorial, sqrt
from statistics import fmean, stdev

import numpy as np
import pytest
import simpy

from cprsim.fleets.events import queue_jobs
from cprsim.fleets.nodes import Capacity, NodePool, NodesOfJob
from cprsim.fleets.records import Arrival, Shared
from cprsim.simulate.events.alarms import FAILURES, Alarm

N_RUNS, N_JOBS, WARM = 16, 1500, 300


def erlang_c(c: int, load: float) -> float:
    """Probability that an arrival of an M/M/c queue waits; load = arrival rate x mean service."""
    top = load**c / factorial(c) * c / (c - load)
    return top / (sum(load**k / factorial(k) for k in range(c)) + top)


def within_4_errors(found: list[float], expected: float) -> None:
    error = stdev(found) / sqrt(len(found))
    assert abs(fmean(found) - expected) <= 4 * error, (fmean(found), expected, error)


@pytest.mark.parametrize(("c", "load"), [(1, 0.6), (3, 2.0)])
def test_jobs_of_one_node_queue_as_in_m_m_c(c: int, load: float) -> None:
    rng, waits = np.random.default_rng(7), []
    for _ in range(N_RUNS):
        at_h = np.cumsum(rng.exponential(1 / load, N_JOBS))
        arrivals = [Arrival(at, 0, n) for n, at in enumerate(at_h.tolist())]
        start_h = queue_jobs(
            arrivals, Shared(Capacity(c)), [1] * N_JOBS, rng.exponential(1.0, N_JOBS).tolist()
        )
        waits.append(float(np.mean((np.array(start_h) - at_h)[WARM:])))
    within_4_errors(waits, erlang_c(c, load) / (c - load))


def shop(capacity: Capacity, rate: float, hours: float, seed: int) -> tuple[float, float]:
    """Mean slots without a node and mean nodes that are not sound, of slots that fail by Poisson.

    Each failure is that of another slot; repairs take 1 h on average.
    """
    env, rng = simpy.Environment(), np.random.default_rng(seed)
    pool = NodePool(env, capacity)
    nodes = NodesOfJob(pool, env, lambda: None)
    at_h = np.cumsum(rng.exponential(1 / rate, int(rate * hours)))
    repair_h = rng.exponential(1.0, len(at_h))

    def fail(slot: int) -> None:
        nodes.lose(slot, float(repair_h[slot]))
        nodes.ask([slot])

    for slot, at in enumerate(at_h.tolist()):
        Alarm(env, at, FAILURES, lambda slot=slot: fail(slot))
    lacking, unsound, last_h = 0.0, 0.0, 0.0
    while env.peek() < at_h[-1]:
        now_h = env.peek()
        if now_h > 20.0:
            lacking += len(nodes.vacant) * (now_h - max(last_h, 20.0))
            n_unsound = (capacity.n_spares or 0) - pool.n_free + len(nodes.vacant)
            unsound += n_unsound * (now_h - max(last_h, 20.0))
        last_h = now_h
        env.step()
    return lacking / (last_h - 20.0), unsound / (last_h - 20.0)


def test_slots_wait_as_long_as_more_nodes_are_in_repair_than_there_are_spares() -> None:
    """With crews for all, those in repair are Poisson (M/M/infinity): E[(X - spares)+] wait."""
    rate, spares = 4.0, 4
    p = [exp(-rate) * rate**k / factorial(k) for k in range(60)]
    expected = sum((k - spares) * p[k] for k in range(spares, 60))
    found = [shop(Capacity(None, spares), rate, 250.0, seed)[0] for seed in range(N_RUNS)]
    within_4_errors(found, expected)


def test_nodes_queue_for_crews_as_in_m_m_c() -> None:
    c, load = 3, 2.0
    expected = load + erlang_c(c, load) * load / (c - load)  # in repair and before it
    found = [shop(Capacity(None, 50, c), load, 500.0, seed)[1] for seed in range(N_RUNS)]
    within_4_errors(found, expected)


def test_a_job_that_fits_overtakes_one_that_does_not_only_by_backfill() -> None:
    arrivals = [Arrival(0.0, 0, 0), Arrival(1.0, 0, 1), Arrival(2.0, 0, 2)]
    n_nodes, wall_h = [6, 8, 4], [10.0, 5.0, 3.0]
    fifo = queue_jobs(arrivals, Shared(Capacity(10)), n_nodes, wall_h)
    backfill = queue_jobs(arrivals, Shared(Capacity(10, backfill=True)), n_nodes, wall_h)
    assert fifo == [0.0, 10.0, 15.0]
    assert backfill == [0.0, 10.0, 2.0]


def test_nodes_are_neither_made_nor_lost() -> None:
    """A job ends while a node is in repair that nobody replaced: the pool has it again later."""
    env = simpy.Environment()
    pool = NodePool(env, Capacity(4, 0))
    nodes = NodesOfJob(pool, env, lambda: None)
    pool.arrive(4, lambda: None)
    nodes.lose(2, 5.0)
    nodes.ask([2])
    pool.leave(4, nodes)
    assert pool.n_free == 3
    env.run()
    assert pool.n_free == 4
