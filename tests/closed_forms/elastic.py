"""A job that goes on at a lower speed for good after its first failure."""

from __future__ import annotations

from math import expm1, inf

from cprsim.analytic.domain import require_positive, require_share
from cprsim.errors import ParameterError


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
