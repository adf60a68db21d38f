"""torchft: replica groups agree in each step on who takes part; a step with a failure is retried.

The groups that are left form a quorum and retry the step in hand; the struck group gets its node,
copies the state from a healthy one while they work, and joins at the beginning of a step. Where all
replicas of a shard are lost, the job goes back to its last save, which is assumed here (mechanism
recalled from its documents).

Assumptions: fewer groups train on fewer samples in each step; the hours that the missing samples
would take are charged, so that jobs of equal samples are compared. No stall when a group joins.

Not modelled: the accuracy of steps on fewer samples; several quorums after one failure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.policy import Policy, Reverts, Rule, Stage, StageKind, To
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option
from cprsim.recovery.systems import hsdp


@dataclass(frozen=True, slots=True)
class TorchftOptions:
    """How the nodes are grouped, and what agreeing on a quorum takes."""

    group: int | None = option(
        None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`"
    )
    quorum: float = option(
        0.0, "time", "until those that are left agree; no figure known", unknown=True
    )
    copy: float | None = option(
        None, "time", "how long a group copies from its peers; default: a node's state by its link"
    )
    backstop: float | None = option(
        None, "time", "progress between saves; default: Young's for the losses of all replicas"
    )


def plan(facts: JobFacts, options: TorchftOptions, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    grouped = hsdp.plan(
        facts,
        hsdp.HsdpOptions(
            group=options.group, stall=options.quorum, copy=options.copy, backstop=options.backstop
        ),
        name,
    )
    without, beyond = grouped.rules
    _, *rejoining = without.stages
    quorum = (Stage(StageKind.DETECT), Stage(StageKind.REGROUP, Constant(options.quorum)))
    retry = Rule(
        Reverts.ALL, (*quorum, *rejoining), To.STEP_BEGUN, needs=(pieces.replicas(facts, 2).name,)
    )
    return replace(grouped, rules=(retry, beyond), step_h=step_h)


SYSTEM = System(
    name="torchft",
    runs_as="torchft",
    summary="replica groups agree on who takes part; the step in hand is retried by those left",
    source="torchft: mechanism recalled; backstop assumed",
    options=TorchftOptions,
    plan=plan,
    interval="backstop",
    not_counted="what smaller batches, while a group is missing, cost in accuracy is not priced",
    family=Family.REPLICAS,
    cited="torchft",
    mark=Provenance.RECALLED,
)
