"""``cprsim sync``: a table, one object, a figure, and clear errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import SCENARIO
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
def in_step(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "in-step.yaml"
    path.write_text(SCENARIO.replace("name: small", "name: in-step") + SYNC, "utf-8")
    return path


def test_json_has_simulation_and_load_model(in_step, tmp_path) -> None:
    arguments = ("--trainers", "12,2", "--beside", "fr-easgd:5", "--json")
    shown = json.loads(call("sync", in_step, *arguments).stdout)
    shadow, foreground = shown["curves"]
    assert [point["trainers"] for point in shadow["points"]] == [2, 12]
    assert (shadow["algorithm"], foreground["algorithm"]) == ("shadow-easgd", "fr-easgd-5")
    assert shadow["points"][1]["eps"] == pytest.approx(480_000, rel=0.01)
    assert foreground["saturates_at"] == pytest.approx(6.25)
    assert foreground["points"][1]["eps"] == pytest.approx(250_000, rel=0.1)
    assert shadow["saturates_at"] is None
    assert sorted(path.suffix for path in tmp_path.glob("results/in-step-sync.*")) == [
        ".png",
        ".svg",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--trainers", "0"), "--trainers: `0` is no list of numbers"),
        (("--trainers", "5,many"), "is no list of numbers"),
        (("--beside", "fr-easgd"), "sync.every: is missing: fr-easgd synchronises"),
        (("--beside", "easgd:5"), "sync.algorithm: `easgd` should be"),
        (("--set", "sync=null"), "sync: is missing: say how the trainers stay in step"),
        (("--out", "in-step.yaml/x"), "is no folder"),
    ],
)
def test_errors_are_one_line_and_leave_nothing(in_step, tmp_path, arguments, message) -> None:
    failed = call("sync", in_step, *arguments)
    assert failed.exit_code == 2
    assert message in failed.stderr
    assert "Traceback" not in failed.output
    assert [path.name for path in tmp_path.iterdir()] == ["in-step.yaml"]
