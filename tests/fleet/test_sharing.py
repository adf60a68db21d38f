"""What jobs share: nodes, first come first served; bandwidth, against max-min fairness."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.commands.fleet.histories import run_history
from cprsim.simulation.cluster import SharedCluster
from cprsim.simulation.instants import ARRIVALS, Instant, Process, TickClock
from cprsim.simulation.storage import Flow, SharedStorage
from tests.fleet.making import prepared

SAVE_H = 4 * 50e9 * 8 / 25e9 / 3600  # of one job alone: 4 servers over 25 Gbit/s
NO_FAILURES = ("failures={kind: job, family: exponential, mtbf: 90000000 h}", "job.useful=12 h",
               "recovery=[{strategy: full, interval: 2 h}]")  # fmt: skip
FAILS = ("failures={kind: injected, at: [5 h], role: emb_ps}", "costs.detect=0 s",
         "costs.reschedule=0 s", "job.useful=12 h")  # fmt: skip


# --------------------------------------------------------------------------- nodes


def queue_jobs(n: int, jobs: list[tuple[float, int, float]]) -> list[float]:
    """When jobs start on n nodes: their arrival, nodes and wall hours."""
    cluster, start_h = SharedCluster(n), [0.0] * len(jobs)

    def life(number: int, at_h: float, n_nodes: int, wall_h: float) -> Process:
        yield Instant(cluster.env, at_h, ARRIVALS)
        yield from cluster.get_nodes(n_nodes)
        start_h[number] = cluster.env.now
        yield cluster.env.timeout(wall_h)
        cluster.release_nodes(n_nodes, 0)

    for number, job in enumerate(jobs):
        cluster.env.process(life(number, *job))
    cluster.env.run()
    return start_h


def test_a_job_that_fits_waits_for_one_that_came_before_it() -> None:
    jobs = [(0.0, 6, 10.0), (1.0, 8, 5.0), (2.0, 4, 3.0)]
    assert queue_jobs(10, jobs) == [0.0, 10.0, 15.0]


def test_nodes_are_neither_made_nor_lost() -> None:
    """A job ends while a node is in repair that nobody replaced: the pool has it again later."""
    cluster = SharedCluster(4, 0)
    cluster.env.process(cluster.get_nodes(4))
    cluster.env.process(cluster.repair(5.0))
    cluster.env.run(until=1.0)
    cluster.release_nodes(4, 1)
    assert cluster.free.level == 3
    cluster.env.run()
    assert cluster.free.level == 4


def test_of_two_jobs_that_fail_at_once_one_gets_the_spare_and_the_other_waits(
    tmp_path: Path,
) -> None:
    """The first node back is sound again 3 h later."""
    fleet = prepared(
        tmp_path, "{jobs: 2, kinds: 1, arrivals: together, spares: 1}", *FAILS, "cluster.repair=3 h"
    )
    assert sorted(run_history(fleet, 0)[1]["wait"]) == pytest.approx([0.0, 3.0])


@pytest.mark.parametrize("storage", ["", ", storage: 30 Gbit/s"])
def test_a_shift_of_the_clock_changes_no_job(storage: str, tmp_path: Path) -> None:
    """With round inputs many events are of one instant; 1/3 h rounds them in other ways."""
    fleet = f"{{jobs: 40, kinds: 3, arrivals: together, nodes: 80, spares: 2{storage}}}"
    found = []
    for shift_h in (0.0, 1 / 3):
        of = prepared(
            tmp_path, fleet, "failures={kind: injected, at: [3 h, 6 h, 7 h], role: emb_ps}",
            "costs.detect=6 min", "costs.reschedule=12 min", "job.useful=12 h",
            "recovery=[{strategy: full, interval: 1 h}]", "cluster.repair=3 h",
        )  # fmt: skip
        n = sum(kind.n_jobs for kind in of.population.kinds)
        arrive_h = np.arange(n) * 0.5 + shift_h
        of = replace(of, population=replace(of.population, arrive_h=arrive_h))
        jobs, _ = run_history(of, 0)
        found.append(jobs[["wall_h", "queued_h", "n_failures", "n_saves"]].to_numpy(float))
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)
    assert (found[0][:, 1] > 0).any()


# --------------------------------------------------------------------------- bandwidth


def test_flows_that_come_and_go_at_random_always_have_the_rates_by_definition() -> None:
    """All bandwidth is used, or all caps are; no flow below its cap is slower than another."""
    env, rng, some = TickClock(), np.random.default_rng(5), dict[Flow, float]()
    storage = SharedStorage(env, 20.0)
    for _ in range(600):
        if rng.random() < 0.6 or not some:
            cap = float(rng.choice([0.5, 1.0, 3.0, rng.uniform(0.1, 9.0)]))
            some[storage.start(int(rng.integers(1, 4)), 1.0, cap)] = cap
        else:
            flow = list(some)[int(rng.integers(len(some)))]
            storage.stop(flow)
            del some[flow]
        rates = {flow: storage.group_of[flow][0].bytes_per_h for flow in some}
        used, wanted = (sum(flow.n * of[flow] for flow in some) for of in (rates, some))
        assert used == pytest.approx(min(20.0, wanted), rel=1e-9)
        highest = max(rates.values(), default=0.0)
        assert all(rate == pytest.approx(min(some[flow], highest)) for flow, rate in rates.items())


def test_flows_of_different_begin_and_size_end_as_by_hand() -> None:
    env, ends = TickClock(), {}
    storage = SharedStorage(env, 10.0)

    def move(name: str, at_h: float, each_bytes: float) -> Process:
        yield Instant(env, at_h, ARRIVALS)
        yield storage.start(1, each_bytes, 10.0).over
        ends[name] = env.now

    env.process(move("a", 0.0, 40.0))  # alone for 1 h: 10 of 40 are moved
    env.process(move("b", 1.0, 20.0))  # both at 5: b ends after 4 h, with a at 30 of 40
    env.run()
    assert ends == pytest.approx({"b": 5.0, "a": 6.0})


def test_jobs_that_save_or_load_at_once_take_twice_as_long(tmp_path: Path) -> None:
    """Of the loads: both jobs fail at 5 h, and load what they saved at 4 h."""
    fleet = "{{jobs: 2, kinds: 1, arrivals: together, storage: {} Gbit/s}}".format
    for bandwidth, times in ((25, 2), (50, 1)):
        jobs, _ = run_history(prepared(tmp_path, fleet(bandwidth), *NO_FAILURES), 0)
        np.testing.assert_allclose(jobs.wall_h, 12 + 6 * times * SAVE_H, rtol=1e-9)
    saves = ("costs.save=0 s", "recovery=[{strategy: full, interval: 2 h}]")
    _, hours = run_history(prepared(tmp_path, fleet(25), *FAILS, *saves), 0)
    np.testing.assert_allclose(hours["load"], 2 * SAVE_H, rtol=1e-9)
    np.testing.assert_allclose(hours["lost"], 1.0, rtol=1e-9)
