"""A step is lost at most: saves after the failure, replicas, shadow servers, undo and replay.

Where all replicas of a shard are lost, the job goes back to its last periodic save.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.pieces import LOAD, RECALLED, load_in, restart, row
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
from cprsim.recovery.system import Family, JobFacts

LOGS, REPLICAS, SHADOW = "logs", "replicas", "shadow servers"


def replicated(job: JobFacts, o: Any, *, saves: bool = False, to: To = To.STEP_BEGUN) -> Policy:
    """While a replica of each shard is left, lost nodes copy from one, or all load its save."""
    step_h = pieces.step_in_hand_h(job)
    n_groups = pieces.n_replicas(job, o.group)
    if saves:
        save_h = job.stall_h + job.background_h
        detect, *replaced = restart(job, Stage(StageKind.LOAD, job.load))
        stages = (detect, Stage(StageKind.SAVE, Constant(save_h)), *replaced)
        down_h = save_h + job.reschedule.mean_h + job.load.mean_h + job.detected_h
    else:
        stages = restart(job, load_in(job.to_peer_h))
        down_h = job.replaced_h + job.to_peer_h
    live = pieces.live_tier(job, REPLICAS, n_groups, strided=True)
    group = Groups(n_groups, n_groups - 1)
    every_h = o.backstop or pieces.backstop_h(job, group, down_h, neighbours=False)
    rule = pieces.retry(REPLICAS, stages, to)
    return pieces.backed(o, job, rule, live, every_h, step_h=step_h)


def shadowed(job: JobFacts, o: Any) -> Policy:
    """The servers outlive every failure, so that no other rule is ever needed."""
    step_h = pieces.step_in_hand_h(job)
    rule = pieces.retry(SHADOW, restart(job, load_in(job.to_peer_h)))
    return Policy(
        o.name,
        rules=(rule, pieces.start_again(job)),
        tiers=(Tier(SHADOW, Medium.REMOTE, Outside(), job.role),),
        tax=Tax(nodes=float(o.shadow_nodes)),
        step_h=step_h,
    )


def replayed(job: JobFacts, o: Any) -> Policy:
    """The struck work through the logs while the others wait."""
    slower = replace(job, mtbf_h=o.replay_speed * job.mtbf_h)
    every_h = o.every or pieces.own_interval_h(slower)
    rule = Rule(
        Reverts.STRUCK, restart(job, LOAD, Stage(StageKind.REPLAY)), needs=(LOGS,),
        sources=(pieces.REMOTE,), replay_speed=o.replay_speed,
    )  # fmt: skip
    logs = Tier(LOGS, Medium.HOST, Ring(2), job.role)
    return pieces.backed(o, job, rule, logs, every_h, tax=Tax(compute=o.tax))


_replicas = partial(row, interval="backstop")
_swift = partial(
    row, family=Family.REPLAY, source="Swift (Zhong et al. 2023, PPoPP): mechanism recalled",
    assumed="a stage's log lies on the next node, in host memory: if two neighbours are down, all "
    "go back to the last save. Saves of swift are at Young's interval for ``r MTBF``, at which "
    "they and the replays cost alike (derived here).",
    not_modelled="which stage waits for which; selective logging; the memory that logs take.",
)  # fmt: skip
SYSTEMS = (
    _replicas(
        "just-in-time", "group backstop", replicated, {"saves": True}, "EuroSys'24", RECALLED,
        "healthy replicas save once a failure is noticed; only the step in hand is lost",
        source="Gupta et al. 2024 (EuroSys): mechanism recalled; backstop assumed",
        family=Family.AFTERWARDS,
        assumed="saving after a failure takes what any save does. Replicas are there for data "
        "parallelism, and cost nothing on top.",
        not_modelled="failures of processes that are repaired in place without a save.",
    ),
    row(
        "checkmate", "shadow_nodes", shadowed, {}, "Checkmate", RECALLED,
        "shadow servers outside the job apply the gradients too; all reload from them",
        source="Checkmate: mechanism recalled", family=Family.EACH_STEP,
        assumed="each node reloads over its own link.",
        not_modelled="shadow servers that fall behind or fail.",
    ),
    _replicas(
        "flashrecovery", "group backstop", replicated, {}, "FlashRecovery", RECALLED,
        "saves nothing: a lost node is replaced and copies from a replica",
        source="FlashRecovery: 150 s at 4,800 devices published, mechanism recalled",
        family=Family.EACH_STEP, runs_as="HyperPod checkpointless",
        assumed="each node reloads over its own link.",
        not_modelled="its faster detection and restart: give them as `costs` of the entry.",
    ),
    _swift(
        "swift", "every tax replay_speed", replayed, {}, "PPoPP'23", RECALLED,
        "a struck stage replays its neighbours' logs from the last save; the others wait",
        interval="every",
    ),
    _swift(
        "swift-undo", "group backstop", replicated, {"to": To.STEP_BEFORE}, "PPoPP'23", RECALLED,
        "the half-applied update is undone; the lost node copies from a replica",
        interval="backstop",
    ),
)  # fmt: skip
