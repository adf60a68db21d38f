"""Intervals of damaged logs: a few logs; benchmarks/interval_coverage.py has hundreds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from benchmarks.interval_coverage import ledger, rows_of


def test_damaged_logs_give_the_hours_within_a_few_percent() -> None:
    """Not the rate of the intervals, for which six logs are too few: errors, and widths."""
    by_part = defaultdict(list)
    for seed in range(6):
        for row in rows_of(ledger, seed):
            by_part[row["what"]].append((row["width"], row["error"]))
    assert len(by_part) >= 11  # partial recovery does nothing again
    for what, rows in by_part.items():
        width, error = np.array(rows).T
        limit = 0.10 if what.endswith("detect") else 0.03
        assert abs(error.mean()) < limit, what
        assert np.median(width) < (0.3 if what.endswith("detect") else 0.2), what
