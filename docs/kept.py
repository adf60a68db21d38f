"""What came of the promise and of the paper's results, for documents that call this (cog)."""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path

from rich.console import Console

from cprsim.reproduce.promise.study import print_exhaustive, print_summary

SUMMARY = Path(__file__).parents[1] / "results" / "promise" / "summary.json"


def kept() -> str:
    """Both tables of the last full run of `make promise`."""
    document = json.loads(SUMMARY.read_text("utf-8"))
    console = Console(file=StringIO(), width=124)
    print_summary(console, document)
    print_exhaustive(console, document)
    assert isinstance(console.file, StringIO)
    lines = [line.rstrip() for line in console.file.getvalue().splitlines()]
    return "\n".join(["", "```text", "$ make promise", *lines, "```", ""])


def verdicts() -> str:
    """What the kept comparisons with papers came to, in words."""
    kept = sorted(SUMMARY.parents[1].glob("reproduction/*/summary.json"))
    rows = [row for path in kept for row in json.loads(path.read_text("utf-8"))["rows"]]
    found = Counter(row["verdict"]["finding"] for row in rows)
    missed = found["not consistent"] + found["not reproduced"]
    return (
        f"\nOf the comparisons with papers' numbers {found['reproduced']} are reproduced, "
        f"{found['consistent']} consistent, {missed} not, and {found['open']} open "
        "([what that means](docs/reproduction.md)).\n"
    )
