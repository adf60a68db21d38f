"""Undo and replay: a half-applied update is undone, or the struck alone do again what they lost.

Swift undoes an update from a replica that holds the state (`swift-undo`): all repeat one step.
In a pipeline each stage logs what it sends on. A struck stage then goes back to the last save and
works through the logs of its neighbours, r times as fast as training, while the others wait; they
lose nothing (`swift`; Zhong et al. 2023, PPoPP: mechanism recalled). A failure between saves of an
interval w so costs ``(w/2)/r`` on average.

Assumptions: a stage's log lies on the next node, in host memory, and is lost with it: if two
neighbours are down, all go back to the last save. Logging slows the job by `tax`. Saves of swift
are at Young's interval for ``r MTBF``, at which they and the replays cost alike (derived here).

Not modelled: which stage waits for which; selective logging; the memory that logs take.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    Medium,
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
from cprsim.recovery.systems import per_step

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
    policy = per_step.replicated(facts, o, name)
    undo, beyond = policy.rules
    return replace(policy, rules=(replace(undo, to=To.STEP_BEFORE), beyond))


SYSTEMS = (
    System(
        "swift",
        "a struck stage replays its neighbours' logs from the last save; the others wait",
        "Swift (Zhong et al. 2023, PPoPP): mechanism recalled",
        options("every tax", {"replay_speed": SPEED}), replayed, interval="every",
        family=Family.REPLAY, cited="PPoPP'23", mark=Provenance.RECALLED,
    ),
    System(
        "swift-undo", "the half-applied update is undone; the lost node copies from a replica",
        "Swift (Zhong et al. 2023, PPoPP): mechanism recalled",
        per_step.REPLICATED, undone, interval="backstop", family=Family.REPLAY,
        cited="PPoPP'23", mark=Provenance.RECALLED,
    ),
)  # fmt: skip
