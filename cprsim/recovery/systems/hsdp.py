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

from dataclasses import dataclass

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.policy import Elastic, Groups, Policy, Reverts, Rule, Stage, StageKind
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option


@dataclass(frozen=True, slots=True)
class HsdpOptions:
    """How the nodes are grouped, what a failure stalls, and what the job does without a group."""

    group: int | None = option(
        None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`"
    )
    stall: float = option(
        0.05, "time", "how long a failure stalls the job, detection included; 3 min are published"
    )
    speed: float | None = option(
        None, "share", "speed of the job without one of its n groups; default: (n - 1)/n"
    )
    copy: float | None = option(
        None, "time", "how long a group copies from its peers; default: a node's state by its link"
    )
    backstop: float | None = option(
        None, "time", "progress between saves; default: Young's for the losses of all replicas"
    )


def plan(facts: JobFacts, options: HsdpOptions, name: str) -> Policy:
    check(options)
    n_groups = pieces.n_replicas(facts, options.group, name)
    speed = (n_groups - 1) / n_groups if options.speed is None else options.speed
    copy = (
        Constant(options.copy) if options.copy is not None else facts.to_peer("hsdp without `copy`")
    )
    # a group is out if any of its nodes is
    group = facts.n_nodes // n_groups
    absent_h = group * (options.stall + facts.reschedule.mean_h + copy.mean_h)
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, options.backstop, groups, absent_h, neighbours=False)
    without = (
        Stage(StageKind.REGROUP, Constant(options.stall)),
        Stage(StageKind.WAIT, blocks=False),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        Stage(StageKind.LOAD, copy, blocks=False),
    )
    return Policy(
        name,
        rules=(
            Rule(Reverts.NOBODY, without, needs=("replicas",)),
            pieces.back_to_remote(facts),
        ),
        tiers=(pieces.replicas(facts, n_groups), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        elastic=Elastic(facts.role, speeds(n_groups, speed), group),
    )


def speeds(n_groups: int, without_one: float) -> tuple[float, ...]:
    """Speed without d groups, which each take as much as the first: ``1 - d (1 - v)``.

    With ``v = (n - 1)/n`` it is (n - d)/n.
    """
    lost = 1.0 - without_one
    return tuple(max(0.0, 1.0 - d * lost) for d in range(min(n_groups, MOST_UNITS)))


def check(options: HsdpOptions) -> None:
    """Raise ParameterError for options out of range."""
    if options.stall < 0.0:
        raise ParameterError(f"`stall` is {options.stall} h; it can't be negative")
    if options.speed is not None and not 0.0 <= options.speed <= 1.0:
        raise ParameterError(f"`speed` is {options.speed}; it must lie between 0 and 1")
    if options.backstop is not None and not options.backstop > 0.0:
        raise ParameterError(f"`backstop` is {options.backstop} h; it must be positive")


SYSTEM = System(
    name="hsdp",
    runs_as="torchft, TorchTitan",
    summary="fault-tolerant HSDP: the other replica groups go on without the struck one, which "
    "copies from a peer and joins again",
    source="Salpekar et al. 2026: mechanism and stall published; backstop assumed",
    options=HsdpOptions,
    plan=plan,
    interval="backstop",
    not_counted="what smaller batches, while a group is missing, cost in accuracy is not priced",
    family=Family.REPLICAS,
    cited="FT-HSDP",
    mark=Provenance.PUBLISHED,
)
