"""Copies in the memory or on the disks of the job's own nodes, before the remote storage.

A failure takes the whole job back to the newest save that survives: from the nodes' own copies if
they are all there, else from others of the group, else from the remote storage.
"""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from math import exp
from typing import Any

from cprsim.errors import ParameterError
from cprsim.job.distributions import Constant
from cprsim.job.intervals import ROUNDING, young_h
from cprsim.job.options import IN_GROUPS, OPTIONS, POSITIVE, UP_TO_ALL, count, time, times
from cprsim.job.policy import (
    OWN,
    Groups,
    Medium,
    Placement,
    Policy,
    Ring,
    Rule,
    SaveSchedule,
    Tax,
    Tier,
    WhenBusy,
)
from cprsim.job.records import Duration
from cprsim.recovery import building_blocks as build
from cprsim.recovery.building_blocks import (
    LOAD,
    PUBLISHED,
    RECALLED,
    SECONDARY,
    go_back,
    load_in,
    restart,
    row,
)
from cprsim.recovery.system import Family, JobProfile

NEAR, OWN_COPY, PEERS, OWN_MEMORY = "near", "own copy", "peers", "own memory"
LOCAL, PARTNER, CODE, SNAPSHOT = "local", "partner", "code", "snapshot"
LEAST_UNIQUE = 1 / 6  # of a node's state (secondary)
SavesOfLevel = tuple[Tier, float, float]  # stall of one of its saves, and what it takes behind


def local_copies(
    job: JobProfile, o: Any, *, medium: Medium = Medium.HOST, place: str = "own",
    direct: bool = False, hides: bool = False, each_step: bool = False, standby: bool = False,
) -> Policy:  # fmt: skip
    """Saves go to a tier on the job's nodes, and on from there to the remote storage.

    `place`: where copies of a shard lie besides its own node. `direct`: from the device to the
    disks. `hides`: training hides a snapshot for a step. `each_step`: the interval is the fewest
    steps that a copy fits in. `standby`: warm standbys replace nodes.
    """
    disk_h = 0.0 if medium is Medium.HOST else job.needed("state_bytes") / float(o.disk)
    first_h, then_h = (disk_h, 0.0) if direct else (o.snapshot, disk_h)
    stall_h = max(0.0, first_h - (job.needed("step_h") if hides else 0.0))
    behind_h = first_h - stall_h + then_h
    placement, n_written, n_read, copies = _placed(o, place)
    if n_written:
        behind_h += job.to_peers_h(n_written)
    if each_step and o.every is None:
        step_h = job.needed("step_h", "without `every` it")
        every_h = step_h * build.nth_that_fits(behind_h, step_h)
    else:
        every_h = o.every or build.interval_h(job, stall_h, behind_h)
    reschedule = Constant(o.wake) if standby else None
    reload = restart(job, load_in(disk_h), reschedule=reschedule)
    rules: tuple[Rule, ...] = (go_back(reload, NEAR),)
    tiers: tuple[Tier, ...] = (Tier(NEAR, medium, placement, job.role),)
    if n_read:
        fetch = restart(job, load_in(job.to_peers_h(n_read)), reschedule=reschedule)
        rules = (go_back(reload, NEAR, needs=(OWN_COPY,)), go_back(fetch, NEAR))
        tiers = (Tier(OWN_COPY, medium, OWN, job.role), *tiers)
    return Policy(
        o.name,
        rules=(*rules, build.back_to_remote(job, reschedule)),
        tiers=(*tiers, build.remote_tier(job)),
        captures=(  # two in flight: one that ends as the next begins does not delay it
            build.periodic_capture(NEAR, every_h, stall_h, behind_h, in_flight=2),
            passed_on(build.REMOTE, NEAR, job.persist_h, every_h, o.remote_every),
        ),
        tax=Tax(
            nodes=standbys_of(job, o.pool_fraction) if standby else 0.0,
            memory=copies if medium is Medium.HOST else 0.0,
        ),
    )  # fmt: skip


def passed_on(
    tier: str, after: str, hours: float, every_h: float, wanted_h: float | None
) -> SaveSchedule:
    """Asynchronous copies of a tier's saves to another: every `wanted_h`, or less often if slow."""
    nth = build.nth_that_fits(max(hours, wanted_h or 0.0), every_h)
    return SaveSchedule(
        tier, after=after, background=Constant(hours), in_flight=2, every_nth=nth,
        when_busy=WhenBusy.SKIP,
    )  # fmt: skip


