"""What one failure takes from a job: asked of its policy as the engines ask it.

The failure strikes a job that is whole, long after its last failure and with its tiers written. Of
all places that a failure of a kind may strike, the worst counts. What a failure meets that strikes
during a recovery, or before the first saves, only a simulation shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf
from typing import Annotated, NamedTuple

from cprsim.codec import Endless, FieldMark, Key, Null
from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster
from cprsim.recovery.policy import (
    Capture,
    Groups,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    StageKind,
    Tier,
    To,
)
from cprsim.simulate import transitions
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.numbers import NONE, as_objects, numbers_of

TWO_NODES, ALL_NODES = "two nodes", "all nodes"  # kinds that every job is asked about
AT_ONCE = Constant(0.0)


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


def rules_taken(
    policy: Policy, cluster: Cluster, strike: Strike, kept_every_h: Mapping[str, float]
) -> Iterator[tuple[Rule | None, Tier | None]]:
    """Of each place, the rule that is taken and its source; no rule: all start again.

    The more often a tier has a new content, the newer is its latest.
    """
    rules = [one for one in policy.rules if not one.scopes or strike.scope.name in one.scopes]
    of_kind = replace(policy, rules=tuple(replace(rule, scopes=()) for rule in rules))
    job = SimulatedJob(1.0, cluster, Clock.WALL, (strike.scope,), of_kind)
    num = as_objects(numbers_of(job)[0][0])
    for struck in strike.places:
        copies, slots = transitions.copies_as_object(), transitions.SlotsAsObjects()
        transitions.begin(num, copies, slots)
        for number, tier in enumerate(policy.tiers):
            if tier.name in kept_every_h:
                content_h = 1.0 / kept_every_h[tier.name]
                transitions.keep(num, copies, number, content_h, False)
        copies.n_struck = len(struck)
        for n, slot in enumerate(struck):
            slots[n].struck = slot
            transitions.wipe(copies, slots, slot, strike.scope.wipes)
        rule, source, _ = transitions.choose(num, copies, slots, 0)
        yield (
            None if rule == NONE else rules[rule],
            None if source == NONE else policy.tiers[source],
        )


# --------------------------------------------------------------------------- the job of a scenario


def fates(
    policy: Policy, cluster: Cluster, strikes: Iterable[Strike], useful_h: float
) -> dict[str, Fate]:
    """The worst fate by kind of failure."""
    every_h = {one.tier: content_every_h(policy, one, useful_h) for one in policy.captures}
    every_h = {tier: hours for tier, hours in every_h.items() if hours < useful_h}

    def worst(strike: Strike) -> Fate:
        places = (*strike.places, *_holders(policy, cluster, strike.scope))
        taken = rules_taken(policy, cluster, replace(strike, places=places), every_h)
        return max(_fate(policy, every_h, *one) for one in taken)

    return {strike.scope.name: worst(strike) for strike in strikes}


def _fate(
    policy: Policy, kept_every_h: Mapping[str, float], rule: Rule | None, source: Tier | None
) -> Fate:
    if rule is None or rule.to is To.START:
        return Fate(LossKind.START, inf)
    if rule.reverts is Reverts.NOBODY:
        return Fate(LossKind.NOTHING)
    if source is None:
        return Fate(LossKind.STEP, policy.step_h * (1 if rule.to is To.STEP_BEGUN else 2))
    up_to_h = kept_every_h.get(source.name, inf)
    if rule.reverts is not Reverts.ALL:
        return Fate(LossKind.REPLAY if rule.replays else LossKind.SHARDS, up_to_h, source.name)
    if up_to_h == inf:
        return Fate(LossKind.START, inf)
    return Fate(LossKind.SAVE, up_to_h, source.name)


def content_every_h(policy: Policy, capture: Capture, useful_h: float) -> float:
    """Progress between two contents that a capture completes; infinite where it never saves [h]."""
    followed = policy.followed_by(capture)
    if followed is not None:
        return capture.every_nth * content_every_h(policy, followed, useful_h)
    if capture.every_h is None or capture.every_h >= useful_h:
        return inf
    return capture.parts * capture.every_h


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
    in_rack = range(0, n, rack or 1)
    places = {
        Reach.ALL: (tuple(range(n)),),
        Reach.RACK: tuple(tuple(range(at, min(at + (rack or 1), n))) for at in in_rack),
    }
    each = tuple((slot,) for slot in range(n))
    own = list(scopes)
    yield from (Strike(scope, places.get(scope.reach, each)) for scope in own)
    others = [
        Scope("process", Reach.PROCESS, AT_ONCE, needs_node=False),
        Scope("node", Reach.NODE, AT_ONCE),
        *([Scope(TWO_NODES, Reach.NODE, AT_ONCE)] if n > 1 else []),
        *([Scope("rack", Reach.RACK, AT_ONCE)] if rack else []),
        Scope(ALL_NODES, Reach.ALL, AT_ONCE),
    ]
    apart = sorted({1, *([rack] if rack and rack < n else [])})
    pairs = tuple((i, i + d) for d in apart for i in range(n - d))
    for scope in others:
        if scope.name == TWO_NODES:
            yield Strike(scope, pairs)
        elif scope.reach not in {one.reach for one in own}:
            yield Strike(scope, places.get(scope.reach, each))


# --------------------------------------------------------------------------- the listing


GOES_BACK_TO = ("goes on", "step", "stale", "replay", "", "start")  # by `LossKind`
SAVES_LIE = ("memory", "memory", "disk", "remote")  # by `Level`


class Case(NamedTuple):
    """One failure."""

    words: str
    scope: Scope
    n_struck: int | None  # neighbouring nodes; None: all

    @property
    def name(self) -> str:
        return self.scope.name


CASES = (
    Case("a process dies", Scope("process", Reach.PROCESS, AT_ONCE, needs_node=False), 1),
    Case("a node restarts", Scope("restart", Reach.NODE, AT_ONCE, needs_node=False), 1),
    Case("a node is lost", Scope("node", Reach.NODE, AT_ONCE), 1),
    Case("two neighbouring nodes are lost", Scope("pair", Reach.RACK, AT_ONCE), 2),
    Case("all nodes are lost", Scope("all", Reach.ALL, AT_ONCE), None),
)


def outcomes(policy: Policy, cluster: Cluster, role: str) -> dict[str, Fate]:
    """What each of `CASES` takes from a job whose saves are all fresh, by its name."""
    alike = dict.fromkeys(policy.written, 1.0)
    return {
        case.name: _fate(policy, alike, *case_met(policy, cluster, role, case)) for case in CASES
    }


def case_met(
    policy: Policy, cluster: Cluster, role: str, case: Case
) -> tuple[Rule | None, Tier | None]:
    """The rule and source of a job whose saves are all fresh when this strikes nodes of a role."""
    strike = Strike(case.scope, (tuple(cluster.slots(role)[: case.n_struck]),))
    return next(rules_taken(policy, cluster, strike, dict.fromkeys(policy.written, 1.0)))


def goes_back_to(policy: Policy, fate: Fate) -> str:
    """What a fate takes a job back to, in a word."""
    return GOES_BACK_TO[fate.kind] or SAVES_LIE[policy.tier(fate.tier).medium.level]


def needs(policy: Policy, cluster: Cluster, role: str) -> tuple[str, ...]:
    """What a system needs besides the job's nodes and its remote storage, in few words each."""
    rule, _ = case_met(policy, cluster, role, CASES[2])
    return tuple(dict.fromkeys(_needs(policy, rule)))


