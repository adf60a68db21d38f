"""What the tests of this room share: a scenario that is right, and ways to get it wrong."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from cprsim.errors import Problem, ScenarioError
from cprsim.scenario.assemble import assemble
from cprsim.scenario.reading import LoadedScenario, load_scenario

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


def load(*sets: str, over: Sequence[str] = (), text: str = GOOD_TEXT) -> LoadedScenario:
    return load_scenario("good.yaml", sets, over, text=text)


def message(*sets: str, over: Sequence[str] = (), text: str = GOOD_TEXT) -> str:
    with pytest.raises(ScenarioError) as error:
        load(*sets, over=over, text=text)
    return str(error.value)


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
