"""What a shell offers after TAB."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cprsim.cli import completing
from cprsim.curves import shipped_names
from cprsim.files import shipped_scenarios

HEAVY = ("numpy", "pandas", "yaml", "numba", "cprsim.scenario", "cprsim.recovery")


def offered(offer, incomplete="", scenario=None) -> list[str]:
    context = SimpleNamespace(params={"scenario": scenario}, args=[])
    return [name for name, _ in offer(context, incomplete)]


def test_all_names_are_offered() -> None:
    assert offered(completing.shipped) == list(shipped_scenarios())
    assert set(shipped_names()) <= set(offered(completing.curves))


def test_scenarios_are_files_and_folders_of_ones_own_too(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").mkdir()
    for name in ("mine/a.yaml", "mine/b.txt", "mine.yml", ".mine.yaml"):
        (tmp_path / name).touch()
    assert offered(completing.scenarios, "mi") == ["mine/", "mine.yml"]
    assert offered(completing.scenarios, "mine/") == ["mine/a.yaml"]
    assert offered(completing.scenarios, f"{tmp_path}/mine/") == [f"{tmp_path}/mine/a.yaml"]
    assert offered(completing.scenarios, "nowhere/") == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "quicks"], {"quickstart"}),
    ],
)
def test_a_real_shell_is_answered_without_loading_the_program(words, expected) -> None:
    """Modules that take a second to load stay out, so that the answer comes at once."""
    asked = {
        "_CPRSIM_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["cprsim", *words]),
        "COMP_CWORD": str(len(words)),
    }
    program = (
        "import sys; from cprsim.cli import main\n"
        "try: main()\n"
        f"finally: print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **asked}, capture_output=True, text=True, check=False,
        cwd=Path(__file__).parent,
    )  # fmt: skip
    assert expected <= set(answer.stdout.split())
    assert answer.stderr.strip() == ""
