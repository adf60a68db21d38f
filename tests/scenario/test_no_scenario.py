"""Files that are no scenario at all, and junk in every place of one that is."""

from __future__ import annotations

import copy
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cprsim.errors import ScenarioError
from cprsim.scenario.reading import load_scenario
from tests.scenario.test_sections import BASES as TEXTS
from tests.scenario.writing import problems, write

NO_SCENARIO = {
    "empty": (b"", None, "is empty"),
    "a list": (b"- 1\n- 2\n", 1, "is not a mapping"),
    "broken YAML": (b"job: {useful: 50 h}\ncosts: {save: 1 h\nx", 3, "is not valid YAML"),
    "unquoted variable in braces": (b"job: {{x}: 1}", 1, "key must be plain text"),
    "two documents": (b"job: {}\n---\njob: {}\n", 2, "is not valid YAML"),
    "Latin-1": (b"name: caf\xe9", None, "'utf-8' codec can't decode"),
    "binary": (bytes(range(1, 128)), None, "special characters are not allowed"),
    "alias of itself": (b"a: &a [*a]", None, "nested too deeply, or in itself"),
    "deep lists": (b"[" * 100_000, None, "nested too deeply"),
    "50 MB": (b"x" * 50_000_000, None, "has more than 500000 bytes"),
}  # fmt: skip


@pytest.mark.parametrize(("content", "line", "hint"), NO_SCENARIO.values(), ids=list(NO_SCENARIO))
def test_what_is_no_scenario_says_so(
    tmp_path: Path, content: bytes, line: int | None, hint: str
) -> None:
    path = write(tmp_path, content)
    found = problems(path)
    assert found[0].place.file == path
    assert found[0].place.line == line
    assert hint in found[0].message


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert "No such file" in problems(tmp_path / "none.yaml")[0].message
    assert "cannot be read: Is a directory" in problems(tmp_path)[0].message
    assert "cannot be read" in problems(tmp_path / ("x" * 5000))[0].message


PLAIN = st.sampled_from(
    [None, True, -1, 0.5, "transfer", "3 h", "any", "full", "\ud800", "x" * 2000, "${HOME}"]
)
KEYS = st.sampled_from(["family", "mean", "stall", "rows", "name", "strategy", "kind", "0"])
JUNK = st.recursive(
    PLAIN | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=6,
)
BASES = [yaml.safe_load(text) for text in TEXTS.values()]


def key_paths(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    entries = value.items() if isinstance(value, dict) else ()
    entries = enumerate(value) if isinstance(value, list) else entries
    return [path, *(deeper for key, below in entries for deeper in key_paths(below, (*path, key)))]


@settings(max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_junk_anywhere_is_a_problem_with_a_line_or_no_problem(data: st.DataObject) -> None:
    plain = copy.deepcopy(data.draw(st.sampled_from(BASES)))
    path = data.draw(st.sampled_from(key_paths(plain)[1:]))
    here: Any = plain
    for key in path[:-1]:
        here = here[key]
    here[path[-1]] = data.draw(JUNK)
    with tempfile.TemporaryDirectory() as folder:
        file = write(Path(folder), yaml.safe_dump(plain, sort_keys=False))
        try:
            load_scenario(file)
        except ScenarioError as error:
            for problem in error.problems:
                assert problem.place.line is not None
                assert str(problem).isprintable()
