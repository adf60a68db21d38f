"""Failures under a random factor on their rate: how many there are."""

from __future__ import annotations

from math import expm1

from cprsim.failures.random_factor import RandomFactor


def variance_of_count(factor: RandomFactor, rate_per_h: float, hours: float) -> float:
    """Variance of the failures within some hours; their mean is ``rate_per_h * hours``.

    Notes
    -----
    ``r T + 2 v (r L)^2 (T / L - 1 + exp(-T / L))``: that of a Poisson number, and that of the
    integral of the factor, whose covariance is ``v exp(-distance / L)``. Exact for a constant
    rate.
    """
    stretches = hours / factor.lasts_h
    integral = 2 * (factor.lasts_h * rate_per_h) ** 2 * (stretches + expm1(-stretches))
    return rate_per_h * hours + factor.variance * integral
