"""Several roles with state, and links of a node that costs name."""

from pathlib import Path

import pytest

from cprsim.results.pipeline import simulate
from cprsim.scenario.assemble import Experiment, assemble
from cprsim.scenario.population import _roles
from cprsim.scenario.reading import load_scenario
from tests.scenario.test_sections import BASES
from tests.simulators import assert_cluster_agrees

SECONDS = 3600.0
SCENARIO = BASES["roles"].replace(
    "[full]", "[full, gemini, {strategy: moc, options: {experts: 64, saved_each: 8}}]"
)


def experiment_of(tmp_path: Path, text: str = SCENARIO) -> Experiment:
    return assemble(load_scenario(tmp_path / "roles.yaml", text=text))


def test_state_lies_on_all_roles_that_hold_some(tmp_path: Path) -> None:
    experiment = experiment_of(tmp_path)
    cluster = experiment.cluster
    assert cluster.slots("state") == range(12)
    assert (cluster.slots("stage"), cluster.slots("expert")) == (range(8), range(8, 12))
    assert cluster.slots("reader") == range(12, 14)
    per_h = (4 / 60, 1 / 30)  # of each source
    shares = [one / sum(per_h) for one in per_h]
    assert experiment.expected_shares == pytest.approx(shares, rel=0.01)
    systems = experiment.policies[1:]
    assert [{tier.role for tier in system.tiers} for system in systems] == [{"state"}] * 2


def test_bytes_are_those_of_each_role(tmp_path: Path) -> None:
    experiment = experiment_of(tmp_path)
    costs = experiment.costs
    all_bytes = 8 * 40e9 + 4 * 250e9
    assert costs.mean_h(costs.save_stall, 12) == pytest.approx(10 / SECONDS)  # the largest's
    assert costs.mean_h(costs.load, 12) == pytest.approx(all_bytes / 25e9 / SECONDS)
    capped = SCENARIO.replace("200 Gbit/s}", "200 Gbit/s, per_server: 8 Gbit/s}")
    costs = experiment_of(tmp_path, capped).costs
    assert costs.mean_h(costs.load, 12) == pytest.approx(250 / SECONDS)  # the largest, last


def test_the_cluster_agrees(tmp_path: Path) -> None:
    shorter = SCENARIO.replace("10 s}", "3 min}").replace("40 h", "20 h").replace(": 60}", ": 9}")
    experiment = experiment_of(tmp_path, shorter)
    assert_cluster_agrees(experiment, 9)
    assert all(one.costs.hours.sum() > 0.0 for one in simulate(experiment).strategies)


def test_a_fleet_varies_the_nodes_of_all_roles(tmp_path: Path) -> None:
    roles = _roles(load_scenario(tmp_path / "roles.yaml", text=SCENARIO), 28)
    assert dict(roles) == {
        "cluster.others.reader": 4, "cluster.roles.stage.nodes": 16, "cluster.roles.expert.nodes": 8
    }  # fmt: skip
