"""The state is copied in each step, or lies in replicas anyway, so that a step is lost at most.

Checkmate and FlowCheck let shadow servers outside the job apply the gradients that travel through
the network, and all reload from them. FlashRecovery saves nothing: a lost node is replaced and
copies from a replica. AdaCheck copies to peers only the part of the state that no other node holds
anyway. FFTrainer copies each node's state to the next one around a ring (mechanisms recalled).

Assumptions: shadow servers keep up with training, none fails, and each node reloads over its own
link. AdaCheck's share is the least of its paper's (6 to 896 times smaller, secondary). FFTrainer's
ring has remote saves behind it, as GEMINI's.

Not modelled: shadow servers that fall behind or fail; the detection and the restart of processes
with which FlashRecovery saves its time: give them as `costs` of the entry.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cprsim.errors import ParameterError
from cprsim.recovery import pieces
from cprsim.recovery.policy import (
    Groups,
    Medium,
    Outside,
    Policy,
    Reverts,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option
from cprsim.recovery.systems import gemini

SHADOW = "shadow servers"
LEAST_UNIQUE = 1 / 6  # of a node's state (secondary)


@dataclass(frozen=True, slots=True)
class Shadowed:
    """The servers."""

    shadow_nodes: int | None = option(None, "count", "servers that shadow the job; needed")


@dataclass(frozen=True, slots=True)
class Replicated:
    """How nodes are grouped, and the saves behind that."""

    group: int | None = option(
        None, "count", "nodes of a replica group; default: by the job's `cluster.replicas`"
    )
    backstop: float | None = option(
        None, "time", "progress between saves; default: Young's for the losses of all replicas"
    )


@dataclass(frozen=True, slots=True)
class Unique(gemini.GeminiOptions):
    """And what is copied at all."""

    unique: float | None = option(
        None,
        "share",
        "of a node's state, that no other node holds anyway; default: 1/6 (secondary) of a state "
        "that has replicas",
    )


@dataclass(frozen=True, slots=True)
class Ringed(gemini.GeminiOptions):
    """In a ring."""

    placement: str = option(
        "ring", "word", "`group`: all of a group hold its shards; `ring`: the next machines do"
    )


def shadowed(facts: JobFacts, options: Shadowed, name: str) -> Policy:
    """The servers outlive every failure, so that no other rule is ever needed."""
    if options.shadow_nodes is None:
        raise ParameterError(f"{name} keeps servers besides the job: give `shadow_nodes`")
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    stages = pieces.restart(facts, Stage(StageKind.LOAD, facts.to_peer(name)))
    return Policy(
        name,
        rules=(
            Rule(Reverts.ALL, stages, To.STEP_BEGUN, needs=(SHADOW,)),
            Rule(Reverts.ALL, pieces.restart(facts), To.START),
        ),
        tiers=(Tier(SHADOW, Medium.REMOTE, Outside(), facts.role),),
        tax=Tax(nodes=float(options.shadow_nodes)),
        step_h=step_h,
    )


def replicated(facts: JobFacts, options: Replicated, name: str) -> Policy:
    """A node that replaces a lost one copies from a replica; the others wait for it."""
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n_groups = pieces.n_replicas(facts, options.group, name)
    pieces.require_positive(name, backstop=options.backstop)
    copy = facts.to_peer(name)
    down_h = facts.replaced_h + copy.mean_h
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, options.backstop, groups, down_h, neighbours=False)
    stages = pieces.restart(facts, Stage(StageKind.LOAD, copy))
    return Policy(
        name,
        rules=(
            Rule(Reverts.ALL, stages, To.STEP_BEGUN, needs=("replicas",)),
            pieces.back_to_remote(facts),
        ),
        tiers=(pieces.replicas(facts, n_groups), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        step_h=step_h,
    )


def unique_part(facts: JobFacts, options: Unique, name: str) -> Policy:
    """GEMINI's copies, of a part of the state."""
    share = options.unique
    if share is None:
        pieces.replicas_of_job(facts, name, "`unique`")
        share = LEAST_UNIQUE
    pieces.require_positive(name, unique=share)
    part = facts.with_state(share, name)
    copied = gemini.plan(part, options, name)
    whole = gemini.plan(facts, options, name)
    to_peers, _ = copied.captures
    _, to_remote = whole.captures
    # what a lost node needs is still all of its state, from whoever holds it
    return replace(whole, captures=(to_peers, to_remote), tax=Tax(memory=share * options.copies))


SYSTEMS = (
    System(
        name="checkmate",
        summary="shadow servers outside the job apply the gradients too; all reload from them",
        source="Checkmate: mechanism recalled",
        options=Shadowed, plan=shadowed, family=Family.EACH_STEP, cited="Checkmate",
        mark=Provenance.RECALLED, needs=(("shadow_nodes", 4),),
    ),
    System(
        name="flashrecovery",
        runs_as="HyperPod checkpointless",
        summary="saves nothing: a lost node is replaced and copies from a replica",
        source="FlashRecovery: 150 s at 4,800 devices published, mechanism recalled",
        options=Replicated, plan=replicated, interval="backstop", family=Family.EACH_STEP,
        cited="FlashRecovery", mark=Provenance.RECALLED,
    ),
    System(
        name="adacheck",
        summary="copies to peers what no other node holds anyway",
        source="AdaCheck: 6 to 896 x smaller copies secondary",
        options=Unique, plan=unique_part, interval="remote_every", family=Family.EACH_STEP,
        cited="AdaCheck", mark=Provenance.SECONDARY,
    ),
    System(
        name="fftrainer",
        summary="each node's state is copied to the next one around a ring",
        source="FFTrainer: mechanism recalled",
        options=Ringed, plan=gemini.plan, interval="remote_every", family=Family.EACH_STEP,
        cited="FFTrainer", mark=Provenance.RECALLED,
        assumed="As gemini, from which the ring tells it: neighbours share more groups of two.",
    ),
)  # fmt: skip
