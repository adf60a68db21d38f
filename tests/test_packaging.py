"""What the metadata of the package says; `make wheel` builds it and tries it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import cprsim

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cprsim.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == "Apache-2.0"


@pytest.fixture
def workflow() -> dict[str, Any]:
    """What GitHub runs."""
    return dict(yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8")))


def test_the_workflow_runs_the_commands_of_the_submission(workflow) -> None:
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    stages = re.findall(r"^(?:make|\.ci/stage) (.*)$", script, re.MULTILINE)
    wanted = {f"make {stage}" for stage in stages}
    assert wanted
    assert wanted <= set("\n".join(steps).splitlines())


def test_the_workflow_names_its_actions_by_commit(workflow) -> None:
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    actions = [step["uses"] for step in steps if "uses" in step]
    assert actions
    assert [one for one in actions if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", one)] == []


@pytest.mark.parametrize("job", ["wheel", "start"])
def test_what_a_newcomer_does_is_tried_with_the_oldest_and_the_newest_python(workflow, job) -> None:
    tried = workflow["jobs"][job]["strategy"]["matrix"]["python"]
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [one.rpartition(" ")[2] for one in metadata["classifiers"] if " 3." in one]
    assert [tried[0], tried[-1]] == [named[0], named[-1]]
