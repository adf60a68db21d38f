"""What docs/report.md says can be typed."""

from __future__ import annotations

import shlex
from itertools import chain
from pathlib import Path

import pytest

from tests.making import SCENARIOS, call


@pytest.mark.long
def test_the_commands_at_the_top_work_one_after_the_other(tmp_path, monkeypatch, undrawn) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scenarios").symlink_to(SCENARIOS)
    block = (SCENARIOS.parent / "docs" / "report.md").read_text("utf-8").split("```sh\n")[1]
    for line in block.split("```")[0].splitlines():
        _, command, *words = shlex.split(line, comments=True)
        names = (sorted(Path().glob(word)) if "*" in word else [word] for word in words)
        fewer = ["--replications", "20"] if command == "run" else []
        done = call(command, *chain(*names), *fewer)
        assert done.exit_code == 0, (line, done.output)
    assert "In what the inputs differ" not in Path("report.html").read_text("utf-8")
    two = Path("two.html").read_text("utf-8")
    assert "In what the inputs differ" in two
    assert "<title>Before and after</title>" in two
