"""Jobs that share a storage: closed forms of two flows, and max-min fairness by hand."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest
import simpy

from cprsim.fleets.course import run_history
from cprsim.fleets.storage import Flows, SharedStorage
from cprsim.simulate.events.alarms import SAVES
from tests.fleet.making import prepared

SAVE_H = 4 * 50e9 * 8 / 25e9 / 3600  # of one job alone: 4 servers over 25 Gbit/s
NO_FAILURES = ("failures={kind: job, family: exponential, mtbf: 90000000 h}", "job.useful=12 h",
               "recovery=[{strategy: full, interval: 2 h}]")  # fmt: skip


def level_of(pairs: list[tuple[int, float]], bandwidth: float) -> float:
    """The rate that no flow exceeds; pairs: how many flows, and the cap of each."""
    left, n_left = bandwidth, sum(n for n, _ in pairs)
    for n, cap in sorted(pairs, key=lambda pair: pair[1]):
        if cap * n_left > left:
            return left / n_left
        left, n_left = left - n * cap, n_left - n
    return inf


def rates(some: list[Flows]) -> list[float]:
    """What each has at the instant 0, by when it would move its one byte."""
    return [1.0 / flows.at_h for flows in some]


@pytest.mark.parametrize(
    ("pairs", "bandwidth", "level"),
    [
        ([(2, 3.0)], 10.0, inf),  # both have what they can take
        ([(2, 3.0)], 4.0, 2.0),
        ([(1, 1.0), (2, 8.0)], 9.0, 4.0),  # one takes 1, two share 8
        ([(1, 1.0), (1, 3.0), (1, 9.0)], 6.0, 2.5),  # 1 + 2.5 + 2.5
        ([(3, 2.0), (1, 2.0)], 8.0, inf),
    ],
)
def test_the_level_is_that_of_max_min_fairness(
    pairs: list[tuple[int, float]], bandwidth: float, level: float
) -> None:
    assert level_of(pairs, bandwidth) == pytest.approx(level)
    storage = SharedStorage(simpy.Environment(), bandwidth)
    some = [storage.start(n, 1.0, cap, SAVES, lambda: None) for n, cap in pairs]
    found = rates(some)
    assert found == pytest.approx([min(cap, level) for _, cap in pairs])


def test_flows_that_come_change_and_go_at_random_always_have_the_rates_by_definition() -> None:
    rng, storage = np.random.default_rng(5), SharedStorage(simpy.Environment(), 20.0)
    some: list[Flows] = []
    for _ in range(600):
        choice = rng.random()
        if choice < 0.4 or not some:
            cap = float(rng.choice([0.5, 1.0, 3.0, rng.uniform(0.1, 9.0)]))
            some.append(storage.start(int(rng.integers(1, 4)), 1.0, cap, SAVES, lambda: None))
        elif choice < 0.75:
            storage.stop(some.pop(int(rng.integers(len(some)))))
        else:
            storage.change({some[0]: int(rng.integers(1, 4))}, float(rng.uniform(0.1, 9.0)))
        level = level_of([(one.n, one.cap_bytes_per_h) for one in some], 20.0)
        expected = [min(one.cap_bytes_per_h, level) for one in some]
        assert rates(some) == pytest.approx(expected, rel=1e-9)


def test_flows_of_different_begin_and_size_end_as_by_hand() -> None:
    env, ends = simpy.Environment(), {}
    storage = SharedStorage(env, 10.0)

    def start(name: str, each_bytes: float, cap: float) -> None:
        storage.start(1, each_bytes, cap, SAVES, lambda: ends.update({name: env.now}))

    def begin():
        start("a", 40.0, 10.0)  # alone for 1 h: 10 of 40 are moved
        yield env.timeout(1.0)
        start("b", 20.0, 10.0)  # both at 5: b ends after 4 h, with a at 30 of 40
        yield env.timeout(10.0)

    env.process(begin())
    env.run()
    assert ends == pytest.approx({"b": 5.0, "a": 6.0})


def walls(tmp_path: Path, n: int, *overrides: str) -> np.ndarray:
    fleet = prepared(tmp_path, f"{{jobs: {n}, kinds: 1, arrivals: together}}", *NO_FAILURES,
                     *overrides)  # fmt: skip
    return run_history(fleet, 0).jobs.wall_h.to_numpy()


def test_two_jobs_that_save_at_once_save_twice_as_long(tmp_path: Path) -> None:
    both = walls(tmp_path, 2, "fleet.storage=25 Gbit/s")
    np.testing.assert_allclose(both, 12 + 6 * 2 * SAVE_H, rtol=1e-9)
    alone = walls(tmp_path, 2, "fleet.storage=50 Gbit/s")
    np.testing.assert_allclose(alone, 12 + 6 * SAVE_H, rtol=1e-9)


def test_two_loads_at_once_take_twice_as_long(tmp_path: Path) -> None:
    """Both jobs fail at 5 h: they load what they saved at 4 h, over one storage."""
    failing = (
        "failures={kind: injected, at: [5 h], role: emb_ps}", "costs.detect=0 s",
        "costs.reschedule=0 s", "costs.save=0 s", "job.useful=12 h",
        "recovery=[{strategy: full, interval: 2 h}]",
    )  # fmt: skip
    fleet = "{jobs: 2, kinds: 1, arrivals: together, storage: 25 Gbit/s}"
    hours = run_history(prepared(tmp_path, fleet, *failing), 0).hours
    np.testing.assert_allclose(hours["load"], 2 * SAVE_H, rtol=1e-9)
    np.testing.assert_allclose(hours["lost"], 1.0, rtol=1e-9)
