"""Oobleck: pipelines of several shapes, planned beforehand, so that lost nodes are left out.

Every layer lies on several pipelines. When a node is lost, those that are left take other pipeline
templates, fetch the layers that they lack from each other, and go on with the same global batch; a
node that comes back is taken in the same way (Jang et al. 2023; mechanism recalled). So a failure
costs a reconfiguration and the step in hand, half a step on average, and from then on speed. A
reconfiguration of 2 s, a lost step in hand and the table of throughput that the tests hold this to
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

from dataclasses import dataclass

from cprsim.recovery import pieces
from cprsim.recovery.elastic_table import elastic_of, grows
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
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option

RECONFIGURE_H = 2.0 / 3600.0


@dataclass(frozen=True, slots=True)
class OobleckOptions:
    """How fast the job works without some nodes, and what leaving them out takes."""

    throughput: tuple[float, ...] | None = option(
        None,
        "table",
        "samples per time with all units, with one fewer, and so on; default: in proportion",
    )
    unit_nodes: int = option(1, "count", "nodes that are left out together")
    pipelines: int | None = option(
        None,
        "count",
        "data-parallel pipelines, each with the whole state; default: the job's `cluster.replicas`",
    )
    reconfigure: float = option(RECONFIGURE_H, "time", "stall when nodes leave or come back")
    grows: float | str = grows("next loss", "so the executed artifact does")
    every: float | None = option(
        None,
        "time",
        "progress between saves to the remote storage, for the loss of all nodes; default: none",
    )


def plan(facts: JobFacts, options: OobleckOptions, name: str) -> Policy:
    step_h = facts.needed("step_h", "oobleck, which retries the step in hand,")
    elastic = elastic_of(facts, options.throughput, options.unit_nodes, "oobleck")
    pieces.require_positive("oobleck", every=options.every)
    pieces.require_not_negative("oobleck", reconfigure=options.reconfigure)
    left_out = pieces.left_out(facts, options.reconfigure, options.grows)
    n = pieces.n_pipelines(facts, options.pipelines, name)
    pipelines = Tier("pipelines", Medium.DEVICE, Groups(n, n - 1, strided=True), facts.role)
    retry = Rule(Reverts.ALL, left_out, To.STEP_BEGUN, needs=("pipelines",))
    if options.every is None:
        rules = (retry, Rule(Reverts.ALL, pieces.restart(facts), To.START))
        return Policy(name, rules, (pipelines,), elastic=elastic, step_h=step_h)
    return Policy(
        name,
        rules=(retry, pieces.back_to_remote(facts)),
        tiers=(pipelines, pieces.remote_tier(facts)),
        captures=(
            Capture(
                "remote", options.every, stall=facts.save_stall, background=facts.save_background
            ),
        ),
        elastic=elastic,
        step_h=step_h,
    )


SYSTEM = System(
    name="oobleck",
    summary="lost nodes are left out: a reconfiguration, the step in hand, and speed",
    source="Jang et al. 2023 (SOSP): mechanism recalled; 2 s and throughput of the executed "
    "artifact",
    options=OobleckOptions,
    plan=plan,
    interval="every",
    family=Family.ELASTIC,
    cited="SOSP'23",
    mark=Provenance.RECALLED,
)
