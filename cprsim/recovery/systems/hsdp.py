"""Fault-tolerant HSDP: a failure takes out its replica group, and the others go on without it.

Each replica group shards the whole state over its nodes. A failure stalls the job until the groups
that are left have regrouped. While they work, the struck group gets its node, copies the state from
its peers in the others, and joins again (Salpekar et al. 2026, FT-HSDP: mechanism, and a stall of 3
instead of 10 min at about 100,000 GPUs, published). Where all replicas of a shard are lost, the job
goes back to its last save; saves are assumed here, at Young's interval for overlapping failures of
single nodes and for those that strike all nodes at once.

Assumptions: the stall covers detection, and there is none when a group joins again. The speed of a
group is lost as long as one of its nodes is missing, but the memory of its other nodes counts as
current although it falls behind, since a live tier knows slots and no groups: where failures of
different groups overlap, losses of all replicas are understated.

Not modelled: the accuracy of steps on fewer samples.
"""

from __future__ import annotations

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


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
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


SYSTEM = System(
    "hsdp",
    "fault-tolerant HSDP: the other replica groups go on without the struck one, which copies from "
    "a peer and joins again",
    "Salpekar et al. 2026: mechanism and stall published; backstop assumed",
    OPTIONS, plan, interval="backstop", family=Family.REPLICAS, cited="FT-HSDP",
    mark=Provenance.PUBLISHED, runs_as="torchft, TorchTitan",
    not_counted="what smaller batches, while a group is missing, cost in accuracy is not priced",
)  # fmt: skip
