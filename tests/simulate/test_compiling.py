"""Machine code that is kept is never that of an older source."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

STEP = "from cprsim.compiling import inlined\n\n@inlined\ndef step(x):\n    return x + {}\n"
WALK = (
    "from cprsim.compiling import compiled\nfrom steps import step\n\n"
    "@compiled\ndef walk(x):\n    return step(x)\n"
)


def test_an_inlined_function_of_another_file_that_changes_is_compiled_anew(tmp_path: Path) -> None:
    (tmp_path / "walk.py").write_text(WALK, "utf-8")
    walk = "import walk; print(walk.walk(1), len(walk.walk.stats.cache_hits))"
    said = []
    for more in (1, 1, 2):
        (tmp_path / "steps.py").write_text(STEP.format(more), "utf-8")
        done = subprocess.run(
            [sys.executable, "-c", walk], cwd=tmp_path, check=True, capture_output=True, text=True
        )
        said.append(done.stdout.split())
    assert said == [["2", "0"], ["2", "1"], ["3", "0"]]
