"""Closed forms that the simulator is held to, one file per idea.

`overhead`        full and partial recovery from one kind of save, on three clocks
`content_age`     how old the newest committed content is at a failure
`tiers`           saves on several tiers, first order, and their optimal intervals
`nested_levels`   saves on nested levels, exact
`survival`        whether copies and parity survive, and how many failures that takes
`lost_work`       the step in hand, and falling back over corrupt saves
`degraded`        rebuilding while the job goes on, and a job of lower speed
`scopes`          failures of several scopes on one job
`charges`         what a published evaluation charges each failure
`just_in_time`    saving after the failure against saving periodically
`increments`      sizes of incremental saves, and when the next one is whole

All are expectations in hours, shares of useful time, or probabilities. Each says on which clock
(docs/model.md, section 1) and under which assumption it is exact.
"""

from __future__ import annotations

from cprsim.analytic.charges import (
    charged_steps_per_h,
    checkfreq_charge_h,
    gpm_charge_h,
    in_flight_charge_h,
    pccheck_charge_h,
    saves_per_h,
)
from cprsim.analytic.content_age import content_age_h, content_age_of_long_job_h
from cprsim.analytic.degraded import elastic_wall_h, erasure_coded_overhead_fraction
from cprsim.analytic.increments import (
    consecutive_store_fraction,
    increment_fraction,
    increments_before_whole,
    intermittent_save_fraction,
)
from cprsim.analytic.just_in_time import (
    break_even_failures_per_h,
    break_even_save_h,
    just_in_time_overhead_fraction,
    periodic_overhead_fraction,
)
from cprsim.analytic.lost_work import (
    corrupt_saves_loss_h,
    generations_skipped,
    redone_step_loss_h,
    retried_step_loss_h,
)
from cprsim.analytic.nested_levels import nested_uptime_h, nested_wall_h
from cprsim.analytic.overhead import (
    full_progress_h,
    full_uptime_h,
    full_wall_h,
    partial_progress_h,
    partial_uptime_h,
    partial_wall_h,
    restart_uptime_h,
    restart_wall_h,
)
from cprsim.analytic.scopes import merged_mtbf_h
from cprsim.analytic.survival import (
    failures_to_loss_groups,
    failures_to_loss_of_many,
    failures_to_loss_random,
    failures_to_loss_ring,
    p_groups_survive,
    p_groups_survive_bound,
    p_parity_survives,
    p_random_survives,
    p_ring_survives,
)
from cprsim.analytic.tiers import (
    least_tier_overhead_fraction,
    optimal_tier_intervals_h,
    tier_overhead_fraction,
)

__all__ = [
    "break_even_failures_per_h",
    "break_even_save_h",
    "charged_steps_per_h",
    "checkfreq_charge_h",
    "consecutive_store_fraction",
    "content_age_h",
    "content_age_of_long_job_h",
    "corrupt_saves_loss_h",
    "elastic_wall_h",
    "erasure_coded_overhead_fraction",
    "failures_to_loss_groups",
    "failures_to_loss_of_many",
    "failures_to_loss_random",
    "failures_to_loss_ring",
    "full_progress_h",
    "full_uptime_h",
    "full_wall_h",
    "generations_skipped",
    "gpm_charge_h",
    "in_flight_charge_h",
    "increment_fraction",
    "increments_before_whole",
    "intermittent_save_fraction",
    "just_in_time_overhead_fraction",
    "least_tier_overhead_fraction",
    "merged_mtbf_h",
    "nested_uptime_h",
    "nested_wall_h",
    "optimal_tier_intervals_h",
    "p_groups_survive",
    "p_groups_survive_bound",
    "p_parity_survives",
    "p_random_survives",
    "p_ring_survives",
    "partial_progress_h",
    "partial_uptime_h",
    "partial_wall_h",
    "pccheck_charge_h",
    "periodic_overhead_fraction",
    "redone_step_loss_h",
    "restart_uptime_h",
    "restart_wall_h",
    "retried_step_loss_h",
    "saves_per_h",
    "tier_overhead_fraction",
]
