"""Copies in the memory or on the disks of the job's own nodes, before the remote storage.

Saves go to a tier near the job first: host memory, disks or persistent memory of the nodes, alone
or with copies or parity on others. Each is copied on to the remote storage as often as one is
written there. A failure takes the whole job back to the newest save that survives: from the nodes'
own copies if they are all there, else from others of the group, else from the remote storage. Rows
of one table, which differ in where copies lie and what they stall.

Assumptions: a copy to another node, and parity, is a node's state over its own link, behind the
job. Host memory is read in no time beside transfers. Copies slow the job by nothing.

Not modelled: saves that an agent makes of memory that outlived its processes; copies that are made
again after a loss before the next save is due; eviction of nodes under suspicion and diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import exp
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Groups,
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    Stage,
    StageKind,
    Tax,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

NEAR = "near"
OWN_COPY = "own copy"


SAVES = "every remote_every snapshot"
STANDBYS = {
    "wake": Option(
        0.0, "time", "until a warm standby has taken a lost node's place; no figure known", True
    ),
    "pool_fraction": Option(
        0.99, "share", "of the hours of rescheduling in which the standbys are enough (secondary)"
    ),
}
PARITY_GROUP = Option(8, "count", "nodes that share one parity; assumed")


PLACES: dict[str, Callable[[int], Groups | Ring]] = {  # of the copies of a shard; else its own
    "group": lambda m: Groups(m, m - 1),  # neighbours
    "across": lambda m: Groups(m, m - 1, strided=True),  # as far from each other as can be
    "ring": Ring,
    "parity": lambda m: Groups(m, 1),
}


@dataclass(frozen=True, slots=True)
class CopiesPreset:
    """What tells one of them from another."""

    medium: Medium
    place: str = "own"
    hidden: bool = False  # training hides the save for a step
    each_step: bool = False

    def plan(self, facts: JobFacts, o: Any, name: str) -> Policy:
        return _policy(self, facts, o, name)


def _policy(preset: CopiesPreset, facts: JobFacts, o: Any, name: str) -> Policy:
    pieces.require_positive(name, remote_every=o.remote_every)
    place = placed(preset, facts, o, name)
    stall_h, behind_h = save_h(preset, facts, o, name)
    if preset.each_step and o.every is None:
        step_h = facts.needed("step_h", f"{name} without `every`")
        every_h = step_h * pieces.nth_that_fits(behind_h, step_h)
    else:
        every_h = pieces.interval_h(facts, o.every, stall_h, behind_h, name)
    persist_h = pieces.persist_h(facts, None)
    standbys, reschedule = _standbys(facts, o)
    rules, tiers = _rules(preset, facts, o, place, name, reschedule)
    nth = pieces.nth_that_fits(max(persist_h, o.remote_every or 0.0), every_h)
    return Policy(
        name,
        rules=rules,
        tiers=tiers,
        captures=(  # two in flight: one that ends as the next begins does not delay it
            Capture(
                NEAR, every_h, stall=Constant(stall_h), in_flight=2,
                background=Constant(behind_h) if behind_h else None,
            ),
            Capture(
                pieces.REMOTE, after=NEAR, every_nth=nth, background=Constant(persist_h),
                in_flight=2, when_busy=WhenBusy.SKIP,
            ),
        ),
        tax=Tax(nodes=standbys, memory=memory_fraction(preset, place)),
    )  # fmt: skip


def placed(preset: CopiesPreset, facts: JobFacts, o: Any, name: str) -> Groups | Ring:
    """Where the copies lie; raises ParameterError where the job has no room for them."""
    if preset.place == "own":
        return OWN
    n, key = facts.n_nodes, "group" if preset.place == "parity" else "copies"
    size = int(getattr(o, key))
    if not 2 <= size <= n:
        raise ParameterError(f"`{key}` of {name} is {size}; it must lie between 2 and {n}")
    if preset.place != "ring" and n % size:
        raise ParameterError(
            f"{name}: {n} nodes of `{facts.role}` make no groups of {size}: give `{key}` that "
            "divides them"
        )
    return PLACES[preset.place](size)


def save_h(preset: CopiesPreset, facts: JobFacts, o: Any, name: str) -> tuple[float, float]:
    """What a save stalls the job for, and how long it then takes [h]."""
    disk_h = _disk_h(facts, o, name)
    by_host, first_h = False, disk_h  # from the device straight to the disks
    if hasattr(o, "snapshot"):
        by_host, first_h = True, pieces.snapshot_h(facts, o.snapshot, name)
    window_h = facts.needed("step_h", name) if preset.hidden else 0.0
    stall_h = max(0.0, first_h - window_h)
    behind_h = first_h - stall_h + (disk_h if by_host else 0.0)
    if preset.place == "own":
        return stall_h, behind_h
    others = 1 if preset.place == "parity" else o.copies - 1
    return stall_h, behind_h + facts.to_peer(name, others).mean_h


def _disk_h(facts: JobFacts, o: Any, name: str) -> float:
    """A node's state onto its disks; nothing where there are none [h]."""
    if not hasattr(o, "disk"):
        return 0.0
    if o.disk is None:
        raise ParameterError(f"{name} writes to the disks of nodes: give `disk`, a bandwidth")
    return facts.needed("state_bytes", name) / float(o.disk)


