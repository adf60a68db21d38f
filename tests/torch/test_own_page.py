"""The commands of docs/own-model.md lead from a model to an interval, as they stand there."""

import re
import shlex
import subprocess
from pathlib import Path
from shutil import copy

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make oracle installs it")

ROOT = Path(__file__).parents[2]
FULL, FEWER = "samples: 12000", "samples: 3000"  # of the example, and so that it takes less


def test_the_commands_of_the_page_lead_to_an_interval(tmp_path) -> None:
    for name in ("two_tower.py", "two_tower.yaml"):
        copy(ROOT / "examples" / name, tmp_path)
    scenario = tmp_path / "two_tower.yaml"
    assert FULL in scenario.read_text("utf-8")
    scenario.write_text(scenario.read_text("utf-8").replace(FULL, FEWER), "utf-8")
    page = (ROOT / "docs" / "own-model.md").read_text("utf-8")
    first_block = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    commands = [shlex.split(one) for one in first_block.splitlines() if one.startswith("cprsim")]
    assert [command[1] for command in commands] == ["measure", "select"]
    for command in commands:
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert ended.returncode == 0, ended.stderr
    assert re.search(r"Use .*, saving every \d", ended.stdout)
