"""Saves on notice: nodes that are taken away say so beforehand, as those of a spot market do.

The job saves when a failure is announced (`scopes: notice`), besides at its interval, and goes back
to the newer of the two saves. A notice shorter than a save is of no use: that save is struck.

Assumptions: a save on notice takes what any other does; work goes on between it and the failure.

Not modelled: moving the work to another node before the failure.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

from cprsim.errors import ParameterError
from cprsim.recovery import pieces
from cprsim.recovery.intervals import young_h
from cprsim.recovery.options import Option
from cprsim.recovery.policy import Capture, Policy, Reverts, Rule, WhenBusy
from cprsim.recovery.system import Family, JobFacts, System, options

EVERY = Option(
    None, "time", "progress between saves besides; default: Young's, as if there were no notice"
)


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
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


SYSTEM = System(
    "on-notice", "saves when a failure is announced, besides at an interval",
    "spot and preemptible nodes; no figure of a paper", options("", {"every": EVERY}), plan,
    interval="every", family=Family.AFTERWARDS, cited="spot nodes", runs_as="Lightning, Orbax",
)  # fmt: skip
