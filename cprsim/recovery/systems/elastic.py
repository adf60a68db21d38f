"""Jobs that go on without lost nodes, and take nodes in as they come back.

Bamboo computes each pipeline stage on its neighbour too, in the pipeline's bubbles: the neighbour
takes over, and two neighbours lost are fatal. Lazarus keeps several copies of each expert, placed
so that few sets of nodes hold all of one. ReCycle sends the micro-batches of a lost node to its
peers of the same stage in other pipelines. Each retries the step in hand, goes on at the speed of
those that are left, and takes nodes in again as they come back. After the reconfiguration those
that are left hold all copies again; where copies are lost before that, they go back to the last
save, and go on likewise (Thorpe et al. 2023, NSDI; Lazarus 2024; Gandhi et al. 2024, SOSP:
mechanisms recalled; that ReCycle spreads failures over stages is published).

Assumptions of bamboo, lazarus, recycle: saves are the job's own, at Young's interval for the losses
that copies do not outlive unless `backstop` says otherwise. Copies are made again in the
reconfiguration, at no further cost. Taking nodes in again takes what leaving them out does. Without
a table of throughput speed is in proportion to the nodes left; ReCycle's is that of its slowest
stage, a bound that fills no bubbles, averaged over where nodes are missing.

Not modelled of bamboo, lazarus, recycle: pipeline bubbles; placement of experts by load; migration
of layers between nodes; nodes that are added beyond those that the job began with.

Oobleck: every layer lies on several pipelines. When a node is lost, those that are left take other
pipeline templates, fetch the layers that they lack from each other, and go on with the same global
batch; a node that comes back is taken in the same way (Jang et al. 2023; mechanism recalled). So a
failure costs a reconfiguration and the step in hand, half a step on average, and from then on
speed. A reconfiguration of 2 s, a lost step in hand and the table of throughput that the study
holds this to are of the public artifact, which was executed.

Assumptions of oobleck: the state is lost where all pipelines lose the same part of it at once. With
fewer units than the table of throughput knows the job stands still until one is back, and loses
nothing. Where all are lost, the job goes back to the remote storage, if it is saved to it, else to
its start. A node takes its time to be replaced while the others work. One that comes back stands by
until the next loss, whose reconfiguration takes it in, as in the artifact; a job that stands still
takes it in at once. With another `grows` it stalls the others for a reconfiguration of its own; if
another is lost in the middle of it, it waits for that one too.

Not modelled of oobleck: the planning of pipeline templates, whose result is the table of
throughput.

SPARe: N data-parallel groups hold r stacked shards each, so that every shard lies on r groups. A
group that is lost is masked, and the step in hand is retried: the others compute what it would
have, as a second stack. Only when all r groups of a shard are lost, which takes about
``Gamma(1/r)/r N^(1 - 1/r)`` failures, does the job go back to its last save (Lee et al. 2026, ICML:
mechanism and formula recalled).

Assumptions of spare: one node stands for a group, and the r groups of a shard are neighbours in a
ring. Any number of missing groups costs one more stack, so half of the speed; a lost group is
replaced while the others work, and joins at the beginning of a step. Stacks are held, not computed,
while no group is missing. Saves are the job's own, at Young's interval for the losses of all groups
of a shard.

Not modelled of spare: the order of the stacks, which lets the reduction begin early; masks kept
until the next restart.

Varuna: every few steps the state goes to the remote storage. When nodes are lost, the job goes back
to the newest save and starts again on those that are left, with pipelines of another depth and the
same global batch; when one comes back it saves, and starts again likewise (Athlur et al. 2022;
mechanism recalled). Saves every 10 steps, as well as the stall, the restarts and the table of
throughput that the study `systems` holds this to, are of the public artifact of Oobleck, which runs
Varuna too and was executed.

Assumptions of varuna: without `restarts`, a restart takes as long whatever the number of nodes. In
the artifact it takes 33 to 96 s on 29 to 15 of them. Their mean changes little where many saves are
made between failures; where hardly one is, each restart decides whether another fits in: with a
failure each 10 min 4 % fewer samples are trained than in the artifact, but 1 % more with restarts
by nodes (derived). With fewer units than the table of throughput knows the job stands still until
one is back. A node that comes back in the very restart that another one's loss strikes waits for
that one too.

Not modelled of varuna: the profiling and the search for a shape, whose result is the table of
throughput.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from math import comb
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.legal import MOST_UNITS
from cprsim.recovery.options import EVERY, GROWS, Option
from cprsim.recovery.policy import (
    Elastic,
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

COPIES = "copies"
RECONFIGURE_H = 30.0 / 3600.0  # 20 to 40 s (published)
MOST_MISSING = 32  # nodes, that ReCycle's own table of speeds knows


LEAVING = "reconfigure throughput backstop grows"
COPIES_NEEDED = Option(None, "count", "nodes that hold each expert; needed")


def bamboo(facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_layers(facts, name)
    pieces.require_not_negative(name, tax=o.tax)
    elastic = pieces.elastic_of(facts, o.throughput, 1, name)
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
    elastic = pieces.elastic_of(facts, o.throughput, 1, name)
    tax = Tax(memory=copies - 1.0)
    return _policy(facts, o, name, Groups(copies, copies - 1), elastic, tax)


def recycle(facts: JobFacts, o: Any, name: str) -> Policy:
    n_pipelines = pieces.n_pipelines(facts, o.pipelines, name)
    n_stages = facts.n_nodes // n_pipelines
    elastic = pieces.elastic_of(facts, o.throughput, 1, name)
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


OOBLECK_RECONFIGURE_H = 2.0 / 3600.0  # by its public artifact, executed
OOBLECK = {
    "grows": Option("next loss", "growth", f"{GROWS}so the executed artifact does"),
    "every": Option(
        None,
        "time",
        "progress between saves to the remote storage, for the loss of all nodes; default: none",
    ),
}


def oobleck(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", "oobleck, which retries the step in hand,")
    elastic = pieces.elastic_of(facts, o.throughput, o.unit_nodes, "oobleck")
    pieces.require_positive("oobleck", every=o.every)
    pieces.require_not_negative("oobleck", reconfigure=o.reconfigure)
    left_out = pieces.left_out(facts, o.reconfigure, o.grows)
    n = pieces.n_pipelines(facts, o.pipelines, name)
    pipelines = Tier("pipelines", Medium.DEVICE, Groups(n, n - 1, strided=True), facts.role)
    retry = pieces.retry("pipelines", left_out)
    if o.every is None:
        rules = (retry, Rule(Reverts.ALL, pieces.restart(facts), To.START))
        return Policy(name, rules, (pipelines,), elastic=elastic, step_h=step_h)
    return pieces.backed(name, facts, retry, pipelines, o.every, elastic=elastic, step_h=step_h)


STACKS = {
    "stacked": Option(3, "count", "shards that each group holds, r (assumed)"),
    "regroup": Option(0.0, "time", "until a lost group is masked; no figure known", True),
    "speed": Option(0.5, "share", "of the job while groups are missing (derived)"),
}


def spare(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", f"{name}, which retries the step in hand,")
    n, stacked = facts.n_nodes, o.stacked
    if pieces.replicas_of_job(facts, name) != n:
        raise ParameterError(
            f"{name} needs a replica on each node, which stands for a group: {facts.replicas} "
            f"replicas lie on {n} nodes"
        )
    if not 2 <= stacked <= n:
        raise ParameterError(f"`stacked` of {name} is {stacked}; it must lie between 2 and {n}")
    if not 0.0 < o.speed <= 1.0:
        raise ParameterError(f"`speed` of {name} is {o.speed}; above 0 and at most 1")
    pieces.require_positive(name, backstop=o.backstop)
    masked = (
        Stage(StageKind.DETECT),
        Stage(StageKind.REGROUP, Constant(o.regroup)),
        Stage(StageKind.WAIT, blocks=False),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        Stage(StageKind.LOAD, facts.to_peer(name, stacked), blocks=False),
    )
    down_h = facts.reschedule.mean_h + facts.to_peer(name, stacked).mean_h
    around = Groups(2 * stacked - 1, stacked - 1)  # r neighbours, of which the struck one is any
    every_h = pieces.backstop_h(facts, o.backstop, around, down_h, neighbours=True)
    speeds = (1.0, *(o.speed,) * (min(n, MOST_UNITS) - 1))
    return pieces.backed(
        name,
        facts,
        pieces.retry("stacks", masked),
        Tier("stacks", Medium.DEVICE, Ring(stacked), facts.role),
        every_h,
        elastic=Elastic(facts.role, speeds),
        tax=Tax(memory=stacked - 1.0),
        step_h=step_h,
    )


RESTARTING = {
    "every": Option(None, "time", f"{EVERY}10 steps; a step at least"),
    "restart": Option(
        None,
        "time",
        "stall of a restart, the load included; default: the job's rescheduling and load",
    ),
    "restarts": Option(
        None,
        "times",
        "the same with one unit missing, with two and so on, instead of one `restart`",
    ),
}


def varuna(facts: JobFacts, o: Any, name: str) -> Policy:
    step_h = facts.needed("step_h", "varuna, which saves after whole steps,")
    elastic = pieces.elastic_of(facts, o.throughput, o.unit_nodes, "varuna")
    pieces.require_positive("varuna", every=o.every)
    pieces.require_not_negative("varuna", restart=o.restart)
    if o.restarts is not None:
        if o.restart is not None:
            raise ParameterError("`restart` and `restarts` of varuna both say what one takes")
        elastic = replace(elastic, regroup_h=(o.restarts[0], *o.restarts))
    stages = (
        Stage(StageKind.DETECT),
        *restarting(facts, o),
        Stage(StageKind.WAIT, blocks=False, each=True),
        Stage(StageKind.RESCHEDULE, facts.reschedule, blocks=False),
        *pieces.until_it_grows(o.grows),
        *growing(facts, o),
    )
    own = o.restart is not None or o.restarts is not None
    load = None if own else facts.load
    return Policy(
        name,
        rules=(Rule(Reverts.ALL, stages, sources=("remote",)),),
        tiers=(Tier("remote", Medium.REMOTE, Outside(), facts.role, load),),
        captures=(
            pieces.remote_saves(facts, 10 * step_h if o.every is None else max(o.every, step_h)),
        ),
        elastic=elastic,
        step_h=step_h,
    )


def restarting(facts: JobFacts, o: Any) -> tuple[Stage, ...]:
    """On the nodes that are left."""
    if o.restarts is not None:
        return (Stage(StageKind.REGROUP),)
    if o.restart is not None:
        return (Stage(StageKind.REGROUP, Constant(o.restart)),)
    return Stage(StageKind.RESCHEDULE, facts.reschedule), Stage(StageKind.LOAD)


def growing(facts: JobFacts, o: Any) -> tuple[Stage, ...]:
    """With a node that has come back, from a save made for it; the load is booked as `regroup`."""
    if o.restarts is not None:
        return Stage(StageKind.SAVE, facts.save_stall), Stage(StageKind.REGROUP)
    restart = facts.load if o.restart is None else Constant(o.restart)
    return Stage(StageKind.SAVE, facts.save_stall), Stage(StageKind.REGROUP, restart)


SYSTEMS = (
    _system(
        "bamboo", "each pipeline stage is computed on its neighbour too, which takes over",
        "Thorpe et al. 2023 (NSDI): mechanism recalled; no table of throughput known", "NSDI'23",
        options(f"{LEAVING} tax"), bamboo,
    ),
    _system(
        "lazarus", "several copies of each expert; lost nodes are left out while one copy remains",
        "Lazarus 2024: reconfiguration published, mechanism recalled; copies assumed", "Lazarus",
        options(LEAVING, {"copies": COPIES_NEEDED}, reconfigure=RECONFIGURE_H), lazarus,
        (("copies", 2),),
    ),
    _system(
        "recycle", "micro-batches of lost nodes go to their peers in other pipelines",
        "Gandhi et al. 2024 (SOSP): mechanism recalled; speed bound derived", "SOSP'24",
        options(f"{LEAVING} pipelines"), recycle,
    ),
    System(
        "oobleck", "lost nodes are left out: a reconfiguration, the step in hand, and speed",
        "Jang et al. 2023 (SOSP): mechanism recalled; 2 s and throughput of the executed artifact",
        options(
            "throughput unit_nodes pipelines reconfigure", OOBLECK,
            reconfigure=OOBLECK_RECONFIGURE_H,
        ),
        oobleck, interval="every", family=Family.ELASTIC, cited="SOSP'23", mark=Provenance.RECALLED,
    ),
    System(
        "spare", "each group holds the shards of others too, and computes them when those are lost",
        "SPARe (Lee et al. 2026, ICML): mechanism and formula recalled; speed derived",
        options("backstop", STACKS), spare, interval="backstop", family=Family.ELASTIC,
        cited="ICML'26", mark=Provenance.RECALLED,
    ),
    System(
        "varuna", "saves every few steps; the job starts again in another shape on the nodes left",
        "Athlur et al. 2022 (EuroSys): mechanism recalled; interval, restart and throughput of the "
        "executed artifact of Oobleck", options("throughput unit_nodes grows", RESTARTING), varuna,
        interval="every", family=Family.ELASTIC, cited="EuroSys'22", mark=Provenance.RECALLED,
    ),
)  # fmt: skip
