"""What a recovery system needs and what it survives, worked out from its records.

A failure of each kind strikes a job that has just saved on every tier: the first rule that holds
says what the job goes back to, as in section 4 of docs/recovery.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Holds, Role
from cprsim.recovery.fates import rule_taken
from cprsim.recovery.policy import (
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
from cprsim.recovery.system import JobFacts


class Back(StrEnum):
    """What a job goes back to."""

    NOTHING = "goes on"
    STEP = "step"
    REPLAY = "replay"
    STALE = "stale"
    MEMORY = "memory"
    DISK = "disk"
    REMOTE = "remote"
    START = "start"


BACK_BY_MEDIUM = {
    Medium.DEVICE: Back.MEMORY,
    Medium.HOST: Back.MEMORY,
    Medium.SSD: Back.DISK,
    Medium.PMEM: Back.DISK,
    Medium.REMOTE: Back.REMOTE,
}


@dataclass(frozen=True, slots=True)
class Case:
    """One failure."""

    name: str
    words: str
    scope: Scope
    n_struck: int  # neighbouring nodes; 0: all


def _scope(name: str, reach: Reach, needs_node: bool = True) -> Scope:
    return Scope(name, reach, Constant(0.0), needs_node)


CASES = (
    Case("process", "a process dies", _scope("process", Reach.PROCESS, needs_node=False), 1),
    Case("restart", "a node restarts", _scope("restart", Reach.NODE, needs_node=False), 1),
    Case("node", "a node is lost", _scope("node", Reach.NODE), 1),
    Case("pair", "two neighbouring nodes are lost", _scope("pair", Reach.RACK), 2),
    Case("all", "all nodes are lost", _scope("all", Reach.ALL), 0),
)


@dataclass(frozen=True, slots=True)
class FailureOutcome:
    """What becomes of a job after one failure: the rule that is taken and its source."""

    back: Back
    rule: Rule | None = None  # None: no rule holds, and all start again
    source: Tier | None = None


def outcomes(policy: Policy, cluster: Cluster, role: str) -> dict[str, FailureOutcome]:
    """What becomes of a job of this policy after each of `CASES`, by its name."""
    return {case.name: outcome(policy, cluster, role, case) for case in CASES}


def outcome(policy: Policy, cluster: Cluster, role: str, case: Case) -> FailureOutcome:
    """What becomes of a job whose saves are all fresh when this strikes nodes of a role."""
    slots = cluster.slots(role)
    struck = frozenset(slots if case.n_struck == 0 else slots[: case.n_struck])
    found = rule_taken(policy, cluster, case.scope, struck)
    if found is None:
        return FailureOutcome(Back.START)
    rule, names = found
    left = [policy.tier(name) for name in names]
    return FailureOutcome(_back(rule, left), rule, left[0] if left else None)


def _back(rule: Rule, left: list[Tier]) -> Back:
    if rule.reverts is Reverts.NOBODY:
        return Back.NOTHING
    if rule.reverts is not Reverts.ALL:
        return Back.REPLAY if rule.replays else Back.STALE
    if rule.to in (To.STEP_BEGUN, To.STEP_BEFORE):
        return Back.STEP
    return BACK_BY_MEDIUM[left[0].medium] if left else Back.START


def needs(policy: Policy, found: dict[str, FailureOutcome]) -> tuple[str, ...]:
    """What a system needs besides the job's nodes and its remote storage, in few words each."""
    return tuple(dict.fromkeys(_needs(policy, found)))


def _needs(policy: Policy, found: dict[str, FailureOutcome]) -> Iterator[str]:
    live = {name for rule in policy.rules for name in rule.needs}
    for tier in policy.tiers:
        if tier.medium is Medium.DEVICE and tier.name in live:
            yield _redundancy(tier.placement)
        if tier.medium is Medium.HOST and tier.name not in policy.written and tier.name in live:
            if any(one.medium is Medium.HOST for one in _written(policy)):
                continue
            yield "host memory"
    if policy.tax.memory and not any(one.medium is Medium.DEVICE for one in policy.tiers):
        yield f"host memory {policy.tax.memory:.3g}x"
    media = {tier.medium for tier in _written(policy)}
    if Medium.SSD in media:
        yield "node disks"
    if Medium.PMEM in media:
        yield "persistent memory"
    if policy.tax.nodes:
        yield f"{policy.tax.nodes:g} more node{'' if policy.tax.nodes == 1 else 's'}"
    if any(capture.on_notice for capture in policy.captures):
        yield "notice"
    taken = found["node"].rule
    blocking = taken is None or any(s.kind is StageKind.WAIT and s.blocks for s in taken.stages)
    if blocking:
        yield "spares"


def _written(policy: Policy) -> list[Tier]:
    return [tier for tier in policy.tiers if tier.name in policy.written]


def _redundancy(place: Outside | Ring | Groups) -> str:
    if isinstance(place, Groups) and place.tolerates < place.size - 1:
        return f"parity {place.size - place.tolerates}+{place.tolerates}"
    if isinstance(place, Groups) and place.strided:
        return "replicas"
    return "copies on other nodes"


def example_job() -> JobFacts:
    """A job for the listing, which all systems can serve; every number is made up."""
    scopes = (
        Scope("process", Reach.PROCESS, Constant(1 / 60), needs_node=False),
        Scope("restart", Reach.NODE, Constant(3 / 60), needs_node=False),
        Scope("node", Reach.NODE, Constant(3 / 60), notice_h=2 / 60),
        Scope("rack", Reach.RACK, Constant(3 / 60)),
        Scope("all", Reach.ALL, Constant(3 / 60)),
    )
    return JobFacts(
        useful_h=200.0,
        cluster=Cluster((Role("worker", 40, Holds.SHARD), Role("reader", 4, Holds.NOTHING))),
        role="worker",
        scopes=scopes,
        shares=(0.6, 0.1, 0.27, 0.02, 0.01),
        mtbf_h=8.0,
        save_stall=Constant(10 / 3600),
        save_background=Constant(40 / 3600),
        load=Constant(40 / 3600),
        reschedule=Constant(4 / 60),
        replicas=40,
        step_h=10 / 3600,
        state_bytes=100e9,
        node_bytes_per_h=50e9 * 3600,
        remote_bytes_per_h=100e9 * 3600,
    )