def _needs(policy: Policy, taken: Rule | None) -> Iterator[str]:
    live = {name for rule in policy.rules for name in rule.needs}
    written = {tier.medium for tier in policy.tiers if tier.name in policy.written}
    for tier in policy.tiers:
        if tier.medium is Medium.DEVICE and tier.name in live:
            yield _redundancy(tier.placement)
        if tier.medium is Medium.HOST and tier.name in live and Medium.HOST not in written:
            yield "host memory"
    if policy.tax.memory and not any(one.medium is Medium.DEVICE for one in policy.tiers):
        yield f"host memory {policy.tax.memory:.3g}x"
    if Medium.SSD in written:
        yield "node disks"
    if Medium.PMEM in written:
        yield "persistent memory"
    if policy.tax.nodes:
        yield f"{policy.tax.nodes:g} more node{'' if policy.tax.nodes == 1 else 's'}"
    if any(capture.on_notice for capture in policy.captures):
        yield "notice"
    if taken is None or any(one.kind is StageKind.WAIT and one.blocks for one in taken.stages):
        yield "spares"


def _redundancy(place: Outside | Ring | Groups) -> str:
    if isinstance(place, Groups) and place.tolerates < place.size - 1:
        return f"parity {place.size - place.tolerates}+{place.tolerates}"
    if isinstance(place, Groups) and place.strided:
        return "replicas"
    return "copies on other nodes"