def _placed(o: Any, place: str) -> tuple[Groups | Ring, int, int, float]:
    """Placement of a shard's copies; nodes that it is sent to, and read from; memory, in states."""
    if place == "own":
        return OWN, 0, 0, 1.0
    if place == "parity":
        return Groups(o.group, 1), 1, o.group - 1, 1.0 + 1.0 / (o.group - 1)
    m = o.copies
    where = Ring(m) if place == "ring" else Groups(m, m - 1, strided=place == "across")
    return where, m - 1, 1, float(m)


def standbys_of(job: JobProfile, p_enough: float, at_least: int = 0) -> float:
    """Standbys besides the job's spares, which are its standbys."""
    if job.cluster.n_spares is not None:
        return 0.0
    lost_per_h = sum(job.failures_per_h(scope) for scope in job.scopes if scope.needs_node)
    return float(max(at_least, standbys(lost_per_h * job.reschedule.mean_h, p_enough)))


def standbys(n_lost: float, p_enough: float) -> int:
    """Fewest standbys that suffice with probability `p_enough` while lost nodes are replaced.

    The quantile of a Poisson distribution. ByteRobust keeps the 99th percentile of the number of
    simultaneous failures (secondary); Poisson failures, one node each, are assumed here.
    """
    p, below, n = exp(-n_lost), exp(-n_lost), 0
    while below < p_enough:
        n += 1
        p *= n_lost / n
        below += p
    return n


def gemini(job: JobProfile, o: Any, *, part: bool = False) -> Policy:
    """Copies to peers' memory; with `part`, only of the state that no other node holds."""
    share = 1.0
    if part:
        if o.unique is None:
            build.replicas_of_job(job, "`unique`")
        share = LEAST_UNIQUE if o.unique is None else o.unique
    m = o.copies
    placement: Groups | Ring = Ring(m)
    if o.placement == "group":
        give = "`placement: ring`, or a number of `copies` that"
        placement = Groups(build.in_groups(job, m, give), m - 1)
    every_h, stall_h, background_h = _copying(job, o, share)
    if job.remote_bytes_per_h is not None:
        to_remote: Duration = Constant(job.all_bytes / job.remote_bytes_per_h)
    elif job.save_background is not None:
        to_remote = Constant(job.stall_h + job.background_h)
    else:
        to_remote = job.save_stall
    # what a lost node needs is all of its state, from whoever holds it
    fetch = restart(job, load_in(job.to_peer_h))
    return Policy(
        o.name,
        rules=(
            go_back(restart(job, LOAD), PEERS, needs=(OWN_MEMORY,)),
            go_back(fetch, PEERS),
            build.back_to_remote(job),
        ),
        tiers=(
            Tier(OWN_MEMORY, Medium.HOST, OWN, job.role),  # live: wherever it was not lost
            Tier(PEERS, Medium.HOST, placement, job.role),
            build.remote_tier(job),
        ),
        captures=(  # two in flight: one that ends as the next begins does not delay it
            build.periodic_capture(PEERS, every_h, stall_h, background_h, in_flight=2),
            SaveSchedule(
                build.REMOTE, max(o.remote_every, to_remote.mean_h), background=to_remote,
                in_flight=2, when_busy=WhenBusy.SKIP,
            ),
        ),
        tax=Tax(memory=share * m),
    )  # fmt: skip


def _copying(job: JobProfile, o: Any, share: float) -> tuple[float, float, float]:
    """Progress between copies to peers, and the stall and background time of a copy [h].

    B bytes over a link r stall the job for ``max(0, B/r - h)``, h the hours of an interval in which
    the link is free (published, and so in three systems). The rest is sent while training leaves
    the link free, over the interval at most.
    """
    part_bytes = share * job.needed("state_bytes")
    copy_h = (o.copies - 1) * part_bytes / job.needed("node_bytes_per_h")
    free = 1.0
    if o.idle is not None:
        step_h = job.needed("step_h", "`idle`")
        free = o.idle / step_h
        if free > 1.0:
            raise ParameterError(f"`idle` is {o.idle} h; it must be at most a step, {step_h} h")
    every_h = o.every
    if every_h is None:
        step_h = job.needed("step_h", "without `every` it")
        every_h = step_h * build.nth_that_fits(copy_h, free * step_h)
    stall_h = max(0.0, copy_h - free * every_h)
    return every_h, stall_h, min(every_h, (copy_h - stall_h) / free)


# --------------------------------------------------------------------------- levels


