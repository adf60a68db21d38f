"""Whose stale shards are priced, and how many samples they lose."""

from __future__ import annotations

import numpy as np

from cprsim.records import Floats, Ints, ShardLoss, SmallTables, SubSaves
from cprsim.recovery.policy import Policy

WHOLE = "partial"  # every save is whole: partial recovery, at whatever interval
MORE_BYTES = "+"  # after the tracker's name: the small tables are saved with every sub-save
TRACKERS = ("scar", "mfu", "ssu", "round-robin")
STRATEGIES = (WHOLE, *TRACKERS, *(tracker + MORE_BYTES for tracker in TRACKERS))


def strategy_key(policy: Policy) -> str | None:
    """Whose response a policy has: of `STRATEGIES`, or a system's; None: nothing is lost."""
    if policy.loses_as is not None:
        return policy.loses_as
    if not policy.leaves_stale:
        return None
    return WHOLE if policy.sub_saves is None else priority_key(policy.sub_saves)


def priority_key(sub_saves: SubSaves) -> str:
    """The same of a way of priority saving."""
    fresh = sub_saves.small_tables is SmallTables.EACH_SUB_SAVE
    return sub_saves.tracker + (MORE_BYTES if fresh else "")


def lost_portion(
    staleness_h: Floats, losses: ShardLoss, replications: Ints, useful_h: float
) -> Floats:
    """Portion of lost samples of each replication.

    Sum of ``staleness * share / useful`` over the replication's losses: samples are lost in
    proportion to hours of work, and a shard holds its share of the embedding servers.
    """
    portion = np.zeros(len(replications))
    row = np.searchsorted(replications, losses.replication)
    np.add.at(portion, row, staleness_h * losses.share / useful_h)
    return portion
