"""Oobleck and Varuna: what they make of a job; the artifact is in the study `systems`."""

from __future__ import annotations

from math import inf
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.legal import require_legal
from cprsim.recovery.pieces import elastic_of
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS, oobleck, varuna
from cprsim.simulate.blocks import BlockDraws, SystemRan, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures

SECOND = 1.0 / 3600.0
MOST = 30
NODE = Scope("node", Reach.NODE, Constant(0.0))
PROCESS = Scope("process", Reach.PROCESS, Constant(0.0), needs_node=False)


def facts_of(step_h: float | None, n_nodes: int = MOST, **known: Any) -> JobFacts:
    given: dict[str, Any] = {
        "useful_h": 100.0,
        "cluster": Cluster((Role("workers", n_nodes, Holds.SHARD),), n_spares=0),
        "role": "workers",
        "scopes": (NODE,),
        "mtbf_h": 10.0,
        "save_stall": Constant(15.8 * SECOND),
        "load": Constant(0.0),
        "reschedule": Constant(0.0),
        "step_h": step_h,
        "replicas": n_nodes,
    }
    return JobFacts(**given | known)


def ran(
    facts: JobFacts,
    policy: Policy,
    failures: list[ScopedFailure],
    horizon_h: float,
    scopes: tuple[Scope, ...] = (NODE,),
) -> SystemRan:
    """One job that works up to a wall horizon."""
    require_legal(policy, facts.cluster, scopes)
    job = SimulatedJob(horizon_h, facts.cluster, Clock.WALL, scopes, policy, horizon_h)
    draws = BlockDraws(job, 1, 0, 1, range(1))
    return run_block(job, GivenFailures((tuple(failures),)), draws, range(1))


def test_oobleck_loses_the_step_in_hand_and_goes_on_at_the_speed_of_those_left() -> None:
    facts = facts_of(0.25, n_nodes=4)
    options = SYSTEMS["oobleck"].options(throughput=(8.0, 4.0, 2.0), reconfigure=0.5)
    policy = oobleck.plan(facts, options, "oobleck")
    failures = [ScopedFailure(1.125, (2,), 0, (inf,)), ScopedFailure(3.125, (0,), 0, (inf,))]
    costs = ran(facts, policy, failures, 6.0).costs
    # 1.125 h at full speed, back to 1; .5 h; from 1.625 on at half of it, so that 1.75 h are done
    # at 3.125, which is a step's beginning; .5 h; from 3.625 on at a quarter
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert costs.useful_h[0] == pytest.approx(1.75 + 2.375 / 4)
    assert hours["lost"] == pytest.approx(0.125)
    assert hours["regroup"] == pytest.approx(1.0)
    assert hours["degraded"] == pytest.approx(1.5 / 2 + 2.375 * 3 / 4)
    assert costs.n_failures[0] == 2


