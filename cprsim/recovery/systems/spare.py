"""SPARe: each group holds the shards of several others too, and computes them when those are lost.

N data-parallel groups hold r stacked shards each, so that every shard lies on r groups. A group
that is lost is masked, and the step in hand is retried: the others compute what it would have, as a
second stack. Only when all r groups of a shard are lost, which takes about
``Gamma(1/r)/r N^(1 - 1/r)`` failures, does the job go back to its last save (Lee et al. 2026, ICML:
mechanism and formula recalled).

Assumptions: one node stands for a group, and the r groups of a shard are neighbours in a ring. Any
number of missing groups costs one more stack, so half of the speed; a lost group is replaced while
the others work, and joins at the beginning of a step. Stacks are held, not computed, while no group
is missing. Saves are the job's own, at Young's interval for the losses of all groups of a shard.

Not modelled: the order of the stacks, which lets the reduction begin early; masks kept until the
next restart.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    Elastic,
    Groups,
    Medium,
    Policy,
    Ring,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

OWN_OPTIONS = {
    "stacked": Option(3, "count", "shards that each group holds, r (assumed)"),
    "regroup": Option(0.0, "time", "until a lost group is masked; no figure known", True),
    "speed": Option(0.5, "share", "of the job while groups are missing (derived)"),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n, stacked = facts.n_nodes, o.stacked
    if pieces.replicas_of_job(facts, name) != n:
        raise ParameterError(
            f"{name} needs a replica on each node, which stands for a group: {facts.replicas} "
            f"replicas lie on {n} nodes"
        )
    if not 2 <= stacked <= n:
        raise ParameterError(f"`stacked` of {name} is {stacked}; it must lie between 2 and {n}")
    if not 0.0 < o.speed <= 1.0:
        raise ParameterError(f"`speed` of {name} is {o.speed}; above 0 and at most 1")
    pieces.require_positive(name, backstop=o.backstop)
    masked = (
        Stage(StageKind.DETECT),
        Stage(StageKind.REGROUP, Constant(o.regroup)),
        Stage(StageKind.WAIT, blocks=False),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        Stage(StageKind.LOAD, facts.to_peer(name, stacked), blocks=False),
    )
    down_h = facts.reschedule.mean_h + facts.to_peer(name, stacked).mean_h
    around = Groups(2 * stacked - 1, stacked - 1)  # r neighbours, of which the struck one is any
    every_h = pieces.backstop_h(facts, o.backstop, around, down_h, neighbours=True)
    speeds = (1.0, *(o.speed,) * (min(n, MOST_UNITS) - 1))
    return pieces.backed(
        name,
        facts,
        pieces.retry("stacks", masked),
        Tier("stacks", Medium.DEVICE, Ring(stacked), facts.role),
        every_h,
        elastic=Elastic(facts.role, speeds),
        tax=Tax(memory=stacked - 1.0),
        step_h=step_h,
    )


SYSTEM = System(
    "spare", "each group holds the shards of others too, and computes them when those are lost",
    "SPARe (Lee et al. 2026, ICML): mechanism and formula recalled; speed derived",
    options("backstop", OWN_OPTIONS), plan, interval="backstop", family=Family.ELASTIC,
    cited="ICML'26", mark=Provenance.RECALLED,
)  # fmt: skip
