"""``sync``: simulation beside the load model, and clear errors."""

from __future__ import annotations

from math import inf

import pytest

from cprsim import sync
from tests.making import call

SYNC = """\
sync:
  algorithm: shadow-easgd
  threads: 4
  batch: 100
  iteration: 10 ms
  dense_size: 1 MB
  servers: 1
  server_bandwidth: 8 Gbit/s
"""


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trainers", "0"), "--trainers: '0' should be numbers from 1 to"),
        (("--trainers", "5,many"), "should be numbers from 1 to"),
        (("--beside", "fr-easgd"), "sync.every: is missing: fr-easgd synchronises"),
        (("--beside", "easgd:5"), "sync.algorithm: `easgd` should be"),
        (("--set", "sync=null"), "sync: is missing: say how the trainers stay in step"),
        (("--trainers", "9" * 5000), "should be numbers from 1 to"),
    ],
)
def test_errors_are_said_and_leave_nothing(in_step, listing, arguments, message) -> None:
    failed = call("sync", in_step, *arguments)
    assert failed.exit_code == 2
    assert message in failed.stderr
    assert "Traceback" not in failed.output
    assert listing() == []