def test_oobleck_stands_still_below_its_table_and_takes_nodes_back() -> None:
    facts = facts_of(0.25, n_nodes=2, reschedule=Constant(0.25))
    policy = oobleck.plan(
        facts, SYSTEMS["oobleck"].options(throughput=(1.0,), reconfigure=0.5), "oobleck"
    )
    costs = ran(facts, policy, [ScopedFailure(1.0625, (1,), 0, (2.0,))], 5.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    # a reconfiguration, 2 h after the failure a node, its start, another reconfiguration
    assert hours["regroup"] == pytest.approx(1.0)
    assert hours["wait"] == pytest.approx(2.0 - 0.5 + 0.25)
    assert hours["lost"] == pytest.approx(0.0625)
    assert costs.useful_h[0] == pytest.approx(5.0 - 1.0 - 1.75 - 0.0625)


@pytest.mark.parametrize(("every", "kept_h"), [(None, 0.0), (0.5, 1.0)])
def test_oobleck_without_any_node_left_goes_back_to_a_save_or_the_start(
    every: float | None, kept_h: float
) -> None:
    facts = facts_of(0.25, n_nodes=2, save_stall=Constant(0.0), mtbf_h=inf)
    policy = oobleck.plan(facts, SYSTEMS["oobleck"].options(every=every), "oobleck")
    both = ScopedFailure(1.375, (0, 1), 0, (0.5, 0.5))
    costs = ran(facts, policy, [both], 4.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert hours["lost"] == pytest.approx(1.375 - kept_h)
    assert hours["wait"] == pytest.approx(0.5)


def test_a_process_that_fails_leaves_oobleck_no_slower() -> None:
    facts = facts_of(0.25, n_nodes=4, scopes=(PROCESS,))
    options = SYSTEMS["oobleck"].options(reconfigure=0.25, grows="at once")
    policy = oobleck.plan(facts, options, "oobleck")
    costs = ran(facts, policy, [ScopedFailure(1.125, (2,), 0, (inf,))], 4.0, (PROCESS,)).costs
    assert costs.useful_h[0] == pytest.approx(4.0 - 0.125 - 2 * 0.25)


def test_varuna_goes_back_to_its_last_save() -> None:
    facts = facts_of(0.125, n_nodes=4, save_stall=Constant(0.25))
    options = SYSTEMS["varuna"].options(throughput=(8.0, 4.0), every=8 * 0.125, restart=0.5)
    policy = varuna.plan(facts, options, "varuna")
    costs = ran(facts, policy, [ScopedFailure(2.0, (3,), 0, (inf,))], 6.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    # 1 h, a save, .75 h that are lost, a restart; 3.5 h at half speed less a save
    assert hours["save"] == pytest.approx(2 * 0.25)
    assert hours["regroup"] == pytest.approx(0.5)
    assert hours["lost"] == pytest.approx(0.75)
    assert costs.useful_h[0] == pytest.approx(1.0 + (3.5 - 0.25) / 2)


def test_varuna_restarts_in_the_jobs_rescheduling_and_load_unless_it_is_told() -> None:
    facts = facts_of(0.125, n_nodes=4, reschedule=Constant(0.25), load=Constant(0.5))
    policy = varuna.plan(facts, SYSTEMS["varuna"].options(), "varuna")
    costs = ran(facts, policy, [ScopedFailure(0.5, (3,), 0, (inf,))], 6.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert (hours["reschedule"], hours["load"]) == (0.25, 0.5)


def test_without_a_table_the_speed_is_in_proportion_to_the_units_left() -> None:
    elastic = elastic_of(facts_of(0.1, n_nodes=8), None, 2, "oobleck")
    assert elastic.speed == (1.0, 0.75, 0.5, 0.25, 0.0)
    assert elastic.unit_nodes == 2


def test_nodes_that_leave_together_are_taken_back_one_by_one() -> None:
    # as on a spot market: one node leaves, two leave at once; each comes back on its own
    facts = facts_of(0.25, n_nodes=4)
    options = SYSTEMS["oobleck"].options(
        throughput=(8.0, 6.0, 4.0, 2.0), reconfigure=0.25, grows="at once"
    )
    policy = oobleck.plan(facts, options, "oobleck")
    failures = [ScopedFailure(1.0, (0,), 0, (2.0,)), ScopedFailure(2.0, (1, 2), 0, (1.5, 3.0))]
    costs = ran(facts, policy, failures, 6.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    # 1 h at full speed; a reconfiguration; .75 h at 6/8, of which .0625 are lost; another; .75 h at
    # 2/8 to 3 h, when the first is back; another; .25 h at 4/8 to 3.5 h, when the second is;
    # another; 1.25 h at 6/8 to 5 h, when the third is; a last one, and .75 h at full speed
    assert hours["regroup"] == pytest.approx(5 * 0.25)
    assert hours["lost"] == pytest.approx(0.0625)
    assert costs.useful_h[0] == pytest.approx(1.5 + 0.75 / 4 + 0.25 / 2 + 1.25 * 0.75 + 0.75)


def useful_on(name: str, **options: Any) -> float:
    """Of 8 h in which one of four nodes is lost at 1 h, another at 4 h, each back 1 h later."""
    facts = facts_of(0.25, n_nodes=4, save_stall=Constant(0.0))
    policy = SYSTEMS[name].plan(facts, SYSTEMS[name].options(**options), name)
    failures = [ScopedFailure(1.0, (0,), 0, (1.0,)), ScopedFailure(4.0, (1,), 0, (1.0,))]
    return float(ran(facts, policy, failures, 8.0).costs.useful_h[0])


def test_a_node_that_is_back_is_taken_in_at_once_at_the_next_loss_or_at_a_time() -> None:
    # 3/4 of the speed while one node is missing; no reconfiguration takes time, no step is in hand
    still = {"reconfigure": 0.0}
    assert useful_on("oobleck", grows="at once", **still) == pytest.approx(8.0 - 2 / 4)
    assert useful_on("oobleck", **still) == pytest.approx(8.0 - 7 / 4, abs=0.01)  # never both
    assert useful_on("oobleck", grows=3.0, **still) == pytest.approx(8.0 - (2 + 2) / 4)
    assert useful_on("bamboo", backstop=100.0) == pytest.approx(8.0 - 2 / 4)
    assert useful_on("bamboo", backstop=100.0, grows="next loss") == pytest.approx(6.25, abs=0.01)
    assert useful_on("varuna", every=0.01, restart=0.0, grows=3.0) == pytest.approx(7.0)


def test_the_next_loss_takes_nodes_in_with_its_own_reconfiguration() -> None:
    facts = facts_of(0.25, n_nodes=4)
    options = SYSTEMS["oobleck"].options(throughput=(8.0, 6.0, 4.0), reconfigure=0.25)
    policy = oobleck.plan(facts, options, "oobleck")
    # 1 h; a reconfiguration; 1.75 h at 6/8 (.0625 h of a step are lost); another, after which one
    # is missing still; 2.75 h at 6/8, though the second node is back as well
    failures = [ScopedFailure(1.0, (0,), 0, (0.5,)), ScopedFailure(3.0, (1,), 0, (0.5,))]
    costs = ran(facts, policy, failures, 6.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert hours["regroup"] == pytest.approx(0.5)
    assert costs.useful_h[0] == pytest.approx(1.0 + 0.75 * 4.5 - hours["lost"])


def test_a_job_that_stands_still_takes_a_node_in_at_once() -> None:
    facts = facts_of(0.25, n_nodes=2)
    options = SYSTEMS["oobleck"].options(throughput=(1.0,), reconfigure=0.0)
    policy = oobleck.plan(facts, options, "oobleck")
    costs = ran(facts, policy, [ScopedFailure(1.0, (1,), 0, (2.0,))], 6.0).costs
    assert costs.useful_h[0] == pytest.approx(4.0)
