"""What one failure takes in a simulation, and what a system needs; none is a name only."""

from dataclasses import replace
from math import inf
from typing import Any

import pytest

from cprsim.commands.systems.after import (
    ALL_NODES,
    TWO_NODES,
    FailureImpact,
    LossKind,
    failure_cases,
    impacts,
    worst_impact,
)
from cprsim.commands.systems.listing import ListedJob, cases, listed_of, needs
from cprsim.job.distributions import Constant
from cprsim.job.policy import (
    Medium,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
)
from cprsim.job.records import Cluster, Costs, Holds, Role, Storage
from cprsim.recovery.system import JobProfile
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.recovery import options_of
from cprsim.simulation.job import ScopedFailure
from tests.recovery.systems.by_hand import OF_LITERATURE, every_system_s_job, planned, spent

JOB = replace(every_system_s_job(), useful_h=5.0, step_h=0.0625)
CASES = {one[0].name: one for one in cases(JOB.cluster, JOB.role)}
SCOPES = tuple(scope for scope, _ in CASES.values())
STRUCK = [slot_sets[0] for _, slot_sets in CASES.values()]
AT_H = 4.4  # all tiers have been saved to by then


def policy_of(name: str, job: JobProfile = JOB) -> Policy:
    system = SYSTEMS[name]
    return system.plan(job, options_of(name, dict(system.needs)), "this")


@pytest.mark.parametrize("name", OF_LITERATURE)
def test_the_listed_rule_is_the_one_that_the_engine_takes(name: str) -> None:
    policy = policy_of(name)
    rules = tuple(
        replace(rule, stages=(Stage(StageKind.DETECT, Constant(2.0**-n)), *later))
        for n, rule in enumerate(policy.rules, 1)
        for later in [[one for one in rule.stages if one.kind is not StageKind.DETECT]]
    )  # each with a detection that says which one it is
    for scope, case in enumerate(CASES.values()):
        _, rule = worst_impact(policy, JOB.cluster, case, dict.fromkeys(policy.written, 1.0))
        number = len(rules) if rule is None else 1 + policy.rules.index(rule)
        failure = ScopedFailure(AT_H, STRUCK[scope], scope, (8.0,) * len(STRUCK[scope]))
        hours = spent(replace(policy, rules=rules), [failure], replace(JOB, scopes=SCOPES))
        assert hours[StageKind.DETECT.value] == pytest.approx(2.0**-number), case[0].name


def test_every_system_says_how_it_is_known_and_what_it_costs_in_accuracy() -> None:
    for name in OF_LITERATURE:
        one = SYSTEMS[name]
        assert one.source, name
        assert one.cited, name
        assert one.assumed, name
        assert not policy_of(name).leaves_stale, "a curve can price what does"
        assert not one.not_counted or "the accuracy loss of " in one.not_counted


BACK = {
    "gemini": "memory memory memory remote remote",
    "nvrx-local": "disk disk disk disk remote",
    "ecrec": "goes on|goes on|goes on|remote|remote",
    "just-in-time": "step step step step remote",
    "swift": "replay replay replay remote remote",
    "oobleck": "step step step step start",
}
NEEDS = {
    "gemini": ("host memory 2x", "spares"),
    "ecrec": ("parity 4+1", "spares"),
    "hsdp": ("replicas",),
    "nvrx-local": ("node disks", "spares"),
    "pmem": ("persistent memory", "spares"),
    "checkmate": ("4 more nodes", "spares"),
    "on-notice": ("notice", "spares"),
    "swift": ("host memory", "spares"),
    "bamboo": ("copies on other nodes",),
}


