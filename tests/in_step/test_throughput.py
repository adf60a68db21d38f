"""The simulated trainers against the load model, which knows neither queues nor barriers' luck."""

from itertools import product

import pytest

from cprsim.job.distributions import Constant, with_mean
from cprsim.job.records import Stragglers
from cprsim.job.sync_setting import SyncSetting
from cprsim.training.in_step.load_model import load_model, saturates_at
from cprsim.training.in_step.simulation import speed_at
from tests.in_step.settings import LINK, MS, setting

GAMMA = with_mean("gamma", 10 * MS, 8.0)


def away_from_the_knee() -> dict[str, SyncSetting]:
    """Settings of all forms, on both sides of where foreground forms saturate.

    Away is 0.6 of n* or less, or twice n*: between them queues cost more than 5 %, and so they do
    where only a few threads share the servers.
    """
    found = {}
    for n, (k, of_star) in product(
        (10, 16, 30), ((1, 0.4), (5, 0.6), (5, 2.0), (30, 0.6), (30, 2.5))
    ):
        # bandwidth such that n* is n / of_star: n* = B k t_iter / (2 P m)
        bandwidth = n / of_star * 2e6 * 4 / (k * 10 * MS)
        name = f"fr-easgd-{k}, {n} trainers, {of_star} n*"
        found[name] = setting("fr-easgd", n, every=k, server_bandwidth_bytes_per_h=bandwidth,
                              trainer_bandwidth_bytes_per_h=100 * LINK)  # fmt: skip
    for n, algorithm in product((1, 8, 20), ("shadow-easgd", "shadow-ma", "shadow-bmuf", "none")):
        found[f"{algorithm}, {n} trainers"] = setting(algorithm, n)
    for n, algorithm in product((4, 16), ("fr-ma", "fr-bmuf")):
        found[f"{algorithm}, {n} trainers"] = setting(algorithm, n, every=20)
    found["sync-sgd"] = setting("sync-sgd", 9)
    found["fr-ma by time"] = setting("fr-ma", 4, every_h=95 * MS)
    slow = Stragglers(3, 2.0)
    for algorithm, every in (("shadow-easgd", None), ("fr-easgd", 30), ("sync-sgd", None)):
        found[f"{algorithm}, stragglers"] = setting(algorithm, 10, every=every, stragglers=slow)
    for algorithm, every in (("shadow-easgd", None), ("fr-easgd", 30), ("none", None)):
        found[f"{algorithm}, gamma"] = setting(algorithm, 10, every=every, iteration=GAMMA)
    found["slow links"] = setting(
        "fr-easgd", 3, every=5, n_threads=16, trainer_bandwidth_bytes_per_h=LINK / 20
    )
    return found


SETTINGS = away_from_the_knee()


@pytest.mark.parametrize("name", SETTINGS)
def test_simulation_agrees_with_the_load_model(name: str) -> None:
    simulated = speed_at(SETTINGS[name], SETTINGS[name].n_trainers, seed=3)
    model = load_model(simulated.setting)
    assert simulated.samples_per_h == pytest.approx(model.samples_per_h, rel=0.05)
    if SETTINGS[name].algorithm != "sync-sgd":
        assert simulated.gap == pytest.approx(model.gap, rel=0.05)


def test_the_load_model_by_hand() -> None:
    # 4 threads x 100 samples in 10 ms on 4 trainers, less what the shadow thread takes
    shadowed = load_model(setting("shadow-ma", 4, shadow_cost_fraction=0.05))
    assert shadowed.samples_per_h == pytest.approx(0.95 * 160_000 * 3600)
    # n* = 1 GB/s x 5 x 10 ms / (2 MB x 4 threads)
    assert saturates_at(setting("fr-easgd", 1, every=5)) == pytest.approx(6.25)


def test_at_the_knee_queues_cost_something() -> None:
    at_knee = setting("fr-easgd", 6, every=5)
    point = speed_at(at_knee, 6)
    share = point.samples_per_h / load_model(point.setting).samples_per_h
    assert 0.8 < share < 0.99


def test_barriers_wait_for_the_slowest_of_varying_iterations() -> None:
    fixed, varying = (
        speed_at(setting("sync-sgd", 10, iteration=iteration), 10).samples_per_h
        for iteration in (Constant(10 * MS), GAMMA)
    )
    assert varying < 0.7 * fixed
