"""Replica groups that go on without one another: fault-tolerant HSDP, and torchft.

Each replica group shards the whole state over its nodes. A failure stalls the job until the groups
that are left have regrouped. While they work, the struck group gets its node, copies the state from
its peers in the others, and joins again (Salpekar et al. 2026, FT-HSDP: mechanism, and a stall of 3
instead of 10 min at about 100,000 GPUs, published). Where all replicas of a shard are lost, the job
goes back to its last save; saves are assumed here, at Young's interval for overlapping failures of
single nodes and for those that strike all nodes at once.

Assumptions of hsdp: the stall covers detection, and there is none when a group joins again. The
speed of a group is lost as long as one of its nodes is missing, but the memory of its other nodes
counts as current although it falls behind, since a live tier knows slots and no groups: where
failures of different groups overlap, losses of all replicas are understated.

Not modelled of hsdp: the accuracy of steps on fewer samples.

torchft: replica groups agree in each step on who takes part. The groups that are left form a quorum
and retry the step in hand; the struck group gets its node, copies the state from a healthy one
while they work, and joins at the beginning of a step. Where all replicas of a shard are lost, the
job goes back to its last save, which is assumed here (mechanism recalled from its documents).

Assumptions of torchft: fewer groups train on fewer samples in each step; the hours that the missing
samples would take are charged, so that jobs of equal samples are compared. No stall when a group
joins.

Not modelled of torchft: the accuracy of steps on fewer samples; several quorums after one failure.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Elastic, Groups, Policy, Reverts, Rule, Stage, StageKind
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

OPTIONS = options(
    "group copy backstop",
    {
        "stall": Option(
            0.05,
            "time",
            "how long a failure stalls the job, detection included; 3 min are published",
        ),
        "speed": Option(
            None, "share", "speed of the job without one of its n groups; default: (n - 1)/n"
        ),
    },
)


def hsdp(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_not_negative(name, stall=o.stall)
    pieces.require_positive(name, backstop=o.backstop)
    if o.speed is not None and not 0.0 <= o.speed <= 1.0:
        raise ParameterError(f"`speed` of {name} is {o.speed}; it must lie between 0 and 1")
    n_groups = pieces.n_replicas(facts, o.group, name)
    speed = (n_groups - 1) / n_groups if o.speed is None else o.speed
    copy = facts.to_peer("hsdp without `copy`") if o.copy is None else Constant(o.copy)
    # a group is out if any of its nodes is
    group = facts.n_nodes // n_groups
    absent_h = group * (o.stall + facts.reschedule.mean_h + copy.mean_h)
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, o.backstop, groups, absent_h, neighbours=False)
    without = (
        Stage(StageKind.REGROUP, Constant(o.stall)),
        Stage(StageKind.WAIT, blocks=False),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        Stage(StageKind.LOAD, copy, blocks=False),
    )
    return pieces.backed(
        name,
        facts,
        Rule(Reverts.NOBODY, without, needs=("replicas",)),
        pieces.replicas(facts, n_groups),
        every_h,
        elastic=Elastic(facts.role, speeds(n_groups, speed), group),
    )


def speeds(n_groups: int, without_one: float) -> tuple[float, ...]:
    """Speed without d groups, which each take as much as the first: ``1 - d (1 - v)``.

    With ``v = (n - 1)/n`` it is (n - d)/n.
    """
    lost = 1.0 - without_one
    return tuple(max(0.0, 1.0 - d * lost) for d in range(min(n_groups, MOST_UNITS)))


SMALLER_BATCHES = "what smaller batches, while a group is missing, cost in accuracy is not priced"
QUORUM = Option(0.0, "time", "until those that are left agree; no figure known", True)


def torchft(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    alike = OPTIONS(group=o.group, stall=o.quorum, copy=o.copy, backstop=o.backstop)
    grouped = hsdp(facts, alike, name)
    without, beyond = grouped.rules
    _, *rejoining = without.stages
    quorum = (Stage(StageKind.DETECT), Stage(StageKind.REGROUP, Constant(o.quorum)))
    retry = pieces.retry("replicas", (*quorum, *rejoining))
    return replace(grouped, rules=(retry, beyond), step_h=step_h)


SYSTEMS = (
    System(
        "hsdp",
        "fault-tolerant HSDP: the other replica groups go on without the struck one, which copies "
        "from a peer and joins again",
        "Salpekar et al. 2026: mechanism and stall published; backstop assumed", OPTIONS, hsdp,
        interval="backstop", family=Family.REPLICAS, cited="FT-HSDP", mark=Provenance.PUBLISHED,
        runs_as="torchft, TorchTitan", not_counted=SMALLER_BATCHES,
    ),
    System(
        "torchft",
        "replica groups agree on who takes part; the step in hand is retried by those left",
        "torchft: mechanism recalled; backstop assumed",
        options("group copy backstop", {"quorum": QUORUM}), torchft, interval="backstop",
        family=Family.REPLICAS, cited="torchft", mark=Provenance.RECALLED, runs_as="torchft",
        not_counted=SMALLER_BATCHES,
    ),
)  # fmt: skip
