"""Closed forms that the simulator is held to; they share no code with it.

`overhead` full and partial recovery from one kind of save, on three clocks; `systems` what single
mechanisms cost; `nested_levels` saves on nested levels; `silent_errors`
errors that are noticed later.
"""

from __future__ import annotations

from tests.closed_forms.nested_levels import nested_uptime_h, nested_wall_h
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
from tests.closed_forms.silent_errors import (
    best_checked_interval_h,
    checked_first_order,
    checked_progress,
    p_none_clean,
)
from tests.closed_forms.systems import (
    content_age_h,
    corrupt_saves_loss_h,
    elastic_wall_h,
    erasure_coded_overhead_fraction,
    p_groups_survive,
    p_ring_survives,
    tier_overhead_fraction,
)

__all__ = [
    "best_checked_interval_h",
    "checked_first_order",
    "checked_progress",
    "content_age_h",
    "corrupt_saves_loss_h",
    "elastic_wall_h",
    "erasure_coded_overhead_fraction",
    "full_progress_h",
    "full_uptime_h",
    "full_wall_h",
    "nested_uptime_h",
    "nested_wall_h",
    "p_groups_survive",
    "p_none_clean",
    "p_ring_survives",
    "partial_progress_h",
    "partial_uptime_h",
    "partial_wall_h",
    "restart_uptime_h",
    "restart_wall_h",
    "tier_overhead_fraction",
]
