"""No checkpoints, full recovery, and naive partial recovery at full recovery's interval."""

from __future__ import annotations

from functools import partial
from math import inf

from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.recovery.strategy import Planning, Strategy, save_interval

DEFAULT_INTERVAL = "young"


def never(name: str, job: Planning) -> RecoveryPolicy:
    del job  # nothing that is known of it changes what happens
    return RecoveryPolicy(name, OnFailure.RESTART, inf, "never saves")


def saving(on_failure: OnFailure, name: str, job: Planning) -> RecoveryPolicy:
    interval_h, rule = save_interval(job.with_interval(DEFAULT_INTERVAL))
    return RecoveryPolicy(name, on_failure, interval_h, rule)


STRATEGIES = (
    Strategy(
        "none", "no checkpoints: after a failure the job starts again from nothing",
        default_interval=None, takes_target_pls=False, plan=never, runs_as="any trainer",
    ),
    Strategy(
        "full", "full recovery: after a failure everybody goes back to the last checkpoint",
        DEFAULT_INTERVAL, takes_target_pls=False, plan=partial(saving, OnFailure.ROLL_BACK),
        runs_as="torch.save, PyTorch DCP",
    ),
    Strategy(
        "partial", "partial recovery: only the failed shards go back, at full recovery's interval",
        DEFAULT_INTERVAL, takes_target_pls=True,  # for the interval rules that need one
        plan=partial(saving, OnFailure.RELOAD),
    ),
)  # fmt: skip
