"""Closed forms of single recovery systems."""

from __future__ import annotations

from math import inf

from cprsim.analytic.domain import (
    require_count,
    require_not_negative,
    require_positive,
    require_share,
)
from cprsim.errors import ParameterError

# ----- Check-N-Run: sizes of incremental saves, and when the next one is whole.
# Sizes are shares of the whole model. An increment since the last whole save grows with its number,
# S_i = min(1, first i^growth); one since the save before it (consecutive) is always `first`.

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


# ----- others


def pccheck_charge_h(
    step_h: float, every_steps: int, load_h: float, write_h: float, n_in_flight: int
) -> float:
    """Published charge for PCcheck: ``l + f t/2 + t min(Tw/t, f N)/2`` [h].

    Parameters
    ----------
    step_h : time of one training step without saves, t [h]
    every_steps : steps between saves, f
    load_h : loading a save, l [h]
    write_h : from the start of a save to its commit, Tw [h]
    n_in_flight : saves that may be on their way at once, N

    Notes
    -----
    The charge is the work redone and the load; detection and rescheduling are left out there. It
    counts half of Tw, though the newest committed content is a whole Tw older than its commit.
    Source: code of PCcheck (ASPLOS 2025), published.
    """
    require_positive(step_h=step_h)
    require_count(0, every_steps=every_steps)
    require_not_negative(load_h=load_h, write_h=write_h)
    require_count(1, n_in_flight=n_in_flight)
    written_h = min(write_h, every_steps * step_h * n_in_flight)
    return load_h + every_steps * step_h / 2.0 + written_h / 2.0


def erasure_coded_overhead_fraction(
    failures_per_h: float,
    tax_fraction: float,
    detect_h: float,
    reschedule_h: float,
    rebuild_h: float,
    rebuild_speed: float,
) -> float:
    """Overhead of servers that rebuild lost shards from parity, as a share of useful time.

    Parameters
    ----------
    failures_per_h : failures per hour of useful work
    tax_fraction : what keeping parity adds to every hour of work, p
    detect_h, reschedule_h : stall until a failure is known, and from then until its node is
        replaced, D and A [h]
    rebuild_h : hours that a rebuild takes while the job goes on, B [h]
    rebuild_speed : speed of the job meanwhile, v, between 0 and 1

    Raises
    ------
    ParameterError
        a rate, tax or time is negative, or the speed lies outside [0, 1]

    Notes
    -----
    ``p + lambda (D + A + B (1 - v))``. Exact on the `progress` clock if rebuilds follow one another
    and the job outlives the last one; no failure loses more than the parity can restore. Source:
    derived here from ECRM's mechanism (published).
    """
    require_not_negative(
        failures_per_h=failures_per_h, tax_fraction=tax_fraction, detect_h=detect_h,
        reschedule_h=reschedule_h, rebuild_h=rebuild_h,
    )  # fmt: skip
    require_share(rebuild_speed=rebuild_speed)
    stalled_h = detect_h + reschedule_h + rebuild_h * (1.0 - rebuild_speed)
    return tax_fraction + failures_per_h * stalled_h


def break_even_failures_per_h(save_h: float, just_in_time_h: float, recovery_h: float) -> float:
    """Rate of failures below which just-in-time saving costs less [1/h].

    Parameters
    ----------
    save_h : stall of one periodic save, s [h], positive
    just_in_time_h : what a failure costs just-in-time recovery: detection, regrouping, fetching and
        the step in hand, J [h]
    recovery_h : recovery from a periodic save, R [h]

    Notes
    -----
    ``lambda = 2 s / (J - R)^2``; infinite where J is no longer than R. Exact on the
    `progress` clock. Source: derived here.
    """
    require_positive(save_h=save_h)
    require_not_negative(just_in_time_h=just_in_time_h, recovery_h=recovery_h)
    longer_h = just_in_time_h - recovery_h
    return 2.0 * save_h / longer_h**2 if longer_h > 0.0 else inf
