"""Jobs that lose a step at most, or continue without lost nodes and readmit them on return.

Replicas, shadow servers, undo and replay; the remaining nodes retry the current step, restart in
another layout (Varuna), do the work of the lost ones (SPARe), or continue as fewer replica groups
(HSDP, torchft). If all copies of a shard are lost, the job rolls back to its last save.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from math import comb
from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.legal import MOST_UNITS
from cprsim.job.options import EVERY, GROWS, IN_GROUPS, POSITIVE, SOME, count, growth, share, time
from cprsim.job.policy import (
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
from cprsim.recovery import building_blocks as build
from cprsim.recovery.building_blocks import (
    DETECT,
    LOAD,
    PUBLISHED,
    RECALLED,
    load_in,
    meanwhile,
    restart,
    row,
)
from cprsim.recovery.system import Family, JobProfile

COPIES, PIPELINES, REPLICAS, STACKS = "copies", "pipelines", "replicas", "stacks"
LOGS, SHADOW = "logs", "shadow servers"
RECONFIGURE_H = 30.0 / 3600.0  # of Lazarus, 20 to 40 s (published)
OOBLECK_RECONFIGURE_H = 2.0 / 3600.0  # by its public artifact, executed
MOST_MISSING = 32  # nodes, that ReCycle's own table of speeds knows

# --------------------------------------------------------------------------- a step is lost at most


def replicated(job: JobProfile, o: Any, *, saves: bool = False, to: To = To.STEP_BEGUN) -> Policy:
    """While a replica of each shard is left, lost nodes copy from one, or all load its save."""
    if saves:
        save_h = job.stall_h + job.background_h
        detect, *replaced = restart(job, Stage(StageKind.LOAD, job.load))
        stages = (detect, Stage(StageKind.SAVE, Constant(save_h)), *replaced)
        down_h = save_h + job.reschedule.mean_h + job.load.mean_h + job.detected_h
    else:
        stages = restart(job, load_in(job.to_peer_h))
        down_h = job.replaced_h + job.to_peer_h
    rule = build.retry(job, REPLICAS, stages, to)
    n_groups = build.n_replicas(job, o.group)
    live = build.live_tier(job, REPLICAS, n_groups, strided=True)
    group = Groups(n_groups, n_groups - 1)
    every_h = o.backstop or build.backstop_h(job, group, down_h, neighbours=False)
    return build.with_backstop(o, job, rule, live, every_h)


def shadowed(job: JobProfile, o: Any) -> Policy:
    """The servers outlive every failure, so that no other rule is ever needed."""
    rule = build.retry(job, SHADOW, restart(job, load_in(job.to_peer_h)))
    servers = Tier(SHADOW, Medium.REMOTE, Outside(), job.role)
    return build.with_backstop(o, job, rule, servers, None, tax=Tax(nodes=float(o.shadow_nodes)))


def replayed(job: JobProfile, o: Any) -> Policy:
    """The struck work through the logs while the others wait."""
    slower = replace(job, mtbf_h=o.replay_speed * job.mtbf_h)
    every_h = o.every or build.own_interval_h(slower)
    rule = Rule(
        Reverts.STRUCK, restart(job, LOAD, Stage(StageKind.REPLAY)), needs=(LOGS,),
        sources=(build.REMOTE,), replay_speed=o.replay_speed,
    )  # fmt: skip
    logs = Tier(LOGS, Medium.HOST, Ring(2), job.role)
    return build.with_backstop(o, job, rule, logs, every_h, tax=Tax(compute=o.tax))


# --------------------------------------------------------------------------- lost nodes left out


def copied(job: JobProfile, o: Any, *, place: str) -> Policy:
    """Those that are left retry the step; without the copies all go back to the last save.

    `place`: a node holds the layers of its neighbour too, all nodes of a group the same experts,
    or those of one stage in all pipelines the same layers.
    """
    placement: Groups | Ring = Ring(2)
    memory, speeds = 1.0, tuple[float, ...]()
    if place == "pipelines":
        n = o.pipelines or build.replicas_of_job(job, "`pipelines`")
        placement, memory = Groups(n, n - 1, strided=True), 0.0
        speeds = recycled_speeds(n, job.n_nodes // n)
    else:
        build.require_layers(job)
        if place == "group":
            placement, memory = Groups(o.copies, o.copies - 1), o.copies - 1.0
    stages = build.shrink_and_regroup(job, o)
    group = placement if isinstance(placement, Groups) else build.NEIGHBOURS
    down_h = job.detected_h + o.reconfigure  # until copies are made again
    every_h = o.backstop or build.backstop_h(job, group, down_h, neighbours=not group.strided)
    detect, _, *taken_in = stages
    restarted = (detect, taken_in[-1], replace(LOAD, copies_again=True), *taken_in)
    return build.with_backstop(
        o, job, build.retry(job, COPIES, stages), Tier(COPIES, Medium.DEVICE, placement, job.role),
        every_h, build.go_back(restarted, build.REMOTE),
        elastic=build.elastic_of(job, o, speeds), tax=Tax(compute=o.tax, memory=memory),
    )  # fmt: skip


@cache
def recycled_speeds(n_pipelines: int, n_stages: int) -> tuple[float, ...]:
    """Speed with no node missing, with one, with two and so on, `MOST_MISSING` at most.

    A stage that misses f of its d nodes takes d/(d - f) as long, and the slowest stage sets the
    pace: ``v = 1 - max f/d``. The mean over all sets of missing nodes; a stage without any of its
    nodes has speed 0. A lower bound for ReCycle, which also fills bubbles. Source: derived here.
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


