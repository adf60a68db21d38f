"""Just-in-time checkpoints: those that are left save when a failure is noticed, and not before.

Replicas of the state that each data-parallel group shards over its nodes are current. After a
failure, once it is noticed, healthy replicas save; lost nodes are replaced; all load that save and
retry the step in hand, of which half is lost on average (Gupta et al. 2024, EuroSys: mechanism
recalled). Where all replicas of a shard are lost the job goes back to its last periodic save, which
is assumed here.

Assumptions: saving after a failure takes what any save does, writing included. The replicas that
are needed are there already for data parallelism, and cost nothing on top.

Not modelled: failures of the processes alone, which the transparent variant repairs in place
without a save; hangs that only a collective operation's timeout shows, but for their detection.
"""

from __future__ import annotations

from typing import Any

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.policy import Groups, Policy, Stage, StageKind
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n_groups = pieces.n_replicas(facts, o.group, name)
    pieces.require_positive(name, backstop=o.backstop)
    save_h = facts.save_stall.mean_h + facts.background_h
    after = (
        Stage(StageKind.DETECT),
        Stage(StageKind.SAVE, Constant(save_h)),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, facts.reschedule),
        Stage(StageKind.LOAD, facts.load),
    )
    down_h = save_h + facts.reschedule.mean_h + facts.load.mean_h
    down_h += max(scope.detect.mean_h for scope in facts.scopes)
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, o.backstop, groups, down_h, neighbours=False)
    retry = pieces.retry("replicas", after)
    return pieces.backed(
        name, facts, retry, pieces.replicas(facts, n_groups), every_h, step_h=step_h
    )


SYSTEM = System(
    "just-in-time",
    "healthy replicas save once a failure is noticed; only the step in hand is lost",
    "Gupta et al. 2024 (EuroSys): mechanism recalled; backstop assumed",
    options("group backstop"), plan, interval="backstop", family=Family.AFTERWARDS,
    cited="EuroSys'24", mark=Provenance.RECALLED,
)  # fmt: skip
