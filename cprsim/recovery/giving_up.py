"""How many saves a job has, and when it is given up: the same for all engines."""

from __future__ import annotations

from math import floor

HOPELESS_AFTER = 1000  # failures in a row without any first-time work between them
NO_WORK_H = 1e-9  # first-time work up to this is rounding, which differs between engines
HARDLY_AFTER = 5000  # failures, after which a job that is this slow is given up ...
HARDLY_TIMES = 10.0  # ... over so many times the work that it has done so far

ROUNDING = 1e-9  # intervals: how far from whole a job may be and still count as whole


def n_saves_due(interval_h: float, useful_h: float) -> int:
    """How many saves a job of `useful_h` hours has, one every `interval_h` hours of progress."""
    never = interval_h >= useful_h * (1.0 - ROUNDING)
    return 0 if never else floor(useful_h / interval_h + ROUNDING)
