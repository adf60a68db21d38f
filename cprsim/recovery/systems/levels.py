"""Checkpoints on several levels: local disk, a partner's, parity of a group, parallel file system.

Each level has an interval of its own, by default ``sqrt(2 s/lambda)``: s what one of its saves
stalls the job for, lambda the rate of the failures for which it is the nearest level that survives.
SCR has local copies, copies with a partner, and the file system; FTI a Reed-Solomon code between
the last two; VeloC stalls for the local copy alone, and copies it on behind the job. A failure
takes all back to the newest content that survives (mechanisms recalled, intervals derived here).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import Option
from cprsim.recovery.pieces import RECALLED, row
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Groups,
    Medium,
    Placement,
    Policy,
    Reverts,
    Ring,
    Rule,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts

LOCAL, PARTNER, CODE = "local", "partner", "code"


@dataclass(frozen=True, slots=True)
class Level:
    """A level as this job has it."""

    tier: Tier
    stall_h: float
    behind_h: float = 0.0


def levels(
    job: JobFacts, o: Any, name: str, *, coded: bool = False, copied_on: bool = False
) -> Policy:
    """Every level stalls the job, or the first alone, and is `copied_on` behind the job."""
    found = _levels(job, o, name, coded)
    captures = _following(job, o, name, found) if copied_on else _stalling(job, o, name, found)
    written = {capture.tier for capture in captures}
    tiers = tuple(one.tier for one in found if one.tier.name in written)
    stages = pieces.restart(job, pieces.LOAD)
    rule = Rule(Reverts.ALL, stages, sources=tuple(tier.name for tier in tiers))
    return Policy(name, (rule,), tiers, tuple(captures))


def _levels(job: JobFacts, o: Any, name: str, coded: bool) -> list[Level]:
    """The levels that a job has, the fastest first."""
    disk_h = job.needed("state_bytes", name) / o.disk
    both_h = disk_h + job.to_peer(name).mean_h

    def on_disks(tier: str, placement: Placement, load_h: float, stall_h: float) -> Level:
        load = Constant(load_h)
        return Level(Tier(tier, Medium.SSD, placement, job.role, load), stall_h)

    found = [
        on_disks(LOCAL, OWN, disk_h, disk_h),
        on_disks(PARTNER, Ring(2), both_h, both_h),
    ]
    if coded:
        size = pieces.in_groups(job, o.data + o.parity, name, "`data` and `parity` whose sum")
        encoded_h = job.needed("state_bytes", name) / o.encoding if o.encoding else 0.0
        read_h = disk_h + o.data * job.to_peer(name).mean_h + encoded_h
        place = Groups(size, o.parity, strided=True)
        found.append(on_disks(CODE, place, read_h, both_h + encoded_h))
    remote = Level(pieces.remote_tier(job), job.save_stall.mean_h, job.background_h)
    return [*found, remote]


def _stalling(job: JobFacts, o: Any, name: str, found: list[Level]) -> list[Capture]:
    """Saves of each level at the interval given, else its own; those that no failure needs: none.

    An interval as long as the job stands for no saves.
    """
    rates = pieces.nearest_failures_per_h(job, [one.tier for one in found])
    every_h = o.every or [
        pieces.interval_of_level_h(job, rate, one.stall_h, one.behind_h, name, one.tier.name)
        for one, rate in zip(found, rates, strict=True)
    ]
    if len(every_h) != len(found):
        raise ParameterError(
            f"`every` of {name} has {len(every_h)} intervals; give a positive one for each of its "
            f"{len(found)} levels"
        )
    return [
        Capture(
            one.tier.name, each_h, stall=Constant(one.stall_h),
            background=Constant(one.behind_h) if one.behind_h else None,
        )
        for one, each_h in zip(found, every_h, strict=True)
        if each_h < job.useful_h or one.tier.name == pieces.REMOTE
    ]  # fmt: skip


def _following(job: JobFacts, o: Any, name: str, found: list[Level]) -> list[Capture]:
    """Saves of the first level, which the others follow."""
    local, *others = found
    every_h = o.every[0] if o.every else pieces.interval_h(job, None, local.stall_h, 0.0, name)
    captures = [Capture(LOCAL, every_h, stall=Constant(local.stall_h))]
    for number, one in enumerate(others, 1):
        remote = one.tier.name == pieces.REMOTE
        copy_h = one.stall_h + one.behind_h - (0.0 if remote else local.stall_h)
        wanted_h = o.every[number] if o.every and number < len(o.every) else 0.0
        captures.append(
            Capture(
                one.tier.name, after=LOCAL, background=Constant(copy_h), in_flight=2,
                every_nth=pieces.nth_that_fits(max(copy_h, wanted_h), every_h),
                when_busy=WhenBusy.SKIP,
            )
        )  # fmt: skip
    return captures


def _row(name: str, keys: str, parameters: dict[str, bool], cited: str, summary: str) -> Any:
    return row(
        name, keys, levels, parameters, cited, RECALLED, summary,
        source=f"{cited}: mechanism recalled, intervals derived", own={"every": EVERY},
        family=Family.LEVELS, needs=(("disk", "10 GB/s"),), runs_as=cited,
        assumed="a partner's copy is a node's state over its own link, and so is its share of a "
        "code; encoding takes no time beside that unless `encoding` says so. Failures of several "
        "nodes at once are those of racks and of all; besides, a node may be struck while its "
        "partner is down. Racks are no larger than the nodes between two members of a group of the "
        "code.",
        not_modelled="a partner that is not the next node; several files per node that share a "
        "disk; verification of what is read back.",
    )  # fmt: skip


EVERY = Option(
    None, "times", "progress between saves of each level, the fastest first; default: each level's "
    "own Young interval", "positive",
)  # fmt: skip
SYSTEMS = (
    _row("scr", "disk", {}, "SCR", "saves on local disks, with a partner, and on the file system"),
    _row(
        "fti", "disk data parity encoding", {"coded": True}, "FTI",
        "as SCR, with a Reed-Solomon code over groups of nodes",
    ),
    _row(
        "veloc", "disk", {"copied_on": True}, "VeloC",
        "saves on local disks, copied on to partner and file system",
    ),
)  # fmt: skip
