"""Sweeps: a scenario at every combination of some values, for every strategy, as one table.

    scenario with axes ──> points ──> store: which are finished already?
                             │          └── the others, in tasks for the workers ──> store
                             └──> table, in the order of the axes ──> folder

A point is addressed by what decides its numbers, so a sweep that was killed goes on where it was,
and a longer axis computes its new points only (``docs/adr/0013-sweeps-are-points-in-a-store.md``).
"""

from __future__ import annotations

from cprsim.results.store import PointStore
from cprsim.sweeps.folder import (
    AxisColumn,
    SweepResult,
    is_sweep,
    load_sweep,
    sweep_result,
    write_sweep,
)
from cprsim.sweeps.points import Point, points_of, require_sweep
from cprsim.sweeps.running import run_points
from cprsim.sweeps.summary import Extreme, StrategySummary, summaries
from cprsim.sweeps.table import column

__all__ = [
    "AxisColumn",
    "Extreme",
    "Point",
    "PointStore",
    "StrategySummary",
    "SweepResult",
    "column",
    "is_sweep",
    "load_sweep",
    "points_of",
    "require_sweep",
    "run_points",
    "summaries",
    "sweep_result",
    "write_sweep",
]
