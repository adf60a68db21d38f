"""The scenarios that come with the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cprsim.errors import ScenarioError
from cprsim.scenario.failures import InjectedFailures, TraceFailures
from cprsim.scenario.reading import LoadedScenario, load_scenario
from tests.making import SCENARIOS

SHIPPED = sorted(SCENARIOS.glob("*.yaml"))
ON_TRACES = ("gpu-cluster", "lanl")


@pytest.fixture
def some_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty files where the scenarios look for traces: loading does not read them."""
    for name in ON_TRACES:
        file = re.search(r"\$\{CPRSIM_DATA\}/(\S+)", (SCENARIOS / f"{name}.yaml").read_text())
        assert file is not None
        (tmp_path / file[1]).parent.mkdir(parents=True)
        (tmp_path / file[1]).touch()
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))


def shipped(name: str) -> LoadedScenario:
    return load_scenario(SCENARIOS / f"{name}.yaml")


@pytest.mark.usefixtures("some_traces")
@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_it_loads_under_its_own_name_and_editors_find_its_schema(path: Path) -> None:
    assert load_scenario(path).scenario.name == path.stem
    first = path.read_text("utf-8").splitlines()[0]
    assert first == "# yaml-language-server: $schema=scenario.schema.json"
    assert (SCENARIOS / "scenario.schema.json").is_file()


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_number_of_job_cluster_and_costs_has_its_source_beside_it(path: Path) -> None:
    section, bare = "", []
    for line in path.read_text("utf-8").splitlines():
        if re.match(r"\w+:", line):
            section = line.split(":")[0]
        code, _, comment = line.partition("#")
        if section in ("job", "cluster", "storage", "costs") and re.search(r":.*\d", code):
            bare += [line] if not comment.strip() else []
    assert bare == []


@pytest.mark.parametrize(
    ("name", "save_min", "recovery_min"),
    [("criteo-kaggle", 5.62, 5.39), ("criteo-terabyte", 4.99, 8.31)],
)
def test_the_emulation_of_the_paper(name: str, save_min: float, recovery_min: float) -> None:
    scenario = shipped(name).scenario
    costs, failures = scenario.costs, scenario.failures
    assert isinstance(failures, InjectedFailures)
    assert failures.count is not None
    assert scenario.job.useful_h / failures.count == 28.0
    assert scenario.cluster.emb_ps == 8
    assert costs.save.stall == pytest.approx(save_min / 60)
    assert costs.load + costs.reschedule == pytest.approx(recovery_min / 60)
    names = [entry.name for entry in scenario.recovery]
    assert names == ["full", "partial", "cpr", "cpr-mfu", "cpr-ssu", "cpr-scar"]


@pytest.mark.usefixtures("some_traces")
@pytest.mark.parametrize(("name", "n_nodes"), [("gpu-cluster", 400), ("lanl", 49)])
def test_the_job_fills_the_cluster_of_the_trace(name: str, n_nodes: int) -> None:
    scenario = shipped(name).scenario
    assert isinstance(scenario.failures, TraceFailures)
    assert scenario.failures.nodes == scenario.cluster.n_nodes_of["any"] == n_nodes


@pytest.mark.parametrize("name", ON_TRACES)
def test_without_the_data_it_says_where_they_come_from(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    with pytest.raises(ScenarioError, match="CPRSIM_DATA is not set") as error:
        shipped(name)
    (found,) = error.value.problems
    line = (SCENARIOS / f"{name}.yaml").read_text("utf-8").splitlines()[(found.place.line or 0) - 1]
    assert line.strip().startswith("file: ${CPRSIM_DATA}")
