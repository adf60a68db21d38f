"""Closed forms that the simulator is held to and the package does not need.

`overhead`      full and partial recovery from one kind of save, on three clocks
`content_age`   how old the newest committed content is at a failure
`lost_work`     the step in hand, and falling back over corrupt saves
`elastic`       a job of lower speed
`scopes`        failures of several scopes on one job
`charges`       what a published evaluation charges each failure
`just_in_time`  saving after the failure against saving periodically
`nested_levels` saves on nested levels whose recoveries are struck too
`survival`      GEMINI's bound, parity, and failures until copies are lost
"""

from __future__ import annotations

from tests.closed_forms.charges import (
    charged_steps_per_h,
    checkfreq_charge_h,
    gpm_charge_h,
    in_flight_charge_h,
    saves_per_h,
)
from tests.closed_forms.content_age import content_age_h, content_age_of_long_job_h
from tests.closed_forms.elastic import elastic_wall_h
from tests.closed_forms.just_in_time import (
    break_even_save_h,
    just_in_time_overhead_fraction,
    periodic_overhead_fraction,
)
from tests.closed_forms.lost_work import (
    corrupt_saves_loss_h,
    generations_skipped,
    redone_step_loss_h,
    retried_step_loss_h,
)
from tests.closed_forms.nested_levels import nested_wall_h
from tests.closed_forms.overhead import (
    full_progress_h,
    full_uptime_h,
    full_wall_h,
    partial_progress_h,
    partial_uptime_h,
    partial_wall_h,
    restart_uptime_h,
    restart_wall_h,
)
from tests.closed_forms.scopes import merged_mtbf_h
from tests.closed_forms.survival import (
    failures_to_loss_groups,
    failures_to_loss_ring,
    p_groups_survive_bound,
    p_parity_survives,
)

__all__ = [
    "break_even_save_h",
    "charged_steps_per_h",
    "checkfreq_charge_h",
    "content_age_h",
    "content_age_of_long_job_h",
    "corrupt_saves_loss_h",
    "elastic_wall_h",
    "failures_to_loss_groups",
    "failures_to_loss_ring",
    "full_progress_h",
    "full_uptime_h",
    "full_wall_h",
    "generations_skipped",
    "gpm_charge_h",
    "in_flight_charge_h",
    "just_in_time_overhead_fraction",
    "merged_mtbf_h",
    "nested_wall_h",
    "p_groups_survive_bound",
    "p_parity_survives",
    "partial_progress_h",
    "partial_uptime_h",
    "partial_wall_h",
    "periodic_overhead_fraction",
    "redone_step_loss_h",
    "restart_uptime_h",
    "restart_wall_h",
    "retried_step_loss_h",
    "saves_per_h",
]
