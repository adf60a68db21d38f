"""What docs/report.md says can be typed, and its numbers are those that a rerun gives."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from markupsafe import Markup

from tests.making import SCENARIOS, call

pytestmark = pytest.mark.long

ROOT = SCENARIOS.parent
DOCUMENT = (ROOT / "docs" / "report.md").read_text("utf-8")
DIGEST = re.compile(r"results/[\w-]+-[0-9a-f]{10}\b")  # differs with every change of the code


def commands() -> list[list[str]]:
    block = DOCUMENT.split("```sh\n")[1].split("```")[0]
    return [shlex.split(line, comments=True)[1:] for line in block.splitlines()]


def test_the_commands_at_the_top_work_one_after_the_other(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("cprsim.plots.save.save_figures", lambda *_, **__: [])
    monkeypatch.setattr("cprsim.present.html.inline", lambda *_: Markup("<svg></svg>"))
    (tmp_path / "scenarios").symlink_to(SCENARIOS)
    for command in commands():
        arguments = [
            found
            for word in command
            for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
        ]
        fewer = ["--replications", "20"] if command[0] == "run" else []
        done = call(*arguments, *fewer)
        assert done.exit_code == 0, (command, done.output)
    assert "In what the inputs differ" not in Path("report.html").read_text("utf-8")
    two = Path("two.html").read_text("utf-8")
    assert "In what the inputs differ" in two
    assert "<title>Before and after</title>" in two


@pytest.mark.parametrize("document", sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")]))
def test_no_document_names_a_folder_by_a_digest_that_the_next_change_moves(document) -> None:
    """But for what cog renews, and checks."""
    text = re.sub(r"<!-- \[\[\[cog.*?\[\[\[end\]\]\]", "", document.read_text("utf-8"), flags=re.S)
    assert DIGEST.findall(text) == []
