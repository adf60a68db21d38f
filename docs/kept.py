"""What came of the promise, as a block of a document, which calls it itself (cog)."""

from __future__ import annotations

import json
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
