"""What a study of intervals keeps and prints: how often they hold the truth, how wide they are."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import binom

from cprsim.whole_file import write_whole

BAND, LEVEL = 0.999, 0.95

Row = dict[
    str, Any
]  # of one interval: `holds`; `width` and `error` as shares of the truth; its own


def band(n: int, level: float = LEVEL) -> tuple[float, float]:
    """Shares of n independent intervals that hold the truth, with a probability of 99.9 %."""
    low, high = binom.interval(BAND, n, level)
    return float(low) / n, float(high) / n


def coverage(rows: Sequence[Row], of: str, level: float = LEVEL) -> str:
    """How many intervals there are, of logs or histories, how many hold, their width and error."""
    holds, width, error = (
        np.array([row[name] for row in rows]) for name in ("holds", "width", "error")
    )
    low, high = band(len(rows), level)
    return (
        f"{len(rows)} {of}: holds {holds.mean():.3f} "
        f"({low:.3f} to {high:.3f} for {100 * level:.0f} %)  "
        f"median width {np.median(width):.4f}  mean error {error.mean():+.4f}"
    )


def kept(journal: Path | None) -> list[Row]:
    """The rows of a journal; none where there is none yet."""
    if journal is None or not journal.exists():
        return []
    found: list[Row] = json.loads(journal.read_text("utf-8"))
    return found


def keep(journal: Path | None, rows: Sequence[Row]) -> None:
    """Write the rows down; a kill leaves the journal as it was before or after."""
    if journal is not None:
        write_whole(journal, json.dumps(rows))
