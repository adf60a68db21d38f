"""Machine code that is kept is never that of an older source, and few replications need none."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cprsim.compiling import INTERPRETED_S, Compiled, always
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


def test_a_loop_is_interpreted_as_long_as_all_it_is_given_takes_less_than_three_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = Compiled(lambda: None)
    assert not loop.pays(0.9 * INTERPRETED_S)
    assert loop.pays(0.2 * INTERPRETED_S)
    with always(machine_code=False):
        assert not loop.pays(0.0)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    assert not loop.pays(1e9)


@pytest.mark.long
def test_few_replications_need_no_compiler_and_many_say_that_it_is_asked(tmp_path: Path) -> None:
    code = (
        "import sys; from cprsim.cli import main\n"
        "try: main()\n"
        "finally: print('numba' in sys.modules, file=sys.stderr)"
    )

    def ran(n: int) -> list[str]:
        command = [sys.executable, "-c", code, "run", str(SCENARIOS / "quickstart.yaml")]
        done = subprocess.run(
            [*command, "--replications", str(n), "--out", str(tmp_path / str(n))],
            capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        )  # fmt: skip
        return done.stderr.splitlines()

    assert ran(100)[-1] == "False"
    for n_times in (1, 0):
        lines = ran(30_000 + n_times)
        assert lines[-1] == "True"
        assert sum("compiling the simulation" in line for line in lines) == n_times
