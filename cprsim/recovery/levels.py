"""Several tiers that are saved to: which of them a failure leaves, and how often each is needed."""

from __future__ import annotations

from collections.abc import Sequence
from math import comb

from cprsim.recovery.policy import OWN, Groups, Level, Reach, Ring, Scope, Tier
from cprsim.recovery.system import JobFacts


def nearest_failures_per_h(facts: JobFacts, tiers: Sequence[Tier]) -> list[float]:
    """Rate of the failures for which each tier is the nearest that survives [1/h].

    Parameters
    ----------
    tiers : the nearest first; a failure that none of them survives is counted for none
    """
    rates = [0.0] * len(tiers)
    for scope in facts.scopes:
        nearest = next((n for n, tier in enumerate(tiers) if outlives(tier, scope)), None)
        if nearest is None:
            continue
        rates[nearest] += facts.failures_per_h(scope)
        if nearest + 1 < len(tiers) and scope.wipes is Level.DISK:
            both = facts.failures_per_h(scope) * p_another_is_down(facts, tiers[nearest])
            rates[nearest] -= both
            rates[nearest + 1] += both
    return rates


def outlives(tier: Tier, scope: Scope) -> bool:
    """Whether a tier survives a failure of this scope that strikes no node that others' need."""
    if tier.medium.level > scope.wipes:
        return True
    if scope.reach is Reach.ALL or tier.placement == OWN:
        return False
    return scope.reach < Reach.RACK or isinstance(tier.placement, Groups)


def p_another_is_down(facts: JobFacts, tier: Tier) -> float:
    """Probability that as many holders of a struck shard are down already as it can spare.

    First order in the share of the time that a node is down. Source: derived here.
    """
    q = min(1.0, facts.replaced_h / (facts.mtbf_h * facts.cluster.n_nodes))
    place = tier.placement
    if isinstance(place, Groups):
        return min(1.0, comb(place.size - 1, place.tolerates) * q**place.tolerates)
    return min(1.0, 2.0 * q) if isinstance(place, Ring) and place.copies > 1 else 0.0
