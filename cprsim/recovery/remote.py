"""Which of a job's saves go to remote storage."""

from __future__ import annotations

from cprsim.recovery.giving_up import n_saves_due
from cprsim.recovery.policy import Medium, Policy


def remote_share(policy: Policy, useful_h: float) -> float:
    """Which share of the saves of an undisturbed job goes to remote storage, by their number."""
    medium = {tier.name: tier.medium for tier in policy.tiers}
    n_by_tier: dict[str, float] = {}
    for capture in policy.captures:  # a flush stands behind what it follows
        n = float(n_saves_due(capture.every_h, useful_h)) if capture.every_h else 0.0
        if capture.after is not None:
            n = n_by_tier.get(capture.after, 0.0) / capture.every_nth
        n_by_tier[capture.tier] = n_by_tier.get(capture.tier, 0.0) + n / capture.parts
    n_remote = sum(n for tier, n in n_by_tier.items() if medium[tier] is Medium.REMOTE)
    n_all = sum(n_by_tier.values())
    return n_remote / n_all if n_all else 0.0
