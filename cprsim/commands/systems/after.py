"""The largest loss by one failure of each kind, derived from the rules of a policy.

The failure strikes a job whose slots are all up and whose tiers all hold a save. Of all sets of
slots that a failure of the kind may strike, the worst counts. The loss by a failure during a
recovery, or before the first saves, needs a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from math import inf
from operator import itemgetter
from typing import Annotated

from cprsim.files import Endless, Stored
from cprsim.job.distributions import Constant
from cprsim.job.policy import Groups, Policy, Reach, Reverts, Rule, Scope, To
from cprsim.job.records import Clock, Cluster
from cprsim.simulation.copies import begin, choose, keep, wipe
from cprsim.simulation.job import SimulatedJob
from cprsim.simulation.spec import NONE
from cprsim.simulation.state import sim_of

SlotSets = Sequence[tuple[int, ...]]
FailureCase = tuple[Scope, SlotSets]  # a kind, and the sets of slots that it may strike
TWO_NODES, ALL_NODES = "two nodes", "all nodes"  # kinds that are evaluated for every job
AT_ONCE = Constant(0.0)  # time to detect them


class LossKind(IntEnum):
    """Kinds of loss by a failure, the smallest first."""

    NOTHING = 0
    STEP = 1  # the current step, or also the one before
    SHARDS = 2  # shards return to a save while the job continues: they are stale
    REPLAY = 3  # failed nodes repeat their work since a save; the others wait
    SAVE = 4  # the job rolls back to a save
    START = 5  # the job restarts from the beginning


@dataclass(frozen=True, slots=True, order=True)
class FailureImpact:
    """The loss by a failure: at most `up_to_h` hours of progress; infinite: all progress."""

    kind: Annotated[
        LossKind, Stored(lambda kind: kind.name.lower(), lambda name: LossKind[name.upper()])
    ] = field(metadata={"alias": "takes"})
    up_to_h: Endless = 0.0
    # the tier of the save to which shards or the job return
    tier: str = field(default="", metadata={"alias": "from"})


def worst_impact(
    policy: Policy, cluster: Cluster, case: FailureCase, every_h: Mapping[str, float]
) -> tuple[FailureImpact, Rule | None]:
    """The largest impact over the sets of slots, and the rule that applies; None: all start again.

    `every_h`: progress between two saves to each tier; the tier with the least has the newest save.
    """
    scope, slot_sets = case
    rules = [rule for rule in policy.rules if not rule.scopes or scope.name in rule.scopes]
    of_kind = replace(policy, rules=tuple(replace(rule, scopes=()) for rule in rules))
    job = SimulatedJob(1.0, cluster, Clock.WALL, (scope,), of_kind)
    sim = sim_of(job)
    impacts_of_sets: list[tuple[FailureImpact, Rule | None]] = []
    for struck in slot_sets:
        begin(sim)
        for number, tier in enumerate(policy.tiers):
            if tier.name in every_h:
                keep(sim, number, 1.0 / every_h[tier.name], False)
        sim.job.n_struck = len(struck)
        for n, slot in enumerate(struck):
            sim.slots[n].struck = slot
            wipe(sim, slot, scope.wipes)
        number, source, _ = choose(sim, 0)
        rule = None if number == NONE else rules[number]
        impacts_of_sets.append((_impact(policy, every_h, rule, source), rule))
    return max(impacts_of_sets, key=itemgetter(0))


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
    """The largest impact of each of the `failure_cases`, by name."""
    every_h = {
        capture.tier: policy.content_every_h(capture, useful_h) for capture in policy.captures
    }
    every_h = {tier: hours for tier, hours in every_h.items() if hours < useful_h}
    cases = failure_cases(policy, cluster, scopes, rack)
    return {case[0].name: worst_impact(policy, cluster, case, every_h)[0] for case in cases}


def failure_cases(
    policy: Policy, cluster: Cluster, scopes: Iterable[Scope], rack: int | None
) -> Iterator[FailureCase]:
    """The job's scopes, then, if none has this reach, a process, a node, a rack, all; two nodes.

    Two nodes are neighbours, or `rack` slots apart, or hold copies of one group.
    """
    n = cluster.n_nodes
    each_slot, all_slots = [(slot,) for slot in range(n)], tuple(range(n))
    racks = [all_slots[at : at + (rack or 1)] for at in range(0, n, rack or 1)]
    apart = {1, rack or 1}
    for tier in policy.tiers:
        if isinstance(tier.placement, Groups) and tier.placement.strided:
            apart.add(len(cluster.slots(tier.role)) // tier.placement.size)
    pairs: SlotSets = [(slot, slot + d) for d in sorted(apart) for slot in range(n - d)]
    places: dict[Reach, SlotSets] = {Reach.ALL: [all_slots], Reach.RACK: racks}
    loud = [scope for scope in scopes if not scope.silent]
    yield from ((scope, places.get(scope.reach, each_slot)) for scope in loud)
    further: dict[Scope, SlotSets] = {
        Scope("process", Reach.PROCESS, AT_ONCE, needs_node=False): each_slot,
        Scope("node", Reach.NODE, AT_ONCE): each_slot,
        Scope(TWO_NODES, Reach.NODE, AT_ONCE): pairs,
        Scope("rack", Reach.RACK, AT_ONCE): racks if rack else [],
        Scope(ALL_NODES, Reach.ALL, AT_ONCE): [all_slots],
    }
    reaches = {scope.reach for scope in loud}
    for scope, slot_sets in further.items():
        if slot_sets and (scope.name == TWO_NODES or scope.reach not in reaches):
            yield scope, slot_sets
