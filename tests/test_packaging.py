"""What the metadata of the package says; `make wheel` builds it and tries it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

import cprsim

ROOT = Path(__file__).parent.parent


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == cprsim.__version__
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == "Apache-2.0"


def test_github_runs_the_stages_of_ci_with_the_oldest_and_the_newest_python() -> None:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text("utf-8"))["jobs"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    script = (ROOT / ".ci" / "run").read_text("utf-8")
    stages = re.findall(r"^(?:make|\.ci/stage) (.*)$", script, re.MULTILINE)
    assert stages
    run = "\n".join(step.get("run", "") for step in steps).splitlines()
    assert {f"make {stage}" for stage in stages} <= {*run}
    metadata = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [line.rpartition(" ")[2] for line in metadata["classifiers"] if " 3." in line]
    for job in ("wheel", "start"):
        tried = jobs[job]["strategy"]["matrix"]["python"]
        assert [tried[0], tried[-1]] == [named[0], named[-1]]
