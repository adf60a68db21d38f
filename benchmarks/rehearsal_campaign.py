"""What `make campaign` found: rehearsals beside their predictions, as a table in Markdown.

Reads the files ``rehearsal.json`` that are kept in ``results/rehearsal``; given results folders, it
keeps theirs there first, each under the name that stands before it.

    python -m benchmarks.rehearsal_campaign [NAME=FOLDER ...]
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

KEPT = Path(__file__).parents[1] / "results" / "rehearsal"
FILE = "rehearsal.json"
OVERHEAD, PLS = "overhead", "PLS"

Attempt = Mapping[str, Any]


def keep(named: Iterable[str]) -> None:
    """Copy the file of each ``NAME=FOLDER``."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for one in named:
        name, _, folder = one.partition("=")
        shutil.copy(Path(folder) / FILE, KEPT / f"{name}.json")


def row(strategy: str, attempts: list[Attempt]) -> str:
    """One line of the table: all attempts under a strategy."""
    valid = [one for one in attempts if one["too_busy"] is None]
    errors = [error_of(one, OVERHEAD) for one in valid]
    within = sum(abs(error) <= 0.05 for error in errors)
    parts_off = sum(
        line["off"]
        for one in valid
        for line in one["quantities"]
        if line["name"] not in (OVERHEAD, PLS)
    )
    n_parts = sum(
        line["name"] not in (OVERHEAD, PLS) for one in valid for line in one["quantities"]
    )
    pls = [abs(line["predicted"] - line["measured"]) for line in of(valid, PLS)]
    equal = sum(one["replay"]["equal_bits"] for one in attempts)
    mean = 100 * sum(errors) / len(errors)
    widest = 100 * max(errors, key=abs)
    return (
        f"| {strategy} | {len(valid)} of {len(attempts)} | {mean:+.1f} % | {widest:+.1f} % "
        f"| {within} of {len(valid)} | {n_parts - parts_off} of {n_parts} | {max(pls):.4f} "
        f"| {equal} of {len(attempts)} |"
    )


def of(attempts: Iterable[Attempt], name: str) -> list[Mapping[str, Any]]:
    """The quantity of this name in each attempt."""
    return [line for one in attempts for line in one["quantities"] if line["name"] == name]


def error_of(attempt: Attempt, name: str) -> float:
    """Measured beside predicted, as a fraction."""
    (line,) = of([attempt], name)
    return float(line["measured"] / line["predicted"] - 1)


def main() -> None:
    keep(sys.argv[1:])
    print(
        "| strategy | valid runs | overhead, mean error | worst | within 5 % | parts within "
        "| PLS off by | bits equal |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for file in sorted(KEPT.glob("*.json")):
        found = json.loads(file.read_text("utf-8"))
        for strategy in found["strategies"]:
            attempts = [one for one in found["attempts"] if one["strategy"] == strategy]
            print(row(f"{strategy} ({file.stem.replace('-', ' ')})", attempts))


if __name__ == "__main__":
    main()
