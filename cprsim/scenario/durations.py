"""From what a user wrote of a time that varies to its distribution."""

from __future__ import annotations

from cprsim.failures.distributions import Constant, Distribution, with_mean
from cprsim.scenario.costs import DurationSpec


def duration_of(spec: float | DurationSpec) -> Distribution:
    """A fixed time [h], or a distribution."""
    if isinstance(spec, DurationSpec):
        return with_mean(spec.family, spec.mean_h, spec.spread)
    return Constant(spec)
