"""Survival of groups by GEMINI's bound and with parity, and failures until copies are lost.

Placements and parameters are those of `cprsim.analytic.survival`.
"""

from __future__ import annotations

from math import comb

from cprsim.analytic.domain import require_count, require_share
from cprsim.analytic.survival import (
    mean_failures_to_loss,
    p_groups_survive,
    p_ring_survives,
    require_groups,
)


def p_groups_survive_bound(n_machines: int, n_copies: int, n_failed: int) -> float:
    """GEMINI's lower bound of `p_groups_survive`, exact for fewer than 2 m failures.

    Notes
    -----
    ``max(0, 1 - N C(N-m, k-m) / (m C(N, k)))``: the first two terms of the exact sum, which counts
    a loss of two groups twice. Source: GEMINI (Wang et al. 2023), secondary.
    """
    require_groups(n_machines, n_copies, n_failed)
    if n_failed < n_copies:
        return 1.0
    losing = n_machines * comb(n_machines - n_copies, n_failed - n_copies)
    return max(0.0, 1.0 - losing / (n_copies * comb(n_machines, n_failed)))


def p_parity_survives(n_groups: int, group_size: int, n_parity: int, p_lost: float) -> float:
    """Probability that no group of g members loses more than p of them.

    Parameters
    ----------
    n_groups : groups that must all survive
    group_size : members of a group, data and parity, g
    n_parity : members that a group can lose, p; 1 for XOR
    p_lost : probability that a member is lost, independently of the others, q

    Raises
    ------
    ParameterError
        p is more than g, or q lies outside [0, 1]

    Notes
    -----
    ``(sum_{j <= p} C(g, j) q^j (1-q)^(g-j))^n_groups``. With XOR one group is lost with probability
    ``1 - (1-q)^g - g q (1-q)^(g-1)``. Source: derived here; the case of XOR as in REFT, recalled.
    """
    require_count(1, n_groups=n_groups, group_size=group_size)
    require_count(0, group_size, n_parity=n_parity)
    require_share(p_lost=p_lost)
    within = sum(
        comb(group_size, j) * p_lost**j * (1.0 - p_lost) ** (group_size - j)
        for j in range(n_parity + 1)
    )
    return float(within**n_groups)


def failures_to_loss_groups(n_machines: int, n_copies: int) -> float:
    """Mean number of distinct random failures at which a group fails whole, that failure included.

    As `mean_failures_to_loss`.
    """
    return mean_failures_to_loss(n_machines, lambda k: p_groups_survive(n_machines, n_copies, k))


def failures_to_loss_ring(n_machines: int, n_copies: int) -> float:
    """Mean number of distinct random failures at which m consecutive ones of a ring have failed.

    As `mean_failures_to_loss`.
    """
    return mean_failures_to_loss(n_machines, lambda k: p_ring_survives(n_machines, n_copies, k))
