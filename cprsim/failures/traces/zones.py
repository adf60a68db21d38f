"""Local time stamps in a zone: one hour a year occurs twice, and one is skipped."""

from __future__ import annotations

from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import pandas as pd

from cprsim.errors import ParameterError
from cprsim.foreign import one_line


class Local(NamedTuple):
    """Local time stamps as instants."""

    first: pd.Series[pd.Timestamp]  # the earlier instant where there are two
    later: pd.Series[pd.Timestamp] | None  # the other one, NaT where there is one alone
    n_skipped: int  # no such local time: taken as the instant at which it was skipped


def require_zone(name: str) -> str:
    """The name. Raises ParameterError where no zone of the IANA database has it."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        message = f"--tz: there is no time zone '{one_line(name)}'; one is Europe/Berlin, or UTC"
        raise ParameterError(message) from None
    return name


def in_zone(stamps: pd.Series[pd.Timestamp], tz: str) -> Local:
    """Time stamps that were read as UTC, taken as local time of a zone.

    Parameters
    ----------
    stamps : (n,), NaT where there is none
    tz : name of the zone

    Raises
    ------
    ParameterError
        where there is no such zone.
    """
    local = stamps.dt.tz_localize(None) if stamps.dt.tz is not None else stamps
    summer = np.ones(len(local), dtype=bool)
    zone = require_zone(tz)
    first = local.dt.tz_localize(zone, ambiguous=summer, nonexistent="shift_forward")
    strict = local.dt.tz_localize(zone, ambiguous="NaT", nonexistent="shift_forward")
    twice = strict.isna() & local.notna()
    later = None
    if twice.any():
        second = local.dt.tz_localize(zone, ambiguous=~summer, nonexistent="shift_forward")
        later = second.where(twice).dt.tz_convert("UTC")
    n_skipped = int(((first.dt.tz_localize(None) != local) & local.notna()).sum())
    return Local(first.dt.tz_convert("UTC"), later, n_skipped)