def levels(job: JobProfile, o: Any, *, coded: bool = False, copied_on: bool = False) -> Policy:
    """Multi-level saves that all stall the job, or are `copied_on` asynchronously from the first.

    Each level has its interval, by default ``sqrt(2 s/lambda)``: s the stall of one of its saves,
    lambda the rate of the failures for which it is the nearest that survives (derived here).
    """
    disk_h = job.needed("state_bytes") / o.disk
    both_h = disk_h + job.to_peer_h
    level_saves: list[SavesOfLevel] = [
        (_on_disks(job, LOCAL, OWN, disk_h), disk_h, 0.0),
        (_on_disks(job, PARTNER, Ring(2), both_h), both_h, 0.0),
    ]
    if coded:
        size = build.in_groups(job, o.data + o.parity, "`data` and `parity` whose sum")
        encoded_h = job.needed("state_bytes") / o.encoding if o.encoding else 0.0
        read_h = disk_h + o.data * job.to_peer_h + encoded_h
        place = Groups(size, o.parity, strided=True)
        level_saves.append((_on_disks(job, CODE, place, read_h), both_h + encoded_h, 0.0))
    level_saves.append((build.remote_tier(job), job.stall_h, job.background_h))
    captures = (_following if copied_on else _stalling)(job, o, level_saves)
    written = {capture.tier for capture in captures}
    tiers = tuple(tier for tier, *_ in level_saves if tier.name in written)
    rule = go_back(restart(job, LOAD), *(tier.name for tier in tiers))
    return Policy(o.name, (rule,), tiers, tuple(captures))


def _on_disks(job: JobProfile, name: str, place: Placement, load_h: float) -> Tier:
    return Tier(name, Medium.SSD, place, job.role, Constant(load_h))


def _stalling(job: JobProfile, o: Any, level_saves: list[SavesOfLevel]) -> list[SaveSchedule]:
    """Saves of each level at the given or Young's interval, without levels that no failure needs.

    An interval as long as the job means no saves.
    """
    every_h = o.every or [build.YOUNG_H] * len(level_saves)
    if len(every_h) != len(level_saves):
        raise ParameterError(
            f"`every` has {len(every_h)} intervals; give a positive one for each of its "
            f"{len(level_saves)} levels"
        )
    captures = [
        build.periodic_capture(tier.name, each_h, stall_h, behind_h)
        for (tier, stall_h, behind_h), each_h in zip(level_saves, every_h, strict=True)
    ]
    timed = build.at_own_intervals(job, captures, [tier for tier, *_ in level_saves])
    return [
        capture
        for capture in timed
        if capture.tier == build.REMOTE or (capture.every_h or 0) < job.useful_h
    ]


def _following(job: JobProfile, o: Any, level_saves: list[SavesOfLevel]) -> list[SaveSchedule]:
    """Saves of the first level, which the others follow as often as given, else as they can."""
    (local, local_h, _), *slower = level_saves
    every_h, *more_h = o.every or [build.interval_h(job, local_h, 0.0)]
    captures = [build.periodic_capture(local.name, every_h, local_h, 0.0)]
    for (tier, stall_h, behind_h), wanted_h in zip_longest(slower, more_h[: len(slower)]):
        copy_h = stall_h + behind_h - (0.0 if tier.name == build.REMOTE else local_h)
        captures.append(passed_on(tier.name, LOCAL, copy_h, every_h, wanted_h))
    return captures


# --------------------------------------------------------------------------- experts in turn


def moc(job: JobProfile, o: Any) -> Policy:
    """Saves of the next K of the N experts of each layer, and of all other parameters.

    After a failure the job rolls back to the newest complete content of the other parameters;
    experts that were saved earlier are stale.
    """
    part = save_fraction(o.experts, o.saved_each, o.expert_share)
    snapshot_h, persist_h = part * o.snapshot, part * o.persist
    stall_h = max(0.0, snapshot_h - ((job.step_h or 0.0) if o.window is None else o.window))
    best_h = young_h(stall_h, job.mtbf_h) if stall_h > 0.0 else 0.0
    soonest_h = persist_h * (1.0 + 4.0 * ROUNDING)  # each is over before the next begins
    every_h = o.every or max(best_h, snapshot_h, soonest_h)
    if not every_h > 0.0:
        raise ParameterError("saves take no time here, so none is too many: give `every`")
    return Policy(
        o.name,
        rules=(go_back(restart(job, LOAD), SNAPSHOT, build.REMOTE),),
        tiers=(Tier(SNAPSHOT, Medium.HOST, OWN, job.role), build.remote_tier(job)),
        captures=(
            build.periodic_capture(SNAPSHOT, every_h, stall_h, snapshot_h - stall_h),
            SaveSchedule(
                build.REMOTE, after=SNAPSHOT, background=Constant(persist_h),
                in_flight=2 if persist_h <= every_h else 1,  # rounding leaves none out
            ),
        ),
        tax=Tax(memory=part),
        step_h=job.step_h or 0.0,
    )  # fmt: skip