def _rules(
    preset: CopiesPreset, facts: JobFacts, o: Any, place: Groups | Ring, name: str,
    reschedule: Constant | None,
) -> tuple[tuple[Rule, ...], tuple[Tier, ...]]:  # fmt: skip
    """From the own copies, else from others', else from the remote storage."""
    own_load = Stage(StageKind.LOAD, Constant(_disk_h(facts, o, name)))
    near = Tier(NEAR, preset.medium, place, facts.role)
    remote = pieces.remote_tier(facts)
    beyond = pieces.back_to_remote(facts, reschedule)
    own = pieces.restart(facts, own_load, reschedule=reschedule)
    if preset.place == "own":
        return (Rule(Reverts.ALL, own, sources=(NEAR,)), beyond), (near, remote)
    n_read = place.size - 1 if preset.place == "parity" and isinstance(place, Groups) else 1
    fetch = Stage(StageKind.LOAD, facts.to_peer(name, n_read))
    rules = (
        Rule(Reverts.ALL, own, needs=(OWN_COPY,), sources=(NEAR,)),
        Rule(Reverts.ALL, pieces.restart(facts, fetch, reschedule=reschedule), sources=(NEAR,)),
        beyond,
    )
    return rules, (Tier(OWN_COPY, preset.medium, OWN, facts.role), near, remote)


def memory_fraction(preset: CopiesPreset, place: Groups | Ring) -> float:
    """Host memory that the copies take, as a share of the state; on disks none."""
    if preset.medium is not Medium.HOST:
        return 0.0
    if isinstance(place, Ring):
        return float(place.copies)
    if preset.place == "parity":
        return 1.0 + 1.0 / (place.size - 1)
    return float(place.size)


def _standbys(facts: JobFacts, o: Any) -> tuple[float, Constant | None]:
    """Nodes that stand by besides the job's spares, and the time that replaces rescheduling."""
    if not hasattr(o, "wake"):
        return 0.0, None
    if not 0.0 < o.pool_fraction < 1.0:
        raise ParameterError(f"`pool_fraction` is {o.pool_fraction}; it lies between 0 and 1")
    return standbys_of(facts, o.pool_fraction), Constant(o.wake)


def standbys_of(facts: JobFacts, p_enough: float, at_least: int = 0) -> float:
    """Standbys besides the job's spares, which are its standbys."""
    if facts.cluster.n_spares is not None:
        return 0.0
    lost_per_h = sum(facts.failures_per_h(scope) for scope in facts.scopes if scope.needs_node)
    return float(max(at_least, standbys(lost_per_h * facts.reschedule.mean_h, p_enough)))


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


_near = partial(System, interval="every", family=Family.MEMORY)
DISK = (("disk", "10 GB/s"),)
SYSTEMS = (
    _near(
        "dlrover-flash", "saves in each node's own host memory, which outlives the processes",
        "DLRover flash checkpoint: mechanism recalled", options(SAVES),
        CopiesPreset(Medium.HOST).plan, cited="DLRover", mark=Provenance.RECALLED,
        runs_as="DLRover Flash Checkpoint",
    ),
    _near(
        "ml-flashpoint", "saves in host memory, each on a pair of neighbouring nodes",
        "ml-flashpoint: mechanism recalled", options(f"{SAVES} copies"),
        CopiesPreset(Medium.HOST, "group").plan, cited="ml-flashpoint", mark=Provenance.RECALLED,
        runs_as="ml-flashpoint",
    ),
    _near(
        "transom", "saves cached in host memory, each on its node and the next one",
        "TRANSOM: 20 x faster saves published, mechanism recalled", options(f"{SAVES} copies"),
        CopiesPreset(Medium.HOST, "ring").plan, cited="TRANSOM", mark=Provenance.RECALLED,
    ),
    _near(
        "reft", "snapshots in host memory that training hides, with a parity per group of nodes",
        "REFT: mechanism recalled, groups assumed", options(SAVES, {"group": PARITY_GROUP}),
        CopiesPreset(Medium.HOST, "parity", hidden=True).plan, cited="REFT",
        mark=Provenance.RECALLED,
    ),
    _near(
        "byterobust",
        "saves in host memory in each step, across groups; warm standbys replace nodes",
        "ByteRobust (SOSP 2025): mechanism and pool secondary, wake assumed",
        options(f"{SAVES} copies", STANDBYS),
        CopiesPreset(Medium.HOST, "across", hidden=True, each_step=True).plan, cited="SOSP'25",
        mark=Provenance.SECONDARY,
    ),
    _near(
        "nvrx-local", "saves on nodes' disks, each on a clique of nodes that fail apart",
        "NVIDIA Resiliency Extension, documentation of local checkpoints: published",
        options(f"{SAVES} disk copies"), CopiesPreset(Medium.SSD, "across").plan, cited="NVRx",
        mark=Provenance.PUBLISHED, needs=DISK, runs_as="NVRx local checkpoints",
    ),
    _near(
        "fastpersist", "written from the device to the node's disks; training hides it for a step",
        "FastPersist: up to 116 x faster writes recalled, mechanism recalled",
        options("every remote_every disk"), CopiesPreset(Medium.SSD, hidden=True).plan,
        cited="FastPersist", mark=Provenance.RECALLED, needs=DISK,
        runs_as="DeepSpeed (FastPersist)",
    ),
    _near(
        "pmem", "written from the device to persistent memory, which outlives a node's restart",
        "checkpoints in hybrid memory (near CXL, DRAM and PMem): as fields, recalled",
        options("every remote_every disk"), CopiesPreset(Medium.PMEM).plan, cited="hybrid memory",
        mark=Provenance.RECALLED, needs=DISK,
    ),
)  # fmt: skip
