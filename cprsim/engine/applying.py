"""Where the fast path applies, and why it does not elsewhere."""

from __future__ import annotations

from cprsim.records import Cluster, OnFailure, RecoveryPolicy


def why_not(cluster: Cluster, policy: RecoveryPolicy) -> str | None:
    """Why this job needs the event-by-event cluster; None where the fast path applies."""
    if cluster.n_spares is not None:
        return "nodes wait in a queue for a finite number of spares (cluster.spares)"
    if cluster.slots_beside and policy.on_failure is OnFailure.RELOAD:
        return "lost trainers are replaced while the others go on (sync)"
    return None
