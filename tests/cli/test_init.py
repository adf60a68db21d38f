"""``cprsim init``: a scenario from options, and what is shipped."""

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cprsim.scenario.reading import load_scenario
from tests.making import SCENARIOS, call

RECOMMENDER = ("--kind", "recommender", "--nodes", "8+4", "--failures", "28 h")
LLM = ("init", "mine.yaml", "--kind", "llm", "--nodes")
OF_16_NODES = """\
failures:
  kind: job
  nodes: 16  # of the job with this rate
  family: weibull
  mtbf: 33.35 h
  mtbf_95: [30 h, 37 h]
  shape: 0.8
  role: any
"""


@pytest.fixture
def log(tmp_path):
    """A made-up log of 20 nodes in 200 days: about one failure of each in 600 h."""
    draw, begin, rows = random.Random(7), datetime(2025, 1, 1), ["node,start,end"]
    for number in range(160):
        start = begin + timedelta(hours=draw.uniform(0, 4800))
        rows.append(f"n{number % 20},{start},{start + timedelta(hours=2)}")
    path = tmp_path / "log.csv"
    path.write_text("\n".join(rows), "utf-8")
    return path


def test_a_log_is_fitted_for_the_nodes_of_the_job(cprsim, log, monkeypatch) -> None:
    monkeypatch.setattr("cprsim.commands.fit.N_BOOTSTRAP", 0)  # p-values take ten seconds
    called = cprsim(*LLM, 10, "--failures", log)
    assert called.exit_code == 0, called.stderr
    failures = load_scenario("mine.yaml").scenario.failures
    assert failures.kind == "job"
    assert 30 < failures.mtbf_h < 120  # 600 h of a node, 10 nodes
    too_many = cprsim(*LLM, 21, "--failures", log, "--force")
    assert too_many.exit_code == 2
    assert "name failures.yaml here" in too_many.stderr


@pytest.mark.parametrize(("nodes", "mtbf_h"), [(8, 66.7), (16, 33.35), (64, 8.3375)])
def test_a_rate_of_so_many_nodes_is_scaled_to_the_job(cprsim, tmp_path, nodes, mtbf_h) -> None:
    (tmp_path / "failures.yaml").write_text(OF_16_NODES, "utf-8")
    called = cprsim(*LLM, nodes, "--failures", "failures.yaml")
    assert called.exit_code == 0, called.stderr
    failures = load_scenario("mine.yaml").scenario.failures
    assert failures.mtbf_h == pytest.approx(mtbf_h)
    assert failures.mtbf_95_h == pytest.approx((30 * 16 / nodes, 37 * 16 / nodes))
    assert (failures.shape, failures.nodes) == (0.8, nodes)
    text, how = (tmp_path / "mine.yaml").read_text("utf-8"), f"scaled from 16 to {nodes} nodes"
    assert (how in text, how in called.stdout) == (nodes != 16, nodes != 16)


def test_hazards_are_scaled_too_and_a_rate_of_unknown_nodes_is_not(cprsim, tmp_path) -> None:
    file = tmp_path / "failures.yaml"
    pieces = "family: piecewise, ages: [0 h, 12 h], hazards: [0.1 failures/h, 2e-2 failures/h]"
    file.write_text(f"failures: {{kind: job, nodes: 16, {pieces}, role: any}}\n", "utf-8")
    assert cprsim(*LLM, 8, "--failures", file).exit_code == 0
    failures = load_scenario("mine.yaml").scenario.failures
    assert (failures.ages_h, failures.hazards_per_h) == ((0, 24), (0.05, 0.01))
    file.write_text("failures: {kind: job, family: exponential, mtbf: 9 h}\n", "utf-8")
    called = cprsim(*LLM, 8, "--force", "--failures", file)
    assert called.exit_code == 2
    assert "failures.nodes is missing: give the number of nodes of this rate" in called.stderr


def test_a_file_that_is_there_stays_unless_forced(cprsim, scenario) -> None:
    before = scenario.read_text()
    for arguments in (RECOMMENDER, ("--from", "quickstart")):
        refused = cprsim("init", scenario, *arguments)
        assert refused.exit_code == 2
        assert "exists and was not changed" in refused.stderr
        assert scenario.read_text() == before
    assert cprsim("init", scenario, *RECOMMENDER, "--force").exit_code == 0
    assert load_scenario(scenario).scenario.cluster.emb_ps == 4


def test_the_schema_is_put_beside_it_once(cprsim, tmp_path) -> None:
    cprsim("init", "mine.yaml", *RECOMMENDER)
    schema = tmp_path / "scenario.schema.json"
    first = (tmp_path / "mine.yaml").read_text().splitlines()[0]
    assert first == f"# yaml-language-server: $schema={schema.name}"
    assert json.loads(schema.read_text()) == json.loads(cprsim("validate", "--schema").stdout)
    schema.write_text("mine", "utf-8")
    cprsim("init", "other.yaml", *RECOMMENDER)
    assert schema.read_text() == "mine"


def test_a_shipped_scenario_copied_home_is_the_same(cprsim, tmp_path) -> None:
    for names in ((), ("other.yaml",)):
        assert cprsim("init", "--from", "quickstart", *names).exit_code == 0
        copy = tmp_path / (*names, "quickstart.yaml")[0]
        assert copy.read_bytes() == (SCENARIOS / "quickstart.yaml").read_bytes()


@pytest.mark.parametrize(
    ("options", "interval", "other"),
    [(("llm", "--nodes", 8), "full", "systems"),
     (("recommender", "--nodes", 8, "--saves", "1 h, 1 min"), "today", "select")],
)  # fmt: skip
def test_the_commands_to_go_on_with_are_of_the_scenario(cprsim, options, interval, other) -> None:
    called = cprsim("init", "mine.yaml", "--json", "--kind", *options)
    commands = [row["command"] for row in json.loads(called.stdout)["frames"]["commands"]]
    assert (
        f"cprsim sweep mine.yaml --over recovery.{interval}.interval='10 min:8 h:log6'" in commands
    )
    assert {line.split()[1] for line in commands} == {"run", "sweep", other, "fit", "report"}


def test_a_published_rate_is_scaled_to_the_nodes_with_its_provenance(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    assert call("init", file, "--kind", "llm", "--nodes", 64, "--failures", "llama3").exit_code == 0
    text, failures = file.read_text(), load_scenario(file).scenario.failures
    assert failures.mtbf_h == pytest.approx(54 * 24 / 419 * 2048 / 64, rel=1e-5)
    assert "# of `cprsim init --list`: llama3 (derived; Llama 3 (2024))" in text
    assert "scaled from 2048 to 64 nodes" in text
