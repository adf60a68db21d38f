"""What a newcomer waits for: the first `cprsim run` of shipped scenarios, the first sweep.

Each command runs in a folder of its own with no machine code kept; `again` runs it a second time
for another folder of results. Python's own byte code is there.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

SCENARIOS = (
    "quickstart", "production", "production-gamma", "criteo-kaggle", "goodput", "failure-analysis",
    "shadowsync", "llm", "moe",
)  # fmt: skip
POINTS = ",".join(f"{seconds} s" for seconds in range(60, 460, 20))
COMMANDS = {f"run {name}": ["run", name] for name in SCENARIOS} | {
    "sweep quickstart, 20 points": ["sweep", "quickstart", "--over", f"costs.save={POINTS}"],
}


def took_s(arguments: list[str], folder: Path, kept: Path) -> float:
    """Seconds that a command takes, as who waits for it sees them."""
    command = [sys.executable, "-m", "cprsim", *arguments, "--out", str(folder)]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(kept)}
    began = perf_counter()
    subprocess.run(command, env=environment, cwd=kept, capture_output=True, check=True)
    return perf_counter() - began


def main() -> None:
    subprocess.run([sys.executable, "-m", "cprsim", "--help"], capture_output=True, check=True)
    print(f"{os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} when this began")
    print(f"{'seconds':<32}{'first':>8}{'again':>8}")
    for name, arguments in COMMANDS.items():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            first_s = took_s(arguments, place / "first", place)
            again_s = took_s(arguments, place / "again", place)
        print(f"{name:<32}{first_s:8.1f}{again_s:8.1f}", flush=True)


if __name__ == "__main__":
    main()
