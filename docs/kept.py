"""What came of the promise and of the paper's results, for documents that call this (cog)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from cprsim.reproduce.promise.study import print_exhaustive, print_summary

RESULTS = Path(__file__).parents[1] / "results"


def kept() -> str:
    """Both tables of the last full run of `make promise`."""
    return _promise("promise", print_summary, print_exhaustive)


def kept_torch() -> str:
    """The cells of the last full run of `make promise-torch`."""
    return _promise("promise-torch", print_summary)


def _promise(target: str, *prints: Callable[[Console, Any], None]) -> str:
    document = json.loads((RESULTS / target / "summary.json").read_text("utf-8"))
    console = Console(file=StringIO(), width=124)
    for show in prints:
        show(console, document)
    assert isinstance(console.file, StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(["", "```text", f"$ make {target}", *lines, "```", ""])


def verdicts() -> str:
    """What the kept comparisons with papers came to, in words."""
    kept = sorted(RESULTS.glob("reproduction/*/summary.json"))
    rows = [row for path in kept for row in json.loads(path.read_text("utf-8"))["rows"]]
    found = Counter(row["verdict"]["finding"] for row in rows)
    missed = found["not consistent"] + found["not reproduced"]
    return (
        f"\nOf the comparisons with papers' numbers {found['reproduced']} are reproduced, "
        f"{found['consistent']} consistent, {missed} not, and {found['open']} open "
        "([what that means](docs/reproduction.md)).\n"
    )
