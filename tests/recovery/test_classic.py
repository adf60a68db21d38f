"""The paper's strategies as recovery systems: three ways to run them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.recovery.classic import as_system
from cprsim.scenario import load_scenario
from cprsim.simulate import blocks
from cprsim.simulate.engines import FAST, Rows
from cprsim.simulate.fast.params import params_of
from tests.golden.rows import CHANGES
from tests.simulate.agreeing import assert_rows_agree

SCENARIOS = Path("scenarios")
N = 200
UNCOMMON = ("finite spares", "costs that vary")


@pytest.fixture(params=CHANGES)
def what(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def experiment(what: str) -> Experiment:
    text = [f"{key}={value}" for key, value in ({"failures.clock": "wall"} | CHANGES[what]).items()]
    return assemble(load_scenario(SCENARIOS / "quickstart.yaml", text))


@pytest.fixture(autouse=True)
def few_by_simpy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled engine takes all that it can, however few they are."""
    monkeypatch.setattr(blocks, "MOST_BY_EVENTS", 0)


def rows_of(experiment: Experiment, engine: str = "auto") -> dict[str, Rows]:
    """The first replications of every strategy."""
    block = pipeline._block(experiment, 0, pipeline._failures(experiment, 0, N))
    experiment = replace(experiment, engine=engine)
    return {
        policy.name: pipeline.engine_of(policy, experiment).run(block, range(N))
        for policy in experiment.policies
    }


def test_all_ways_to_run_a_strategy_give_the_same_rows(
    what: str, experiment: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every replication, hour by hour; rounding apart."""
    is_common = {}
    for policy in experiment.policies:
        system = as_system(policy, experiment.costs, experiment.cluster)
        job = experiment.simulated_job(replace(policy, system=system))
        is_common[policy.name] = params_of(job) is not None
    assert any(is_common.values()) == (what not in (*UNCOMMON, "priority saving"))
    simpy, compiled = rows_of(experiment, "simpy"), rows_of(experiment)
    monkeypatch.setattr(blocks, "params_of", lambda _: None)
    general = rows_of(experiment)
    for name, theirs in simpy.items():
        for ours in (compiled[name], general[name]):
            assert FAST in ours.engines
            assert_rows_agree(ours, theirs)
