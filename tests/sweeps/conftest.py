"""A small scenario to sweep, in the folder that the test works in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.scenario import load_scenario
from cprsim.sweeps import Point, points_of

SCENARIO = """\
name: small
job: {useful: 20 h}
cluster: {trainers: 2, emb_ps: 4}
failures: {kind: job, family: exponential, mtbf: 30 h}
costs: {save: 5 min, load: 3 min, detect: 30 s, reschedule: 2 min}
recovery:
  - none
  - full
  - {strategy: partial, interval: young}
  - {strategy: cpr, target_pls: 0.1}
simulation: {seed: 1, replications: 20}
"""

Points = Callable[..., tuple[Point, ...]]


@pytest.fixture
def scenario(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO, "utf-8")
    return path


@pytest.fixture
def points(scenario: Path) -> Points:
    """The points of the small scenario over some axes."""

    def of(*over: str, overrides: tuple[str, ...] = ()) -> tuple[Point, ...]:
        return points_of(load_scenario(scenario, overrides, over))

    return of
