"""Tasks in processes of their own, here or on a cluster; one that dies takes no other with it.

run_each ──> pool: in this process | loky's processes on this machine | a dask cluster
    each task is waiting, running or finished; a task whose process died is a suspect: it is
    run once more with nothing beside it, so that a second death can only be its own doing
"""

from __future__ import annotations

from cprsim.workers.pools import BACKENDS, Workers
from cprsim.workers.tasks import HERE, run_each

__all__ = ["BACKENDS", "HERE", "Workers", "run_each"]
