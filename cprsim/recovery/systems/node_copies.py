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
from enum import Enum, auto
from math import exp

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
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
from cprsim.recovery.system import Family, JobFacts, Provenance, System, option

NEAR = "near"
OWN_COPY = "own copy"


@dataclass(frozen=True, slots=True)
class CopiesOptions:
    """How often it saves."""

    every: float | None = option(
        None, "time", "progress between saves; default: Young's, no shorter than one is written"
    )
    remote_every: float | None = option(
        None, "time", "progress between copies to the remote storage; default: as one is written"
    )


@dataclass(frozen=True, slots=True)
class MemoryCopiesOptions(CopiesOptions):
    """And what a copy takes."""

    snapshot: float | None = option(
        None, "time", "of a copy to host memory; default: the stall of the job's saves"
    )


@dataclass(frozen=True, slots=True)
class Grouped(MemoryCopiesOptions):
    """And how many nodes hold each shard."""

    copies: int = option(2, "count", "nodes that hold each shard, its own included")


@dataclass(frozen=True, slots=True)
class WithParity(MemoryCopiesOptions):
    """And how many nodes share a parity."""

    group: int = option(8, "count", "nodes that share one parity; assumed")


@dataclass(frozen=True, slots=True)
class OnDisk(CopiesOptions):
    """And how fast a node's disks are."""

    disk: float | None = option(None, "bandwidth", "of a node's disks or persistent memory; needed")


@dataclass(frozen=True, slots=True)
class GroupedOnDisk(MemoryCopiesOptions):
    """And how fast a node's disks are, and how many nodes hold each shard."""

    disk: float | None = option(None, "bandwidth", "of a node's disks; needed")
    copies: int = option(2, "count", "nodes that hold each shard, its own included (published)")


@dataclass(frozen=True, slots=True)
class WithStandbys(Grouped):
    """And what standbys are kept."""

    wake: float = option(
        0.0,
        "time",
        "until a warm standby has taken a lost node's place; no figure known",
        unknown=True,
    )
    pool_fraction: float = option(
        0.99, "share", "of the hours of rescheduling in which the standbys are enough (secondary)"
    )


class CopyPlace(Enum):
    """Where the copies of a shard lie."""

    OWN = auto()
    GROUP = auto()  # neighbours
    ACROSS = auto()  # as far from each other as can be
    RING = auto()
    PARITY = auto()


@dataclass(frozen=True, slots=True)
class CopiesPreset:
    """What tells one of them from another."""

    medium: Medium
    place: CopyPlace
    hidden: bool = False  # training hides the save for a step
    each_step: bool = False


def planned(preset: CopiesPreset) -> Callable[[JobFacts, CopiesOptions, str], Policy]:
    """What a system of this table does in a job."""

    def plan(facts: JobFacts, options: CopiesOptions, name: str) -> Policy:
        return _policy(preset, facts, options, name)

    plan.__module__ = __name__
    return plan


def _policy(preset: CopiesPreset, facts: JobFacts, options: CopiesOptions, name: str) -> Policy:
    pieces.require_positive(name, remote_every=options.remote_every)
    place = placed(preset, facts, options, name)
    stall_h, behind_h = save_h(preset, facts, options, name)
    if preset.each_step and options.every is None:
        step_h = facts.needed("step_h", f"{name} without `every`")
        every_h = step_h * pieces.nth_that_fits(behind_h, step_h)
    else:
        every_h = pieces.interval_h(facts, options.every, stall_h, behind_h, name)
    persist_h = pieces.persist_h(facts, None)
    standbys, reschedule = _standbys(facts, options)
    rules, tiers = _rules(preset, facts, options, place, name, reschedule)
    nth = pieces.nth_that_fits(max(persist_h, options.remote_every or 0.0), every_h)
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


