"""Where the fast path applies, and why it does not elsewhere."""

from __future__ import annotations

from cprsim.engine.saves import Grid
from cprsim.records import Cluster, Costs, OnFailure, RecoveryPolicy

ROUNDED_OFF = 1e-13  # of the job: how far beyond its end the last save may be by rounding


def why_not(useful_h: float, cluster: Cluster, costs: Costs, policy: RecoveryPolicy) -> str | None:
    """Why this job needs the event-by-event cluster; None where the fast path applies."""
    if cluster.n_spares is not None:
        return "nodes wait in a queue for a finite number of spares (cluster.spares)"
    if costs.save_background is not None:
        return "saves go on in the background beside the training (costs.save.background)"
    if cluster.slots_beside and policy.on_failure is OnFailure.RELOAD:
        return "lost trainers are replaced while the others go on (sync)"
    grid = Grid.of(policy, useful_h)
    if grid.n_saves and grid.n_saves * grid.interval_h > useful_h * (1.0 + ROUNDED_OFF):
        return f"the last save of `{policy.name}` is due a rounding error beyond the job's end"
    return None
