"""The paper's strategies as recovery systems: the same rows as the engines that know them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cprsim import pipeline
from cprsim.assemble import Experiment, assemble
from cprsim.engine import why_not
from cprsim.engines import Arrays, ByRules, Events
from cprsim.recovery.classic import as_system
from cprsim.scenario import load_scenario
from cprsim.simulate.job import SimulatedJob

SCENARIOS = Path("scenarios")
CHANGES = {
    "as it is": {},
    "saves in the background": {"costs.save": "{stall: 60 s, background: 30 min}"},
    "failures of all roles": {"failures.role": "any", "failures.mtbf": "6 h"},
    "several at once": {"failures.together": "3", "failures.mtbf": "9 h"},
    "aged by uptime": {"failures.clock": "uptime", "failures.mtbf": "9 h"},
    "aged by progress": {"failures.clock": "progress", "failures.mtbf": "9 h"},
    "finite spares": {"cluster.spares": "1", "cluster.repair": "7 h", "failures.mtbf": "9 h"},
    "one trainer": {"cluster.trainers": "1", "failures.role": "any", "failures.mtbf": "9 h"},
}


@pytest.fixture(params=CHANGES)
def experiment(request: pytest.FixtureRequest) -> Experiment:
    changes = {"failures.clock": "wall", **CHANGES[request.param]}
    text = [f"{key}={value}" for key, value in changes.items()]
    return assemble(load_scenario(SCENARIOS / "quickstart.yaml", text))


def test_a_strategy_costs_the_same_as_a_system(experiment: Experiment) -> None:
    """300 replications of every strategy, hour by hour; rounding apart."""
    failures = pipeline._failures(experiment, 0, 300)
    setting = pipeline._setting(experiment)
    block = pipeline._block(experiment, setting, 0, failures)
    assert experiment.shares is not None
    for policy in experiment.policies:
        if policy.sub_saves is not None:
            continue
        fast = why_not(experiment.cluster, policy) is None
        known = (Arrays(policy) if fast else Events(policy)).run(block, range(300))
        system = as_system(policy, experiment.costs, experiment.cluster)
        job = SimulatedJob(
            experiment.useful_h, experiment.cluster, setting.clock, experiment.scopes, system
        )
        found = ByRules(experiment.seed, experiment.shares, job).run(block, range(300))
        np.testing.assert_array_equal(found.costs.finished, known.costs.finished)
        np.testing.assert_array_equal(found.costs.n_failures, known.costs.n_failures)
        np.testing.assert_array_equal(found.costs.n_saves, known.costs.n_saves)
        np.testing.assert_allclose(found.costs.wall_h, known.costs.wall_h, rtol=1e-9)
        np.testing.assert_allclose(found.stale_h, known.stale_h, rtol=1e-9, atol=1e-9)
        for part in found.costs.parts:
            np.testing.assert_allclose(
                found.costs.hours_of(part), known.costs.hours_of(part), rtol=1e-9, atol=1e-7
            )
