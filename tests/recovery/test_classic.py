"""The paper's strategies as recovery systems: three ways to run them, and what they cost before.

`strategies.json` was written by the engines that knew these strategies by heart, before they became
recovery systems (commit 46da7cc): means over 200 replications of wall hours, failures, saves, and
staleness [h]. No change of the model may move them unless it says so in the changelog.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cprsim.experiments import pipeline
from cprsim.experiments.assemble import Experiment, assemble
from cprsim.recovery.classic import as_system
from cprsim.scenario import load_scenario
from cprsim.simulate import blocks
from cprsim.simulate.engines import FAST, Rows
from cprsim.simulate.fast.params import params_of
from tests.simulate.agreeing import assert_rows_agree

SCENARIOS = Path("scenarios")
BEFORE = json.loads((Path(__file__).parent / "strategies.json").read_text("utf-8"))
N = 200
CHANGES = {
    "as it is": {},
    "saves in the background": {"costs.save": "{stall: 60 s, background: 30 min}"},
    "failures of all roles": {"failures.role": "any", "failures.mtbf": "6 h"},
    "several at once": {"failures.together": "3", "failures.mtbf": "9 h"},
    "aged by uptime": {"failures.clock": "uptime", "failures.mtbf": "9 h"},
    "aged by progress": {"failures.clock": "progress", "failures.mtbf": "9 h"},
    "finite spares": {"cluster.spares": "1", "cluster.repair": "7 h", "failures.mtbf": "9 h"},
    "one trainer": {"cluster.trainers": "1", "failures.role": "any", "failures.mtbf": "9 h"},
    "priority saving": {
        "recovery": "[{strategy: cpr-mfu, target_pls: 0.1}]",
        "costs.save": "{stall: 60 s, background: 10 min}",
        "failures.mtbf": "9 h",
    },
    "loads that share the storage": {
        "costs.load": "transfer",
        "cluster.shard_size": "200 GB",
        "storage": "{bandwidth: 4 Gbit/s}",
        "failures.mtbf": "3 h",
        "failures.together": "2",
    },
    "costs that vary": {
        "costs.save": "{family: lognormal, mean: 4 min, sigma: 0.8}",
        "costs.load": "{family: lognormal, mean: 20 min, sigma: 0.8}",
        "costs.detect": "{family: lognormal, mean: 2 min, sigma: 0.8}",
        "costs.reschedule": "{family: lognormal, mean: 9 min, sigma: 0.8}",
        "failures.mtbf": "6 h",
    },
}
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


def test_strategies_cost_what_they_did_before(what: str, experiment: Experiment) -> None:
    found = {
        name: [
            rows.costs.wall_h.mean(),
            rows.costs.n_failures.mean(),
            rows.costs.n_saves.mean(),
            rows.stale_h.mean(),
        ]
        for name, rows in rows_of(experiment).items()
    }
    assert found.keys() == BEFORE[what].keys()
    for name, means in found.items():
        np.testing.assert_allclose(means, BEFORE[what][name], rtol=1e-9, err_msg=name)


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
