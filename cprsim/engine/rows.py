"""What the engine hands back: the two records, and which replications it left to others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cprsim.records import CostBreakdown, Floats, Ints, ShardLoss

LOSS = np.dtype(
    [
        ("replication", "i8"),
        ("progress_h", "f8"),
        ("slot", "i8"),
        ("since_save_h", "f8"),
        ("since_reload_h", "f8"),
    ]
)
Losses = NDArray[Any]  # of LOSS


@dataclass(frozen=True, slots=True)
class Ran:
    """Costs and losses of the replications that the engine ran, in order of replication.

    `left` are those, within the block, whose path is too intricate for it; they have no rows.
    """

    costs: CostBreakdown
    losses: ShardLoss
    stale_h: Floats  # (n_ran,) share x work since the last save, summed over the losses
    stale_net_h: Floats  # (n_ran,) the same with the work since the later of save and reload
    left: Ints


def losses_of(parts: list[Losses], first_number: int, n_emb_ps: int) -> ShardLoss:
    """The shards that went back, in order of replication and time.

    Parameters
    ----------
    parts : the replications of each in order, but not of all
    first_number : number of the block's first replication among all
    """
    lost = np.concatenate(parts) if parts else np.empty(0, LOSS)
    if len(parts) > 1:
        lost = lost[np.argsort(lost["replication"], kind="stable")]
    return ShardLoss(
        replication=lost["replication"] + first_number,
        progress_h=np.ascontiguousarray(lost["progress_h"]),
        slot=np.ascontiguousarray(lost["slot"]),
        since_save_h=np.ascontiguousarray(lost["since_save_h"]),
        since_reload_h=np.ascontiguousarray(lost["since_reload_h"]),
        share=np.full(len(lost), 1.0 / max(n_emb_ps, 1)),
    )
