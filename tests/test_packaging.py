"""What the metadata of the package says; `make wheel` builds it and tries it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

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


def test_the_workflow_runs_the_commands_of_the_submission() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))
    steps = [step.get("run", "") for job in workflow["jobs"].values() for step in job["steps"]]
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    wanted = set(re.findall(r"^make .*$", script, re.MULTILINE))
    assert wanted
    assert wanted <= set("\n".join(steps).splitlines())
