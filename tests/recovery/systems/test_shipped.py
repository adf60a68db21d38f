"""The scenarios that come with the project and compare recovery systems."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import assemble
from cprsim.scenario import load_scenario
from tests.making import SCENARIOS


@pytest.mark.parametrize(
    ("name", "known"), [("llm", ["full", "gemini", "hsdp"]), ("moe", ["full", "moc", "gemini"])]
)
def test_every_job_is_done_and_full_recovery_costs_most(name: str, known: list[str]) -> None:
    few = ["simulation.replications=20"]
    outcome = pipeline.simulate(assemble(load_scenario(SCENARIOS / f"{name}.yaml", few)))
    found = {one.policy.name: one.costs for one in outcome.strategies}
    assert list(found) == known
    for costs in found.values():
        assert costs.finished.all()
        np.testing.assert_allclose(costs.wall_h - costs.useful_h, costs.hours.sum(axis=1))
    mean_h = {strategy: costs.wall_h.mean() for strategy, costs in found.items()}
    assert max(mean_h, key=mean_h.__getitem__) == "full"
