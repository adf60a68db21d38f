"""The study of intervals and warnings: single rows, resumed where a run was stopped."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fit_coverage import main
from cprsim.errors import ParameterError


def test_single_rows_are_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal.json"
    for n_fleets, n_now in ((2, 2), (5, 3), (5, 0)):
        main(n_fleets, journal, ["unwatched"])
        shown = capsys.readouterr().out
        assert f"unwatched: {n_now} fleets now" in shown
        assert f"a silent end: Poisson, watched 80%: said 100.0% of {n_fleets}" in shown
        assert "families" not in shown
    main(2, journal, ["since"])
    assert "since: 2 fleets now" in capsys.readouterr().out
    main(5, journal, ["unwatched"])
    assert "unwatched: 0 fleets now" in capsys.readouterr().out  # kept beside the other row


def test_a_row_that_is_none_is_named() -> None:
    with pytest.raises(ParameterError, match="famlies: no such kind; there are changing, causes"):
        main(2, None, ["families", "famlies"])
