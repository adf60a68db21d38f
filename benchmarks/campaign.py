"""Rehearsals of many failures beside their predictions, kept in ``results/rehearsal``.

One run at a time, journaled: the same command goes on where it was interrupted, and tries again
what had no valid run. All attempts are kept.

    python -m benchmarks.campaign         # up to three hours; prints the table at the end
    python -m benchmarks.campaign --kept  # the table of what is kept
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

HOME = Path(__file__).parents[1]
KEPT = HOME / "results" / "rehearsal"
CAMPAIGN = {
    "ten traces": ["--repeat", "10", "--strategies", "full,partial,cpr,cpr-mfu,async,gemini"],
    "three traces": ["--repeat", "3", "--strategies", "cpr-ssu,cpr-scar,cpr-round-robin"],
    "20 minutes, 10 failures": [
        "--strategies", "cpr", "--set", "job.useful=20 min", "--set", "failures.count=10",
        "--set", "kernel.samples=600000",
    ],
}  # fmt: skip
OVERHEAD, PLS = WHOLE = "overhead", "PLS"
WITHIN = 0.05

Attempt = Mapping[str, Any]


def rehearse(name: str, arguments: list[str]) -> int:
    """Do, or go on with, one part of the campaign, and keep what it found; its exit code."""
    command = [sys.executable, "-m", "cprsim", "rehearse", "scenarios/rehearsal.yaml", "--json"]
    done = subprocess.run([*command, *arguments], cwd=HOME, stdout=subprocess.PIPE, check=False)
    folder = json.loads(done.stdout)["folder"] if done.stdout else None
    if folder is not None:
        KEPT.mkdir(parents=True, exist_ok=True)
        shutil.copy(HOME / folder / "rehearsal.json", kept_as(name))
    return done.returncode


def kept_as(name: str) -> Path:
    """Where a part of the campaign is kept."""
    return KEPT / f"{name.replace(',', '').replace(' ', '-')}.json"


def row(strategy: str, attempts: list[Attempt]) -> str:
    """One line of the table: all attempts under a strategy."""
    valid = [one for one in attempts if one["too_busy"] is None]
    errors = [line["measured"] / line["predicted"] - 1 for line in of(valid, OVERHEAD)]
    parts = [line for one in valid for line in one["quantities"] if line["name"] not in WHOLE]
    cells = (
        strategy,
        f"{len(valid)} of {len(attempts)}",
        f"{100 * sum(errors) / len(errors):+.1f} %",
        f"{100 * max(errors, key=abs):+.1f} %",
        f"{sum(abs(error) <= WITHIN for error in errors)} of {len(valid)}",
        f"{sum(not part['off'] for part in parts)} of {len(parts)}",
        f"{max(abs(line['predicted'] - line['measured']) for line in of(valid, PLS)):.4f}",
        f"{sum(one['replay']['equal_bits'] for one in attempts)} of {len(attempts)}",
    )
    return f"| {' | '.join(cells)} |"


def of(attempts: Iterable[Attempt], name: str) -> list[Mapping[str, Any]]:
    """The quantity of this name in each attempt."""
    return [line for one in attempts for line in one["quantities"] if line["name"] == name]


def table() -> None:
    """Print what is kept."""
    print(
        "| strategy | valid runs | overhead, mean error | worst | within 5 % | parts within "
        "| PLS off by | bits equal |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in CAMPAIGN:
        if not kept_as(name).exists():
            continue
        found = json.loads(kept_as(name).read_text("utf-8"))
        for strategy in found["strategies"]:
            attempts = [one for one in found["attempts"] if one["strategy"] == strategy]
            print(row(f"{strategy} ({name})", attempts))


def main() -> int:
    codes = [0]
    if "--kept" not in sys.argv[1:]:
        codes += [rehearse(name, arguments) for name, arguments in CAMPAIGN.items()]
    table()
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
