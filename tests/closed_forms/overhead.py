"""Closed forms of the expected overhead: the oracles that the simulator is held to.

All hold for exponential failures, fixed costs, k servers that fail in one event, ample spares and
a job of ``n`` whole intervals that ends with a save (``n = useful_h / save_interval_h``). Each is
per job, in hours, and names the clock on which failures age (docs/model.md, section 2).

Letters of the derivations: M mean time between failures, s save, R recovery, w interval.
"""

from __future__ import annotations

from math import exp, expm1


def full_progress_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of full recovery, `progress` clock [h]: CPR's first-order formula is exact here.

    A failure strikes only first-time work, at a uniform point of its interval, so it costs the
    recovery and half an interval on average. Source: Maeng et al. 2021.
    """
    n_failures = useful_h / mtbf_h
    return save_h * useful_h / interval_h + (recovery_h + interval_h / 2.0) * n_failures


def partial_progress_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of partial recovery, `progress` clock [h]. Source: Maeng et al. 2021."""
    return save_h * useful_h / interval_h + recovery_h * useful_h / mtbf_h


def full_uptime_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of full recovery, `uptime` clock [h].

    Each segment of work and save starts anew after a failure: its uptime is M (e^((w+s)/M) - 1),
    and each of the e^((w+s)/M) - 1 failures adds R.
    """
    segments = useful_h / interval_h
    return (mtbf_h + recovery_h) * expm1((interval_h + save_h) / mtbf_h) * segments - useful_h


def partial_uptime_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of partial recovery, `uptime` clock [h].

    Work goes on where it was; a save that is struck is tried again, so that saving costs
    M (e^(s/M) - 1) of uptime. All uptime meets failures at rate 1/M, each adding R.
    """
    saving = useful_h / interval_h * mtbf_h * expm1(save_h / mtbf_h)
    return saving + recovery_h * (useful_h + saving) / mtbf_h


def full_wall_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of full recovery, `wall` clock [h].

    As on the `uptime` clock, but recovery is struck too and starts again: it takes
    M (e^(R/M) - 1), so a segment takes M e^(R/M) (e^((w+s)/M) - 1).
    """
    segments = useful_h / interval_h
    per_segment = mtbf_h * exp(recovery_h / mtbf_h) * expm1((interval_h + save_h) / mtbf_h)
    return segments * per_segment - useful_h


def partial_wall_h(
    useful_h: float, interval_h: float, save_h: float, recovery_h: float, mtbf_h: float
) -> float:
    """Overhead of partial recovery, `wall` clock, fixed recovery time [h].

    A further failure while recovering starts its own recovery beside the first; the job goes on
    when the last is done: M (e^(R/M) - 1) from the first failure on.
    """
    recovering = mtbf_h * expm1(recovery_h / mtbf_h)
    return partial_uptime_h(useful_h, interval_h, save_h, recovering, mtbf_h)


def restart_wall_h(useful_h: float, recovery_h: float, mtbf_h: float) -> float:
    """Overhead of starting again from nothing at each failure, `wall` clock [h]."""
    return full_wall_h(useful_h, useful_h, 0.0, recovery_h, mtbf_h)


def restart_uptime_h(useful_h: float, recovery_h: float, mtbf_h: float) -> float:
    """Overhead of starting again from nothing at each failure, `uptime` clock [h]."""
    return full_uptime_h(useful_h, useful_h, 0.0, recovery_h, mtbf_h)
