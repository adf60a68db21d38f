"""Readers that hold the training data: what is lost of it is rebuilt, and nobody goes back."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.experiments.assemble import assemble
from cprsim.experiments.pipeline import simulate
from cprsim.scenario.reading import load_scenario

SCENARIO = Path(__file__).parents[3] / "docs" / "examples" / "readers.yaml"


def test_a_reader_rebuilds_its_data_a_server_takes_its_shard_back_and_a_trainer_restarts() -> None:
    failures = (
        "failures={kind: injected, clock: wall, role: any, at: [10 h], together: 1}",
        "simulation.replications=200",
    )
    outcome = simulate(assemble(load_scenario(SCENARIO, failures)))
    partial, rebuilt, prm = outcome.strategies
    # 20 or 60 GB over 10 Gbit/s, each shard its own; `data rebuilt` and `prm` say what they take
    loads_s = {
        strategy.policy.name: set((3600 * strategy.costs.hours_of("load")).round().tolist())
        for strategy in (partial, rebuilt, prm)
    }
    assert loads_s == {"partial": {0, 16, 48}, "data rebuilt": {0, 48, 540}, "prm": {0, 48, 238}}
    struck = [len(strategy.losses.slot) for strategy in (partial, rebuilt, prm)]
    assert struck[0] == struck[1] == struck[2] > 0
    assert prm.costs.hours_of("detect") == pytest.approx([1 / 60] * 200)
