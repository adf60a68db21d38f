"""The scenarios that come with the project, which `tests/golden` reads."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from cprsim.scenario.schema import json_schema
from cprsim.scenario.yaml_text import read_yaml
from tests.making import SCENARIOS

SHIPPED = pytest.mark.parametrize(
    "path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem
)


@SHIPPED
def test_editors_find_the_schema_and_accept_the_scenario(path: Path) -> None:
    text = path.read_text("utf-8")
    assert text.startswith("# yaml-language-server: $schema=scenario.schema.json\n")
    data, _ = read_yaml(text, path)
    jsonschema.validate(data, json_schema())
    assert isinstance(data, dict)
    assert data["name"] == path.stem


@SHIPPED
def test_every_number_of_job_cluster_and_costs_has_its_source_beside_it(path: Path) -> None:
    section, bare = "", []
    for line in path.read_text("utf-8").splitlines():
        if re.match(r"\w+:", line):
            section = line.split(":")[0]
        code, _, comment = line.partition("#")
        if section in ("job", "cluster", "storage", "costs") and re.search(r":.*\d", code):
            bare += [line] if not comment.strip() else []
    assert bare == []
