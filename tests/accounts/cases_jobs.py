"""Cases of logs of jobs."""

from __future__ import annotations

from tests.accounts.case import Case

CASES: list[Case] = []
