"""Full recovery: when one node fails, everybody goes back to the last checkpoint."""

from __future__ import annotations

from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.recovery.strategy import Planning, Strategy, save_interval

DEFAULT_INTERVAL = "young"


def plan(name: str, job: Planning) -> RecoveryPolicy:
    interval_h, rule = save_interval(job.with_interval(DEFAULT_INTERVAL))
    return RecoveryPolicy(name, OnFailure.ROLL_BACK, interval_h, rule)


STRATEGY = Strategy(
    name="full",
    summary="full recovery: after a failure everybody goes back to the last checkpoint",
    default_interval=DEFAULT_INTERVAL,
    takes_target_pls=False,
    plan=plan,
    runs_as="torch.save, PyTorch DCP",
)
