"""Recovery systems that a rehearsal supports: background saves, and copies in peers' memory.

The whole job rolls back to the newest content that survives, in files or in the memory of the
servers. Other parts of a system (parts, replays, elastic work) have no process here.
"""

from __future__ import annotations

from cprsim.job.policy import (
    RELOAD,
    ROLL_BACK,
    Groups,
    Medium,
    Policy,
    Reverts,
    Ring,
    Rule,
    SaveSchedule,
    StageKind,
    To,
    WhenBusy,
)
from cprsim.job.records import S_PER_H, Duration
from cprsim.rehearsal.orders import SaveBehind

REHEARSED_STAGES = (StageKind.DETECT, StageKind.WAIT, StageKind.RESCHEDULE, StageKind.LOAD)


def can_rehearse(policy: Policy) -> bool:
    """Whether the runtime supports a policy."""
    return policy.on_failure in (ROLL_BACK, RELOAD) or (
        policy.elastic is None
        and policy.tax.compute == 0.0
        and bool(policy.captures)
        and all(_takes_all_back(rule) for rule in policy.rules)
        and all(_is_plain(policy, capture) for capture in policy.captures)
    )


def _takes_all_back(rule: Rule) -> bool:
    return (
        rule.reverts is Reverts.ALL
        and rule.to is To.NEWEST
        and rule.replay_speed == 1.0
        and not rule.scopes
        and all(stage.kind in REHEARSED_STAGES and stage.blocks for stage in rule.stages)
    )


def _is_plain(policy: Policy, capture: SaveSchedule) -> bool:
    """Whether a capture makes whole saves at intervals, in files or as whole copies on servers."""
    tier = policy.tier(capture.tier)
    place = tier.placement
    copies = isinstance(place, Ring) or (
        isinstance(place, Groups) and place.tolerates == place.size - 1
    )
    return (
        capture.every_h is not None
        and capture.after is None
        and capture.parts == 1
        and capture.p_fail == 0.0
        and not capture.on_notice
        and (tier.generations == 1 if tier.medium is Medium.REMOTE else copies)
        and tier.medium in (Medium.REMOTE, Medium.HOST)
    )


def saves_behind(policy: Policy) -> tuple[SaveBehind, ...]:
    """Settings of the background saves of each capture of a system."""
    return tuple(
        SaveBehind(
            stall_s=_seconds(capture.stall),
            behind_s=_seconds(capture.background),
            to_peers=policy.tier(capture.tier).medium is Medium.HOST,
            in_flight=capture.in_flight,
            skips=capture.when_busy is WhenBusy.SKIP,
        )
        for capture in policy.captures
    )


def _seconds(cost: Duration | None) -> float:
    return 0.0 if cost is None else cost.mean_h * S_PER_H


def holders_of(policy: Policy, n_servers: int) -> tuple[tuple[int, ...], ...]:
    """For each server, the others that hold copies of its rows; empty without copies."""
    servers = range(n_servers)
    tiers = (policy.tier(capture.tier) for capture in policy.captures)
    place = next((tier.placement for tier in tiers if tier.medium is Medium.HOST), None)
    if isinstance(place, Ring):
        return tuple(tuple((i + k) % n_servers for k in range(1, place.copies)) for i in servers)
    if not isinstance(place, Groups):
        return ()
    n_groups, size = n_servers // place.size, place.size
    group = [i % n_groups if place.strided else i // size for i in servers]
    return tuple(tuple(o for o in servers if o != i and group[o] == group[i]) for i in servers)


def fetch_s(policy: Policy) -> float:
    """Time in which a shard is loaded from a peer [s]; 0 without peers."""
    stages = (stage for rule in policy.rules for stage in rule.stages)
    loads = (one.cost for one in stages if one.kind is StageKind.LOAD and one.cost is not None)
    return _seconds(next(loads, None))
