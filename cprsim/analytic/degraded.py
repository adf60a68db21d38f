"""Jobs that go on at a lower speed: while lost shards are rebuilt, or for good after a failure."""

from __future__ import annotations

from math import expm1, inf

from cprsim.analytic.domain import require_not_negative, require_positive, require_share
from cprsim.errors import ParameterError


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


def elastic_wall_h(useful_h: float, mtbf_h: float, speed_after: float) -> float:
    """Expected wall time of a job that goes on at speed v after its first failure [h].

    Parameters
    ----------
    useful_h : useful work of the job, u [h]
    mtbf_h : mean time to the first failure, M [h]; may be infinite
    speed_after : speed from the first failure on, v, in (0, 1]

    Raises
    ------
    ParameterError
        the job or the MTBF is not positive, or the speed lies outside (0, 1]

    Notes
    -----
    ``m + (u - m)/v`` with the mean time at full speed ``m = M (1 - e^(-u/M))``. Exact for
    exponential failures on any clock, recovery at no cost, and a speed that no further failure
    changes. Source: derived here.
    """
    require_positive(useful_h=useful_h)
    require_share(speed_after=speed_after)
    if speed_after == 0.0 or not mtbf_h > 0.0:
        raise ParameterError(f"speed {speed_after} and MTBF {mtbf_h} h must be positive")
    at_full_speed_h = useful_h if mtbf_h == inf else -mtbf_h * expm1(-useful_h / mtbf_h)
    return at_full_speed_h + (useful_h - at_full_speed_h) / speed_after
