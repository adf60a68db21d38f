"""The slopes of the shipped curves as a table of a document, which calls it itself (cog)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from scipy import stats

from cprsim.curves.choosing import shipped_path

NAMES = {
    "partial": "partial",
    "mfu": "MFU",
    "scar": "SCAR",
    "ssu": "SSU",
    "round-robin": "round robin (control)",
    "mfu+": "MFU, small tables with every sub-save",
    "scar+": "SCAR, the same",
    "ssu+": "SSU, the same",
    "round-robin+": "round robin, the same",
}


def slopes(curves: Mapping[str, str], metric: str = "auc") -> str:
    """A row per strategy; `curves` are headings by the name of a shipped curve."""
    measured = {
        name: json.loads(shipped_path(name).read_text("utf-8"))["checks"] for name in curves
    }
    heading = " | ".join(f"{heading} | over partial | bytes" for heading in curves.values())
    rows = [
        " | ".join(["", NAMES[key], *_cells(measured, metric, key), ""]).strip() for key in NAMES
    ]
    rule = "|---" * (1 + 3 * len(curves)) + "|"
    return "\n".join(["", f"| loss per weighted PLS | {heading} |", rule, *rows, ""])


def _cells(measured: Mapping[str, Any], metric: str, key: str) -> Iterator[str]:
    for checks in measured.values():
        slope = checks[metric]["slopes"]
        half_width = stats.t.ppf(0.975, len(slope[key]["by_seed"]) - 1)
        wrote = checks["bytes_written"]["by_strategy"]
        yield f"{slope[key]['mean']:.4f} ± {half_width * slope[key]['standard_error']:.4f}"
        yield f"{slope[key]['mean'] / slope['partial']['mean']:.2f}"
        yield f"{wrote[key] / wrote['partial']:.1f}"
