"""Logs in forms that were misread without a word: each gives the right value, or is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accounts import cases_costs, cases_failures, cases_jobs, cases_watched
from tests.accounts.case import Case, check

CASES = [*cases_failures.CASES, *cases_watched.CASES, *cases_jobs.CASES, *cases_costs.CASES]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_log_gives_the_right_value_or_is_refused(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(case, tmp_path, monkeypatch)
