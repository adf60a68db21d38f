"""Copies in the memory or on the disks of the job's own nodes, before the remote storage.

A failure takes the whole job back to the newest save that survives: from the nodes' own copies if
they are all there, else from others of the group, else from the remote storage, to which each save
is copied on as often as one is written there.
"""

from __future__ import annotations

from functools import partial
from math import exp
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Duration
from cprsim.recovery import pieces
from cprsim.recovery.options import IN_GROUPS, OPTIONS, UP_TO_ALL, count, time
from cprsim.recovery.pieces import PUBLISHED, RECALLED, SECONDARY, go_back, load_in, restart, row
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Groups,
    Medium,
    Policy,
    Ring,
    Rule,
    Tax,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts

NEAR, OWN_COPY, PEERS, OWN_MEMORY = "near", "own copy", "peers", "own memory"
LEAST_UNIQUE = 1 / 6  # of a node's state (secondary)


def near(
    job: JobFacts, o: Any, *, medium: Medium = Medium.HOST, place: str = "own",
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
        every_h = step_h * pieces.nth_that_fits(behind_h, step_h)
    else:
        every_h = o.every or pieces.interval_h(job, stall_h, behind_h)
    persist_h = job.persist_h
    reschedule = Constant(o.wake) if standby else None
    own = restart(job, load_in(disk_h), reschedule=reschedule)
    rules: tuple[Rule, ...] = (go_back(own, NEAR),)
    tiers: tuple[Tier, ...] = (Tier(NEAR, medium, placement, job.role),)
    if n_read:
        fetch = restart(job, load_in(job.to_peers_h(n_read)), reschedule=reschedule)
        rules = (go_back(own, NEAR, needs=(OWN_COPY,)), go_back(fetch, NEAR))
        tiers = (Tier(OWN_COPY, medium, OWN, job.role), *tiers)
    return Policy(
        o.name,
        rules=(*rules, pieces.back_to_remote(job, reschedule)),
        tiers=(*tiers, pieces.remote_tier(job)),
        captures=(  # two in flight: one that ends as the next begins does not delay it
            Capture(
                NEAR, every_h, stall=Constant(stall_h), in_flight=2,
                background=Constant(behind_h) if behind_h else None,
            ),
            Capture(
                pieces.REMOTE, after=NEAR, background=Constant(persist_h), in_flight=2,
                every_nth=pieces.nth_that_fits(max(persist_h, o.remote_every or 0.0), every_h),
                when_busy=WhenBusy.SKIP,
            ),
        ),
        tax=Tax(
            nodes=standbys_of(job, o.pool_fraction) if standby else 0.0,
            memory=copies if medium is Medium.HOST else 0.0,
        ),
    )  # fmt: skip


def _placed(o: Any, place: str) -> tuple[Groups | Ring, int, int, float]:
    """Where copies of a shard lie, to and from how many nodes they go, and what they take."""
    if place == "own":
        return OWN, 0, 0, 1.0
    if place == "parity":
        return Groups(o.group, 1), 1, o.group - 1, 1.0 + 1.0 / (o.group - 1)
    m = o.copies
    where = Ring(m) if place == "ring" else Groups(m, m - 1, strided=place == "across")
    return where, m - 1, 1, float(m)


def standbys_of(job: JobFacts, p_enough: float, at_least: int = 0) -> float:
    """Standbys besides the job's spares, which are its standbys."""
    if job.cluster.n_spares is not None:
        return 0.0
    lost_per_h = sum(job.failures_per_h(scope) for scope in job.scopes if scope.needs_node)
    return float(max(at_least, standbys(lost_per_h * job.reschedule.mean_h, p_enough)))


def standbys(n_lost: float, p_enough: float) -> int:
    """Fewest standbys that are enough with this probability while lost nodes are replaced.

    The quantile of a Poisson distribution. ByteRobust keeps as many as fail at once at the 99th
    percentile (secondary); Poisson failures, one node each, are assumed here.
    """
    p, below, n = exp(-n_lost), exp(-n_lost), 0
    while below < p_enough:
        n += 1
        p *= n_lost / n
        below += p
    return n


def gemini(job: JobFacts, o: Any, *, part: bool = False) -> Policy:
    """Copies to peers' memory; with `part` of what no other node holds anyway."""
    share = 1.0
    if part:
        if o.unique is None:
            pieces.replicas_of_job(job, "`unique`")
        share = LEAST_UNIQUE if o.unique is None else o.unique
    m = o.copies
    placement: Groups | Ring = Ring(m)
    if o.placement == "group":
        give = "`placement: ring`, or a number of `copies` that"
        placement = Groups(pieces.in_groups(job, m, give), m - 1)
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
            go_back(restart(job, pieces.LOAD), PEERS, needs=(OWN_MEMORY,)),
            go_back(fetch, PEERS),
            pieces.back_to_remote(job),
        ),
        tiers=(
            Tier(OWN_MEMORY, Medium.HOST, OWN, job.role),  # live: wherever it was not lost
            Tier(PEERS, Medium.HOST, placement, job.role),
            pieces.remote_tier(job),
        ),
        captures=(  # two in flight: one that ends as the next begins does not delay it
            Capture(
                PEERS, every_h, stall=Constant(stall_h), background=Constant(background_h),
                in_flight=2,
            ),
            Capture(
                pieces.REMOTE, max(o.remote_every, to_remote.mean_h), background=to_remote,
                in_flight=2, when_busy=WhenBusy.SKIP,
            ),
        ),
        tax=Tax(memory=share * m),
    )  # fmt: skip


