"""The load model by hand: every number here follows from the setting's round numbers."""

from __future__ import annotations

from math import inf

import pytest

from cprsim.in_step.load_model import load_model
from cprsim.records import Stragglers
from tests.in_step.settings import LINK, MS, SECOND_H, setting


def test_background_is_linear_and_its_gap_grows() -> None:
    # 4 threads x 100 samples in 10 ms: 40,000 per second and trainer
    model = load_model(setting("shadow-easgd", 10))
    assert model.samples_per_h * SECOND_H == pytest.approx(400_000)
    assert model.sync_h == pytest.approx(20 * MS)  # 10 exchanges of 2 MB through 1 GB/s
    assert model.gap == pytest.approx(8)  # 20 ms at 4 iterations per 10 ms
    assert model.saturates_at == inf


def test_gap_grows_as_trainers_over_servers() -> None:
    twice = setting("shadow-easgd", 10, server_bandwidth_bytes_per_h=2 * LINK)
    assert load_model(twice).gap == pytest.approx(4)
    assert load_model(setting("shadow-easgd", 20)).gap == pytest.approx(16)


def test_a_trainers_own_link_bounds_its_exchange() -> None:
    slow = setting("shadow-easgd", 2, trainer_bandwidth_bytes_per_h=LINK / 10)
    assert load_model(slow).sync_h == pytest.approx(20 * MS)  # 2 MB through 100 MB/s, not 4 ms


def test_foreground_saturates_where_its_exchanges_fill_the_servers() -> None:
    # n* = 1 GB/s x 5 x 10 ms / (2 MB x 4 threads) = 6.25
    few, many = (load_model(setting("fr-easgd", n, every=5)) for n in (1, 20))
    assert few.saturates_at == many.saturates_at == pytest.approx(6.25)
    assert few.samples_per_h * SECOND_H == pytest.approx(4 * 5 * 100 / 0.052)  # 50 ms + 2 ms
    assert many.samples_per_h * SECOND_H == pytest.approx(500 * 5 * 100)  # 500 exchanges a second
    assert many.gap == 5


def test_foreground_over_slow_links_is_bounded_by_them() -> None:
    slow = setting("fr-easgd", 2, every=5, trainer_bandwidth_bytes_per_h=LINK / 20)
    assert load_model(slow).samples_per_h * SECOND_H == pytest.approx(2 * 25 * 500)  # 25 each


def test_an_allreduce_holds_everybody_up() -> None:
    # ring over 5: 2 MB x 4/5 through 1 GB/s is 1.6 ms, after 20 iterations of 10 ms
    model = load_model(setting("fr-ma", 5, every=20))
    assert model.samples_per_h * SECOND_H == pytest.approx(5 * 4 * 20 * 100 / 0.2016)
    assert model.gap == 80
    every_step = load_model(setting("sync-sgd", 5))
    assert every_step.samples_per_h * SECOND_H == pytest.approx(5 * 4 * 100 / 0.0116)


def test_stragglers_slow_themselves_or_everybody() -> None:
    slow = Stragglers(1, 2.0)
    background = load_model(setting("shadow-easgd", 4, stragglers=slow))
    assert background.samples_per_h * SECOND_H == pytest.approx(3.5 * 40_000)
    everybody = load_model(setting("sync-sgd", 4, stragglers=slow))
    assert everybody.samples_per_h * SECOND_H == pytest.approx(4 * 400 / (0.020 + 0.0015))


def test_the_shadow_thread_takes_its_share_of_the_workers() -> None:
    taken = load_model(setting("shadow-ma", 4, shadow_cost_fraction=0.05))
    assert taken.samples_per_h * SECOND_H == pytest.approx(0.95 * 160_000)
    in_the_foreground = load_model(setting("none", 4, shadow_cost_fraction=0.05))
    assert in_the_foreground.samples_per_h * SECOND_H == pytest.approx(160_000)
