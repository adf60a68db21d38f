"""What is left after a failure of each kind, from a policy's tiers and rules alone.

One failure strikes a job that is whole, long after its last failure and with every tier written:
the first rule that holds says who goes back, and to what. Of all places that a failure of a kind
may strike, the worst counts. What a failure meets that strikes during a recovery, or before the
first saves, only a simulation shows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from math import inf
from typing import Annotated

from cprsim.codec import Endless, FieldMark, Key, Null
from cprsim.failures.distributions import Constant
from cprsim.records import Cluster
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Level,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    Tier,
    To,
)

TWO_NODES, ALL_NODES = "two nodes", "all nodes"  # kinds that every job is asked about


class LossKind(IntEnum):
    """What a failure takes from a job, from the least on."""

    NOTHING = 0
    STEP = 1  # the step in hand, or one more
    SHARDS = 2  # shards go back while the job goes on: they are stale
    REPLAY = 3  # the struck do their own work again since a save, while the others wait
    SAVE = 4  # the job goes back to a save
    START = 5  # the job begins again


@dataclass(frozen=True, slots=True, order=True)
class Fate:
    """What a failure takes: at most `up_to_h` of progress; infinite where all of it."""

    kind: Annotated[LossKind, Key("takes"), FieldMark.BY_NAME]
    up_to_h: Endless = 0.0
    # where the content lies that is gone back to
    tier: Annotated[str, Key("from"), Null("")] = ""


@dataclass(frozen=True, slots=True)
class Strike:
    """A kind of failure, and the sets of slots that it may strike."""

    scope: Scope
    places: tuple[tuple[int, ...], ...]


def fates(
    policy: Policy, cluster: Cluster, strikes: Iterable[Strike], useful_h: float
) -> dict[str, Fate]:
    """The worst fate by kind of failure.

    Parameters
    ----------
    policy : of a job on this cluster
    strikes : see `strikes_of`
    useful_h : work of the job [h]: an interval as long is no save
    """
    return {
        strike.scope.name: max(
            _fate(policy, cluster, strike.scope, struck, useful_h)
            for struck in (*strike.places, *_holders(policy, cluster, strike.scope))
        )
        for strike in strikes
    }


def _holders(policy: Policy, cluster: Cluster, scope: Scope) -> Iterator[tuple[int, int]]:
    """Pairs of nodes that lie apart, but in one group of a tier's holders."""
    if scope.name != TWO_NODES:
        return
    for tier in policy.tiers:
        place = tier.placement
        if isinstance(place, Groups) and place.strided and place.size > 1:
            slots = cluster.slots(tier.role)
            apart = len(slots) // place.size
            yield from ((slot, slot + apart) for slot in slots[:-apart])


def strikes_of(cluster: Cluster, scopes: Iterable[Scope], rack: int | None) -> Iterator[Strike]:
    """The job's own kinds of failures, then those that it does not name.

    These are a process, a node, two nodes (next to each other, `rack` slots apart, or holders of
    one group), a rack where the job has some, and all nodes.
    """
    n = cluster.n_nodes
    own = list(scopes)
    for scope in own:
        yield Strike(scope, _places(scope.reach, n, rack))
    reaches = {scope.reach for scope in own}
    at_once = Constant(0.0)
    if Reach.PROCESS not in reaches:
        process = Scope("process", Reach.PROCESS, at_once, needs_node=False)
        yield Strike(process, _places(Reach.PROCESS, n, rack))
    if Reach.NODE not in reaches:
        yield Strike(Scope("node", Reach.NODE, at_once), _places(Reach.NODE, n, rack))
    if n > 1:
        apart = {1, *([rack] if rack and rack < n else [])}
        pairs = tuple((i, i + d) for d in sorted(apart) for i in range(n - d))
        yield Strike(Scope(TWO_NODES, Reach.NODE, at_once), pairs)
    if Reach.RACK not in reaches and rack:
        yield Strike(Scope("rack", Reach.RACK, at_once), _places(Reach.RACK, n, rack))
    if Reach.ALL not in reaches:
        yield Strike(Scope(ALL_NODES, Reach.ALL, at_once), _places(Reach.ALL, n, rack))


def _places(reach: Reach, n_nodes: int, rack: int | None) -> tuple[tuple[int, ...], ...]:
    if reach is Reach.ALL:
        return (tuple(range(n_nodes)),)
    size = rack or 1 if reach is Reach.RACK else 1
    return tuple(
        tuple(range(first, min(first + size, n_nodes))) for first in range(0, n_nodes, size)
    )


