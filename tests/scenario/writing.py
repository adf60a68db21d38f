"""What the tests of this room share: a scenario that is right, and ways to get it wrong."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from cprsim.errors import Problem, ScenarioError
from cprsim.experiments.assemble import assemble
from cprsim.scenario.reading import load_scenario
from cprsim.scenario.schema import Scenario

GOOD: dict[str, Any] = {
    "name": "good",
    "job": {"useful": "50 h"},
    "cluster": {"trainers": 20, "emb_ps": 18, "shard_size": "50 GB"},
    "failures": {"kind": "injected", "count": 5, "together": 4},
    "storage": {"bandwidth": "25 Gbit/s"},
    "costs": {"save": "transfer", "load": "3 min", "reschedule": "2 min"},
    "recovery": ["full", {"strategy": "cpr", "target_pls": 0.1}],
    "simulation": {"seed": 1, "replications": 100},
}

GOOD_TEXT = """\
name: good
job: {useful: 50 h}
cluster:
  trainers: 20
  emb_ps: 18
  shard_size: 50 GB
failures: {kind: injected, count: 5, together: 4}
storage: {bandwidth: 25 Gbit/s}
costs:
  save: transfer
  load: 3 min
  reschedule: 2 min
recovery:
  - full
  - {strategy: cpr, target_pls: 0.1}
simulation: {seed: 1, replications: 100}
"""


def scenario(**sections: Any) -> Scenario:
    """The good scenario with other sections; a dict is merged into the one that is there."""
    plain = copy.deepcopy(GOOD)
    for name, section in sections.items():
        is_merged = isinstance(section, dict) and isinstance(plain.get(name), dict)
        plain[name] = {**plain[name], **section} if is_merged and name != "failures" else section
    return Scenario.model_validate(plain)


def write(folder: Path, text: str | bytes, name: str = "bad.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def problems(path: Path, *overrides: str) -> tuple[Problem, ...]:
    with pytest.raises(ScenarioError) as error:
        assemble(load_scenario(path, overrides))
    found = error.value.problems
    assert len(str(error.value).splitlines()) == len(found), "each problem is one line"
    return tuple(found)


def changed(*replacements: tuple[str, str]) -> str:
    text = GOOD_TEXT
    for old, new in replacements:
        assert old in text
        text = text.replace(old, new)
    return text
