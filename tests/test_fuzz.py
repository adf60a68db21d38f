"""30 cases of benchmarks/fuzz.py: damaged inputs are taken or refused, soon and in little room."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "fuzz.py"
N_CASES = 30


def test_damaged_inputs_end_in_no_traceback_hang_or_memory_beyond_the_budget() -> None:
    command = [sys.executable, str(SCRIPT), "--cases", str(N_CASES), "--as-found"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert "0 traceback, 0 hang, 0 memory, 0 broken" in last
    counts = {word: int(n) for n, word in re.findall(r"(\d+) (accepted|refused)", last)}
    assert sum(counts.values()) == N_CASES
    assert min(counts.values()) >= N_CASES // 10, "both paths are tried"
