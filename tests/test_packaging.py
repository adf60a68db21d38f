"""What the metadata of the package says; `make wheel` builds it and tries it."""

from __future__ import annotations

import re
import runpy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import setuptools
import yaml

import cprsim

ROOT = Path(__file__).parent.parent


@pytest.fixture
def said(monkeypatch) -> dict[str, str]:
    """What setup.py tells setuptools."""
    told: dict[str, str] = {}
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(setuptools, "setup", lambda **arguments: told.update(arguments))
    runpy.run_path("setup.py")
    return told


def test_the_readme_of_the_metadata_refers_to_no_file(said) -> None:
    text = said["long_description"]
    assert "![" not in text
    assert "<!--" not in text
    assert re.findall(r"\]\((?!https?://|#)", text) == []
    assert said["long_description_content_type"] == "text/markdown"


def test_the_readme_of_the_metadata_keeps_every_command_and_heading(said) -> None:
    written, kept = (ROOT / "README.md").read_text("utf-8"), said["long_description"]
    for line in written.splitlines():
        if line.startswith(("#", "$ ", "cprsim ", "| `cprsim")):
            assert line.partition("[")[0] in kept


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
    wanted = set(re.findall(r"^make .*$", script, re.MULTILINE))
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
