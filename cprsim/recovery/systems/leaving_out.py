"""Jobs that go on without lost nodes on copies that they have already: Bamboo, Lazarus, ReCycle.

Bamboo computes each pipeline stage on its neighbour too, in the pipeline's bubbles: the neighbour
takes over, and two neighbours lost are fatal. Lazarus keeps several copies of each expert, placed
so that few sets of nodes hold all of one. ReCycle sends the micro-batches of a lost node to its
peers of the same stage in other pipelines. Each retries the step in hand, goes on at the speed of
those that are left, and takes nodes in again as they come back. After the reconfiguration those
that are left hold all copies again; where copies are lost before that, they go back to the last
save, and go on likewise (Thorpe et al. 2023, NSDI; Lazarus 2024; Gandhi et al. 2024, SOSP:
mechanisms recalled; that ReCycle spreads failures over stages is published).

Assumptions: saves are the job's own, at Young's interval for the losses that copies do not outlive
unless `backstop` says otherwise. Copies are made again in the reconfiguration, at no further cost.
Taking nodes in again takes what leaving them out does. Without a table of throughput speed is in
proportion to the nodes left; ReCycle's is that of its slowest stage, a bound that fills no bubbles,
averaged over where nodes are missing.

Not modelled: pipeline bubbles; placement of experts by load; migration of layers between nodes;
nodes that are added beyond those that the job began with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import comb
from typing import Any

from cprsim.errors import ParameterError
from cprsim.recovery import pieces
from cprsim.recovery.elastic_table import elastic_of
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    Elastic,
    Groups,
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    Tax,
    Tier,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

COPIES = "copies"
RECONFIGURE_H = 30.0 / 3600.0  # 20 to 40 s (published)
MOST_MISSING = 32  # nodes, that ReCycle's own table of speeds knows


LEAVING = "reconfigure throughput backstop grows"
COPIES_NEEDED = Option(None, "count", "nodes that hold each expert; needed")


def bamboo(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_layers(facts, name)
    pieces.require_not_negative(name, tax=o.tax)
    elastic = elastic_of(facts, o.throughput, 1, name)
    return _policy(facts, o, name, Ring(2), elastic, Tax(compute=o.tax, memory=1.0))


def lazarus(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_layers(facts, name)
    n, copies = facts.n_nodes, o.copies
    if copies is None:
        raise ParameterError(
            "lazarus copies the experts of a mixture of experts: give `copies`, the nodes that "
            "hold each expert"
        )
    if not 2 <= copies <= n or n % copies:
        raise ParameterError(
            f"`copies` of {name} is {copies}; it is 2 at least and divides the {n} nodes of "
            f"`{facts.role}`"
        )
    elastic = elastic_of(facts, o.throughput, 1, name)
    tax = Tax(memory=copies - 1.0)
    return _policy(facts, o, name, Groups(copies, copies - 1), elastic, tax)


def recycle(facts: JobFacts, o: Any, name: str) -> Policy:
    n_pipelines = pieces.n_pipelines(facts, o.pipelines, name)
    n_stages = facts.n_nodes // n_pipelines
    elastic = elastic_of(facts, o.throughput, 1, name)
    if o.throughput is None:
        elastic = Elastic(facts.role, recycled_speeds(n_pipelines, n_stages))
    peers = Groups(n_pipelines, n_pipelines - 1, strided=True)
    return _policy(facts, o, name, peers, elastic, Tax())


def _policy(
    facts: JobFacts, o: Any, name: str, place: Groups | Ring, elastic: Elastic, tax: Tax
) -> Policy:
    """Those that are left retry the step; without the copies all go back to the last save."""
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    pieces.require_not_negative(name, reconfigure=o.reconfigure)
    pieces.require_positive(name, backstop=o.backstop)
    left_out = pieces.left_out(facts, o.reconfigure, o.grows)
    group = place if isinstance(place, Groups) else Groups(3, 1)  # of a ring both neighbours matter
    down_h = facts.detected_h + o.reconfigure  # until copies are made again
    every_h = pieces.backstop_h(facts, o.backstop, group, down_h, neighbours=not group.strided)
    detect, _, *taken_in = left_out
    restarted = (detect, taken_in[-1], replace(pieces.LOAD, copies_again=True), *taken_in)
    return Policy(
        name,
        rules=(
            pieces.retry(COPIES, left_out),
            Rule(Reverts.ALL, restarted, sources=(pieces.REMOTE,)),
        ),
        tiers=(Tier(COPIES, Medium.DEVICE, place, facts.role), pieces.remote_tier(facts)),
        captures=(pieces.remote_saves(facts, every_h),),
        elastic=elastic,
        tax=tax,
        step_h=step_h,
    )


@cache
def recycled_speeds(n_pipelines: int, n_stages: int) -> tuple[float, ...]:
    """Speed with no node missing, with one, with two and so on, `MOST_MISSING` at most.

    A stage that misses f of its d nodes takes d/(d - f) as long, and the slowest stage sets the
    pace: ``v = 1 - max f/d``. The mean over all sets of missing nodes, where the stage that lacks
    all its nodes stands still. A bound from below of ReCycle, which fills bubbles too. Source:
    derived here.
    """
    d, n = n_pipelines, n_pipelines * n_stages
    n_known = min(n, MOST_MISSING)
    ways = [_ways(d, n_stages, n_known, most) for most in range(min(d, n_known))]
    speeds = []
    for missing in range(n_known + 1):
        sets = comb(n, missing)
        most = sum(1.0 - at_most[missing] / sets for at_most in ways[:missing])  # mean of max f
        speeds.append(max(0.0, 1.0 - most / d))
    return tuple(speeds)


def _ways(per_stage: int, n_stages: int, n_known: int, most: int) -> list[int]:
    """Sets of 0, 1, ... missing nodes of which no stage has more than `most`."""
    ways = [1] + [0] * n_known
    for _ in range(n_stages):
        ways = [
            sum(comb(per_stage, f) * ways[total - f] for f in range(min(most, total) + 1))
            for total in range(n_known + 1)
        ]
    return ways


def _system(
    name: str, summary: str, source: str, cited: str, options: type[Any],
    plan: Callable[..., Policy], needs: tuple[tuple[str, Any], ...] = (),
) -> System:  # fmt: skip
    return System(
        name, summary, source, options, plan, interval="backstop", family=Family.ELASTIC,
        cited=cited, mark=Provenance.RECALLED, needs=needs,
    )  # fmt: skip


SYSTEMS = (
    _system(
        "bamboo", "each pipeline stage is computed on its neighbour too, which takes over",
        "Thorpe et al. 2023 (NSDI): mechanism recalled; no table of throughput known",
        "NSDI'23", options(f"{LEAVING} tax"), bamboo,
    ),
    _system(
        "lazarus",
        "several copies of each expert; lost nodes are left out while one copy remains",
        "Lazarus 2024: reconfiguration published, mechanism recalled; copies assumed", "Lazarus",
        options(LEAVING, {"copies": COPIES_NEEDED}, reconfigure=RECONFIGURE_H), lazarus,
        (("copies", 2),),
    ),
    _system(
        "recycle", "micro-batches of lost nodes go to their peers in other pipelines",
        "Gandhi et al. 2024 (SOSP): mechanism recalled; speed bound derived", "SOSP'24",
        options(f"{LEAVING} pipelines"), recycle,
    ),
)  # fmt: skip