def placed(
    preset: CopiesPreset, facts: JobFacts, options: CopiesOptions, name: str
) -> Groups | Ring:
    """Where the copies lie; raises ParameterError where the job has no room for them."""
    if preset.place is CopyPlace.OWN:
        return OWN
    n = facts.n_nodes
    size = options.group if isinstance(options, WithParity) else _copies(options)
    key = "group" if isinstance(options, WithParity) else "copies"
    if not 2 <= size <= n:
        raise ParameterError(f"`{key}` of {name} is {size}; it must lie between 2 and {n}")
    if preset.place is CopyPlace.RING:
        return Ring(size)
    if n % size:
        raise ParameterError(
            f"{name}: {n} nodes of `{facts.role}` make no groups of {size}: give `{key}` that "
            "divides them"
        )
    if preset.place is CopyPlace.PARITY:
        return Groups(size, 1)
    return Groups(size, size - 1, strided=preset.place is CopyPlace.ACROSS)


def _copies(options: CopiesOptions) -> int:
    copies: int = getattr(options, "copies", 1)
    return copies


def save_h(
    preset: CopiesPreset, facts: JobFacts, options: CopiesOptions, name: str
) -> tuple[float, float]:
    """What a save stalls the job for, and how long it then takes [h]."""
    disk_h = _disk_h(facts, options, name)
    by_host, first_h = False, disk_h  # from the device straight to the disks
    if isinstance(options, MemoryCopiesOptions):
        by_host, first_h = True, pieces.snapshot_h(facts, options.snapshot, name)
    window_h = facts.needed("step_h", name) if preset.hidden else 0.0
    stall_h = max(0.0, first_h - window_h)
    behind_h = first_h - stall_h + (disk_h if by_host else 0.0)
    if preset.place is CopyPlace.OWN:
        return stall_h, behind_h
    others = 1 if preset.place is CopyPlace.PARITY else _copies(options) - 1
    return stall_h, behind_h + facts.to_peer(name, others).mean_h


def _disk_h(facts: JobFacts, options: CopiesOptions, name: str) -> float:
    """A node's state onto its disks; nothing where there are none [h]."""
    if not isinstance(options, OnDisk | GroupedOnDisk):
        return 0.0
    if options.disk is None:
        raise ParameterError(f"{name} writes to the disks of nodes: give `disk`, a bandwidth")
    return facts.needed("state_bytes", name) / options.disk


def _rules(
    preset: CopiesPreset, facts: JobFacts, options: CopiesOptions, place: Groups | Ring, name: str,
    reschedule: Constant | None,
) -> tuple[tuple[Rule, ...], tuple[Tier, ...]]:  # fmt: skip
    """From the own copies, else from others', else from the remote storage."""
    own_load = Stage(StageKind.LOAD, Constant(_disk_h(facts, options, name)))
    near = Tier(NEAR, preset.medium, place, facts.role)
    remote = pieces.remote_tier(facts)
    beyond = pieces.back_to_remote(facts, reschedule)
    own = pieces.restart(facts, own_load, reschedule=reschedule)
    if preset.place is CopyPlace.OWN:
        return (Rule(Reverts.ALL, own, sources=(NEAR,)), beyond), (near, remote)
    n_read = place.size - 1 if preset.place is CopyPlace.PARITY and isinstance(place, Groups) else 1
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
    if preset.place is CopyPlace.PARITY:
        return 1.0 + 1.0 / (place.size - 1)
    return float(place.size)


def _standbys(facts: JobFacts, options: CopiesOptions) -> tuple[float, Constant | None]:
    """Nodes that stand by besides the job's spares, and the time that replaces rescheduling."""
    if not isinstance(options, WithStandbys):
        return 0.0, None
    if not 0.0 < options.pool_fraction < 1.0:
        raise ParameterError(f"`pool_fraction` is {options.pool_fraction}; it lies between 0 and 1")
    wake = Constant(options.wake)
    if facts.cluster.n_spares is not None:
        return 0.0, wake  # those are the standbys
    lost_per_h = sum(facts.failures_per_h(scope) for scope in facts.scopes if scope.needs_node)
    return float(standbys(lost_per_h * facts.reschedule.mean_h, options.pool_fraction)), wake


