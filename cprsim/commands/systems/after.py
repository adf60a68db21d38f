"""The loss by one failure, from the job's policy, which is evaluated as in the simulation.

The failure strikes a complete job, long after its last failure and with its tiers written. Of all
places that a failure of a kind may strike, the worst counts. The loss by a failure during a
recovery, or before the first saves, needs a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import inf
from operator import itemgetter
from typing import Annotated, NamedTuple

from cprsim.files import Endless, Stored
from cprsim.job.distributions import Constant
from cprsim.job.policy import Groups, Policy, Reach, Reverts, Rule, Scope, To
from cprsim.job.records import Clock, Cluster
from cprsim.simulation.copies import begin, choose, keep, wipe
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.spec import NONE
from cprsim.simulation.state import sim_of

TWO_NODES, ALL_NODES = "two nodes", "all nodes"  # kinds that every job is asked about


class LossKind(IntEnum):
    """Kinds of loss by a failure, the smallest first."""

    NOTHING = 0
    STEP = 1  # the current step, or one more
    SHARDS = 2  # shards roll back while the job continues: they are stale
    REPLAY = 3  # failed nodes replay their work since a save; the others wait
    SAVE = 4  # the job rolls back to a save
    START = 5  # the job restarts from the beginning


@dataclass(frozen=True, slots=True, order=True)
class FailureImpact:
    """The loss by a failure: at most `up_to_h` of progress [h]; infinite for all of it."""

    kind: Annotated[
        LossKind, Stored(lambda kind: kind.name.lower(), lambda name: LossKind[name.upper()])
    ] = field(metadata={"alias": "takes"})
    up_to_h: Endless = 0.0
    # the tier of the checkpoint of the rollback
    tier: str = field(default="", metadata={"alias": "from"})


class Strike(NamedTuple):
    """A kind of failure, and the sets of slots that it may strike."""

    scope: Scope
    places: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls, name: str, reach: Reach, *places: tuple[int, ...], needs_node: bool = True
    ) -> Strike:
        return cls(Scope(name, reach, Constant(0.0), needs_node), places)


def after(
    policy: Policy, cluster: Cluster, strike: Strike, every_h: Mapping[str, float]
) -> tuple[FailureImpact, Rule | None]:
    """The worst fate of all places, and the rule that is taken there; None: all start again.

    `every_h`: progress between two contents of each tier that is saved to. The more often a tier
    has a new content, the newer is its latest.
    """
    rules = [rule for rule in policy.rules if not rule.scopes or strike.scope.name in rule.scopes]
    of_kind = replace(policy, rules=tuple(replace(rule, scopes=()) for rule in rules))
    job = SimulatedJob(1.0, cluster, Clock.WALL, (strike.scope,), of_kind)
    sim = sim_of(job)
    fates_of_places: list[tuple[FailureImpact, Rule | None]] = []
    for struck in strike.places:
        begin(sim)
        for number, tier in enumerate(policy.tiers):
            if tier.name in every_h:
                keep(sim, number, 1.0 / every_h[tier.name], False)
        sim.job.n_struck = len(struck)
        for n, slot in enumerate(struck):
            sim.slots[n].struck = slot
            wipe(sim, slot, strike.scope.wipes)
        number, source, _ = choose(sim, 0)
        rule = None if number == NONE else rules[number]
        fates_of_places.append((_impact(policy, every_h, rule, source), rule))
    return max(fates_of_places, key=itemgetter(0))


def _impact(
    policy: Policy, every_h: Mapping[str, float], rule: Rule | None, source: int
) -> FailureImpact:
    if rule is None or rule.to is To.START:
        return FailureImpact(LossKind.START, inf)
    if rule.reverts is Reverts.NOBODY:
        return FailureImpact(LossKind.NOTHING)
    if source == NONE:
        return FailureImpact(LossKind.STEP, policy.step_h * (1 if rule.to is To.STEP_BEGUN else 2))
    tier = policy.tiers[source].name
    up_to_h = every_h.get(tier, inf)
    if rule.reverts is not Reverts.ALL:
        return FailureImpact(LossKind.REPLAY if rule.replays else LossKind.SHARDS, up_to_h, tier)
    return (
        FailureImpact(LossKind.START, inf)
        if up_to_h == inf
        else FailureImpact(LossKind.SAVE, up_to_h, tier)
    )


# --------------------------------------------------------------------------- the job of a scenario


def impacts(
    policy: Policy, cluster: Cluster, scopes: Iterable[Scope], rack: int | None, useful_h: float
) -> dict[str, FailureImpact]:
    """The worst fate by kind of failure: the job's own kinds, then those that it does not name."""
    every_h = {
        capture.tier: policy.content_every_h(capture, useful_h) for capture in policy.captures
    }
    every_h = {tier: hours for tier, hours in every_h.items() if hours < useful_h}
    strikes = strikes_of(policy, cluster, scopes, rack)
    return {strike.scope.name: after(policy, cluster, strike, every_h)[0] for strike in strikes}


def strikes_of(
    policy: Policy, cluster: Cluster, scopes: Iterable[Scope], rack: int | None
) -> Iterator[Strike]:
    """The job's own kinds, then a process, a node, two nodes, a rack where it has some, and all.

    Two nodes are next to each other, `rack` slots apart, or hold copies of one group.
    """
    n = cluster.n_nodes
    each_slot, all_slots = [(slot,) for slot in range(n)], tuple(range(n))
    racks = [all_slots[at : at + (rack or 1)] for at in range(0, n, rack or 1)]
    apart = {1, rack or 1}
    for tier in policy.tiers:
        if isinstance(tier.placement, Groups) and tier.placement.strided:
            apart.add(len(cluster.slots(tier.role)) // tier.placement.size)
    pairs = [(slot, slot + d) for d in sorted(apart) for slot in range(n - d)]
    places = {Reach.ALL: [all_slots], Reach.RACK: racks}
    strikes_of_job = [
        Strike(scope, tuple(places.get(scope.reach, each_slot)))
        for scope in scopes
        if not scope.silent
    ]
    further = [
        Strike.of("process", Reach.PROCESS, *each_slot, needs_node=False),
        Strike.of("node", Reach.NODE, *each_slot),
        Strike.of(TWO_NODES, Reach.NODE, *pairs),
        *([Strike.of("rack", Reach.RACK, *racks)] if rack else []),
        Strike.of(ALL_NODES, Reach.ALL, all_slots),
    ]
    reaches = {strike.scope.reach for strike in strikes_of_job}
    yield from strikes_of_job
    for strike in further:
        if strike.places and (strike.scope.name == TWO_NODES or strike.scope.reach not in reaches):
            yield strike
