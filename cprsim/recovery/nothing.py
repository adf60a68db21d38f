"""No checkpoints: after each failure the job begins again from nothing."""

from __future__ import annotations

from math import inf

from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.recovery.strategy import Planning, Strategy


def plan(name: str, job: Planning) -> RecoveryPolicy:
    del job  # nothing that is known of it changes what happens
    return RecoveryPolicy(name, OnFailure.RESTART, inf, "never saves")


STRATEGY = Strategy(
    name="none",
    summary="no checkpoints: after a failure the job starts again from nothing",
    default_interval=None,
    takes_target_pls=False,
    plan=plan,
    runs_as="any trainer",
)