def _fate(
    policy: Policy, cluster: Cluster, scope: Scope, struck: tuple[int, ...], useful_h: float
) -> Fate:
    found = rule_taken(policy, cluster, scope, struck)
    if found is None:
        return Fate(LossKind.START, inf)
    rule, left = found
    if rule.reverts is Reverts.NOBODY:
        return Fate(LossKind.NOTHING)
    if rule.to is not To.NEWEST:
        return _without_source(policy, rule)
    up_to_h, tier = min((kept_every_h(policy, name, useful_h), name) for name in left)
    if rule.reverts is not Reverts.ALL:
        return Fate(LossKind.REPLAY if rule.replays else LossKind.SHARDS, up_to_h, tier)
    return Fate(LossKind.START, inf) if up_to_h == inf else Fate(LossKind.SAVE, up_to_h, tier)


def rule_taken(
    policy: Policy, cluster: Cluster, scope: Scope, struck: Collection[int]
) -> tuple[Rule, tuple[str, ...]] | None:
    """The first rule that holds, and those of its sources that are left.

    None where no rule holds: the job begins again. The sources are none under a rule that loads
    from none. Section 4 of docs/recovery.md says the same of a job in any state.
    """
    for rule in policy.rules:
        left = _left_under(policy, rule, cluster, scope, struck)
        if left is not None:
            return rule, left
    return None


def _left_under(
    policy: Policy, rule: Rule, cluster: Cluster, scope: Scope, struck: Collection[int]
) -> tuple[str, ...] | None:
    """Sources of a rule that are left; None where it does not hold."""
    if rule.scopes and scope.name not in rule.scopes:
        return None
    if rule.roles and not {_role_of(cluster, slot) for slot in struck} <= set(rule.roles):
        return None
    only = struck if rule.reverts is Reverts.STRUCK else None

    def there(name: str, only: Collection[int] | None) -> bool:
        return survives(policy.tier(name), cluster, scope.wipes, struck, only)

    if not all(there(name, None if name not in rule.sources else only) for name in rule.needs):
        return None
    if rule.reverts is Reverts.NOBODY or rule.to is not To.NEWEST:
        return ()
    return tuple(name for name in rule.sources if there(name, only)) or None


def _without_source(policy: Policy, rule: Rule) -> Fate:
    if rule.to is To.START:
        return Fate(LossKind.START, inf)
    n_steps = 1 if rule.to is To.STEP_BEGUN else 2
    return Fate(LossKind.STEP, n_steps * policy.step_h)


def survives(
    tier: Tier,
    cluster: Cluster,
    wipes: Level,
    struck: Iterable[int],
    only: Collection[int] | None = None,
) -> bool:
    """Whether a tier's content is still there, on all shards or on some.

    Parameters
    ----------
    wipes : the most lasting memory that the failure wipes on the slots that it strikes
    only : slots whose shards alone are wanted; None: all
    """
    place = tier.placement
    if isinstance(place, Outside) or wipes < tier.medium.level:
        return True
    slots = cluster.slots(tier.role)
    wiped = {slot - slots.start for slot in struck if slot in slots}
    wanted = wiped if only is None else {slot - slots.start for slot in only if slot in slots}
    if isinstance(place, Ring):
        n = len(slots)
        return not any(
            all((i + k) % n in wiped for k in range(place.copies)) for i in wanted & wiped
        )
    missing = Counter(_group(place, i, len(slots)) for i in wiped)
    return all(missing[_group(place, i, len(slots))] <= place.tolerates for i in wanted & wiped)


def _group(place: Groups, number: int, n: int) -> int:
    return number % (n // place.size) if place.strided else number // place.size


def kept_every_h(policy: Policy, tier: str, useful_h: float) -> float:
    """Progress between two contents that a tier completes; infinite where it never does [h]."""
    capture = next((one for one in policy.captures if one.tier == tier), None)
    every_h = inf if capture is None else _every_h(policy, capture)
    return inf if every_h >= useful_h else every_h


def _every_h(policy: Policy, capture: Capture) -> float:
    followed = policy.followed_by(capture)
    if followed is not None:
        return capture.every_nth * _every_h(policy, followed)
    return inf if capture.every_h is None else capture.parts * capture.every_h


def _role_of(cluster: Cluster, slot: int) -> str:
    return next(role.name for role in cluster.roles if slot in cluster.slots(role.name))
