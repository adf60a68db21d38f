"""Cases of logs of costs, replays, tables of jobs."""

from __future__ import annotations

from tests.accounts.case import Case

CASES: list[Case] = []