def save_fraction(n_experts: int, n_saved_each: int, expert_share: float) -> float:
    """Bytes of a save as a share of the whole state: ``1 - e + e K/N``, e the experts' share.

    By default e is .86: the published shares of the state are 12 / 2 / 74 / 12 %, the last two of
    experts.
    """
    if n_saved_each > n_experts:
        raise ParameterError(
            f"a save holds {n_saved_each} of {n_experts} experts; it must be at least one, and no "
            "more than there are"
        )
    return 1.0 - expert_share + expert_share * n_saved_each / n_experts


# --------------------------------------------------------------------------- the systems


EVERY_LEVEL = times(
    "progress between saves of each level, the fastest first; default: each level's own Young "
    "interval", bound=POSITIVE,
)  # fmt: skip
_levels = partial(
    row, mark=RECALLED, overrides={"every": EVERY_LEVEL}, family=Family.LEVELS,
    assumed="a partner's copy, and a share of a code, is a node's state over its own link. "
    "Nodes are lost together in failures of racks or of all nodes, or while the partner is down. "
    "Racks are no larger than the distance of two members of a group of the code.",
    not_modelled="other partners than the next node; files that share a disk; verification.",
)  # fmt: skip
GEMINI_OPTIONS = {
    "copies": count("machines that hold each shard, its own included", 2, UP_TO_ALL),
    "every": time(
        "progress between copies to peers; default: the fewest steps that one fits in",
        bound=POSITIVE,
    ),
    "remote_every": time(
        "progress between saves to the remote storage; at least the time of one", 3.0, POSITIVE
    ),
}  # fmt: skip
GEMINI_KEYS = "copies placement every idle remote_every"
SAVES = "every remote_every snapshot"
_peers = partial(
    row, interval="remote_every",
    not_modelled="copies in pieces that fit the gaps between collectives.",
)  # fmt: skip
_near = partial(
    row, interval="every", family=Family.MEMORY,
    assumed="a copy to another node, and parity, is a node's state over its own link, and slows "
    "the job by nothing. Host memory is read in no time.",
    not_modelled="saves of memory that outlived its processes; copies made again before the next "
    "save; eviction of suspicious nodes.",
)  # fmt: skip
SYSTEMS = (
    _levels(
        "scr", "disk", levels, {}, "SCR",
        summary="saves on local disks, with a partner, and on the file system",
        source="SCR: mechanism recalled, intervals derived", runs_as="SCR",
    ),
    _levels(
        "fti", "disk data parity encoding", levels, {"coded": True}, "FTI",
        summary="as SCR, with a Reed-Solomon code over groups of nodes",
        source="FTI: mechanism recalled, intervals derived", runs_as="FTI",
    ),
    _levels(
        "veloc", "disk", levels, {"copied_on": True}, "VeloC",
        summary="saves on local disks, copied on to partner and file system",
        source="VeloC: mechanism recalled, intervals derived", runs_as="VeloC",
    ),
    _peers(
        "gemini", GEMINI_KEYS, gemini, {}, "SOSP'23", PUBLISHED,
        "copies of each shard in peers' host memory, each step where that fits, before remote "
        "saves", source="Wang et al. 2023: mechanism and the interval of remote saves published",
        overrides=GEMINI_OPTIONS, family=Family.MEMORY,
        assumed="a copy to a machine's own memory, and reading it, take no time; saves to the "
        "remote storage do not slow training.",
    ),
    _near(
        "dlrover-flash", SAVES, local_copies, {}, "DLRover", RECALLED,
        "saves in each node's own host memory, which outlives the processes",
        source="DLRover flash checkpoint: mechanism recalled", runs_as="DLRover Flash Checkpoint",
    ),
    _near(
        "ml-flashpoint", f"{SAVES} copies", local_copies,
        {"place": "group"}, "ml-flashpoint", RECALLED,
        "saves in host memory, each on a pair of neighbouring nodes",
        source="ml-flashpoint: mechanism recalled", runs_as="ml-flashpoint", only_on="GKE",
    ),
    _near(
        "hyperpod-tiered", f"{SAVES} copies", local_copies,
        {"place": "ring"}, "HyperPod", SECONDARY,
        "snapshots by `async_save` in host memory, each on its node and the next one",
        source="SageMaker HyperPod tiered checkpoints: mechanism secondary, placement assumed",
        overrides={"copies": OPTIONS["copies"]._replace(bound=UP_TO_ALL)},
        runs_as="HyperPod tiered checkpoints", only_on="EKS",
    ),
    _near(
        "transom", f"{SAVES} copies", local_copies, {"place": "ring"}, "TRANSOM", RECALLED,
        "saves cached in host memory, each on its node and the next one",
        source="TRANSOM: 20 x faster saves published, mechanism recalled",
        overrides={"copies": OPTIONS["copies"]._replace(bound=UP_TO_ALL)},
    ),
    _near(
        "reft", f"{SAVES} group", local_copies,
        {"place": "parity", "hides": True}, "REFT", RECALLED,
        "snapshots in host memory that training hides, with a parity per group of nodes",
        source="REFT: mechanism recalled, groups assumed",
        overrides={"group": count("nodes that share one parity; assumed", 8, IN_GROUPS)},
    ),
    _near(
        "byterobust", f"{SAVES} copies wake pool_fraction", local_copies,
        {"place": "across", "hides": True, "each_step": True, "standby": True}, "SOSP'25",
        SECONDARY, "saves in host memory in each step, across groups; warm standbys replace nodes",
        source="ByteRobust (SOSP 2025): mechanism and pool secondary, wake assumed",
    ),
    _near(
        "nvrx-local", f"{SAVES} disk copies", local_copies,
        {"medium": Medium.SSD, "place": "across"},
        "NVRx", PUBLISHED, "saves on disks of a clique of nodes that fail independently",
        source="NVIDIA Resiliency Extension, documentation of local checkpoints: published",
        runs_as="NVRx local checkpoints",
    ),
    _near(
        "fastpersist", "every remote_every disk", local_copies,
        {"medium": Medium.SSD, "direct": True, "hides": True}, "FastPersist", RECALLED,
        "written from the device to the node's disks; training hides it for a step",
        source="FastPersist: up to 116 x faster writes recalled, mechanism recalled",
        runs_as="DeepSpeed (FastPersist)",
    ),
    _near(
        "pmem", "every remote_every disk", local_copies, {"medium": Medium.PMEM, "direct": True},
        "hybrid memory", RECALLED,
        "written from the device to persistent memory, which outlives a node's restart",
        source="checkpoints in hybrid memory (near CXL, DRAM and PMem): as fields, recalled",
    ),
    _peers(
        "adacheck", f"{GEMINI_KEYS} unique", gemini, {"part": True}, "AdaCheck", SECONDARY,
        "copies to peers the part of the state that no other node holds",
        source="AdaCheck: 6 to 896 x smaller copies secondary", overrides=GEMINI_OPTIONS,
        family=Family.EACH_STEP, assumed="as gemini; the copies are the largest of its paper's.",
    ),
    _peers(
        "fftrainer", GEMINI_KEYS, gemini, {}, "FFTrainer", RECALLED,
        "each node's state is copied to the next one around a ring",
        source="FFTrainer: mechanism recalled", overrides=GEMINI_OPTIONS | {"placement": "ring"},
        family=Family.EACH_STEP,
        assumed="as gemini, but for the ring, in which neighbours share more groups of two.",
    ),
    row(
        "moc", "every snapshot persist experts saved_each expert_share window", moc, {},
        "ASPLOS'25", SECONDARY,
        "for mixtures of experts: each save holds some experts in turn and all else, in host "
        "memory first",
        source="MoC-System 2025 (ASPLOS): shares published; mechanism and costs secondary",
        overrides={
            "window": time(
                "of a forward and backward pass, which hides a snapshot; default: a step"
            ),
            "snapshot": OPTIONS["snapshot"]._replace(fact="stall_h"),
        },
        interval="every", family=Family.EXPERTS,
        not_counted="the accuracy loss of experts that go back further is unknown",
        assumed="the stall of a snapshot comes before the part that training hides, which changes "
        "no hours. After the loss of a node's host memory all experts are loaded from the remote "
        "storage, also those that other nodes still hold.",
        not_modelled="the accuracy of stale experts; parts of the state that ranks save.",
    ),
)  # fmt: skip
