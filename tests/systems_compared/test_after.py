"""What one failure takes, as the engine has it, and what a system needs; none is a name only."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import inf
from typing import Any

import numpy as np
import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Floats, Holds, Role
from cprsim.recovery.policy import (
    PARTS_IN_ORDER,
    Medium,
    Policy,
    Reach,
    Reverts,
    Ring,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tax,
    Tier,
)
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS
from cprsim.scenario.system_options import options_of
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures
from cprsim.systems_compared.after import (
    ALL_NODES,
    CASES,
    TWO_NODES,
    Case,
    Fate,
    LossKind,
    case_met,
    fates,
    goes_back_to,
    needs,
    outcomes,
    strikes_of,
)
from tests.recovery.systems.by_hand import every_system_s_job, planned, spent

JOB = replace(every_system_s_job(), useful_h=5.0, step_h=0.0625)
SHORT_STEPS = replace(JOB, step_h=2.0**-9)  # in which no snapshot is hidden whole
AT_H = 4.4  # all tiers have been saved to by then


def policy_of(name: str, job: JobFacts = JOB) -> Policy:
    system = SYSTEMS[name]
    return system.plan(job, options_of(name, dict(system.needs)), "this")


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_listed_rule_is_the_one_that_the_engine_takes(name: str) -> None:
    policy = policy_of(name)
    rules = tuple(shown(rule, n) for n, rule in enumerate(policy.rules, 1))
    for case in CASES:
        rule, _ = case_met(policy, JOB.cluster, JOB.role, case)
        number = len(rules) if rule is None else 1 + policy.rules.index(rule)
        found_h = detected_h(replace(policy, rules=rules), case)
        assert found_h == pytest.approx(2.0**-number), case.name


def shown(rule: Rule, number: int) -> Rule:
    """The rule with a detection that says which one it is."""
    others = tuple(stage for stage in rule.stages if stage.kind is not StageKind.DETECT)
    return replace(rule, stages=(Stage(StageKind.DETECT, Constant(2.0**-number)), *others))


def struck_by(case: Case) -> tuple[int, ...]:
    return tuple(range(JOB.n_nodes)[: case.n_struck])


def detected_h(policy: Policy, case: Case) -> float:
    scopes = tuple(one.scope for one in CASES)
    hours = spent(policy, (AT_H, struck_by(case), scopes.index(case.scope)), job=JOB, scopes=scopes)
    return hours.get(StageKind.DETECT.value, 0.0)


def test_no_two_systems_of_a_family_have_the_same_rules() -> None:
    policies = {name: policy_of(name, SHORT_STEPS) for name in SYSTEMS}
    for one, other in combinations(SYSTEMS, 2):
        if SYSTEMS[one].family is SYSTEMS[other].family:
            assert policies[one] != policies[other], (one, other)


LONG_SAVES = replace(SHORT_STEPS, save_background=Constant(0.1))
INSTANTS_H = np.arange(4.0, 4.9, 0.005).tolist()


def hours_after(name: str) -> tuple[Floats, Tax]:
    """Hours by part after one failure: of a node at many instants, and of each kind at one."""
    policy = policy_of(name, LONG_SAVES)
    scopes = tuple(one.scope for one in CASES)
    node = [one.name for one in CASES].index("node")
    lists: list[tuple[float, tuple[int, ...], int]] = [(at_h, (0,), node) for at_h in INSTANTS_H]
    lists += [(AT_H, struck_by(case), scope) for scope, case in enumerate(CASES)]
    lists.append((AT_H, (1, 2), node))
    job = SimulatedJob(LONG_SAVES.useful_h, LONG_SAVES.cluster, Clock.WALL, scopes, policy)
    failures = tuple((ScopedFailure(*one, (8.0,) * len(one[1])),) for one in lists)
    n = range(len(lists))
    costs = run_block(job, GivenFailures(failures), BlockDraws(job, 0, 0, len(n), n), n).costs
    assert costs.finished.all()
    none = np.zeros(len(n))
    hours = [costs.hours_of(one) if one in costs.parts else none for one in PARTS_IN_ORDER]
    return np.array(hours), policy.tax


def test_an_event_list_or_what_it_takes_tells_each_system_from_all_of_its_family() -> None:
    found = {name: hours_after(name) for name in SYSTEMS}
    for one, other in combinations(SYSTEMS, 2):
        if SYSTEMS[one].family is SYSTEMS[other].family:
            (hours, takes), (others, other_takes) = found[one], found[other]
            told = takes != other_takes or not np.allclose(hours, others, rtol=0.0, atol=1e-6)
            assert told, (one, other)


def test_every_system_says_where_it_comes_from_and_how_that_is_known() -> None:
    for name, one in SYSTEMS.items():
        assert one.source, name
        assert one.cited, name
        assert one.assumptions, name


INEXACT = (
    "check-n-run", "ssdc", "checkbullet", "lc-checkpoint", "moc", "hsdp", "torchft", "prm",
)  # fmt: skip


def test_what_quantised_left_out_or_stale_state_costs_in_accuracy_is_not_priced() -> None:
    said = {name: one.not_counted for name, one in SYSTEMS.items() if one.not_counted}
    assert set(said) == set(INEXACT)
    assert all("in accuracy is not priced" in words for words in said.values())
    stale = {name for name in SYSTEMS if policy_of(name).leaves_stale}  # a curve can price these
    assert stale == set()
    for word in ("quantised", "lossy", "threshold", "stale", "approximated"):
        named = {name for name, one in SYSTEMS.items() if word in one.summary.lower()}
        assert named <= set(INEXACT), word


BACK = {
    "gemini": "memory memory memory remote remote",
    "fftrainer": "memory memory memory remote remote",
    "byterobust": "memory memory memory memory remote",
    "dlrover-flash": "memory remote remote remote remote",
    "nvrx-local": "disk disk disk disk remote",
    "pmem": "disk disk remote remote remote",
    "fti": "disk disk disk disk remote",
    "scr": "disk disk disk remote remote",
    "ecrec": "goes on|goes on|goes on|remote|remote",
    "just-in-time": "step step step step remote",
    "checkmate": "step step step step step",
    "bamboo": "step step step remote remote",
    "swift": "replay replay replay remote remote",
    "oobleck": "step step step step start",
    "varuna": "remote remote remote remote remote",
}


@pytest.mark.parametrize("name", BACK)
def test_what_a_job_goes_back_to(name: str) -> None:
    by_case = BACK[name].split("|" if "|" in BACK[name] else " ")
    policy = policy_of(name)
    found = outcomes(policy, JOB.cluster, JOB.role)
    assert [goes_back_to(policy, found[case.name]) for case in CASES] == by_case


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


@pytest.mark.parametrize("name", NEEDS)
def test_what_a_system_needs(name: str) -> None:
    assert needs(policy_of(name), JOB.cluster, JOB.role) == NEEDS[name]


@pytest.mark.parametrize(("asked", "needed"), [(("beside",), ("host memory",)), ((), ())])
def test_host_memory_is_needed_where_a_rule_asks_for_what_lies_there(
    asked: tuple[str, ...], needed: tuple[str, ...]
) -> None:
    rule = Rule(Reverts.NOBODY, (Stage(StageKind.DETECT),), needs=asked)
    tier = Tier("beside", Medium.HOST, Ring(2), JOB.role)
    policy = Policy("this", (rule,), (tier,))
    assert needs(policy, JOB.cluster, JOB.role) == needed


# --------------------------------------------------------------------------- the worst place

N, RACK = 8, 4
NOTHING = Constant(0.0)
PROCESS = Scope("process", Reach.PROCESS, NOTHING, needs_node=False)
NODE = Scope("node", Reach.NODE, NOTHING)
CLUSTER = Cluster((Role("workers", N, Holds.SHARD),))
STEP_H, USEFUL_H = 0.01, 40.0


def small() -> JobFacts:
    return JobFacts(
        useful_h=USEFUL_H, cluster=CLUSTER, role="workers", scopes=(PROCESS, NODE), mtbf_h=10.0,
        save_stall=NOTHING, load=NOTHING, reschedule=NOTHING, step_h=STEP_H, state_bytes=1e9,
        node_bytes_per_h=1e12, remote_bytes_per_h=1e13,
    )  # fmt: skip


def after(policy: Policy) -> dict[str, Fate]:
    return fates(policy, CLUSTER, strikes_of(CLUSTER, (PROCESS, NODE), RACK), USEFUL_H)


OPTIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "gemini": ("gemini", {"every": 0.5, "remote_every": 4.0}),
    "ring": ("gemini", {"every": 0.5, "remote_every": 4.0, "placement": "ring", "copies": 3}),
    "hsdp": ("hsdp", {"group": 2, "backstop": 5.0}),
    "hsdp of two": ("hsdp", {"group": 4, "backstop": 5.0}),
    "oobleck": ("oobleck", {"pipelines": N}),
    "swift": ("swift", {"every": 4.0}),
}


def made(name: str) -> Policy:
    system, options = OPTIONS[name]
    return planned(system, small(), **options)


SAVE = LossKind.SAVE
EXPECTED = {  # process, node, two nodes, rack of 4, all; by hand
    "gemini": [(SAVE, 0.5), (SAVE, 0.5), (SAVE, 4.0), (SAVE, 4.0), (SAVE, 4.0)],
    "ring": [(SAVE, 0.5), (SAVE, 0.5), (SAVE, 0.5), (SAVE, 4.0), (SAVE, 4.0)],
    "hsdp": [*[(LossKind.NOTHING, 0)] * 4, (SAVE, 5.0)],
    "oobleck": [*[(LossKind.STEP, STEP_H)] * 4, (LossKind.START, inf)],
    "swift": [*[(LossKind.REPLAY, 4.0)] * 2, *[(SAVE, 4.0)] * 3],
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_system_loses_what_its_mechanism_says(name: str) -> None:
    found = after(made(name))
    assert list(found) == ["process", "node", TWO_NODES, "rack", ALL_NODES]
    assert [(fate.kind, fate.up_to_h) for fate in found.values()] == EXPECTED[name]


def test_two_groups_of_two_replicas_die_with_a_pair_that_lies_apart() -> None:
    assert after(made("hsdp of two"))[TWO_NODES] == Fate(SAVE, 5.0, "remote")


def test_a_job_is_asked_about_kinds_of_failures_that_it_does_not_name() -> None:
    rack = Scope("switch", Reach.RACK, NOTHING)
    asked = {one.scope.name: one.places for one in strikes_of(CLUSTER, (rack,), RACK)}
    each = tuple((slot,) for slot in range(N))
    pairs = tuple((slot, slot + apart) for apart in (1, RACK) for slot in range(N - apart))
    assert asked == {
        "switch": (tuple(range(RACK)), tuple(range(RACK, N))),
        "process": each,
        "node": each,
        TWO_NODES: pairs,
        ALL_NODES: (tuple(range(N)),),
    }
