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

from dataclasses import dataclass

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.policy import Groups, Policy, Reverts, Rule, Stage, StageKind, To
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option


@dataclass(frozen=True, slots=True)
class JustInTimeOptions:
    """How nodes are grouped, and the saves behind that."""

    group: int | None = option(
        None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`"
    )
    backstop: float | None = option(
        None, "time", "progress between saves; default: Young's for the losses of all replicas"
    )


def plan(facts: JobFacts, options: JustInTimeOptions, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n_groups = pieces.n_replicas(facts, options.group, name)
    pieces.require_positive(name, backstop=options.backstop)
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
    every_h = pieces.backstop_h(facts, options.backstop, groups, down_h, neighbours=False)
    return Policy(
        name,
        rules=(
            Rule(Reverts.ALL, after, To.STEP_BEGUN, needs=("replicas",)),
            pieces.back_to_remote(facts),
        ),
        tiers=(pieces.replicas(facts, n_groups), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        step_h=step_h,
    )


SYSTEM = System(
    name="just-in-time",
    summary="healthy replicas save once a failure is noticed; only the step in hand is lost",
    source="Gupta et al. 2024 (EuroSys): mechanism recalled; backstop assumed",
    options=JustInTimeOptions,
    plan=plan,
    interval="backstop",
    family=Family.AFTERWARDS,
    cited="EuroSys'24",
    mark=Provenance.RECALLED,
)