def oobleck(job: JobProfile, o: Any) -> Policy:
    rule = build.retry(job, PIPELINES, build.shrink_and_regroup(job, o))
    elastic = build.elastic_of(job, o)
    n = o.pipelines or build.replicas_of_job(job, "`pipelines`")
    pipelines = build.live_tier(job, PIPELINES, n, strided=True)
    return build.with_backstop(o, job, rule, pipelines, o.every, elastic=elastic)


def spare(job: JobProfile, o: Any) -> Policy:
    n = job.n_nodes
    if build.replicas_of_job(job) != n:
        raise ParameterError(
            f"it needs a replica on each node, which represents a group: {job.replicas} replicas "
            f"lie on {n} nodes"
        )
    r = o.stacked
    copies_h = job.to_peers_h(r)
    masked = (
        DETECT, build.regroup(o.regroup), *meanwhile(job), load_in(copies_h, blocks=False),
    )  # fmt: skip
    around = Groups(2 * r - 1, r - 1)  # r neighbours, of which the struck one is any
    down_h = job.reschedule.mean_h + copies_h
    every_h = o.backstop or build.backstop_h(job, around, down_h, neighbours=True)
    speeds = (1.0, *(o.speed,) * (min(n, MOST_UNITS) - 1))
    return build.with_backstop(
        o, job, build.retry(job, STACKS, masked), Tier(STACKS, Medium.DEVICE, Ring(r), job.role),
        every_h, elastic=Elastic(job.role, speeds), tax=Tax(memory=r - 1.0),
    )  # fmt: skip


def varuna(job: JobProfile, o: Any, *, in_steps: bool = True) -> Policy:
    """All start again on the nodes left; saves are `in_steps`, else the job's own."""
    if in_steps:
        step_h = job.needed("step_h", "it saves after whole steps, which")
        every_h = 10 * step_h if o.every is None else max(o.every, step_h)
    else:
        step_h, every_h = job.step_h or 0.0, o.every or build.own_interval_h(job)
    elastic = build.elastic_of(job, o)
    save = Stage(StageKind.SAVE, job.save_stall)  # made for a node that has come back
    loaded = None  # a restart that is given includes the load
    if o.restarts is not None:
        if o.restart is not None:
            raise ParameterError("`restart` and `restarts` both give its time: write one")
        elastic = replace(elastic, regroup_h=(o.restarts[0], *o.restarts))
        fewer: tuple[Stage, ...] = (Stage(StageKind.REGROUP),)
        more = Stage(StageKind.REGROUP)
    elif o.restart is not None:
        fewer = (build.regroup(o.restart),)
        more = build.regroup(o.restart)
    else:
        fewer = (Stage(StageKind.RESCHEDULE, job.reschedule), LOAD)
        more, loaded = Stage(StageKind.REGROUP, job.load), job.load
    back = (*meanwhile(job, each=True), *build.until_it_grows(o.grows), save, more)
    return Policy(
        o.name,
        rules=(build.go_back((DETECT, *fewer, *back), build.REMOTE),),
        tiers=(replace(build.remote_tier(job), load=loaded),),
        captures=(build.remote_capture(job, every_h),),
        elastic=elastic,
        step_h=step_h,
    )


# --------------------------------------------------------------------------- replica groups


