"""Closed forms of silent errors: what they cost, and how often no content from before one is left.

Letters of the derivations: C save, V check, R recovery, W work between saves, T the same in running
time; lambda_s the rate of silent errors, lambda_f that of failures that are noticed at once.
"""

from __future__ import annotations

from math import exp, expm1, sqrt


def checked_progress(
    interval_h: float, save_h: float, check_h: float, recovery_h: float, errors_per_h: float
) -> float:
    """Overhead in each hour of work, a check before each save, `progress` clock: exact.

    Errors strike first-time work alone. With one or more in an interval, which has the probability
    1 - exp(-lambda W), its check finds them: the interval, the check and a recovery are on top.
    """
    p = -expm1(-errors_per_h * interval_h)
    return (save_h + check_h + p * (interval_h + check_h + recovery_h)) / interval_h


def checked_first_order(
    interval_h: float, save_h: float, check_h: float, recovery_h: float,
    errors_per_h: float, failures_per_h: float,
) -> float:  # fmt: skip
    """The same to first order, with failures that cost half an interval besides."""
    silent = errors_per_h * (interval_h + check_h + recovery_h)
    noticed = failures_per_h * (interval_h / 2.0 + recovery_h)
    return (save_h + check_h) / interval_h + silent + noticed


def best_checked_interval_h(
    save_h: float, check_h: float, errors_per_h: float, failures_per_h: float
) -> float:
    """The work between saves at which that is least.

    Source: Benoit, Cavelan, Robert, Sun 2016 (secondary).
    """
    return sqrt((save_h + check_h) / (errors_per_h + failures_per_h / 2.0))


def p_none_clean(n_kept: int, saved_every_h: float, latency_h: float) -> float:
    """The probability that all of n contents kept are bad as an error is noticed.

    An error strikes at a uniform point between two saves, and is noticed after an exponential
    latency: the probability of n saves or more in it. Derived here.
    """
    per_h = saved_every_h / latency_h
    return -expm1(-per_h) / per_h * exp(-(n_kept - 1) * per_h)
