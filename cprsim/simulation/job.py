"""A job under a recovery system: its inputs, common to all replications, and checks of results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cprsim.errors import AccountingError
from cprsim.job.intervals import ROUNDING
from cprsim.job.policy import Policy, Scope
from cprsim.job.records import Bools, Clock, Cluster, CostBreakdown

TOLERANCE_H = 1e-6  # of sums over one replication, in hours
MAX_FAILURES_WITHOUT_PROGRESS = (
    1000  # failures in a row without any first-time work between them: given up
)
NO_WORK_H = 1e-9  # first-time work up to this is rounding
HARDLY_AFTER = 5000  # failures, after which a job that is this slow is given up ...
MAX_SLOWDOWN = 10.0  # ... over so many times the work that it has done so far


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedJob:
    """A job under a policy. Ends at `useful_h` of progress or at `horizon_h` of wall time.

    Two of them are never equal, so that derived results can be cached by the object.
    """

    useful_h: float
    cluster: Cluster
    clock: Clock
    scopes: tuple[Scope, ...]  # of a failure: by number
    policy: Policy
    horizon_h: float | None = None


NOTICE = -1  # in place of a scope: this is no failure, but the notice of one


@dataclass(frozen=True, slots=True)
class ScopedFailure:
    """One failure of one replication: its instant on the clock, its slots, and its scope.

    With the scope `NOTICE` it is the warning of a failure, and strikes no slot.
    """

    at_h: float
    slots: tuple[int, ...]
    scope: int  # number among the job's
    repair_h: tuple[float, ...]  # of each slot's node; not asked for where no node is needed


def require_sums(costs: CostBreakdown) -> None:
    """Raise AccountingError where the parts of a replication do not add up to its wall time."""
    off_h = np.abs(costs.useful_h + costs.hours.sum(axis=1) - costs.wall_h)
    off = off_h > TOLERANCE_H + ROUNDING * costs.wall_h
    refuse(costs, off, "does not add up to its wall time")


def refuse(costs: CostBreakdown, off: Bools, problem: str) -> None:
    """Raise AccountingError where something is wrong with a replication."""
    if off.any():
        raise AccountingError(f"replication {costs.replication[off][0]} {problem}")
