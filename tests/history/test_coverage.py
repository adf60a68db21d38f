"""Intervals of damaged logs: a few logs; benchmarks/ledger_coverage.py has hundreds."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from benchmarks.ledger_coverage import studied


def test_damaged_logs_give_the_hours_within_a_few_percent() -> None:
    """Not the rate of the intervals, for which six logs are too few: errors, and widths."""
    by_part = defaultdict(list)
    for row in studied(6, 0.1, 0.3):
        by_part[row["strategy"], row["part"]].append((row["width"], row["error"]))
    assert len(by_part) >= 11  # partial recovery does nothing again
    for key, rows in by_part.items():
        width, error = np.array(rows).T
        limit = 0.10 if key[1] == "detect" else 0.03
        assert abs(error.mean()) < limit, key
        assert np.median(width) < (0.3 if key[1] == "detect" else 0.2), key
