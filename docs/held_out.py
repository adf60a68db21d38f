"""What came of `make held-out`, as tables of a document, which calls it itself (cog)."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

SUMMARY = Path(__file__).parents[1] / "results" / "held-out" / "summary.json"


def held_out() -> str:
    """A row per model and metric, then the cells of AUC."""
    models = json.loads(SUMMARY.read_text("utf-8"))
    rows = [
        "| model | seeds: curve, fresh | metric | cells held | rms z | worst ratio |",
        "|---" * 6 + "|",
    ]
    for name, metrics in models.items():
        for metric, cells in metrics.items():
            ratios = [c["predicted"] / c["measured"] for c in cells if _told(c)]
            worst = max(ratios, key=lambda ratio: abs(log(ratio)))
            z = (sum(cell["z"] ** 2 for cell in cells) / len(cells)) ** 0.5
            held = f"{sum(cell['held'] for cell in cells)} of {len(cells)}"
            seeds = f"{cells[0]['seeds_of_curve']}, {cells[0]['seeds']}"
            rows.append(f"| {name} | {seeds} | {metric} | {held} | {z:.2f} | {worst:.2f} |")
    kinds = list(dict.fromkeys(_kind(c) for m in models.values() for c in m["auc"]))
    strategies = list(dict.fromkeys(c["strategy"] for m in models.values() for c in m["auc"]))
    rows += ["", f"| AUC lost, measured / predicted, in 0.0001 | {' | '.join(strategies)} |"]
    rows.append("|---" * (1 + len(strategies)) + "|")
    for name, metrics in models.items():
        for one in kinds:
            cells = [c for c in metrics["auc"] if _kind(c) == one]
            said = " | ".join(_shown(cell) for cell in cells)
            rows.append(f"| {name}: {one} | {said} |")
    return "\n".join(["", *rows, ""])


def _told(cell: dict[str, Any]) -> bool:
    """Whether the measured loss is above its own noise."""
    return bool(cell["measured"] > 2 * cell["noise"])


def _kind(cell: dict[str, Any]) -> str:
    return f"{cell['failures']} × {cell['servers']} of 8, saves every {cell['interval']:.0%}"


def _shown(cell: dict[str, Any]) -> str:
    measured, noise, predicted = (1e4 * cell[k] for k in ("measured", "noise", "predicted"))
    return f"{measured:.1f} ± {noise:.1f} / {predicted:.1f}{'' if cell['held'] else ' ✗'}"
