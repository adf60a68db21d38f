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


def test_a_variable_that_is_not_set_says_where_the_data_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CPRSIM_DATA", raising=False)
    (found,) = problems(write(tmp_path, with_trace("${CPRSIM_DATA}/fault_trace.json")))
    assert (found.place.line, found.key) == (7, "failures.file")
    assert "CPRSIM_DATA is not set" in found.message
    assert "InfiniteHBD" in found.message


def test_a_trace_that_is_missing_says_where_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    text = with_trace("${CPRSIM_DATA}/x.csv").replace("infinitehbd", "lanl, system: 2")
    (found,) = problems(write(tmp_path, text))
    assert str(tmp_path / "x.csv") in found.message
    assert "is not there" in found.message
    assert "is not there" in problems(write(tmp_path, with_trace("x" * 900)))[0].message
    assert "CFDR" in found.message


def test_a_variable_is_replaced_for_reading_and_a_relative_trace_stands_beside_the_scenario(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = write(tmp_path, "[]", "t.json")
    monkeypatch.setenv("CPRSIM_DATA", str(tmp_path))
    for file in ("${CPRSIM_DATA}/t.json", "t.json"):
        loaded = load_scenario(write(tmp_path, with_trace(file)))
        assert loaded.trace_path == trace
        assert loaded.scenario.failures.file == file  # type: ignore[union-attr]
