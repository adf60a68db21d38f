"""A recovery system of one's own, for docs/systems.md; what it does is made up."""

from __future__ import annotations

from typing import Any

from cprsim.job.policy import (
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    Stage,
    StageKind,
    Tier,
)
from cprsim.recovery.system import JobProfile, Option, System

OPTIONS = {"every": Option("time", "progress between copies to a neighbour's disk", default=0.5)}


def plan(facts: JobProfile, options: Any) -> Policy:
    """Copies on the next node's disk; a failure takes all back to the newest of them."""
    stages = (
        Stage(StageKind.DETECT),
        Stage(StageKind.WAIT),
        Stage(StageKind.RESCHEDULE, facts.reschedule),
        Stage(StageKind.LOAD),
    )
    return Policy(
        options.name,
        rules=(Rule(Reverts.ALL, stages, sources=("neighbour",)),),
        tiers=(Tier("neighbour", Medium.SSD, Ring(2), facts.role, load=facts.load),),
        captures=(SaveSchedule("neighbour", options.every, stall=facts.save_stall),),
    )


SYSTEM = System("neighbour", "copies on the next node's disk", "made up", OPTIONS, plan)
