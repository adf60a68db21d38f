"""What a job is between two steps of the compiled loops, and what has become of it."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np

from cprsim.compiling import inlined
from cprsim.engine.terms import Plan

# What has become of a replication
GOING, FINISHED, STOPPED, LEFT, WANTS_FAILURES, WANTS_COSTS, WANTS_ROOM, AT_SAVE = range(8)
INTRICATE = 8  # for `steady.hurry`

MOST_UNDER_WAY = 256  # recoveries at once

HOURS = (
    "wall_h", "useful_h", "lost_h", "save_h", "detect_h", "wait_h", "reschedule_h", "load_h",
    "stale_h", "stale_net_h",
)  # fmt: skip
WAIT_H = HOURS.index("wait_h")  # none: there is always a spare
COUNTS = ("status", "n_failures", "n_saves")

JOB = np.dtype(
    [
        # what comes out
        ("wall_h", "f8"),  # booked so far
        ("worked_h", "f8"),  # for the first time or again
        ("frontier_h", "f8"),  # the furthest progress that it has ever had
        ("save_h", "f8"),
        ("detect_h", "f8"),
        ("reschedule_h", "f8"),
        ("load_h", "f8"),
        ("n_failures", "i8"),
        ("n_saves", "i8"),  # committed, also those that a restart has thrown away
        ("stale_h", "f8"),  # summed over reverted shards: since the last save
        ("stale_net_h", "f8"),  # since the later of that and the shard's own last reload
        # where it stands
        ("uptime_h", "f8"),  # hours without its recoveries
        ("progress_h", "f8"),
        ("whole_h", "f8"),  # content of the last whole save
        ("n_saved", "i8"),  # number of the last save on the grid
        ("n_due", "i8"),  # number of the next one
        ("due_h", "f8"),  # progress at which it saves next
        ("saving_h", "f8"),  # content of the save in hand
        ("writing_h", "f8"),  # what is left of its part in the background
        ("n_attempts", "i8"),  # at a save: the number of its draw
        ("detected_at_h", "f8"),  # ends of the stages of recovery, in wall time
        ("staffed_at_h", "f8"),
        ("resumes_at_h", "f8"),
        ("frontier_at_failure_h", "f8"),
        ("n_fruitless", "i8"),  # failures in a row without first-time work between
        # what the next save and recovery take, where that varies
        ("stall_h", "f8"),
        ("behind_h", "f8"),
        ("detection_h", "f8"),
        ("staffing_h", "f8"),
        ("loading_h", "f8"),
        # the stretch in hand
        ("left_h", "f8"),  # hours until the failure, or until the deadline
        ("passed_h", "f8"),  # hours since it began, whenever the failure comes
        ("until_h", "f8"),  # progress
        ("since_h", "f8"),  # hours since the last instant at which the order of things matters
        ("doubtful", "?"),  # rounding decides what comes before the failure
        ("due_whole", "?"),  # whether the next save is
        ("saving_whole", "?"),  # whether the save in hand is
        ("stalled", "?"),  # by the save in hand
        ("writing", "?"),  # the save in hand goes on in the background
        ("priced", "?"),  # the next save
        ("limited", "?"),  # by the deadline
    ],
    align=True,
)

RECOVERY = np.dtype(
    [
        ("number", "i8"),
        ("detected_at_h", "f8"),
        ("staffed_at_h", "f8"),
        ("resumes_at_h", "f8"),
        ("n_slots", "i8"),
        ("n_replicas", "i8"),
        ("n_loading", "i8"),  # shards
    ]
)

SLOT = np.dtype(
    [
        ("recovery", "i8"),  # number of the last one that it was in
        ("load", "i8"),  # number of the last one that loads its shard
        ("course", "i8"),  # number of the course in which it went back last
        ("reverted_at_h", "f8"),  # at which progress
    ]
)

DESK = np.dtype(
    [
        ("n_losses", "i8"),
        ("n_under_way", "i8"),
        ("recovery", "i8"),
        ("course", "i8"),
        ("keeps", "i8"),
    ]
)


@inlined
def begin(plan: Plan, job: Any) -> None:
    """Stand at the start of the job."""
    job.wall_h = job.worked_h = job.frontier_h = job.save_h = 0.0
    job.detect_h = job.reschedule_h = job.load_h = 0.0
    job.stale_h = job.stale_net_h = 0.0
    job.n_failures = job.n_saves = job.n_attempts = job.n_fruitless = 0
    job.uptime_h = job.whole_h = 0.0
    job.detected_at_h = job.staffed_at_h = job.resumes_at_h = 0.0
    job.frontier_at_failure_h = -1.0
    job.writing = job.stalled = job.priced = False
    job.stall_h = plan.stall_h
    job.behind_h = plan.behind_h
    job.detection_h, job.staffing_h, job.loading_h = plan.detect_h, plan.reschedule_h, plan.load_h
    job.n_saved = 0
    stand_at_save(plan, job, 0.0, 0)


@inlined
def due_h(plan: Plan, number: int) -> float:
    """Progress at which the nth save of the grid is due; the state at 0 is a free one."""
    if number == 0:
        return 0.0
    return min(number * plan.interval_h, plan.useful_h) if number <= plan.n_saves else inf


@inlined
def stand_at_save(plan: Plan, job: Any, progress_h: float, n_saved: int) -> None:
    """Stand at some progress, with the save after the nth due next."""
    job.progress_h = progress_h
    job.n_due = n_saved + 1
    job.due_h = due_h(plan, job.n_due)
    job.due_whole = job.n_due % plan.n_per_whole == 0
