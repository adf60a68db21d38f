"""What came of the promise and of the paper's results, for documents that call this (cog)."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results"
sys.path.insert(0, str(ROOT))

from benchmarks.promise import cells_text, choices_text  # noqa: E402


def kept() -> str:
    """Both tables of the last full run of `make promise`."""
    return _promise("promise", cells_text, choices_text)


def kept_torch() -> str:
    """The cells of the last full run of `make promise-torch`."""
    return _promise("promise-torch", cells_text)


def _promise(target: str, *texts: Callable[[dict[str, Any]], str]) -> str:
    document = json.loads((RESULTS / target / "summary.json").read_text("utf-8"))
    shown = "\n\n".join(text(document) for text in texts)
    return f"\n```text\n$ make {target}\n\n{shown}\n```\n"


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
