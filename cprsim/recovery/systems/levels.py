"""Checkpoints on several levels: local disk, a partner's, parity of a group, parallel file system.

Each level has an interval of its own, by default ``sqrt(2 s/lambda)``: s what one of its saves
stalls the job for, lambda the rate of the failures for which it is the nearest level that survives
(derived here). A failure takes all back to the newest content that survives.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.recovery import pieces
from cprsim.recovery.options import times
from cprsim.recovery.pieces import RECALLED, row
from cprsim.recovery.policy import (
    OWN,
    Capture,
    Groups,
    Medium,
    Placement,
    Policy,
    Ring,
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts, System

LOCAL, PARTNER, CODE = "local", "partner", "code"


SavesOfLevel = tuple[Tier, float, float]  # stall of one of its saves, and what it takes behind


def levels(job: JobFacts, o: Any, *, coded: bool = False, copied_on: bool = False) -> Policy:
    """Every level stalls the job, or the first alone, and is `copied_on` behind the job."""
    disk_h = job.needed("state_bytes") / o.disk
    both_h = disk_h + job.to_peer_h
    found: list[SavesOfLevel] = [
        (_on_disks(job, LOCAL, OWN, disk_h), disk_h, 0.0),
        (_on_disks(job, PARTNER, Ring(2), both_h), both_h, 0.0),
    ]
    if coded:
        size = pieces.in_groups(job, o.data + o.parity, "`data` and `parity` whose sum")
        encoded_h = job.needed("state_bytes") / o.encoding if o.encoding else 0.0
        read_h = disk_h + o.data * job.to_peer_h + encoded_h
        place = Groups(size, o.parity, strided=True)
        found.append((_on_disks(job, CODE, place, read_h), both_h + encoded_h, 0.0))
    found.append((pieces.remote_tier(job), job.stall_h, job.background_h))
    captures = (_following if copied_on else _stalling)(job, o, found)
    written = {capture.tier for capture in captures}
    tiers = tuple(tier for tier, *_ in found if tier.name in written)
    rule = pieces.go_back(pieces.restart(job, pieces.LOAD), *(tier.name for tier in tiers))
    return Policy(o.name, (rule,), tiers, tuple(captures))


def _on_disks(job: JobFacts, name: str, place: Placement, load_h: float) -> Tier:
    return Tier(name, Medium.SSD, place, job.role, Constant(load_h))


def _stalling(job: JobFacts, o: Any, found: list[SavesOfLevel]) -> list[Capture]:
    """Saves of each level at the interval given, else its own; those that no failure needs: none.

    An interval as long as the job stands for no saves.
    """
    rates = pieces.nearest_failures_per_h(job, [tier for tier, *_ in found])
    every_h = o.every or [
        pieces.interval_of_level_h(job, rates[tier.name], stall_h, behind_h, tier.name)
        for tier, stall_h, behind_h in found
    ]
    if len(every_h) != len(found):
        raise ParameterError(
            f"`every` has {len(every_h)} intervals; give a positive one for each of its "
            f"{len(found)} levels"
        )
    return [
        Capture(
            tier.name, each_h, stall=Constant(stall_h),
            background=Constant(behind_h) if behind_h else None,
        )
        for (tier, stall_h, behind_h), each_h in zip(found, every_h, strict=True)
        if each_h < job.useful_h or tier.name == pieces.REMOTE
    ]  # fmt: skip


def _following(job: JobFacts, o: Any, found: list[SavesOfLevel]) -> list[Capture]:
    """Saves of the first level, which the others follow as often as given, else as they can."""
    (local, local_h, _), *others = found
    every_h, *more_h = o.every or [pieces.interval_h(job, local_h, 0.0)]
    captures = [Capture(local.name, every_h, stall=Constant(local_h))]
    for (tier, stall_h, behind_h), wanted_h in zip_longest(others, more_h[: len(others)]):
        copy_h = stall_h + behind_h - (0.0 if tier.name == pieces.REMOTE else local_h)
        captures.append(
            Capture(
                tier.name, after=LOCAL, background=Constant(copy_h), in_flight=2,
                every_nth=pieces.nth_that_fits(max(copy_h, wanted_h or 0.0), every_h),
                when_busy=WhenBusy.SKIP,
            )
        )  # fmt: skip
    return captures


def _row(name: str, keys: str, parameters: dict[str, bool], cited: str, summary: str) -> System:
    return row(
        name, keys, levels, parameters, cited, RECALLED, summary,
        source=f"{cited}: mechanism recalled, intervals derived", own={"every": EVERY},
        family=Family.LEVELS, runs_as=cited,
        assumed="a partner's copy, and a share of a code, is a node's state over its own link. "
        "Nodes are lost together in racks, all at once, or while the partner is down. Racks are no "
        "larger than the distance of two members of a group of the code.",
        not_modelled="other partners than the next node; files that share a disk; verification.",
    )  # fmt: skip


EVERY = times(
    "progress between saves of each level, the fastest first; default: each level's own Young "
    "interval", bound="positive",
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
