"""Sizes of incremental saves, and when the next one is whole: Check-N-Run's re-base rule.

Sizes are shares of the whole model. An increment since the last whole save grows with its number,
``S_i = min(1, first i^growth)``; one since the save before it (*consecutive*) is always `first`.
"""

from __future__ import annotations

from cprsim.analytic.domain import require_count, require_not_negative, require_share
from cprsim.errors import ParameterError

MOST_INCREMENTS = 100_000


def increment_fraction(i: int, first: float, growth: float) -> float:
    """Size of the i-th increment since the last whole save, as a share of the model.

    Parameters
    ----------
    i : number of the increment, from 1
    first : size of the first one, between 0 and 1
    growth : exponent by which it grows, not negative

    Notes
    -----
    ``min(1, first i^growth)``; Check-N-Run has ``0.26 i^0.28`` (Eisenman et al. 2022; the fit is
    secondary).
    """
    require_count(1, i=i)
    require_share(first=first)
    require_not_negative(growth=growth)
    return float(min(1.0, first * i**growth))


def increments_before_whole(first: float, growth: float) -> int:
    """How many increments the rule makes after a whole save before the next one is whole.

    Raises
    ------
    ParameterError
        increments grow so slowly that the rule asks for no whole save within `MOST_INCREMENTS`

    Notes
    -----
    After i increments the next save is whole if ``1 + sum_{j<=i} S_j <= (i + 1) S_i``: if the saves
    since the last whole one were on average no larger than the last of them. That ends one save
    after the least mean size. Source: Check-N-Run (Eisenman et al. 2022), recalled.
    """
    written = 1.0
    for i in range(1, MOST_INCREMENTS + 1):
        last = increment_fraction(i, first, growth)
        written += last
        if written <= (i + 1) * last:
            return i
    raise ParameterError(
        f"no whole save follows {MOST_INCREMENTS} increments of {first} i^{growth}"
    )


def intermittent_save_fraction(first: float, growth: float) -> float:
    """Mean size of a save under the rule of `increments_before_whole`, as a share of the model.

    Notes
    -----
    ``(1 + sum_{j<=n} S_j)/(n + 1)`` with n increments per whole save. Exact for the rule. Source:
    derived here.
    """
    n = increments_before_whole(first, growth)
    increments = sum(increment_fraction(i, first, growth) for i in range(1, n + 1))
    return (1.0 + increments) / (n + 1)


def consecutive_store_fraction(n_increments: int, first: float) -> float:
    """What a whole save and its consecutive increments take up, as a share of the model.

    Notes
    -----
    ``1 + first n``: each increment holds what changed since the save before it, and a restore needs
    all of them. Source: Check-N-Run (Eisenman et al. 2022), secondary.
    """
    require_count(0, n_increments=n_increments)
    require_share(first=first)
    return 1.0 + first * n_increments
