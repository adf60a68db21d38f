"""CPR with priority saving: the rows that changed most are saved more often, at equal bytes.

Plain CPR's plan, with each interval cut into sub-saves of the most urgent rows (Maeng et al. 2021).
Which rows those are is what the four differ in: largest change (SCAR), most frequently used (MFU),
used by sampled inputs (SSU), and round robin as the control. The simulator prices them alike.
"""

from __future__ import annotations

from dataclasses import replace

from cprsim.records import OnFailure, RecoveryPolicy, SubSaves
from cprsim.recovery import cpr
from cprsim.recovery.strategy import Planning, Strategy

TRACKERS = {
    "scar": "the rows that changed most since their last save",
    "mfu": "the rows used most often since their last save",
    "ssu": "rows that a sub-sample of the inputs used",
    "round-robin": "one part of the rows after the other (control)",
}


def _strategy(tracker: str) -> Strategy:
    def plan(name: str, job: Planning) -> RecoveryPolicy:
        sub_saves = job.sub_saves or SubSaves(tracker)
        policy = cpr.plan(name, replace(job, sub_saves=sub_saves))
        if policy.on_failure is not OnFailure.RELOAD:
            return policy  # full recovery needs whole saves
        return replace(policy, sub_saves=sub_saves)

    return Strategy(
        name=f"cpr-{tracker}",
        summary=f"CPR that saves first {TRACKERS[tracker]}",
        default_interval=cpr.DEFAULT_INTERVAL,
        takes_target_pls=True,
        plan=plan,
        takes_sub_saves=True,
    )


STRATEGIES = tuple(_strategy(tracker) for tracker in TRACKERS)