def groups(job: JobProfile, o: Any, *, retries: bool = False) -> Policy:
    """Replica groups that continue without the struck one, or first retry the current step."""
    n_groups = build.n_replicas(job, o.group)
    stall = o.quorum if retries else o.stall
    without = (build.regroup(stall), *meanwhile(job), load_in(o.copy, blocks=False))
    rule = build.go_on(REPLICAS, without)
    if retries:
        rule = build.retry(job, REPLICAS, (DETECT, *without))
    size = job.n_nodes // n_groups  # a group is out if any of its nodes is
    absent_h = size * (stall + job.reschedule.mean_h + o.copy)
    all_lost = Groups(n_groups, n_groups - 1)
    every_h = o.backstop or build.backstop_h(job, all_lost, absent_h, neighbours=False)
    speed = (n_groups - 1) / n_groups if o.speed is None else o.speed
    lost = 1.0 - speed  # by each group alike: with (n - 1)/n it is (n - d)/n without d groups
    speeds = tuple(max(0.0, 1.0 - d * lost) for d in range(min(n_groups, MOST_UNITS)))
    live = build.live_tier(job, REPLICAS, n_groups, strided=True)
    elastic = Elastic(job.role, speeds, size)
    return build.with_backstop(o, job, rule, live, every_h, elastic=elastic)


# --------------------------------------------------------------------------- the systems

