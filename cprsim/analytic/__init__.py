"""Closed forms of overhead and survival that systems and studies compute with.

`tiers`          saves on several tiers, first order, and their optimal intervals
`nested_levels`  saves on nested levels, exact
`survival`       whether copies survive, and how many failures that takes
`systems`        single systems: increments, a published charge, rebuilding, a break-even rate

All are expectations in hours, shares of useful time, or probabilities. Each says on which clock
(docs/model.md, section 1) and under which assumption it is exact. Those that only the simulator is
held to stand with the tests (tests/closed_forms).
"""

from __future__ import annotations

from cprsim.analytic.nested_levels import nested_uptime_h
from cprsim.analytic.survival import (
    failures_to_loss_of_many,
    failures_to_loss_random,
    p_groups_survive,
    p_random_survives,
    p_ring_survives,
)
from cprsim.analytic.systems import (
    break_even_failures_per_h,
    consecutive_store_fraction,
    erasure_coded_overhead_fraction,
    increment_fraction,
    increments_before_whole,
    intermittent_save_fraction,
    pccheck_charge_h,
)
from cprsim.analytic.tiers import (
    least_tier_overhead_fraction,
    optimal_tier_intervals_h,
    tier_overhead_fraction,
)

__all__ = [
    "break_even_failures_per_h",
    "consecutive_store_fraction",
    "erasure_coded_overhead_fraction",
    "failures_to_loss_of_many",
    "failures_to_loss_random",
    "increment_fraction",
    "increments_before_whole",
    "intermittent_save_fraction",
    "least_tier_overhead_fraction",
    "nested_uptime_h",
    "optimal_tier_intervals_h",
    "p_groups_survive",
    "p_random_survives",
    "p_ring_survives",
    "pccheck_charge_h",
    "tier_overhead_fraction",
]
