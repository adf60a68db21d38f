"""Cases of logs of failures: columns, words, names, instants, metrics."""

from __future__ import annotations

from tests.accounts.case import Case

CASES: list[Case] = []
