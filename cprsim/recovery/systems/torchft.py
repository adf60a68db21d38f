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

from dataclasses import replace
from typing import Any

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Policy, Stage, StageKind
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.recovery.systems import hsdp

QUORUM = Option(0.0, "time", "until those that are left agree; no figure known", True)


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    alike = hsdp.OPTIONS(group=o.group, stall=o.quorum, copy=o.copy, backstop=o.backstop)
    grouped = hsdp.plan(facts, alike, name)
    without, beyond = grouped.rules
    _, *rejoining = without.stages
    quorum = (Stage(StageKind.DETECT), Stage(StageKind.REGROUP, Constant(o.quorum)))
    retry = pieces.retry("replicas", (*quorum, *rejoining))
    return replace(grouped, rules=(retry, beyond), step_h=step_h)


SYSTEM = System(
    "torchft", "replica groups agree on who takes part; the step in hand is retried by those left",
    "torchft: mechanism recalled; backstop assumed",
    options("group copy backstop", {"quorum": QUORUM}), plan, interval="backstop",
    family=Family.REPLICAS, cited="torchft", mark=Provenance.RECALLED, runs_as="torchft",
    not_counted="what smaller batches, while a group is missing, cost in accuracy is not priced",
)  # fmt: skip
