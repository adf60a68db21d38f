"""Failures that are announced: saves on notice, work that moves away, standbys that take over.

On notice: the job saves when a failure is announced (`scopes: notice`), besides at its interval,
and goes back to the newer of the two saves. A notice shorter than a save is of no use: that save is
struck.

Assumptions of on-notice: a save on notice takes what any other does; work goes on between it and
the failure.

Not modelled of on-notice: moving the work to another node before the failure.

Parcae: a node that is announced to go hands its part over to others in time, and the job is planned
anew for those that are left: it stalls for the migration, and loses no work. A node that comes back
is taken in with another migration. A failure that nobody announced, or too late, takes the job back
to its last save (Parcae, Duan et al. 2024, NSDI: mechanism recalled).

Assumptions of parcae: the migration is charged as the node goes, not as it is announced, which
changes no hours. One migration is a node's state over its own link unless `migrate` says otherwise.
Speed is in proportion to the nodes left without a table of throughput. Saves are the job's own, at
Young's interval for the failures that are not announced in time.

Not modelled of parcae: the forecast of how many instances will be there, by which Parcae chooses a
shape that lasts; here each change is followed at once.

TrainMover: of a failure that is announced long enough before, a standby has built its groups and
warmed up beside the job, which then stands still for a change of places, and loses no work. After
any other failure a standby takes the lost node's place in as long, and all go back to the last save
(Lao et al., OSDI 2026: standbys, no memory on top, and around 20 s of downtime at 1,024 GPUs
published; which state is gone back to is not known here).

Assumptions of trainmover: failures that are not announced take the job back to the job's own saves,
at Young's interval for them. Standbys are the job's spares; where it does not say how many there
are, as many as are enough in 99 % of the time until a lost node is replaced. The node that leaves
copies its state over its own link before it goes: a notice shorter than that is none.

Not modelled of trainmover: machines that are elastic, lent by jobs of less importance; what
preparing a standby takes of the network beside the job.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.intervals import young_h
from cprsim.recovery.options import EVERY, Option
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.recovery.systems.node_copies import standbys_of
from cprsim.units import TIME

BESIDES = Option(
    None, "time", "progress between saves besides; default: Young's, as if there were no notice"
)


def on_notice(facts: JobFacts, o: Any, name: str) -> Policy:
    if not any(scope.notice_h > 0.0 for scope in facts.scopes):
        raise ParameterError(
            "saves on notice, and no failure is announced: give `notice` to one of `scopes`"
        )
    every_h = o.every
    if every_h is None:
        every_h = young_h(facts.save_stall.mean_h, facts.mtbf_h)
    if not every_h > 0.0:
        raise ParameterError("saves cost nothing, so that Young's rule gives none: give `every`")
    remote = pieces.remote_tier(facts)
    tiers = (replace(remote, name="on notice"), remote)
    sources = tuple(tier.name for tier in tiers)
    captures = [
        Capture(
            "on notice", stall=facts.save_stall, background=facts.save_background,
            when_busy=WhenBusy.SKIP, on_notice=True,
        )
    ]  # fmt: skip
    if every_h < inf:
        captures.append(
            Capture("remote", every_h, stall=facts.save_stall, background=facts.save_background)
        )
    return Policy(
        name,
        rules=(Rule(Reverts.ALL, pieces.restart(facts, pieces.LOAD), sources=sources),),
        tiers=tiers,
        captures=tuple(captures),
    )


MIGRATING = {
    "migrate": Option(None, "time", "stall of a migration; default: a node's state by its link"),
    "every": Option(None, "time", f"{EVERY}Young's for what is not announced"),
}


def parcae(facts: JobFacts, o: Any, name: str) -> Policy:
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
        *pieces.until_it_grows(o.grows),
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
        elastic=pieces.elastic_of(facts, o.throughput, 1, name),
    )


ENOUGH = 0.99  # of the time; assumed


MOVING = {
    "downtime": Option(20 / 3600, "time", "of a change of places; around 20 s are published"),
    "prepare": Option(
        None, "time", "of a standby beside the job; default: a node's state by its link"
    ),
    "every": Option(None, "time", f"{EVERY}Young's for what is not announced"),
}


def trainmover(facts: JobFacts, o: Any, name: str) -> Policy:
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
        tax=Tax(nodes=standbys_of(facts, ENOUGH, at_least=1)),
    )


SYSTEMS = (
    System(
        "on-notice", "saves when a failure is announced, besides at an interval",
        "spot and preemptible nodes; no figure of a paper", options("", {"every": BESIDES}),
        on_notice, interval="every", family=Family.AFTERWARDS, cited="spot nodes",
        runs_as="Lightning, Orbax",
    ),
    System(
        "parcae", "work is moved away from nodes that are announced to go, before they do",
        "Parcae (Duan et al. 2024, NSDI): mechanism recalled",
        options("throughput grows", MIGRATING), parcae, interval="every", family=Family.AFTERWARDS,
        cited="NSDI'24", mark=Provenance.RECALLED,
    ),
    System(
        "trainmover",
        "standbys take the places of nodes that fail; beside the job where that is announced",
        "TrainMover (Lao et al., OSDI 2026): mechanism and downtime published, saves assumed",
        options("", MOVING), trainmover, interval="every", family=Family.AFTERWARDS,
        cited="OSDI'26", mark=Provenance.PUBLISHED,
    ),
)  # fmt: skip
