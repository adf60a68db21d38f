"""Intervals of damaged logs: a few logs; benchmarks/ledger_coverage.py has hundreds."""

from __future__ import annotations

import numpy as np

from benchmarks.ledger_coverage import studied


def test_damaged_logs_give_the_hours_within_a_few_percent() -> None:
    """Not the rate of the intervals, for which six logs are too few: errors, and widths."""
    rows = studied(6, 0.1, 0.3)
    assert len(rows) == 9  # partial recovery does nothing again
    for key, of_part in rows.items():
        _, width, error = np.array(of_part).T
        limit = 0.10 if key[1] == "detect" else 0.03
        assert abs(error.mean()) < limit, key
        assert np.median(width) < (0.3 if key[1] == "detect" else 0.2), key