def test_what_a_job_goes_back_to_and_what_a_system_needs() -> None:
    asked = ListedJob("this job", JOB.cluster, JOB.role, policy_of)
    for name, words in BACK.items():
        found = [back for back, _ in listed_of(name, asked).goes_back_to.values()]
        assert found == words.split("|" if "|" in words else " "), name
    assert {name: listed_of(name, asked).needs for name in NEEDS} == NEEDS
    for live, needed in ((("beside",), ["host memory"]), ((), [])):
        rule = Rule(Reverts.NOBODY, (Stage(StageKind.DETECT),), needs=live)
        policy = Policy("this", (rule,), (Tier("beside", Medium.HOST, Ring(2), JOB.role),))
        assert [*needs(policy, rule)] == needed


# --------------------------------------------------------------------------- the worst place

N, RACK = 8, 4
NOTHING = Constant(0.0)
OWN = (
    Scope("process", Reach.PROCESS, NOTHING, needs_node=False),
    Scope("node", Reach.NODE, NOTHING),
)
CLUSTER = Cluster((Role("workers", N, Holds.SHARD),))
STEP_H, USEFUL_H = 0.01, 40.0
SMALL = JobProfile(
    useful_h=USEFUL_H, cluster=CLUSTER, role="workers", scopes=OWN, mtbf_h=10.0,
    costs=Costs(NOTHING, NOTHING, NOTHING, NOTHING, storage=Storage(1e13)), step_h=STEP_H,
    state_bytes=1e9, node_bytes_per_h=1e12,
)  # fmt: skip
SAVE = LossKind.SAVE
BY_HAND: dict[str, tuple[str, dict[str, Any], list[tuple[LossKind, float]]]] = {
    # name: system, options, and what process, node, two nodes, rack of 4 and all take
    "gemini": ("gemini", {"every": 0.5, "remote_every": 4.0},
               [*[(SAVE, 0.5)] * 2, *[(SAVE, 4.0)] * 3]),
    "ring": ("gemini", {"every": 0.5, "remote_every": 4.0, "placement": "ring", "copies": 3},
             [*[(SAVE, 0.5)] * 3, *[(SAVE, 4.0)] * 2]),
    "hsdp": ("hsdp", {"group": 2, "backstop": 5.0},
             [*[(LossKind.NOTHING, 0)] * 4, (SAVE, 5.0)]),
    "hsdp, two": ("hsdp", {"group": 4, "backstop": 5.0},  # a pair that lies apart has both copies
                  [*[(LossKind.NOTHING, 0)] * 2, (SAVE, 5.0), (LossKind.NOTHING, 0), (SAVE, 5.0)]),
    "oobleck": ("oobleck", {"pipelines": N},
                [*[(LossKind.STEP, STEP_H)] * 4, (LossKind.START, inf)]),
    "swift": ("swift", {"every": 4.0},
              [*[(LossKind.REPLAY, 4.0)] * 2, *[(SAVE, 4.0)] * 3]),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_HAND)
def test_a_system_loses_at_the_worst_place_what_its_mechanism_says(name: str) -> None:
    system, options, expected = BY_HAND[name]
    found = impacts(planned(system, SMALL, **options), CLUSTER, OWN, RACK, USEFUL_H)
    assert list(found) == ["process", "node", TWO_NODES, "rack", ALL_NODES]
    assert [(impact.kind, impact.up_to_h) for impact in found.values()] == expected
    assert name != "hsdp, two" or found[TWO_NODES] == FailureImpact(SAVE, 5.0, "remote")


def test_a_job_is_asked_about_kinds_of_failures_that_it_does_not_name() -> None:
    policy, rack = planned("swift", SMALL), Scope("switch", Reach.RACK, NOTHING)
    each = [(slot,) for slot in range(N)]
    pairs = [(slot, slot + apart) for apart in (1, RACK) for slot in range(N - apart)]
    found = failure_cases(policy, CLUSTER, (rack,), RACK)
    assert {scope.name: slot_sets for scope, slot_sets in found} == {
        "switch": [tuple(range(RACK)), tuple(range(RACK, N))],
        "process": each,
        "node": each,
        TWO_NODES: pairs,
        ALL_NODES: [tuple(range(N))],
    }
