"""CPR: partial recovery at the interval that a target PLS allows, or full where that is cheaper.

The decision is the paper's: compare the first-order overhead of partial recovery at its interval
with that of full recovery at Young's (Maeng et al. 2021). Both prices go into the policy, so that
the choice can be shown and explained. Where the user names the interval and no target PLS, there is
nothing to decide: recovery is partial, at that interval.

With priority saving each interval is cut into sub-saves of the most urgent rows, at equal bytes.
Which rows those are is what the four differ in: largest change (SCAR), most frequently used (MFU),
used by sampled inputs (SSU), and round robin as the control. The simulator prices them alike.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf

from cprsim.records import Decision, OnFailure, RecoveryPolicy, SubSaves
from cprsim.recovery.giving_up import n_saves_due
from cprsim.recovery.intervals import (
    expected_pls,
    full_overhead_fraction,
    partial_overhead_fraction,
)
from cprsim.recovery.strategy import Planning, Strategy, require_sense, save_interval

DEFAULT_INTERVAL = "cpr"


def plan(name: str, job: Planning) -> RecoveryPolicy:
    if job.leaves_nothing_to_decide:
        interval_h, rule = save_interval(job)
        return RecoveryPolicy(name, OnFailure.RELOAD, interval_h, rule)
    decision, rule = decide(job.with_interval(DEFAULT_INTERVAL))
    if decision.chosen == "partial":
        return RecoveryPolicy(name, OnFailure.RELOAD, decision.partial_interval_h, rule, decision)
    require_sense(decision.full_interval_h, "young", job)
    return RecoveryPolicy(
        name, OnFailure.ROLL_BACK, decision.full_interval_h, "young (fell back to full)", decision
    )


def decide(job: Planning) -> tuple[Decision, str]:
    """Price both ways to recover and choose the cheaper; partial recovery where they tie.

    A target PLS of 0 allows no stale shard and leaves only full recovery.
    """
    full_interval_h = job.full_interval_h()
    full_fraction = full_overhead_fraction(
        full_interval_h, job.save_cost_h, job.full_recovery_h, job.failures.mtbf_h
    )
    if job.require_target_pls() == 0 and job.failures.n_shards_together > 0:
        return Decision("full", 0.0, full_interval_h, inf, full_fraction, 0.0), "cpr"
    partial_interval_h, rule = save_interval(job)
    partial_fraction = partial_overhead_fraction(
        partial_interval_h if _saves_within(job, partial_interval_h) else inf,
        job.partial_save_cost_h,
        job.partial_recovery_h,
        job.failures.mtbf_h,
    )
    decision = Decision(
        chosen="partial" if partial_fraction <= full_fraction else "full",
        partial_interval_h=partial_interval_h,
        full_interval_h=full_interval_h,
        partial_overhead_fraction=partial_fraction,
        full_overhead_fraction=full_fraction,
        expected_pls=expected_pls(
            min(partial_interval_h, job.useful_h),
            job.n_emb_ps,
            job.failures.mtbf_shard_h,
            job.failures.n_shards_together,
        ),
    )
    return decision, rule


def _saves_within(job: Planning, interval_h: float) -> bool:
    """Whether a save or a sub-save is due in the job."""
    part = 1.0 if job.sub_saves is None else job.sub_saves.fraction
    return n_saves_due(part * interval_h, job.useful_h) > 0


STRATEGY = Strategy(
    name="cpr",
    summary="CPR: partial recovery at the interval that a target PLS allows, or full recovery "
    "where that is cheaper",
    default_interval=DEFAULT_INTERVAL,
    takes_target_pls=True,
    plan=plan,
)

TRACKERS = {
    "scar": "the rows that changed most since their last save",
    "mfu": "the rows used most often since their last save",
    "ssu": "rows that a sub-sample of the inputs used",
    "round-robin": "one part of the rows after the other (control)",
}


def _strategy(tracker: str) -> Strategy:
    def urgent_first(name: str, job: Planning) -> RecoveryPolicy:
        sub_saves = job.sub_saves or SubSaves(tracker)
        policy = plan(name, replace(job, sub_saves=sub_saves))
        if policy.on_failure is not OnFailure.RELOAD:
            return policy  # full recovery needs whole saves
        return replace(policy, sub_saves=sub_saves)

    return Strategy(
        name=f"cpr-{tracker}",
        summary=f"CPR that saves first {TRACKERS[tracker]}",
        default_interval=DEFAULT_INTERVAL,
        takes_target_pls=True,
        plan=urgent_first,
        takes_sub_saves=True,
    )


STRATEGIES = (STRATEGY, *(_strategy(tracker) for tracker in TRACKERS))
