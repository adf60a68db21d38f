"""TrainMover: standby machines take the places of those that fail or are announced to.

Of a failure that is announced long enough before, a standby has built its groups and warmed up
beside the job, which then stands still for a change of places, and loses no work. After any other
failure a standby takes the lost node's place in as long, and all go back to the last save (Lao et
al., OSDI 2026: standbys, no memory on top, and around 20 s of downtime at 1,024 GPUs published;
which state is gone back to is not known here).

Assumptions: failures that are not announced take the job back to the job's own saves, at Young's
interval for them. Standbys are the job's spares; where it does not say how many there are, as many
as are enough in 99 % of the time until a lost node is replaced. The node that leaves copies its
state over its own link before it goes: a notice shorter than that is none.

Not modelled: machines that are elastic, lent by jobs of less importance; what preparing a standby
takes of the network beside the job.
"""

from __future__ import annotations

from typing import Any

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import EVERY, Option
from cprsim.recovery.policy import (
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.recovery.systems.node_copies import standbys

ENOUGH = 0.99  # of the time; assumed


OWN_OPTIONS = {
    "downtime": Option(20 / 3600, "time", "of a change of places; around 20 s are published"),
    "prepare": Option(
        None, "time", "of a standby beside the job; default: a node's state by its link"
    ),
    "every": Option(None, "time", f"{EVERY}Young's for what is not announced"),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_not_negative(name, downtime=o.downtime, prepare=o.prepare)
    prepare_h = facts.to_peer(name).mean_h if o.prepare is None else o.prepare
    known = tuple(
        one.name for one in facts.scopes if one.notice_h > 0.0 and one.notice_h >= prepare_h
    )
    unannounced = facts.striking([one for one in facts.scopes if one.name not in known])
    every_h = pieces.own_interval_h(unannounced, o.every, name)
    moved = Stage(StageKind.REGROUP, Constant(o.downtime))
    unforeseen = Rule(
        Reverts.ALL,
        (Stage(StageKind.DETECT), Stage(StageKind.WAIT), moved, pieces.LOAD),
        sources=(pieces.REMOTE,),
    )
    announced = Rule(
        Reverts.NOBODY, (Stage(StageKind.WAIT), moved), scopes=known,
        needs=("others",),
    )  # fmt: skip
    others = Tier("others", Medium.DEVICE, Groups(facts.n_nodes, facts.n_nodes - 1), facts.role)
    return Policy(
        name,
        rules=(announced, unforeseen) if known else (unforeseen,),
        tiers=(*((others,) if known else ()), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        tax=Tax(nodes=_more_nodes(facts)),
    )


def _more_nodes(facts: JobFacts) -> float:
    """Standbys besides the job's spares; one at least."""
    if facts.cluster.n_spares is not None:
        return 0.0
    lost_per_h = sum(facts.failures_per_h(one) for one in facts.scopes if one.needs_node)
    return float(max(1, standbys(lost_per_h * facts.reschedule.mean_h, ENOUGH)))


SYSTEM = System(
    "trainmover",
    "standbys take the places of nodes that fail; beside the job where that is announced",
    "TrainMover (Lao et al., OSDI 2026): mechanism and downtime published, saves assumed",
    options("", OWN_OPTIONS), plan, interval="every", family=Family.AFTERWARDS,
    cited="OSDI'26", mark=Provenance.PUBLISHED,
)  # fmt: skip
