"""Where the fast path applies, and why it does not elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

from cprsim.records import Cluster, Costs, RecoveryPolicy
from cprsim.setting import save_grid

ROUNDED_OFF = 1e-13  # of the job: how far beyond its end the last save may be by rounding


def why_not(
    useful_h: float, cluster: Cluster, costs: Costs, policies: Iterable[RecoveryPolicy]
) -> str | None:
    """Why these jobs need the event-by-event cluster; None where the fast path applies."""
    if cluster.n_spares is not None:
        return "nodes wait in a queue for a finite number of spares (cluster.spares)"
    if costs.save_background is not None:
        return "saves go on in the background beside the training (costs.save.background)"
    for policy in policies:
        if _last_save_is_moved(policy.save_interval_h, useful_h):
            return f"`{policy.name}` has a last save a rounding error beyond the end of the job"
    return None


def _last_save_is_moved(interval_h: float, useful_h: float) -> bool:
    n_saves = len(save_grid(interval_h, useful_h).instants_h) - 1
    return isfinite(interval_h) and n_saves * interval_h > useful_h * (1.0 + ROUNDED_OFF)
