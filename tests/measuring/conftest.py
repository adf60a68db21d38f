"""A measurement small enough to be run whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cprsim.measuring.design import Design, History
from cprsim.measuring.measure import Request
from cprsim.scenario import load_scenario
from cprsim.workers import HERE

SCENARIO = """
job: {useful: 50 h}
cluster: {emb_ps: 4}
failures: {kind: injected, count: 2}
costs: {save: 5 min, load: 5 min, detect: 0 s, reschedule: 0 s}
recovery: [full, partial]
kernel:
  {samples: 6000, most_rows: 30, dimension: 4, bottom: [8], top: [8], optimizer: adagrad, rate: 0.1,
   batch: 50}
simulation: {seed: 1, replications: 100}
"""
DESIGN = Design(
    strategies=("partial", "mfu"), n_scenes=3, n_more=2, histories=(History(3, 0.25, 0.2),)
)
RUNS_PER_SEED = 3 * 2 + 2 + 2 + 1  # scenes, more of partial, histories, the twin


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    path = tmp_path / "small.yaml"
    path.write_text(SCENARIO)
    return path


@pytest.fixture
def request_of(scenario: Path, tmp_path: Path) -> Callable[..., Request]:
    def make(folder: str = "runs", n_seeds: int | None = 3, **more: object) -> Request:
        loaded = load_scenario(scenario)
        options = {"design": DESIGN, "workers": HERE, "n_seeds": n_seeds, **more}
        return Request(loaded, tmp_path / folder, **options)

    return make
