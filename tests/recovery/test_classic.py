"""The paper's strategies as recovery systems, by both engines."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.scenario import load_scenario
from cprsim.simulate.blocks import Rows
from tests.golden.rows import CHANGES
from tests.simulate.agreeing import assert_rows_agree

SCENARIOS = Path("scenarios")
N = 200


@pytest.fixture(params=CHANGES)
def experiment(request: pytest.FixtureRequest) -> Experiment:
    changes = {"failures.clock": "wall"} | CHANGES[str(request.param)]
    text = [f"{key}={value}" for key, value in changes.items()]
    return assemble(load_scenario(SCENARIOS / "quickstart.yaml", text))


def rows_of(experiment: Experiment, engine: str = "auto") -> dict[str, Rows]:
    """The first replications of every strategy."""
    block = pipeline._block(experiment, 0, pipeline._failures(experiment, 0, N))
    experiment = replace(experiment, engine=engine)
    return {
        policy.name: pipeline.engine_of(policy, experiment).run(block, range(N))
        for policy in experiment.policies
    }


def test_both_engines_give_the_same_rows_of_a_strategy(experiment: Experiment) -> None:
    """Every replication, hour by hour; rounding apart."""
    compiled = rows_of(experiment)
    for name, theirs in rows_of(experiment, "simpy").items():
        assert_rows_agree(compiled[name], theirs)
