"""``sync``: simulation beside the load model, and clear errors."""

from __future__ import annotations

from math import inf

import pytest

from cprsim import sync
from tests.cli.test_refusals import SYNC


@pytest.fixture
def in_step(scenario):
    scenario.write_text(scenario.read_text() + SYNC, "utf-8")
    return scenario


def test_simulation_and_load_model(in_step) -> None:
    answer = sync(in_step, trainers=[12, 2], beside=["fr-easgd:5"])
    points = answer.frames["points"]
    assert list(points["algorithm"]) == ["shadow-easgd"] * 2 + ["fr-easgd-5"] * 2
    assert list(points["n_trainers"]) == [2, 12, 2, 12]
    assert points["examples_per_s"][1] == pytest.approx(480_000, rel=0.01)
    assert points["examples_per_s"][3] == pytest.approx(250_000, rel=0.1)
    saturates_at = points["saturates_at_load_model"].tolist()
    assert saturates_at == pytest.approx([inf, inf, 6.25, 6.25])
