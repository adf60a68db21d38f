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

from dataclasses import replace
from typing import Any

from cprsim.errors import ParameterError
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
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
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.recovery.systems import gemini

SHADOW = "shadow servers"
LEAST_UNIQUE = 1 / 6  # of a node's state (secondary)


SHADOW_NODES = Option(None, "count", "servers that shadow the job; needed")
UNIQUE = Option(
    None,
    "share",
    "of a node's state, that no other node holds anyway; default: 1/6 (secondary) of a state that "
    "has replicas",
)
REPLICATED = options("group backstop")


def shadowed(facts: JobFacts, o: Any, name: str) -> Policy:
    """The servers outlive every failure, so that no other rule is ever needed."""
    if o.shadow_nodes is None:
        raise ParameterError(f"{name} keeps servers besides the job: give `shadow_nodes`")
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    stages = pieces.restart(facts, Stage(StageKind.LOAD, facts.to_peer(name)))
    return Policy(
        name,
        rules=(
            pieces.retry(SHADOW, stages),
            Rule(Reverts.ALL, pieces.restart(facts), To.START),
        ),
        tiers=(Tier(SHADOW, Medium.REMOTE, Outside(), facts.role),),
        tax=Tax(nodes=float(o.shadow_nodes)),
        step_h=step_h,
    )


def replicated(facts: JobFacts, o: Any, name: str) -> Policy:
    """A node that replaces a lost one copies from a replica; the others wait for it."""
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n_groups = pieces.n_replicas(facts, o.group, name)
    pieces.require_positive(name, backstop=o.backstop)
    copy = facts.to_peer(name)
    down_h = facts.replaced_h + copy.mean_h
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, o.backstop, groups, down_h, neighbours=False)
    stages = pieces.restart(facts, Stage(StageKind.LOAD, copy))
    retry = pieces.retry("replicas", stages)
    return pieces.backed(
        name, facts, retry, pieces.replicas(facts, n_groups), every_h, step_h=step_h
    )


def unique_part(facts: JobFacts, o: Any, name: str) -> Policy:
    """GEMINI's copies, of a part of the state."""
    share = o.unique
    if share is None:
        pieces.replicas_of_job(facts, name, "`unique`")
        share = LEAST_UNIQUE
    pieces.require_positive(name, unique=share)
    part = facts.with_state(share, name)
    copied = gemini.plan(part, o, name)
    whole = gemini.plan(facts, o, name)
    to_peers, _ = copied.captures
    _, to_remote = whole.captures
    # what a lost node needs is still all of its state, from whoever holds it
    return replace(whole, captures=(to_peers, to_remote), tax=Tax(memory=share * o.copies))


SYSTEMS = (
    System(
        "checkmate",
        "shadow servers outside the job apply the gradients too; all reload from them",
        "Checkmate: mechanism recalled", options("", {"shadow_nodes": SHADOW_NODES}), shadowed,
        family=Family.EACH_STEP, cited="Checkmate", mark=Provenance.RECALLED,
        needs=(("shadow_nodes", 4),),
    ),
    System(
        "flashrecovery", "saves nothing: a lost node is replaced and copies from a replica",
        "FlashRecovery: 150 s at 4,800 devices published, mechanism recalled",
        REPLICATED, replicated, interval="backstop", family=Family.EACH_STEP,
        cited="FlashRecovery", mark=Provenance.RECALLED, runs_as="HyperPod checkpointless",
    ),
    System(
        "adacheck", "copies to peers what no other node holds anyway",
        "AdaCheck: 6 to 896 x smaller copies secondary",
        options("", gemini.OWN_OPTIONS | {"unique": UNIQUE}), unique_part,
        interval="remote_every", family=Family.EACH_STEP, cited="AdaCheck",
        mark=Provenance.SECONDARY,
    ),
    System(
        "fftrainer", "each node's state is copied to the next one around a ring",
        "FFTrainer: mechanism recalled",
        options("", gemini.OWN_OPTIONS, placement="ring"), gemini.plan, interval="remote_every",
        family=Family.EACH_STEP, cited="FFTrainer", mark=Provenance.RECALLED,
        assumed="As gemini, from which the ring tells it: neighbours share more groups of two.",
    ),
)  # fmt: skip
