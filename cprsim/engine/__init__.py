"""The fast path: all replications of a block advance from failure to failure, in arrays.

Nothing is random between two failures, so a job is taken from one to the next in one step: how many
saves commit, how far the work comes, what the failure cuts short. The products are the same two
records that the cluster's event log folds into, equal to rounding (tests/engine/).
"""

from __future__ import annotations

from cprsim.engine.applying import why_not
from cprsim.engine.course import simulate
from cprsim.engine.rows import Ran

__all__ = ["Ran", "simulate", "why_not"]
