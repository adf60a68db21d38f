"""Parcae: spot instances say that they will be taken, and the work is moved away beforehand.

A node that is announced to go hands its part over to others in time, and the job is planned anew
for those that are left: it stalls for the migration, and loses no work. A node that comes back is
taken in with another migration. A failure that nobody announced, or too late, takes the job back to
its last save (Parcae, Duan et al. 2024, NSDI: mechanism recalled).

Assumptions: the migration is charged as the node goes, not as it is announced, which changes no
hours. One migration is a node's state over its own link unless `migrate` says otherwise. Speed is
in proportion to the nodes left without a table of throughput. Saves are the job's own, at Young's
interval for the failures that are not announced in time.

Not modelled: the forecast of how many instances will be there, by which Parcae chooses a shape that
lasts; here each change is followed at once.
"""

from __future__ import annotations

from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.elastic_table import elastic_of, until_it_grows
from cprsim.recovery.options import EVERY, Option
from cprsim.recovery.policy import (
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.units import TIME

OWN_OPTIONS = {
    "migrate": Option(None, "time", "stall of a migration; default: a node's state by its link"),
    "every": Option(None, "time", f"{EVERY}Young's for what is not announced"),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_not_negative(name, migrate=o.migrate)
    pieces.require_positive(name, every=o.every)
    migrate = facts.to_peer(name) if o.migrate is None else Constant(o.migrate)
    announced = tuple(one for one in facts.scopes if one.notice_h > 0.0)
    in_time = tuple(one for one in announced if one.notice_h >= migrate.mean_h)
    if not in_time:
        raise ParameterError(
            f"{name} moves work away in {TIME.format(migrate.mean_h)}, and no failure is announced "
            "as long before: give `notice` to one of `scopes`"
        )
    moved = Stage(StageKind.REGROUP, migrate)
    stages = (
        moved,
        Stage(StageKind.WAIT, blocks=False, each=True),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        *until_it_grows(o.grows),
        moved,  # they come back
    )
    names = tuple(one.name for one in in_time)
    unannounced = facts.striking([one for one in facts.scopes if one not in in_time])
    every_h = pieces.own_interval_h(unannounced, o.every, name)
    others = Groups(facts.n_nodes, facts.n_nodes - 1)
    return pieces.backed(
        name,
        facts,
        Rule(Reverts.NOBODY, stages, scopes=names, needs=("others",)),
        Tier("others", Medium.DEVICE, others, facts.role),
        every_h,
        elastic=elastic_of(facts, o.throughput, 1, name),
    )


SYSTEM = System(
    "parcae", "work is moved away from nodes that are announced to go, before they do",
    "Parcae (Duan et al. 2024, NSDI): mechanism recalled", options("throughput grows", OWN_OPTIONS),
    plan, interval="every", family=Family.AFTERWARDS, cited="NSDI'24", mark=Provenance.RECALLED,
)  # fmt: skip
