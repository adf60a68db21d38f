"""The trace that a scenario names: variables, paths, and the keys of each format."""

from __future__ import annotations

from pathlib import Path

import pytest

from cprsim.scenario.reading import load_scenario
from tests.scenario.writing import changed, problems, write


def with_trace(file: str, **keys: str) -> str:
    said = {"kind": "trace", "format": "infinitehbd", "nodes": "400", "file": f"'{file}'", **keys}
    section = ", ".join(f"{key}: {value}" for key, value in said.items())
    return changed(("kind: injected, count: 5, together: 4", section))


@pytest.mark.parametrize(
    ("file", "form", "data", "said"),
    [
        ("${CPRSIM_DATA}/fault_trace.json", "infinitehbd", None, "CPRSIM_DATA is not set"),
        ("${CPRSIM_DATA}/fault_trace.json", "infinitehbd", None, "InfiniteHBD"),
        ("${CPRSIM_DATA}/x.csv", "lanl, system: 2", "nowhere", "nowhere/x.csv` is not there"),
        ("${CPRSIM_DATA}/x.csv", "lanl, system: 2", "nowhere", "CFDR"),
        ("x" * 900, "infinitehbd", None, "is not there"),
    ],
)
def test_a_trace_that_is_missing_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, form: str, data: str, said: str
) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    if data:
        monkeypatch.setenv("CPRSIM_DATA", data)
    (found,) = problems(write(tmp_path, with_trace(file).replace("infinitehbd", form)))
    assert (found.place.line, found.key) == (7, "failures.file")
    assert said in found.message


def test_a_variable_is_replaced_for_reading_and_a_relative_trace_stands_beside_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write(tmp_path, "[]", "t.json")
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    for file in ("${CPRSIM_DATA}/t.json", "t.json"):
        loaded = load_scenario(write(tmp_path, with_trace(file)))
        assert loaded.trace_path == trace
        assert loaded.scenario.failures.file == file  # type: ignore[union-attr]
