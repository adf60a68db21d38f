"""Recovery systems: one file per strategy, each turning what is known of a job into a policy.

A new system is a new file here and its entry in `STRATEGIES`; the scenario schema, the command
line and the engines need no change as long as its policy is expressible as `RecoveryPolicy`.
"""

from __future__ import annotations

from cprsim.recovery import cpr, plain
from cprsim.recovery.strategy import INTERVAL_RULES, NEVER, Planning, Strategy

STRATEGIES: dict[str, Strategy] = {
    strategy.name: strategy for strategy in (*plain.STRATEGIES, *cpr.STRATEGIES)
}

__all__ = ["INTERVAL_RULES", "NEVER", "STRATEGIES", "Planning", "Strategy"]
