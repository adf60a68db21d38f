"""Intervals of damaged logs: a few logs; benchmarks/interval_coverage.py has hundreds."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from benchmarks.interval_coverage import ledger, main, rows_of


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


def test_a_study_goes_on_where_its_journal_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = tmp_path / "journal.json"
    for n in (2, 5):
        main(["circle"], n, journal)
        assert f"mean_gap_h lies outside: in 0.0% of {n}" in capsys.readouterr().out
    kept = journal.read_text("utf-8")
    main(["circle"], 5, journal)
    assert journal.read_text("utf-8") == kept
