"""Files that are no scenario at all."""

from __future__ import annotations

from pathlib import Path

import pytest

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
