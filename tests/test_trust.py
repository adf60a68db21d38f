"""What docs/trust.md promises and no room alone can show."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cprsim.commands.select.record import load_selection
from cprsim.commands.sweep.folder import load_sweep
from cprsim.results.run import load_result
from tests.making import WITHOUT_FIGURES, call

pytestmark = pytest.mark.long

OVER = ("--over", "costs.save=1 min,2 min", "--workers", 1)
# What is killed, the function in which it kills itself, and what reads its folder.
KILLED = {
    "run": (("run", "small.yaml"), "cprsim.results.folder.git_state", load_result),
    "select": (
        ("select", "small.yaml", "--target-pls", 0.1, "--replications", 100),
        "cprsim.results.folder._put_in_place",
        load_selection,
    ),
    "sweep": (("sweep", "small.yaml", *OVER), "cprsim.results.folder._put_in_place", load_sweep),
}
KILL = f"""\
import os, signal, sys
from importlib import import_module
{WITHOUT_FIGURES}
room, function = sys.argv.pop(1).rsplit(".", 1)
setattr(import_module(room), function, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
from cprsim.cli import main
main()
"""


@pytest.mark.parametrize("moment", KILLED)
def test_a_kill_leaves_no_half_written_result_and_the_same_command_finishes(
    scenario, moment, monkeypatch
) -> None:
    arguments, function, read = KILLED[moment]
    command = [sys.executable, "-c", KILL, function, *map(str, arguments)]
    killed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert killed.returncode == -9, killed.stderr
    results = scenario.parent / "results"
    assert list(results.glob(".*.unfinished/new/*")), "it was killed before it wrote anything"
    assert visible(results) == []

    monkeypatch.setattr("cprsim.pages.figures.save_figures", lambda *_, **__: [])
    assert call(*arguments).exit_code == 0
    (finished,) = visible(results)
    read(finished)
    assert not list(results.glob(".*.unfinished"))


def visible(results: Path) -> list[Path]:
    """What looks like results; the points of a sweep are kept beside them, each whole."""
    points = results / "points"
    for path in points.rglob("*.json"):
        json.loads(path.read_text("utf-8"))
    return [path for path in results.glob("[!.]*") if path != points]
