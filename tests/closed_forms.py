"""Closed forms of the expected overhead: the oracles for the simulation, with no code in common.

All hold for exponential failures, fixed costs and a job of whole intervals that ends with a save,
and name the clock on which failures age (docs/model.md, section 2). Letters of the derivations:
w interval, s save, R recovery, M mean time between failures, lambda failures per hour, T useful
work. All are derived here unless a source is named.
"""

from collections.abc import Sequence
from math import exp, expm1, sqrt

import numpy as np

from cprsim.job.records import Clock, Floats, Ints

# --------------------------------------------------------------------------- one kind of save


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


# --------------------------------------------------------------------------- single mechanisms


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


# --------------------------------------------------------------------------- nested levels
#
# Level 1 saves every `interval_h`, level i at every `every[i]`-th of these points. Saves due at one
# point are made one after another, the lowest level first; each is valid from its end. A failure of
# level i destroys the copies of all levels below i, and the job goes back to the newest valid save
# of level i or higher. A save that is struck is lost; if a lower level's save of the same point
# survives it is made again at once. A failure of level i costs recovery R_i.
#
# A *unit* is a save together with the work that leads up to it, if it is the first of its point.
# The failures are exponential: what is yet to come depends on the unit in hand alone.


def nested_h(
    clock: Clock,
    useful_h: float,
    interval_h: float,
    every: Sequence[int],
    saves_h: Sequence[float],
    recoveries_h: Sequence[float],
    failures_per_h: Sequence[float],
) -> float:
    """Overhead on the `uptime` or `wall` clock [h]; the job is whole intervals of the top level.

    A unit of d hours is got through with probability e^(-d lambda); else (1 - e^(-d lambda))/lambda
    hours pass on average, the recovery is added, and the job is at the unit after the newest save
    that survives. These equations of all units between two saves of the highest level are solved
    together. On the `wall` clock a failure of level j during a recovery of level i starts a
    recovery of level max(i, j). That changes the mean recovery and the level from which it ends,
    and nothing else.
    """
    rates = np.asarray(failures_per_h, float)
    rate, shares, hours = rates.sum(), rates / rates.sum(), np.asarray(recoveries_h, float)
    recovery_h = float(shares @ hours)
    if clock is Clock.WALL:
        recovery_h, shares = _struck_recovery(hours, rates)
    units = [
        (saves_h[level] + (interval_h if level == 0 else 0.0), level)
        for point in range(1, every[-1] + 1)
        for level, nth in enumerate(every)
        if point % nth == 0
    ]
    units_h, levels = np.array([hours for hours, _ in units]), np.array([one for _, one in units])
    p_struck = -np.expm1(-rate * units_h)
    equations = np.eye(len(units_h)) - np.diag(np.exp(-rate * units_h[:-1]), 1)
    for level, share in enumerate(shares):
        np.subtract.at(equations, (np.arange(len(units_h)), _back(levels, level)), p_struck * share)
    each_h = float(np.linalg.solve(equations, p_struck * (1.0 / rate + recovery_h))[0])
    return round(useful_h / (interval_h * every[-1])) * each_h - useful_h


def _back(levels: Ints, level: int) -> Ints:
    """Where the job goes on after a failure of this level in each unit, (n_units,)."""
    after_save = np.where(levels >= level, np.arange(1, len(levels) + 1), 0)
    newest: Ints = np.maximum.accumulate(np.concatenate(([0], after_save[:-1])))
    return newest


def _struck_recovery(recoveries_h: Floats, rates: Floats) -> tuple[float, Floats]:
    """Mean hours of a recovery that is struck itself, and the chances of the level it ends at."""
    shares = rates / rates.sum()
    hours, ends_at = np.zeros(len(rates)), np.zeros((len(rates), len(rates)))
    for level in reversed(range(len(rates))):
        p_ends = np.exp(-rates.sum() * recoveries_h[level])
        deeper = (1.0 - p_ends) * shares[level + 1 :]
        p_leaves = p_ends + deeper.sum()  # a failure that is no deeper only starts it again
        in_hand_h = -np.expm1(-rates.sum() * recoveries_h[level]) / rates.sum()
        hours[level] = (in_hand_h + deeper @ hours[level + 1 :]) / p_leaves
        ends_at[level] = deeper @ ends_at[level + 1 :] / p_leaves
        ends_at[level, level] = p_ends / p_leaves
    return float(shares @ hours), shares @ ends_at


# --------------------------------------------------------------------------- silent errors
#
# V: a check; lambda_s: the rate of silent errors; lambda_f: of failures that are noticed at once


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
