"""The load model by hand: every number here follows from the setting's round numbers."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from cprsim.in_step.load_model import load_model
from cprsim.records import Stragglers
from tests.in_step.settings import LINK, MS, SECOND_H, setting

SLOW = {"stragglers": Stragglers(1, 2.0)}
NARROW = {"trainer_bandwidth_bytes_per_h": LINK / 20}
BY_HAND: list[tuple[str, int, dict[str, Any], dict[str, float]]] = [
    # 4 threads x 100 samples in 10 ms: 40,000 per second and trainer; 10 exchanges of 2 MB through
    # 1 GB/s; 20 ms at 4 iterations per 10 ms
    ("shadow-easgd", 10, {},
     {"samples_per_s": 400_000, "sync_h": 20 * MS, "gap": 8, "saturates_at": inf}),
    ("shadow-easgd", 10, {"server_bandwidth_bytes_per_h": 2 * LINK}, {"gap": 4}),
    ("shadow-easgd", 20, {}, {"gap": 16}),
    # 2 MB through 100 MB/s, not 4 ms
    ("shadow-easgd", 2, {"trainer_bandwidth_bytes_per_h": LINK / 10}, {"sync_h": 20 * MS}),
    # n* = 1 GB/s x 5 x 10 ms / (2 MB x 4 threads) = 6.25; 50 ms + 2 ms; 500 exchanges a second
    ("fr-easgd", 1, {"every": 5}, {"samples_per_s": 4 * 5 * 100 / 0.052, "saturates_at": 6.25}),
    ("fr-easgd", 20, {"every": 5},
     {"samples_per_s": 500 * 5 * 100, "saturates_at": 6.25, "gap": 5}),
    ("fr-easgd", 2, {"every": 5, **NARROW}, {"samples_per_s": 2 * 25 * 500}),  # 25 exchanges each
    # ring over 5: 2 MB x 4/5 through 1 GB/s is 1.6 ms, after 20 iterations of 10 ms
    ("fr-ma", 5, {"every": 20}, {"samples_per_s": 5 * 4 * 20 * 100 / 0.2016, "gap": 80}),
    ("sync-sgd", 5, {}, {"samples_per_s": 5 * 4 * 100 / 0.0116}),
    # stragglers slow themselves or everybody
    ("shadow-easgd", 4, SLOW, {"samples_per_s": 3.5 * 40_000}),
    ("sync-sgd", 4, SLOW, {"samples_per_s": 4 * 400 / (0.020 + 0.0015)}),
    # the shadow thread takes its share of the workers
    ("shadow-ma", 4, {"shadow_cost_fraction": 0.05}, {"samples_per_s": 0.95 * 160_000}),
    ("none", 4, {"shadow_cost_fraction": 0.05}, {"samples_per_s": 160_000}),
]  # fmt: skip


@pytest.mark.parametrize(("algorithm", "n_trainers", "how", "expected"), BY_HAND)
def test_load_model(
    algorithm: str, n_trainers: int, how: dict[str, Any], expected: dict[str, float]
) -> None:
    model = load_model(setting(algorithm, n_trainers, **how))
    found = {"samples_per_s": model.samples_per_h * SECOND_H} | {
        name: getattr(model, name) for name in ("sync_h", "gap", "saturates_at")
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
