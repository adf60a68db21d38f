"""One instant of a period, as a user writes it: an ISO 8601 date or time stamp."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd

from cprsim.failures.traces.reading import trace_error
from cprsim.failures.traces.times import ZONE, hours_since_1970
from cprsim.failures.traces.zones import in_zone
from cprsim.foreign import one_line


def date_h(text: str, path: Path, tz: str | None) -> float:
    """Hours since 1970; in `tz`, else UTC, where the text names no zone.

    Raises
    ------
    TraceError
        for what is no ISO 8601 date or time stamp.
    """
    stamp = pd.Series(pd.to_datetime([text], format="ISO8601", errors="coerce", utc=True))
    if tz is not None and re.search(ZONE, text) is None:
        stamp = in_zone(stamp, tz).first
    hours = float(hours_since_1970(stamp)[0])
    if np.isnan(hours):
        message = f"'{one_line(text)}' is no ISO 8601 time stamp, such as 2024-05-01T13:30:00Z"
        raise trace_error(path, None, message, "period")
    return hours
