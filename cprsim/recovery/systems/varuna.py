"""Varuna: the job is saved often, and starts again in another shape when its nodes change.

Every few steps the state goes to the remote storage. When nodes are lost, the job goes back to the
newest save and starts again on those that are left, with pipelines of another depth and the same
global batch; when one comes back it saves, and starts again likewise (Athlur et al. 2022; mechanism
recalled). Saves every 10 steps, as well as the stall, the restarts and the table of throughput that
the tests hold this to, are of the public artifact of Oobleck, which runs Varuna too and was
executed.

Assumptions: without `restarts`, a restart takes as long whatever the number of nodes. In the
artifact it takes 33 to 96 s on 29 to 15 of them. Their mean changes little where many saves are
made between failures; where hardly one is, each restart decides whether another fits in: with a
failure each 10 min 4 % fewer samples are trained than in the artifact, but 1 % more with restarts
by nodes (derived). With fewer units than the table of throughput knows the job
stands still until one is back. A node that comes back in the very restart that another one's loss
strikes waits for that one too.

Not modelled: the profiling and the search for a shape, whose result is the table of throughput.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.elastic_table import elastic_of, until_it_grows
from cprsim.recovery.options import EVERY, Option
from cprsim.recovery.policy import (
    Capture,
    Medium,
    Outside,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

OWN_OPTIONS = {
    "every": Option(None, "time", f"{EVERY}10 steps; a step at least"),
    "restart": Option(
        None,
        "time",
        "stall of a restart, the load included; default: the job's rescheduling and load",
    ),
    "restarts": Option(
        None,
        "times",
        "the same with one unit missing, with two and so on, instead of one `restart`",
    ),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", "varuna, which saves after whole steps,")
    elastic = elastic_of(facts, o.throughput, o.unit_nodes, "varuna")
    pieces.require_positive("varuna", every=o.every)
    pieces.require_not_negative("varuna", restart=o.restart)
    if o.restarts is not None:
        if o.restart is not None:
            raise ParameterError("`restart` and `restarts` of varuna both say what one takes")
        elastic = replace(elastic, regroup_h=(o.restarts[0], *o.restarts))
    stages = (
        Stage(StageKind.DETECT),
        *restarting(facts, o),
        Stage(StageKind.WAIT, blocks=False, each=True),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        *until_it_grows(o.grows),
        *growing(facts, o),
    )
    own = o.restart is not None or o.restarts is not None
    load = None if own else facts.load
    return Policy(
        name,
        rules=(Rule(Reverts.ALL, stages, sources=("remote",)),),
        tiers=(Tier("remote", Medium.REMOTE, Outside(), facts.role, load),),
        captures=(
            Capture(
                "remote",
                10 * step_h if o.every is None else max(o.every, step_h),
                stall=facts.save_stall,
                background=facts.save_background,
            ),
        ),
        elastic=elastic,
        step_h=step_h,
    )


def restarting(facts: JobFacts, o: Any) -> tuple[Stage, ...]:
    """On the nodes that are left."""
    if o.restarts is not None:
        return (Stage(StageKind.REGROUP),)
    if o.restart is not None:
        return (Stage(StageKind.REGROUP, Constant(o.restart)),)
    return Stage(StageKind.RESCHEDULE, facts.reschedule), Stage(StageKind.LOAD)


def growing(facts: JobFacts, o: Any) -> tuple[Stage, ...]:
    """With a node that has come back, from a save made for it; the load is booked as `regroup`."""
    if o.restarts is not None:
        return Stage(StageKind.SAVE, facts.save_stall), Stage(StageKind.REGROUP)
    restart = facts.load if o.restart is None else Constant(o.restart)
    return Stage(StageKind.SAVE, facts.save_stall), Stage(StageKind.REGROUP, restart)


SYSTEM = System(
    "varuna",
    "saves every few steps; the job starts again in another shape on the nodes left",
    "Athlur et al. 2022 (EuroSys): mechanism recalled; interval, restart and throughput of the "
    "executed artifact of Oobleck",
    options("throughput unit_nodes grows", OWN_OPTIONS), plan, interval="every",
    family=Family.ELASTIC, cited="EuroSys'22", mark=Provenance.RECALLED,
)  # fmt: skip
