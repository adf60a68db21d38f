"""Checkpoints on several levels: local disk, a partner's, parity of a group, parallel file system.

Each level has an interval of its own, by default ``sqrt(2 s/lambda)``: s what one of its saves
stalls the job for, lambda the rate of the failures for which it is the nearest level that survives.
SCR has local copies, copies with a partner, and the file system; FTI a Reed-Solomon code between
the last two; VeloC stalls for the local copy alone, and copies it on behind the job. A failure
takes all back to the newest content that survives (mechanisms recalled, intervals derived here).

Assumptions: a partner's copy is a node's state over its own link, and so is its share of a code;
encoding takes no time beside that unless `encoding` says so. Failures of several nodes at once are
those of racks and of all; besides, a node may be struck while its partner is down. Racks are no
larger than the nodes between two members of a group of the code.

Not modelled: a partner that is not the next node; several files per node that share a disk;
verification of what is read back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    Tier,
    WhenBusy,
)
from cprsim.recovery.system import Family, JobFacts, Provenance, System, options

LOCAL, PARTNER, CODE = "local", "partner", "code"


ON_LEVELS = {
    "every": Option(
        None,
        "times",
        "progress between saves of each level, the fastest first; default: each level's own Young "
        "interval",
    ),
}


@dataclass(frozen=True, slots=True)
class Saved:
    """A level as this job has it."""

    tier: Tier
    stall_h: float
    behind_h: float
    failures_per_h: float  # for which it is the nearest that survives


def stalling(facts: JobFacts, o: Any, name: str) -> Policy:
    """Every level stalls the job."""
    levels = with_levels(facts, o, name)
    every_h = intervals_h(facts, o, name, levels)
    captures = tuple(
        Capture(
            one.tier.name, each_h, stall=Constant(one.stall_h),
            background=Constant(one.behind_h) if one.behind_h else None,
        )
        for one, each_h in zip(levels, every_h, strict=True)
        if each_h < facts.useful_h or one.tier.name == pieces.REMOTE
    )  # fmt: skip
    return _policy(facts, name, levels, captures)


def veloc(facts: JobFacts, o: Any, name: str) -> Policy:
    """The local copy stalls the job; the others follow it behind the job."""
    levels = with_levels(facts, o, name)
    local, *others = levels
    every_h = o.every[0] if o.every else pieces.interval_h(facts, None, local.stall_h, 0.0, name)
    captures = [Capture(LOCAL, every_h, stall=Constant(local.stall_h))]
    for number, one in enumerate(others, 1):
        copy_h = one.stall_h + one.behind_h - (0.0 if one.tier.name == "remote" else local.stall_h)
        wanted_h = o.every[number] if o.every and number < len(o.every) else 0.0
        captures.append(
            Capture(
                one.tier.name, after=LOCAL, background=Constant(copy_h), in_flight=2,
                every_nth=pieces.nth_that_fits(max(copy_h, wanted_h), every_h),
                when_busy=WhenBusy.SKIP,
            )
        )  # fmt: skip
    return _policy(facts, name, levels, tuple(captures))


def _policy(
    facts: JobFacts, name: str, levels: tuple[Saved, ...], captures: tuple[Capture, ...]
) -> Policy:
    """All go back to the newest content of all levels that are saved."""
    written = {capture.tier for capture in captures}
    tiers = tuple(one.tier for one in levels if one.tier.name in written)
    stages = pieces.restart(facts, Stage(StageKind.LOAD))
    rule = Rule(Reverts.ALL, stages, sources=tuple(tier.name for tier in tiers))
    return Policy(name, (rule,), tiers, captures)


def with_levels(facts: JobFacts, o: Any, name: str) -> tuple[Saved, ...]:
    """The levels that a job has, the fastest first."""
    if o.disk is None:
        raise ParameterError(f"{name} saves on the disks of nodes: give `disk`, a bandwidth")
    disk_h = facts.needed("state_bytes", name) / o.disk
    link_h = facts.to_peer(name).mean_h
    local = Tier(LOCAL, Medium.SSD, OWN, facts.role, Constant(disk_h))
    partner = Tier(PARTNER, Medium.SSD, Ring(2), facts.role, Constant(disk_h + link_h))
    levels = [(local, disk_h, 0.0), (partner, disk_h + link_h, 0.0)]
    if hasattr(o, "parity"):
        levels.append((*_coded(facts, o, name, disk_h, link_h), 0.0))
    levels.append((pieces.remote_tier(facts), facts.save_stall.mean_h, facts.background_h))
    rates = pieces.nearest_failures_per_h(facts, [tier for tier, _, _ in levels])
    return tuple(
        Saved(tier, stalls_h, written_h, rate)
        for (tier, stalls_h, written_h), rate in zip(levels, rates, strict=True)
    )


def _coded(facts: JobFacts, o: Any, name: str, disk_h: float, link_h: float) -> tuple[Tier, float]:
    """The level of a code over groups of nodes, and what one of its saves takes [h]."""
    size = o.data + o.parity
    if o.data < 1 or o.parity < 1 or facts.n_nodes % size:
        raise ParameterError(
            f"{name}: {facts.n_nodes} nodes of `{facts.role}` make no groups of {o.data} + "
            f"{o.parity}: give `data` and `parity`, 1 at least, whose sum divides them"
        )
    encoded_h = 0.0
    if o.encoding is not None:
        encoded_h = facts.needed("state_bytes", name) / o.encoding
    load = Constant(disk_h + o.data * link_h + encoded_h)
    tier = Tier(CODE, Medium.SSD, Groups(size, o.parity, strided=True), facts.role, load)
    return tier, disk_h + link_h + encoded_h


def intervals_h(facts: JobFacts, o: Any, name: str, levels: tuple[Saved, ...]) -> tuple[float, ...]:
    """Progress between saves of each level: those given, else ``sqrt(2 s/lambda)`` [h].

    A level that no failure needs is not saved, which an interval as long as the job says.
    """
    if o.every is not None:
        if len(o.every) != len(levels) or not min(o.every) > 0.0:
            raise ParameterError(
                f"`every` of {name} has {len(o.every)} intervals; give a positive one for "
                f"each of its {len(levels)} levels"
            )
        return tuple(o.every)
    return tuple(
        pieces.interval_of_level_h(
            facts, one.failures_per_h, one.stall_h, one.behind_h, name, one.tier.name
        )
        for one in levels
    )


def _system(
    name: str, cited: str, summary: str, plan: Callable[..., Policy], keys: str = "disk"
) -> System:
    return System(
        name, summary, f"{cited}: mechanism recalled, intervals derived",
        options(keys, ON_LEVELS), plan, family=Family.LEVELS, cited=cited,
        mark=Provenance.RECALLED, needs=(("disk", "10 GB/s"),), runs_as=cited,
    )  # fmt: skip


SYSTEMS = (
    _system(
        "scr", "SCR", "saves on local disks, with a partner, and on the file system", stalling,
    ),
    _system(
        "fti", "FTI", "as SCR, with a Reed-Solomon code over groups of nodes", stalling,
        "disk data parity encoding",
    ),
    _system(
        "veloc", "VeloC", "saves on local disks, copied on to partner and file system", veloc,
    ),
)  # fmt: skip
