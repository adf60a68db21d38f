"""Saving after the failure, from a healthy replica, against saving periodically.

A failure costs just-in-time recovery ``J = D + G + F + L``: detection, regrouping, fetching, and
the step in hand, of which `lost_work` says how much is lost. Periodic saves cost s each, and their
failures R and half an interval. All on the `progress` clock, where both sides are exact.
"""

from __future__ import annotations

from math import sqrt

from cprsim.analytic.domain import require_not_negative


def just_in_time_overhead_fraction(
    failures_per_h: float, detect_h: float, regroup_h: float, fetch_h: float, step_loss_h: float
) -> float:
    """Overhead of just-in-time saving, as a share of useful time.

    Parameters
    ----------
    failures_per_h : failures per hour of progress
    detect_h, regroup_h, fetch_h : stall of one recovery, by stage [h]
    step_loss_h : mean loss of the step in hand [h]: `retried_step_loss_h` or `redone_step_loss_h`

    Raises
    ------
    ParameterError
        a number is negative

    Notes
    -----
    ``lambda (D + G + F + L)``. A healthy replica of every rank survives every failure. Source:
    derived here; the mechanism as in Gupta et al. 2024 (recalled).
    """
    require_not_negative(
        failures_per_h=failures_per_h, detect_h=detect_h, regroup_h=regroup_h, fetch_h=fetch_h,
        step_loss_h=step_loss_h,
    )  # fmt: skip
    return failures_per_h * (detect_h + regroup_h + fetch_h + step_loss_h)


def periodic_overhead_fraction(failures_per_h: float, save_h: float, recovery_h: float) -> float:
    """Overhead of periodic saves at Young's interval, as a share of useful time.

    Notes
    -----
    ``sqrt(2 s lambda) + lambda R``. Exact on the `progress` clock for a job of whole intervals.
    Source: Young 1974.
    """
    require_not_negative(failures_per_h=failures_per_h, save_h=save_h, recovery_h=recovery_h)
    return sqrt(2.0 * save_h * failures_per_h) + failures_per_h * recovery_h


def break_even_save_h(failures_per_h: float, just_in_time_h: float, recovery_h: float) -> float:
    """Stall of a save above which just-in-time saving costs less [h].

    Parameters
    ----------
    failures_per_h : failures per hour of progress
    just_in_time_h : what a failure costs just-in-time recovery, ``J = D + G + F + L`` [h]
    recovery_h : recovery from a periodic save, R [h]

    Notes
    -----
    ``s = lambda (J - R)^2 / 2``; 0 where J is no longer than R, as just-in-time saving never
    costs more then. Source: derived here.
    """
    require_not_negative(
        failures_per_h=failures_per_h, just_in_time_h=just_in_time_h, recovery_h=recovery_h
    )
    return failures_per_h * max(0.0, just_in_time_h - recovery_h) ** 2 / 2.0
