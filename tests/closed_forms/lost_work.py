"""The work that a failure costs: the step in hand, and what corrupt saves add to it."""

from __future__ import annotations

from cprsim.analytic.domain import require_not_negative, require_share
from cprsim.errors import ParameterError


def retried_step_loss_h(step_h: float) -> float:
    """Mean loss when the step in hand is interrupted and done again: ``t/2`` [h].

    Parameters
    ----------
    step_h : time of one training step [h]

    Notes
    -----
    The state at the end of the step before survives, and the failure is acted upon at once: what
    the step had taken so far is lost. Exact for failures at a uniform point of a step, so on the
    `progress` clock. Source: derived here.
    """
    require_not_negative(step_h=step_h)
    return step_h / 2.0


def redone_step_loss_h(step_h: float) -> float:
    """Loss when the step in hand runs to its end, is undone and done again: ``t`` [h].

    Notes
    -----
    The failure is acted upon at the synchronisation that ends the step; the survivors undo the
    update and do the whole step again. Undoing takes no time. Exact for every failure. Source:
    derived here.
    """
    require_not_negative(step_h=step_h)
    return step_h


def generations_skipped(p_corrupt: float) -> float:
    """Mean number of saves that a recovery passes over because they are corrupt: ``q/(1-q)``.

    Parameters
    ----------
    p_corrupt : probability that a save can't be used, independently of the others, below 1

    Raises
    ------
    ParameterError
        every save is corrupt, or the probability lies outside [0, 1]

    Notes
    -----
    Geometric: exact as long as generations enough are kept and the job is old enough to have made
    them. Source: derived here.
    """
    require_share(p_corrupt=p_corrupt)
    if p_corrupt == 1.0:
        raise ParameterError("p_corrupt is 1; no save could ever be used")
    return p_corrupt / (1.0 - p_corrupt)


def corrupt_saves_loss_h(interval_h: float, p_corrupt: float) -> float:
    """Mean work lost to a failure when saves are corrupt with probability q [h].

    Parameters
    ----------
    interval_h : progress between saves [h]
    p_corrupt : as in `generations_skipped`

    Notes
    -----
    ``w/2 + w q/(1-q)``: half an interval, and a whole one for each save passed over. `progress`
    clock, in the limit of a long job; saves commit at once. Source: derived here.
    """
    require_not_negative(interval_h=interval_h)
    return interval_h * (0.5 + generations_skipped(p_corrupt))
