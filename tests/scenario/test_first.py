"""A first scenario is a scenario, whatever is known of the job."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from cprsim.commands.init.first import (
    LLM,
    RECOMMENDER,
    Known,
    first_scenario,
    n_assumed,
    nodes_of,
    rate_of,
    saves_of,
)
from cprsim.errors import ParameterError
from cprsim.files.units import TIME
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.schema import Scenario

CORRELATED = """\
# fitted to log.csv
failures:
  kind: correlated
  mtbf: 3000 h
  shape: 0.6
  shocks: {every: 300 h, sizes: {2: 3.0}, nodes: 400}
# under cluster, with spares: repair: {family: exponential, mean: 2 h}
"""
KINDS = (RECOMMENDER, LLM)
NODES = {RECOMMENDER: ("1", "12", "0+3"), LLM: ("1", "3", "128")}
FAILURES = ("28 h", "10 min", "20 yr per node", "40 h per node", "unknown", "a fit")
SAVES = ("unknown", "30 min, 2 min", "unknown, 100 ms", "1 s, unknown")
CASES = [
    (kind, nodes, failures, saves)
    for kind, failures, saves in product(KINDS, FAILURES, SAVES)
    for nodes in NODES[kind]
]


def known(kind: str, nodes: str, failures: str, saves: str) -> Known:
    rate = {"fitted": CORRELATED} if failures == "a fit" else rate_of(failures)
    return Known(kind=kind, **nodes_of(kind, nodes), **rate, **saves_of(saves))


def read(job: Known) -> Scenario:
    return load_scenario("first.yaml", text=first_scenario(job, "x")).scenario


def test_a_first_scenario_is_valid_says_what_each_number_is_and_can_be_assembled() -> None:
    for case in CASES:
        text = first_scenario(known(*case), "first")
        loaded = load_scenario(Path("first.yaml"), text=text)
        assert loaded.scenario.name == "first", case
        experiment = assemble(loaded)
        assert len(experiment.policies) == text.partition("\nrecovery:")[2].count("\n  - "), case
        for line in text.partition("name: first")[2].splitlines() if case[2] != "a fit" else ():
            key = line.split("#")[0].strip().rstrip(":")
            covered = ("mtbf" in key) or key.startswith(("shape", "family", "kind", "roles"))
            assert "#" in line or not line[:1].isspace() or covered, line


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_were_given_stand_in_the_scenario(kind: str) -> None:
    scenario = read(known(kind, "7", "333 h", "17 min, 3 min"))
    assert scenario.cluster.n_nodes_of["any"] == 7
    assert scenario.failures.mtbf_h == 333  # type: ignore[union-attr]
    assert scenario.costs.save.stall == pytest.approx(TIME.parse("3 min"))
    today = next(entry for entry in scenario.recovery if entry.name == "today")
    assert today.interval == pytest.approx(TIME.parse("17 min"))
    assert [one.reach for one in scenario.scopes] == ["process", "node", "rack", "all"]
    assert sum(one.share or 0.0 for one in scenario.scopes) == pytest.approx(1.0)
    assert scenario.scopes[-1].needs_node is False  # or 24 h without all nodes decide
    assert read(known(kind, "1", "28 h", "unknown")).scopes == ()


@pytest.mark.parametrize("kind", KINDS)
def test_the_state_in_all_is_dealt_out_and_what_nobody_says_is_guessed(kind: str) -> None:
    job = known(kind, "128" if kind == LLM else "24", "8 h", "30 min, 1 min")
    told = replace(job, state_bytes=6e12, storage_bytes_per_h=3.6e14, length_h=240.0)
    text, n_nodes = first_scenario(told, "x"), 128 if kind == LLM else 8
    cluster = read(told).cluster
    assert cluster.shard_bytes == pytest.approx(6e12 / n_nodes, rel=1e-3)
    assert f"state of 6 TB in all, {6e12 / n_nodes / 1e9:.3g} GB on each" in cluster.state_said
    assert "storage: {bandwidth: 800 Gbit/s}  # given" in text
    assert "useful: 10 d                  # given" in text
    assert n_assumed(first_scenario(job, "x")) == n_assumed(text) + 3


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ((LLM, "8+4", "1 h", "unknown"), "--nodes: '8+4' is no number of nodes"),
        ((RECOMMENDER, "4+0", "1 h", "unknown"), "8+4"),
        ((LLM, "100001", "1 h", "unknown"), "1 to 100000"),
        ((LLM, "3", "28", "unknown"), "--failures: '28' has no unit"),
        ((LLM, "3", "log.csv", "unknown"), "the name of an existing log"),
        ((LLM, "3", "1 h", "30 min"), "'30 min, 2 min'"),
        ((LLM, "3", "1 h", "0 s, 2 min"), "--saves: '0 s' is out of range"),
    ],
)
def test_what_is_wrong_is_refused_with_what_would_be_right(case, said) -> None:
    with pytest.raises(ParameterError) as error:
        known(*case)
    assert said in str(error.value)


def test_options_are_read_as_people_write_them() -> None:
    assert rate_of("1000 d  per node") == {"mtbf_h": 24_000.0, "per_node": True}
    assert nodes_of(RECOMMENDER, "8 + 4") == {"trainers": 8, "servers": 4}
