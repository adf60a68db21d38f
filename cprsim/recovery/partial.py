"""Naive partial recovery: only the failed shards go back, at full recovery's interval."""

from __future__ import annotations

from cprsim.records import OnFailure, RecoveryPolicy
from cprsim.recovery.strategy import Planning, Strategy, save_interval

DEFAULT_INTERVAL = "young"


def plan(name: str, job: Planning) -> RecoveryPolicy:
    interval_h, rule = save_interval(job.with_interval(DEFAULT_INTERVAL))
    return RecoveryPolicy(name, OnFailure.RELOAD, interval_h, rule)


STRATEGY = Strategy(
    name="partial",
    summary="partial recovery: only the failed shards go back, at full recovery's interval",
    default_interval=DEFAULT_INTERVAL,
    takes_target_pls=True,  # for the interval rules that need one
    plan=plan,
)
