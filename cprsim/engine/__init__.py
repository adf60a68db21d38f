"""The fast path: replications go from failure to failure, compiled.

Nothing is random between two failures, so a job is taken from one to the next in one step: how many
saves commit, how far the work comes, what the failure cuts short. The products are the same two
records that the cluster's event log folds into, equal to rounding (tests/engine/).

    simulate    a block of replications under one policy        (course.py)
    Plan        a job under a policy, in plain numbers          (terms.py)
    run         one replication after the other                 (loops.py), of what a job is
                (standing.py), what it does until the next failure (stretches.py), what that does
                (failing.py)
    hurry       many abreast, in the common case                (steady.py)
"""

from __future__ import annotations

from cprsim.engine.applying import why_not
from cprsim.engine.course import compile_now, is_compiled, simulate
from cprsim.engine.rows import Ran

__all__ = ["Ran", "compile_now", "is_compiled", "simulate", "why_not"]
