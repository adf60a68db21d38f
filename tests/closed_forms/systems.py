"""What single mechanisms cost, each on the `progress` clock unless it says otherwise.

Letters: w interval, s save, R recovery, M mean time between failures, lambda failures per hour, T
useful work. All are derived here unless a source is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb, expm1, inf

import numpy as np


def content_age_h(
    useful_h: float, interval_h: float, background_h: float, n_in_flight: int = 1
) -> float:
    """Mean age of the newest committed content at a failure [h].

    ``w/2 + b - (w/T) integral_0^b ceil(u/w) du`` for saves that commit b after their start, with no
    more than `n_in_flight` on their way. Exact for a job of whole intervals: the state at 0 is a
    save that has always been there, and a save that is struck is made again at its point.
    """
    assert background_h <= min(n_in_flight * interval_h, useful_h)
    whole, rest_h = divmod(background_h, interval_h)
    rounded_up_h = (whole + 1.0) * (whole * interval_h / 2.0 + rest_h)  # the integral
    return interval_h / 2.0 + background_h - interval_h / useful_h * rounded_up_h


def corrupt_saves_loss_h(interval_h: float, p_corrupt: float) -> float:
    """Mean work lost to a failure if saves are corrupt with probability q: w/2 + w q/(1-q) [h]."""
    return interval_h * (0.5 + p_corrupt / (1.0 - p_corrupt))


def elastic_wall_h(useful_h: float, mtbf_h: float, speed_after: float) -> float:
    """Wall time of a job that goes on at speed v after its first failure, on any clock [h].

    ``m + (T - m)/v`` with the mean time at full speed ``m = M (1 - e^(-T/M))``.
    """
    at_full_speed_h = useful_h if mtbf_h == inf else -mtbf_h * expm1(-useful_h / mtbf_h)
    return at_full_speed_h + (useful_h - at_full_speed_h) / speed_after


def erasure_coded_overhead_fraction(
    failures_per_h: float, tax: float, stalled_h: float, rebuild_h: float, speed: float
) -> float:
    """Overhead of servers that rebuild lost shards at speed v: ``p + lambda (D + B (1 - v))``.

    Exact if rebuilds follow one another and the job outlives the last one. From ECRM's mechanism
    (published).
    """
    return tax + failures_per_h * (stalled_h + rebuild_h * (1.0 - speed))


def tier_overhead_fraction(
    intervals_h: Sequence[float],
    saves_h: Sequence[float],
    failures_per_h: Sequence[float],
    recoveries_h: Sequence[float],
) -> float:
    """Overhead of saves on several tiers: ``sum_i s_i/w_i + sum_i lambda_i (R_i + w_i/2)``.

    In a job of whole intervals of every tier it lacks the saves of nearer tiers that are made again
    on the way back from a further one, and nothing else.
    """
    given = (intervals_h, saves_h, failures_per_h, recoveries_h)
    wait, stall, rate, recovery = (np.asarray(one, float) for one in given)
    return float((stall / wait + rate * (recovery + wait / 2.0)).sum())


def p_groups_survive(n_machines: int, n_copies: int, n_failed: int) -> float:
    """Probability that k random machines of N hold no group of m whole.

    ``sum_j (-1)^j C(N/m, j) C(N - j m, k - j m) / C(N, k)``: inclusion and exclusion.
    """
    surviving = sum(
        (-1) ** j * comb(n_machines // n_copies, j)
        * comb(n_machines - j * n_copies, n_failed - j * n_copies)
        for j in range(n_failed // n_copies + 1)
    )  # fmt: skip
    return float(Fraction(surviving, comb(n_machines, n_failed)))


def p_ring_survives(n_machines: int, n_copies: int, n_failed: int) -> float:
    """Probability that no m consecutive machines of a ring are among k random ones of N.

    The k failed machines follow the z = N - k others in runs of at most m - 1. There are
    ``sum_j (-1)^j C(z, j) C(k - j m + z - 1, z - 1)`` such runs in order, and a ring has N places
    for the first of its z machines.
    """
    n_left = n_machines - n_failed
    if n_left == 0:
        return 0.0
    runs = sum(
        (-1) ** j * comb(n_left, j) * comb(n_failed - j * n_copies + n_left - 1, n_left - 1)
        for j in range(n_failed // n_copies + 1)
    )
    return float(Fraction(n_machines * runs, n_left * comb(n_machines, n_failed)))
