"""Bounds of a scenario on a fit: those of its sections `failures` and `cluster.repair`.

The schema reads those of plain numbers here; of times, hazards and shares it has the same bounds
with their units. A test compares the two.
"""

from __future__ import annotations

from math import inf

from cprsim.errors import ParameterError
from cprsim.failures.frailty import Frailty
from cprsim.job.distributions import Distribution, PiecewiseHazard

Bounds = tuple[float, float]  # both included

MTBF_H: Bounds = (1 / 3600, 1e8)
REPAIR_H: Bounds = (1e-6 / 3600, 1e4)
SHAPE: Bounds = (0.1, 100.0)
SIGMA: Bounds = (1e-300, 3.7)
SPREAD_95: Bounds = (1e-300, 1000.0)
HAZARD_PER_H: Bounds = (1e-8, 3600.0)
LEMON_SHARE: Bounds = (1e-5, 0.99999)
LEMON_FACTOR: Bounds = (1e-6, 1e6)
FRAILTY_SHAPE: Bounds = (0.01, 100.0)
MOST_NODES = 10_000_000  # of a role, or that a log can be of
MOST_SIZES = 1000


def within(quantity: str, value: float, bounds: Bounds, unit: str = "") -> None:
    """Raise ParameterError for a value that a scenario does not take."""
    low, high = bounds
    if not low <= value <= high:
        unit = f" {unit}" if unit else ""
        raise ParameterError(
            f"{quantity} {value:.4g}{unit} lies outside the bounds of a scenario "
            f"({low:.4g} to {high:.4g}{unit})"
        )


def writable(distribution: Distribution, mean_h: Bounds = MTBF_H) -> None:
    """Raise ParameterError for a distribution that a scenario can't name or simulate.

    `mean_h` are the bounds of its mean [h].
    """
    distribution.simulable()
    if isinstance(distribution, PiecewiseHazard):
        for rate_per_h in distribution.rates_per_h:
            within("the hazard", rate_per_h, HAZARD_PER_H, "failures/h")
        within("the last age", distribution.from_h[-1], (0.0, MTBF_H[1]), "h")
        return
    within("the mean", distribution.mean_h, mean_h, "h")
    within("the shape", getattr(distribution, "shape", 1.0), SHAPE)
    within("sigma", getattr(distribution, "sigma", 1.0), SIGMA)


def writable_factors(frailty: Frailty) -> None:
    """Raise ParameterError for factors of nodes that a scenario does not take."""
    if frailty.share:
        within("the share of lemons", frailty.share, LEMON_SHARE)
        within("the factor of lemons", frailty.factor, LEMON_FACTOR)
    if frailty.shape < inf:
        within("the shape of the factors", frailty.shape, FRAILTY_SHAPE)
