"""What a failure of each kind takes: by hand, and as one failure in a job that is simulated."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.fates import ALL_NODES, TWO_NODES, Fate, LossKind, fates, strikes_of
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import gemini, hsdp, oobleck, replay
from cprsim.simulate.blocks import BlockDraws, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures

N, RACK = 8, 4
NOTHING = Constant(0.0)
PROCESS = Scope("process", Reach.PROCESS, NOTHING, needs_node=False)
NODE = Scope("node", Reach.NODE, NOTHING)
CLUSTER = Cluster((Role("workers", N, Holds.SHARD),))
STEP_H, USEFUL_H = 0.01, 40.0


def facts() -> JobFacts:
    return JobFacts(
        useful_h=USEFUL_H, cluster=CLUSTER, role="workers", scopes=(PROCESS, NODE), mtbf_h=10.0,
        save_stall=NOTHING, load=NOTHING, reschedule=NOTHING, step_h=STEP_H, state_bytes=1e9,
        node_bytes_per_h=1e12, remote_bytes_per_h=1e13,
    )  # fmt: skip


def after(policy: Policy) -> dict[str, Fate]:
    return fates(policy, CLUSTER, strikes_of(CLUSTER, (PROCESS, NODE), RACK), USEFUL_H)


def plans() -> dict[str, tuple[Any, Any]]:
    return {
        "gemini": (gemini.plan, gemini.GeminiOptions(every=0.5, remote_every=4.0)),
        "ring": (
            gemini.plan,
            gemini.GeminiOptions(every=0.5, remote_every=4.0, placement="ring", copies=3),
        ),
        "hsdp": (hsdp.plan, hsdp.HsdpOptions(group=2, backstop=5.0)),
        "oobleck": (oobleck.plan, oobleck.OobleckOptions(pipelines=N)),
        "swift": (replay.replayed, replay.ReplayOptions(every=4.0)),
    }


def made(name: str) -> Policy:
    plan, options = plans()[name]
    policy: Policy = plan(facts(), options, name)
    return policy


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
    policy = hsdp.plan(facts(), hsdp.HsdpOptions(group=4, backstop=5.0), "hsdp")
    assert after(policy)[TWO_NODES] == Fate(SAVE, 5.0, "remote")


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


@pytest.mark.parametrize("name", EXPECTED)
def test_one_failure_of_a_simulated_job_takes_no_more_and_nearly_as_much(name: str) -> None:
    # after 33.99 h: just before a copy (0.5 h), and 1.99 or 3.99 h after a save (4 and 5 h)
    policy, at_h = made(name), 33.99
    found = after(policy)
    for scope in ("process", "node", "rack", ALL_NODES):
        kinds = (PROCESS, Scope("node", Reach.NODE, NOTHING), Scope("rack", Reach.RACK, NOTHING),
                 Scope(ALL_NODES, Reach.ALL, NOTHING))  # fmt: skip
        number = [kind.name for kind in kinds].index(scope)
        slots = {"rack": tuple(range(RACK)), ALL_NODES: tuple(range(N))}.get(scope, (3,))
        job = SimulatedJob(USEFUL_H, CLUSTER, Clock.WALL, kinds, policy)
        strike = ScopedFailure(at_h, slots, number, (0.0,) * len(slots))
        draws = BlockDraws(job, 1, 0, 1, range(1))
        costs = run_block(job, GivenFailures(((strike,),)), draws, range(1)).costs
        lost_h = dict(zip(costs.parts, costs.hours[0], strict=True)).get("lost", 0.0)
        fate = found[scope]
        assert lost_h <= min(fate.up_to_h, at_h) + 1e-9, (scope, fate)
        least = {
            LossKind.NOTHING: 0.0,
            LossKind.STEP: 0.0,
            LossKind.REPLAY: 0.0,
            SAVE: 0.39 * fate.up_to_h,
            LossKind.START: at_h,
        }
        assert lost_h >= least[fate.kind] - 1e-9, (scope, fate)
