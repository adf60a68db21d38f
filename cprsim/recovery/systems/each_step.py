"""A step is lost at most: copies in each step, replicas, saves after the failure, undo and replay.

Replicas of the state that each data-parallel group shards over its nodes are current. After a
failure, once it is noticed, healthy replicas save; lost nodes are replaced; all load that save and
retry the step in hand, of which half is lost on average (Gupta et al. 2024, EuroSys: mechanism
recalled). Where all replicas of a shard are lost the job goes back to its last periodic save, which
is assumed here.

Assumptions of just-in-time: saving after a failure takes what any save does, writing included. The
replicas that are needed are there already for data parallelism, and cost nothing on top.

Not modelled of just-in-time: failures of the processes alone, which the transparent variant repairs
in place without a save; hangs that only a collective operation's timeout shows, but for their
detection.

Checkmate and FlowCheck let shadow servers outside the job apply the gradients that travel through
the network, and all reload from them. FlashRecovery saves nothing: a lost node is replaced and
copies from a replica. AdaCheck copies to peers only the part of the state that no other node holds
anyway. FFTrainer copies each node's state to the next one around a ring (mechanisms recalled).

Assumptions of checkmate, flashrecovery, adacheck: shadow servers keep up with training, none fails,
and each node reloads over its own link. AdaCheck's share is the least of its paper's (6 to 896
times smaller, secondary). FFTrainer's ring has remote saves behind it, as GEMINI's.

Not modelled of checkmate, flashrecovery, adacheck: shadow servers that fall behind or fail; the
detection and the restart of processes with which FlashRecovery saves its time: give them as `costs`
of the entry.

Swift undoes an update from a replica that holds the state (`swift-undo`): all repeat one step. In a
pipeline each stage logs what it sends on. A struck stage then goes back to the last save and works
through the logs of its neighbours, r times as fast as training, while the others wait; they lose
nothing (`swift`; Zhong et al. 2023, PPoPP: mechanism recalled). A failure between saves of an
interval w so costs ``(w/2)/r`` on average.

Assumptions of swift, swift-undo: a stage's log lies on the next node, in host memory, and is lost
with it: if two neighbours are down, all go back to the last save. Logging slows the job by `tax`.
Saves of swift are at Young's interval for ``r MTBF``, at which they and the replays cost alike
(derived here).

Not modelled of swift, swift-undo: which stage waits for which; selective logging; the memory that
logs take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    Groups,
    Medium,
    Outside,
    Policy,
    Reverts,
    Ring,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
    To,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options
from cprsim.recovery.systems import gemini


def just_in_time(facts: JobFacts, o: Any, name: str) -> Policy:
    """Those that are left save; all load that and retry the step."""
    save_h = facts.save_stall.mean_h + facts.background_h
    after = (
        Stage(StageKind.DETECT),
        Stage(StageKind.SAVE, Constant(save_h)),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, facts.reschedule),
        Stage(StageKind.LOAD, facts.load),
    )
    down_h = save_h + facts.reschedule.mean_h + facts.load.mean_h + facts.detected_h
    return _retrying(facts, o, name, after, down_h)


def _retrying(
    facts: JobFacts, o: Any, name: str, stages: tuple[Stage, ...], down_h: float
) -> Policy:
    """As long as each shard has a replica left the step in hand is retried."""
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n_groups = pieces.n_replicas(facts, o.group, name)
    pieces.require_positive(name, backstop=o.backstop)
    groups = Groups(n_groups, n_groups - 1)
    every_h = pieces.backstop_h(facts, o.backstop, groups, down_h, neighbours=False)
    retry = pieces.retry("replicas", stages)
    return pieces.backed(
        name, facts, retry, pieces.replicas(facts, n_groups), every_h, step_h=step_h
    )


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
    copy = facts.to_peer(name)
    stages = pieces.restart(facts, Stage(StageKind.LOAD, copy))
    return _retrying(facts, o, name, stages, facts.replaced_h + copy.mean_h)


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


LOGS = "logs"


SPEED = Option(1.0, "number", "of a replay, relative to training; no figure known")


def replayed(facts: JobFacts, o: Any, name: str) -> Policy:
    """The struck work through the logs while the others wait."""
    pieces.require_positive(name, replay_speed=o.replay_speed)
    pieces.require_not_negative(name, tax=o.tax)
    slower = replace(facts, mtbf_h=o.replay_speed * facts.mtbf_h)
    every_h = pieces.own_interval_h(slower, o.every, name)
    stages = pieces.restart(facts, pieces.LOAD, Stage(StageKind.REPLAY))
    rule = Rule(
        Reverts.STRUCK, stages, needs=(LOGS,), sources=(pieces.REMOTE,),
        replay_speed=o.replay_speed,
    )  # fmt: skip
    logs = Tier(LOGS, Medium.HOST, Ring(2), facts.role)
    return pieces.backed(name, facts, rule, logs, every_h, tax=Tax(compute=o.tax))


def undone(facts: JobFacts, o: Any, name: str) -> Policy:
    """All repeat the step before, for one of them has begun to apply its update."""
    policy = replicated(facts, o, name)
    undo, beyond = policy.rules
    return replace(policy, rules=(replace(undo, to=To.STEP_BEFORE), beyond))


SYSTEMS = (
    System(
        "just-in-time",
        "healthy replicas save once a failure is noticed; only the step in hand is lost",
        "Gupta et al. 2024 (EuroSys): mechanism recalled; backstop assumed",
        options("group backstop"), just_in_time, interval="backstop", family=Family.AFTERWARDS,
        cited="EuroSys'24", mark=Provenance.RECALLED,
    ),
    System(
        "checkmate", "shadow servers outside the job apply the gradients too; all reload from them",
        "Checkmate: mechanism recalled", options("", {"shadow_nodes": SHADOW_NODES}), shadowed,
        family=Family.EACH_STEP, cited="Checkmate", mark=Provenance.RECALLED,
        needs=(("shadow_nodes", 4),),
    ),
    System(
        "flashrecovery", "saves nothing: a lost node is replaced and copies from a replica",
        "FlashRecovery: 150 s at 4,800 devices published, mechanism recalled", REPLICATED,
        replicated, interval="backstop", family=Family.EACH_STEP, cited="FlashRecovery",
        mark=Provenance.RECALLED, runs_as="HyperPod checkpointless",
    ),
    System(
        "adacheck", "copies to peers what no other node holds anyway",
        "AdaCheck: 6 to 896 x smaller copies secondary",
        options("", gemini.OWN_OPTIONS | {"unique": UNIQUE}), unique_part, interval="remote_every",
        family=Family.EACH_STEP, cited="AdaCheck", mark=Provenance.SECONDARY,
    ),
    System(
        "fftrainer", "each node's state is copied to the next one around a ring",
        "FFTrainer: mechanism recalled", options("", gemini.OWN_OPTIONS, placement="ring"),
        gemini.plan, interval="remote_every", family=Family.EACH_STEP, cited="FFTrainer",
        mark=Provenance.RECALLED,
        assumed="As gemini, from which the ring tells it: neighbours share more groups of two.",
    ),
    System(
        "swift", "a struck stage replays its neighbours' logs from the last save; the others wait",
        "Swift (Zhong et al. 2023, PPoPP): mechanism recalled",
        options("every tax", {"replay_speed": SPEED}), replayed, interval="every",
        family=Family.REPLAY, cited="PPoPP'23", mark=Provenance.RECALLED,
    ),
    System(
        "swift-undo", "the half-applied update is undone; the lost node copies from a replica",
        "Swift (Zhong et al. 2023, PPoPP): mechanism recalled", REPLICATED, undone,
        interval="backstop", family=Family.REPLAY, cited="PPoPP'23", mark=Provenance.RECALLED,
    ),
)  # fmt: skip
