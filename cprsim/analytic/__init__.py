"""Closed forms that the simulator is held to, one file per idea.

`overhead`        full and partial recovery from one kind of save, on three clocks
`content_age`     how old the newest committed content is at a failure

All are expectations in hours, shares of useful time, or probabilities. Each says on which clock
(docs/model.md, section 1) and under which assumption it is exact.
"""

from __future__ import annotations

from cprsim.analytic.content_age import content_age_h, content_age_of_long_job_h
from cprsim.analytic.overhead import (
    full_progress_h,
    full_uptime_h,
    full_wall_h,
    partial_progress_h,
    partial_uptime_h,
    partial_wall_h,
    restart_uptime_h,
    restart_wall_h,
)

__all__ = [
    "content_age_h",
    "content_age_of_long_job_h",
    "full_progress_h",
    "full_uptime_h",
    "full_wall_h",
    "partial_progress_h",
    "partial_uptime_h",
    "partial_wall_h",
    "restart_uptime_h",
    "restart_wall_h",
]
