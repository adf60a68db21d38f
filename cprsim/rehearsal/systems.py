"""Recovery systems of the catalogue that real processes can do: saves behind the job, and peers.

The whole job goes back to the newest content that survives, from files or from the memory of the
servers. What else a system may do (parts, replays, elastic work) has no process here.
"""

from __future__ import annotations

from collections.abc import Iterator

from cprsim.recovery.policy import (
    RELOAD,
    ROLL_BACK,
    Capture,
    Groups,
    Medium,
    Placement,
    Policy,
    Reverts,
    Ring,
    Rule,
    StageKind,
    To,
    WhenBusy,
)
from cprsim.rehearsal.orders import SECONDS, SaveBehind

STAGES = (StageKind.DETECT, StageKind.WAIT, StageKind.RESCHEDULE, StageKind.LOAD)


def can_rehearse(policy: Policy) -> bool:
    """Whether the runtime does what a policy says."""
    return policy.on_failure in (ROLL_BACK, RELOAD) or can_do(policy)


def can_do(system: Policy) -> bool:
    """Whether the runtime does what a recovery system says."""
    return (
        system.elastic is None
        and system.tax.compute == 0.0
        and bool(system.captures)
        and all(_takes_all_back(rule) for rule in system.rules)
        and all(_is_plain(capture) and _has_place(system, capture) for capture in system.captures)
    )


def _takes_all_back(rule: Rule) -> bool:
    return (
        rule.reverts is Reverts.ALL
        and rule.to is To.NEWEST
        and rule.replay_speed == 1.0
        and not rule.scopes
        and all(stage.kind in STAGES and stage.blocks for stage in rule.stages)
    )


def _is_plain(capture: Capture) -> bool:
    return (
        capture.every_h is not None
        and capture.after is None
        and capture.parts == 1
        and capture.p_fail == 0.0
        and not capture.on_notice
    )


def _has_place(system: Policy, capture: Capture) -> bool:
    """Files, or the memory of servers that hold whole copies."""
    tier = system.tier(capture.tier)
    if tier.medium is Medium.REMOTE:
        return tier.generations == 1
    if tier.medium is not Medium.HOST:
        return False
    place = tier.placement
    return isinstance(place, Ring) or (
        isinstance(place, Groups) and place.tolerates == place.size - 1
    )


def saves_behind(system: Policy) -> tuple[SaveBehind, ...]:
    """How the saves of each capture go; those of a strategy stall the job."""
    if system.is_strategy:
        return ()
    return tuple(
        SaveBehind(
            stall_s=_seconds(capture.stall),
            behind_s=_seconds(capture.background),
            to_peers=_is_to_peers(system, capture),
            in_flight=capture.in_flight,
            skips=capture.when_busy is WhenBusy.SKIP,
        )
        for capture in system.captures
    )


def _seconds(cost: object) -> float:
    return 0.0 if cost is None else float(cost.mean_h) * SECONDS  # type: ignore[attr-defined]


def _is_to_peers(system: Policy, capture: Capture) -> bool:
    return system.tier(capture.tier).medium is Medium.HOST


def holders_of(system: Policy, n_servers: int) -> tuple[tuple[int, ...], ...]:
    """For each server those others that hold copies of its rows; nothing without copies."""
    written = [capture.tier for capture in system.captures if _is_to_peers(system, capture)]
    if not written:
        return ()
    place = system.tier(written[0]).placement
    return tuple(tuple(_others(place, server, n_servers)) for server in range(n_servers))


def _others(place: Placement, server: int, n_servers: int) -> Iterator[int]:
    if isinstance(place, Ring):
        yield from ((server + behind) % n_servers for behind in range(1, place.copies))
    elif isinstance(place, Groups):
        n_groups = n_servers // place.size
        group = server % n_groups if place.strided else server // place.size
        for other in range(n_servers):
            its = other % n_groups if place.strided else other // place.size
            if its == group and other != server:
                yield other


def fetch_s(system: Policy) -> float:
    """What a shard takes from a peer; 0 without peers."""
    stages = [stage for rule in system.rules for stage in rule.stages]
    loads = [one.cost for one in stages if one.kind is StageKind.LOAD and one.cost is not None]
    return _seconds(loads[0]) if loads else 0.0