_replicas = partial(row, interval="backstop")
_swift = partial(
    row, family=Family.REPLAY, source="Swift (Zhong et al. 2023, PPoPP): mechanism recalled",
    assumed="a stage's log lies on the next node, in host memory: if two neighbours are down, all "
    "go back to the last save. Saves of swift are at Young's interval for ``r MTBF``, at which "
    "they and the replays cost alike (derived here).",
    not_modelled="which stage waits for which; selective logging; the memory that logs take.",
)  # fmt: skip
LEAVING = "reconfigure throughput backstop grows"
SMALLER_BATCHES = "the accuracy loss of smaller batches while a group is missing is unknown"
_row = partial(row, family=Family.ELASTIC)
_left_out = partial(
    _row, interval="backstop",
    assumed="saves are the job's own. Copies are made again in the reconfiguration, at no further "
    "cost. Taking nodes in takes what leaving them out does. Without a table of throughput speed "
    "is in proportion to the nodes left; ReCycle's is that of its slowest stage, a bound that "
    "fills no bubbles, averaged over where nodes are missing.",
    not_modelled="pipeline bubbles; placement of experts by load; migration of layers; more nodes "
    "than the job began with.",
)  # fmt: skip
_groups = partial(
    row, interval="backstop", family=Family.REPLICAS, not_counted=SMALLER_BATCHES,
)  # fmt: skip
SYSTEMS = (
    _replicas(
        "just-in-time", "group backstop", replicated, {"saves": True}, "EuroSys'24", RECALLED,
        "healthy replicas save once a failure is noticed; only the current step is lost",
        source="Gupta et al. 2024 (EuroSys): mechanism recalled; backstop assumed",
        family=Family.AFTERWARDS,
        assumed="a save after a failure costs as much as any other. Replicas exist for data "
        "parallelism, and have no extra cost.",
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
        family=Family.EACH_STEP, runs_as="HyperPod checkpointless", only_on="EKS",
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
    _left_out(
        "bamboo", f"{LEAVING} tax", copied, {"place": "neighbour"}, "NSDI'23", RECALLED,
        "each pipeline stage is computed on its neighbour too, which takes over",
        source="Thorpe et al. 2023 (NSDI): mechanism recalled; no table of throughput known",
    ),
    _left_out(
        "lazarus", f"{LEAVING} copies", copied, {"place": "group"}, "Lazarus", RECALLED,
        "several copies of each expert; lost nodes are left out while one copy remains",
        source="Lazarus 2024: reconfiguration published, mechanism recalled; copies assumed",
        overrides={
            "reconfigure": RECONFIGURE_H,
            "copies": count("nodes that hold each expert", bound=IN_GROUPS, needed=2),
        },
    ),
    _left_out(
        "recycle", f"{LEAVING} pipelines", copied, {"place": "pipelines"}, "SOSP'24", RECALLED,
        "micro-batches of lost nodes go to their peers in other pipelines",
        source="Gandhi et al. 2024 (SOSP): mechanism recalled; speed bound derived",
    ),
    _row(
        "oobleck", "throughput unit_nodes pipelines reconfigure grows every", oobleck, {},
        "SOSP'23", RECALLED,
        "lost nodes are left out: costs are a reconfiguration, the current step, and speed",
        source="Jang et al. 2023 (SOSP): mechanism recalled; 2 s and throughput of the executed "
        "artifact",
        overrides={
            "reconfigure": OOBLECK_RECONFIGURE_H,
            "grows": growth(f"{GROWS}so the executed artifact does", "next loss"),
            "every": time(
                "progress between saves to the remote storage, for the loss of all nodes; default: "
                "none", bound=POSITIVE,
            ),
        },
        interval="every",
        assumed="if all pipelines lose the same part of the state simultaneously, the job rolls "
        "back to the remote storage, if it is saved to it, else to its start. With fewer units "
        "than the table of throughput has, the job stops until one returns, and loses nothing. A "
        "node that returns stands by until the next loss, as in the artifact, unless the job has "
        "stopped; with another `grows` it stalls the others for a reconfiguration.",
        not_modelled="the planning of pipeline templates, whose result is the table of throughput.",
    ),
    _row(
        "spare", "backstop stacked regroup speed", spare, {}, "ICML'26", RECALLED,
        "each group holds the shards of others too, and computes them when those are lost",
        source="SPARe (Lee et al. 2026, ICML): mechanism and formula recalled; speed derived",
        overrides={"speed": share("of the job while groups are missing (derived)", 0.5, SOME)},
        interval="backstop",
        assumed="one node represents a group, and the r groups of a shard are neighbours in a "
        "ring. Any number of missing groups costs one more stack, so half of the speed. A lost "
        "group is replaced while the others work. Saves are the job's own.",
        not_modelled="the order of the stacks; masks kept until the next restart.",
    ),
    _row(
        "varuna", "throughput unit_nodes grows every restart restarts", varuna, {}, "EuroSys'22",
        RECALLED, "saves every few steps; the job starts again in another shape on the nodes left",
        source="Athlur et al. 2022 (EuroSys): mechanism recalled; interval, restart and throughput "
        "of the executed artifact of Oobleck",
        overrides={"every": time(f"{EVERY}10 steps; a step at least", bound=POSITIVE)},
        interval="every",
        assumed="without `restarts`, a restart takes the same time on any number of nodes. In the "
        "artifact it takes 33 to 96 s on 29 to 15 of them: with a failure each 10 min the mean "
        "trains 4 % fewer samples than the artifact, restarts by nodes 1 % more (derived). With "
        "fewer units than the table of throughput has, the job stops until one returns.",
        not_modelled="the search for a shape, whose result is the table of throughput.",
    ),
    _row(
        "elastic-restart", "throughput unit_nodes grows every restart restarts", varuna,
        {"in_steps": False}, "torchelastic", PUBLISHED,
        "the job starts again on the nodes left, from a checkpoint that loads on another number",
        source="torchelastic with resharding loads of PyTorch DCP: mechanism published",
        interval="every", runs_as="torchelastic with PyTorch DCP or Universal Checkpointing",
        assumed="saves are the job's own; the parts of lost nodes fit on those that are left. "
        "Without a table of throughput speed is in proportion to the nodes left.",
        not_modelled="the memory that fewer nodes need more each; the shape of pipelines.",
    ),
    _groups(
        "hsdp", "group copy backstop stall speed", groups, {}, "FT-HSDP", PUBLISHED,
        "fault-tolerant HSDP: the other replica groups continue without the struck one, which "
        "copies from a peer and joins again",
        source="Salpekar et al. 2026: mechanism and stall published; backstop assumed",
        runs_as="torchft, TorchTitan",
        assumed="the stall covers detection, and a group joins again without one. Saves are the "
        "job's own. The speed of a group is lost as long as one of its nodes is missing, but "
        "the memory of its other nodes counts as current: where failures of several groups "
        "overlap, losses of all replicas are understated.",
        not_modelled="the accuracy of steps on fewer samples.",
    ),
    _groups(
        "torchft", "group copy backstop quorum", groups, {"retries": True}, "torchft", RECALLED,
        "replica groups agree on who takes part; the others retry the current step",
        source="torchft: mechanism recalled; backstop assumed", runs_as="torchft",
        assumed="fewer groups train on fewer samples in each step; the hours of the missing "
        "samples are charged. No stall when a group joins.",
        not_modelled="the accuracy of steps on fewer samples; several quorums after one failure.",
    ),
)  # fmt: skip
