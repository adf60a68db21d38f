"""Machine code that is kept is never that of an older source."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.making import SCENARIOS

STEP = "from cprsim.compiling import {0}\n\n@{0}\ndef step(x):\n    return x + {1}\n"
WALK = (
    "from cprsim.compiling import compiled\nfrom steps import step\n\n"
    "@compiled\ndef walk(x):\n    return step(x)\n"
)


@pytest.mark.parametrize("how", ["inlined", "part"])
def test_a_part_in_another_file_that_changes_is_compiled_anew(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # both versions may be of one second
    (tmp_path / "walk.py").write_text(WALK, "utf-8")
    found = []
    for more in (1, 1, 2):
        (tmp_path / "steps.py").write_text(STEP.format(how, more), "utf-8")
        walk = imported_anew("walk", "steps").walk
        found.append((walk(1), len(walk.code.stats.cache_hits)))
    assert found == [(2, 0), (2, 1), (3, 0)]


def imported_anew(name: str, *others: str) -> Any:
    """As by a new process: nothing of the modules is known but what was kept in files."""
    for known in (name, *others):
        sys.modules.pop(known, None)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    finally:
        for known in (name, *others):
            sys.modules.pop(known, None)


@pytest.mark.long
def test_the_first_run_on_a_machine_says_that_it_compiles(tmp_path: Path) -> None:
    def ran(n: int) -> str:
        command = [sys.executable, "-m", "cprsim", "-v", "run", str(SCENARIOS / "quickstart.yaml")]
        done = subprocess.run(
            [*command, "--replications", "100", "--out", str(tmp_path / str(n))],
            capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        return done.stderr

    assert ["compiling the simulation" in ran(n) for n in range(2)] == [True, False]


def test_a_simulation_that_must_not_be_compiled_is_refused(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "cprsim", "run", str(SCENARIOS / "quickstart.yaml")]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "out")],
        capture_output=True, text=True, env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    assert done.returncode == 2
    assert "NUMBA_DISABLE_JIT is set" in done.stderr
    assert "Traceback" not in done.stderr