def _copying(job: JobFacts, o: Any, share: float) -> tuple[float, float, float]:
    """Progress between copies to peers, and what one stalls and takes in the background [h].

    B bytes over a link r stall the job for ``max(0, B/r - h)``, h the hours of an interval in which
    the link is free (published, and so in three systems). The rest is spread over the interval: it
    takes longer by as much as training has the link.
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
        every_h = step_h * pieces.nth_that_fits(copy_h, free * step_h)
    stall_h = max(0.0, copy_h - free * every_h)
    return every_h, stall_h, min(every_h, (copy_h - stall_h) / free)


GEMINI = {
    "copies": count("machines that hold each shard, its own included", 2, UP_TO_ALL),
    "every": time(
        "progress between copies to peers; default: the fewest steps that one fits in",
        bound="positive",
    ),
    "remote_every": time(
        "progress between saves to the remote storage; at least what one takes", 3.0, "positive"
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
    _peers(
        "gemini", GEMINI_KEYS, gemini, {}, "SOSP'23", PUBLISHED,
        "copies of each shard in peers' host memory, each step where that fits, before remote "
        "saves", source="Wang et al. 2023: mechanism and the interval of remote saves published",
        own=GEMINI, family=Family.MEMORY, runs_as="HyperPod tiered checkpoints",
        assumed="a machine copies to its own memory, and reads it, in no time beside the "
        "transfers; saves to the remote storage slow nothing.",
    ),
    _near(
        "dlrover-flash", SAVES, near, {}, "DLRover", RECALLED,
        "saves in each node's own host memory, which outlives the processes",
        source="DLRover flash checkpoint: mechanism recalled", runs_as="DLRover Flash Checkpoint",
    ),
    _near(
        "ml-flashpoint", f"{SAVES} copies", near, {"place": "group"}, "ml-flashpoint", RECALLED,
        "saves in host memory, each on a pair of neighbouring nodes",
        source="ml-flashpoint: mechanism recalled", runs_as="ml-flashpoint",
    ),
    _near(
        "transom", f"{SAVES} copies", near, {"place": "ring"}, "TRANSOM", RECALLED,
        "saves cached in host memory, each on its node and the next one",
        source="TRANSOM: 20 x faster saves published, mechanism recalled",
        own={"copies": OPTIONS["copies"]._replace(bound=UP_TO_ALL)},
    ),
    _near(
        "reft", f"{SAVES} group", near, {"place": "parity", "hides": True}, "REFT", RECALLED,
        "snapshots in host memory that training hides, with a parity per group of nodes",
        source="REFT: mechanism recalled, groups assumed",
        own={"group": count("nodes that share one parity; assumed", 8, IN_GROUPS)},
    ),
    _near(
        "byterobust", f"{SAVES} copies wake pool_fraction", near,
        {"place": "across", "hides": True, "each_step": True, "standby": True}, "SOSP'25",
        SECONDARY, "saves in host memory in each step, across groups; warm standbys replace nodes",
        source="ByteRobust (SOSP 2025): mechanism and pool secondary, wake assumed",
    ),
    _near(
        "nvrx-local", f"{SAVES} disk copies", near, {"medium": Medium.SSD, "place": "across"},
        "NVRx", PUBLISHED, "saves on nodes' disks, each on a clique of nodes that fail apart",
        source="NVIDIA Resiliency Extension, documentation of local checkpoints: published",
        runs_as="NVRx local checkpoints",
    ),
    _near(
        "fastpersist", "every remote_every disk", near,
        {"medium": Medium.SSD, "direct": True, "hides": True}, "FastPersist", RECALLED,
        "written from the device to the node's disks; training hides it for a step",
        source="FastPersist: up to 116 x faster writes recalled, mechanism recalled",
        runs_as="DeepSpeed (FastPersist)",
    ),
    _near(
        "pmem", "every remote_every disk", near, {"medium": Medium.PMEM, "direct": True},
        "hybrid memory", RECALLED,
        "written from the device to persistent memory, which outlives a node's restart",
        source="checkpoints in hybrid memory (near CXL, DRAM and PMem): as fields, recalled",
    ),
    _peers(
        "adacheck", f"{GEMINI_KEYS} unique", gemini, {"part": True}, "AdaCheck", SECONDARY,
        "copies to peers what no other node holds anyway",
        source="AdaCheck: 6 to 896 x smaller copies secondary", own=GEMINI,
        family=Family.EACH_STEP,
        assumed="as gemini; the copies are the largest of its paper's.",
    ),
    _peers(
        "fftrainer", GEMINI_KEYS, gemini, {}, "FFTrainer", RECALLED,
        "each node's state is copied to the next one around a ring",
        source="FFTrainer: mechanism recalled", own=GEMINI | {"placement": "ring"},
        family=Family.EACH_STEP,
        assumed="as gemini, but for the ring, in which neighbours share more groups of two.",
    ),
)  # fmt: skip
