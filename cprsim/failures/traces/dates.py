"""Dates in the forms that tables have: ISO 8601, or one of those that people write."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pandas as pd

from cprsim.failures.traces.reading import FIRST_ROW, trace_error
from cprsim.foreign import one_line

DateForm = str | None  # as strptime has it; None: ISO 8601
DAYS = (
    "%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y", "%d-%b-%Y",
    "%d %b %Y", "%b %d %Y", "%d.%m.%y", "%m/%d/%y", "%d/%m/%y",
)  # fmt: skip
TIMES_OF_DAY = (
    " %H:%M:%S", " %H:%M", "", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p", "T%H:%M:%S", ", %H:%M",
)  # fmt: skip
FORMS = (*(day + time for day, time in product(DAYS, TIMES_OF_DAY)), "%a %b %d %H:%M:%S %Y")
TRIED_FIRST = 20  # cells


def parsed_dates(text: pd.Series[str], form: DateForm) -> pd.Series[pd.Timestamp]:
    """Time stamps in UTC, as written where they name no zone; NaT for what is none."""
    return pd.to_datetime(text, format=form or "ISO8601", errors="coerce", utc=True)


def form_of(text: pd.Series[str], path: Path, key: str) -> DateForm:
    """The form in which all cells are dates; ISO 8601 (None) where there is no other.

    Parameters
    ----------
    text : cells that are not empty
    path, key : for messages

    Raises
    ------
    TraceError
        where the cells are dates both as day/month and as month/day.
    """
    if parsed_dates(text, None).notna().all():
        return None
    fitting = [form for form in FORMS if _all_are(text.iloc[:TRIED_FIRST], form)]
    fitting = [form for form in fitting if _all_are(text, form)]
    if len(fitting) > 1:
        line = int(text.index[0]) + FIRST_ROW
        either = " or ".join(f"--date-format '{form}'" for form in fitting[:2])
        message = f"'{one_line(text.iloc[0])}' may be day/month or month/day: say {either}"
        raise trace_error(path, line, message, key)
    return fitting[0] if fitting else None


def _all_are(text: pd.Series[str], form: str) -> bool:
    return bool(parsed_dates(text, form).notna().all())