def standbys(n_lost: float, p_enough: float) -> int:
    """Fewest standbys that are enough with this probability while lost nodes are replaced.

    Parameters
    ----------
    n_lost : nodes that are lost in the time until a lost one is replaced, on average
    p_enough : below 1

    Notes
    -----
    The quantile of a Poisson distribution. ByteRobust keeps as many as fail at once at the 99th
    percentile (secondary); Poisson failures, one node each, are assumed here.
    """
    p, below, n = exp(-n_lost), exp(-n_lost), 0
    while below < p_enough:
        n += 1
        p *= n_lost / n
        below += p
    return n


MEMORY = Family.MEMORY
DISK = (("disk", "10 GB/s"),)
SYSTEMS = (
    System(
        name="dlrover-flash",
        runs_as="DLRover Flash Checkpoint",
        summary="saves in each node's own host memory, which outlives the processes",
        source="DLRover flash checkpoint: mechanism recalled",
        options=MemoryCopiesOptions, plan=planned(CopiesPreset(Medium.HOST, CopyPlace.OWN)),
        interval="every", family=MEMORY, cited="DLRover", mark=Provenance.RECALLED,
    ),
    System(
        name="ml-flashpoint",
        runs_as="ml-flashpoint",
        summary="saves in host memory, each on a pair of neighbouring nodes",
        source="ml-flashpoint: mechanism recalled",
        options=Grouped, plan=planned(CopiesPreset(Medium.HOST, CopyPlace.GROUP)), interval="every",
        family=MEMORY, cited="ml-flashpoint", mark=Provenance.RECALLED,
    ),
    System(
        name="transom",
        summary="saves cached in host memory, each on its node and the next one",
        source="TRANSOM: 20 x faster saves published, mechanism recalled",
        options=Grouped, plan=planned(CopiesPreset(Medium.HOST, CopyPlace.RING)), interval="every",
        family=MEMORY, cited="TRANSOM", mark=Provenance.RECALLED,
    ),
    System(
        name="reft",
        summary="snapshots in host memory that training hides, with a parity per group of nodes",
        source="REFT: mechanism recalled, groups assumed",
        options=WithParity, plan=planned(CopiesPreset(Medium.HOST, CopyPlace.PARITY, hidden=True)),
        interval="every", family=MEMORY, cited="REFT", mark=Provenance.RECALLED,
    ),
    System(
        name="byterobust",
        summary="saves in host memory in each step, across groups; warm standbys replace nodes",
        source="ByteRobust (SOSP 2025): mechanism and pool secondary, wake assumed",
        options=WithStandbys,
        plan=planned(CopiesPreset(Medium.HOST, CopyPlace.ACROSS, hidden=True, each_step=True)),
        interval="every", family=MEMORY, cited="SOSP'25", mark=Provenance.SECONDARY,
    ),
    System(
        name="nvrx-local",
        runs_as="NVRx local checkpoints",
        summary="saves on nodes' disks, each on a clique of nodes that fail apart",
        source="NVIDIA Resiliency Extension, documentation of local checkpoints: published",
        options=GroupedOnDisk, plan=planned(CopiesPreset(Medium.SSD, CopyPlace.ACROSS)),
        interval="every", family=MEMORY, cited="NVRx", mark=Provenance.PUBLISHED, needs=DISK,
    ),
    System(
        name="fastpersist",
        runs_as="DeepSpeed (FastPersist)",
        summary="written from the device to the node's disks; training hides it for a step",
        source="FastPersist: up to 116 x faster writes recalled, mechanism recalled",
        options=OnDisk,
        plan=planned(CopiesPreset(Medium.SSD, CopyPlace.OWN, hidden=True)),
        interval="every", family=MEMORY, cited="FastPersist", mark=Provenance.RECALLED, needs=DISK,
    ),
    System(
        name="pmem",
        summary="written from the device to persistent memory, which outlives a node's restart",
        source="checkpoints in hybrid memory (near CXL, DRAM and PMem): as fields, recalled",
        options=OnDisk, plan=planned(CopiesPreset(Medium.PMEM, CopyPlace.OWN)),
        interval="every", family=MEMORY, cited="hybrid memory", mark=Provenance.RECALLED,
        needs=DISK,
    ),
)  # fmt: skip
