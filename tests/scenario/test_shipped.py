"""The scenarios that come with the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cprsim.scenario.reading import load_scenario
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
