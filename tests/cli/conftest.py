"""A small scenario, and ways to run the program on it: in this process, or as users do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cprsim.cli.app import app

SCENARIO = """\
name: small
job: {useful: 20 h}
cluster: {trainers: 2, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 10 h}
costs: {save: 5 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery:
  - full
  - {strategy: partial, interval: young}
  - {strategy: cpr, target_pls: 0.1}
simulation: {seed: 1, replications: 20}
"""
PROGRAM = [sys.executable, "-m", "cprsim.cli"]


@pytest.fixture
def scenario(tmp_path, monkeypatch) -> Path:
    """The small scenario's file, in the folder that the test works in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, "utf-8")
    return path


def call(*arguments) -> Result:
    """Call the program in this process."""
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def drawing_cprsim(scenario):
    """Call the program in this process."""
    return call


@pytest.fixture
def cprsim(scenario, monkeypatch):
    """Call the program in this process, without the second that the figures take."""
    monkeypatch.setattr("cprsim.plots.draw_result", lambda result, folder: [])
    return call


@pytest.fixture
def program(scenario):
    """Call the program as its own process."""

    def run(*arguments, **options) -> subprocess.CompletedProcess[str]:
        command = [*PROGRAM, *(str(argument) for argument in arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, **options)

    run.command = PROGRAM
    return run


@pytest.fixture
def listing(tmp_path):
    """What stands in the folder that the test works in, besides the scenario."""
    return lambda: sorted(path.name for path in tmp_path.iterdir() if path.name != "small.yaml")
