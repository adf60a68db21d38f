"""What came of `make coverage`, as tables of a document, which calls it itself (cog)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SUMMARY = Path(__file__).parents[1] / "results" / "coverage" / "summary.json"
METRICS = {"auc": "AUC", "log-loss": "log-loss"}


def covered() -> str:
    """By number of seeds, and by when the failure strikes."""
    held = json.loads(SUMMARY.read_text("utf-8"))["held"]
    by_seeds = [
        [
            METRICS[one["metric"]],
            str(one["seeds"]),
            f"{one['curves']} ({one['truth_seeds']})",
            f"{one['coverage']:.1%} ± {one['standard_error']:.1%}",
            f"{one['coverage_told']:.1%}",
            f"× {one['width']:.2f}",
        ]
        for one in held
    ]
    heading = [
        "metric",
        "seeds",
        "curves (seeds of the truth)",
        "coverage of 95 % intervals",
        "with W told",
        "width over that with W told",
    ]
    times = [str(one["fails_at"]) for one in held[0]["by_time"]]
    by_time = [
        [METRICS[one["metric"]], str(one["seeds"]), *map(_cell, one["by_time"])] for one in held
    ]
    return "\n".join(
        [
            "",
            *_table(heading, by_seeds),
            "",
            "Coverage and width by when the failure strikes (share of the job done):",
            "",
            *_table(["metric", "seeds", *times], by_time),
            "",
        ]
    )


def _cell(one: dict[str, Any]) -> str:
    return f"{one['coverage']:.0%}, × {one['width']:.2f}"


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heading, ["---"] * len(heading), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]
