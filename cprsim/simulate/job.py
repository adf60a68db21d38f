"""A job under a recovery system: what is the same in all replications."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

from cprsim.records import Clock, Cluster
from cprsim.recovery.policy import Policy, Scope

HOPELESS_AFTER = 1000  # failures in a row without any first-time work between them: given up
NO_WORK_H = 1e-9  # first-time work up to this is rounding, which differs between engines
HARDLY_AFTER = 5000  # failures, after which a job that is this slow is given up ...
HARDLY_TIMES = 10.0  # ... over so many times the work that it has done so far


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedJob:
    """A job under a policy. Ends at `useful_h` of progress or at `horizon_h` of wall time.

    Two of them are never equal, so that what follows from one can be kept by it.
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
    """One failure of one replication: an instant of its clock, its slots, and what it kills.

    Or the notice of one (scope `NOTICE`): it strikes no slot.
    """

    at_h: float
    slots: tuple[int, ...]
    scope: int  # number among the job's
    repair_h: tuple[float, ...]  # of each slot's node; not asked for where no node is needed


@dataclass(frozen=True, slots=True)
class StaleShard:
    """A shard that went back while the job went on.

    `fresh_h` is the later of the content and its own last reload since the job last went back.
    """

    progress_h: float
    slot: int
    content_h: float
    fresh_h: float = nan


@dataclass(frozen=True, slots=True)
class ReplicationOutcome:
    """What became of one replication; `hours` are of the policy's parts, in their order."""

    finished: bool
    wall_h: float
    useful_h: float
    hours: tuple[float, ...]
    n_failures: int
    n_saves: int  # committed
    stale: tuple[StaleShard, ...]
