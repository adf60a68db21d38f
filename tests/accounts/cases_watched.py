"""Cases of logs of failures: who was watched and when, jobs on several nodes, ends, the balance."""

from __future__ import annotations

from tests.accounts.case import Case

CASES: list[Case] = []
