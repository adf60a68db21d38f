"""Oobleck: pipelines of several shapes, planned beforehand, so that lost nodes are left out.

Every layer lies on several pipelines. When a node is lost, those that are left take other pipeline
templates, fetch the layers that they lack from each other, and go on with the same global batch; a
node that comes back is taken in the same way (Jang et al. 2023; mechanism recalled). So a failure
costs a reconfiguration and the step in hand, half a step on average, and from then on speed. A
reconfiguration of 2 s, a lost step in hand and the table of throughput that the study holds this to
are of the public artifact, which was executed.

Assumptions: the state is lost where all pipelines lose the same part of it at once. With fewer
units than the table of throughput knows the job stands still until one is back, and loses nothing.
Where all are lost, the job goes back to the remote storage, if it is saved to it, else to its
start. A node takes its time to be replaced while the others work. One that comes back stands by
until the next loss, whose reconfiguration takes it in, as in the artifact; a job that stands still
takes it in at once. With another `grows` it stalls the others for a reconfiguration of its own; if
another is lost in the middle of it, it waits for that one too.

Not modelled: the planning of pipeline templates, whose result is the table of throughput.
"""

from __future__ import annotations

from typing import Any

from cprsim.recovery import pieces
from cprsim.recovery.elastic_table import elastic_of
from cprsim.recovery.options import GROWS, Option
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    Policy,
    Reverts,
    Rule,
    Tier,
    To,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

RECONFIGURE_H = 2.0 / 3600.0


OWN_OPTIONS = {
    "grows": Option("next loss", "growth", f"{GROWS}so the executed artifact does"),
    "every": Option(
        None,
        "time",
        "progress between saves to the remote storage, for the loss of all nodes; default: none",
    ),
}


def plan(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", "oobleck, which retries the step in hand,")
    elastic = elastic_of(facts, o.throughput, o.unit_nodes, "oobleck")
    pieces.require_positive("oobleck", every=o.every)
    pieces.require_not_negative("oobleck", reconfigure=o.reconfigure)
    left_out = pieces.left_out(facts, o.reconfigure, o.grows)
    n = pieces.n_pipelines(facts, o.pipelines, name)
    pipelines = Tier("pipelines", Medium.DEVICE, Groups(n, n - 1, strided=True), facts.role)
    retry = pieces.retry("pipelines", left_out)
    if o.every is None:
        rules = (retry, Rule(Reverts.ALL, pieces.restart(facts), To.START))
        return Policy(name, rules, (pipelines,), elastic=elastic, step_h=step_h)
    return Policy(
        name,
        rules=(retry, pieces.back_to_remote(facts)),
        tiers=(pipelines, pieces.remote_tier(facts)),
        captures=(
            Capture("remote", o.every, stall=facts.save_stall, background=facts.save_background),
        ),
        elastic=elastic,
        step_h=step_h,
    )


SYSTEM = System(
    "oobleck", "lost nodes are left out: a reconfiguration, the step in hand, and speed",
    "Jang et al. 2023 (SOSP): mechanism recalled; 2 s and throughput of the executed artifact",
    options("throughput unit_nodes pipelines reconfigure", OWN_OPTIONS, reconfigure=RECONFIGURE_H),
    plan, interval="every", family=Family.ELASTIC, cited="SOSP'23", mark=Provenance.RECALLED,
)  # fmt: skip
