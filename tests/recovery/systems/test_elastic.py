"""Oobleck and Varuna: what they make of a job, and the throughput of the public artifact.

The artifact's course: one node leaves every G from 30 nodes on, the 15th at the end. Its clock
starts at 30 s, which leaves open whether the first one leaves after G or G less 30 s of work: both
are held to it. `wall` clock.
"""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Clock, Cluster, Holds, Role
from cprsim.recovery.elastic_table import elastic_of
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Policy, Reach, Scope, To
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS, oobleck, varuna
from cprsim.simulate.blocks import BlockDraws, SystemRan, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures

SECOND = 1.0 / 3600.0
BATCH = 8192
MOST, FEWEST = 30, 15
NODE = Scope("node", Reach.NODE, Constant(0.0))
PROCESS = Scope("process", Reach.PROCESS, Constant(0.0), needs_node=False)
GAPS = [21600.0, 10800.0, 3600.0, 1800.0, 601.2]
OOBLECK = dict(zip(GAPS, [287.1, 286.9, 286.3, 285.2, 282.1], strict=True))
VARUNA = dict(zip(GAPS, [260.1, 256.5, 246.0, 232.8, 173.5], strict=True))


@dataclass(frozen=True, slots=True)
class Artifact:
    """The artifact's table: samples per second by nodes missing, restarts by nodes left [s]."""

    oobleck: tuple[float, ...]
    varuna: tuple[float, ...]
    restart_s: dict[int, float]


@pytest.fixture(scope="module")
def artifact() -> Artifact:
    if "CPRSIM_DATA" not in os.environ:
        pytest.skip("CPRSIM_DATA does not name the folder with the artifact's throughput")
    table = Path(os.environ["CPRSIM_DATA"]) / "elastic" / "bert-large-throughput.csv"
    if not table.exists():
        pytest.skip(f"there is no {table.name} in CPRSIM_DATA/elastic")
    with table.open(encoding="utf-8") as lines:
        rows = sorted(csv.DictReader(lines), key=lambda row: -int(row["nodes"]))
    assert [int(row["nodes"]) for row in rows] == list(range(MOST, FEWEST - 1, -1))
    return Artifact(
        tuple(float(row["oobleck_samples_per_s"]) for row in rows),
        tuple(float(row["varuna_samples_per_s"]) for row in rows),
        {int(row["nodes"]): float(row["varuna_restart_s"]) for row in rows},
    )


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


def samples_per_s(
    policy: Policy,
    facts: JobFacts,
    full_speed: float,
    gap_s: float,
    starts_at_s: float,
    scopes: tuple[Scope, ...] = (NODE,),
) -> float:
    """Over the artifact's course; failure k strikes slot k with the kth scope, or the only one."""
    window_h = (15 * gap_s - starts_at_s) * SECOND
    failures = [
        ScopedFailure(
            ((k + 1) * gap_s - starts_at_s) * SECOND, (k,), k if len(scopes) > 1 else 0, (inf,)
        )
        for k in range(MOST - FEWEST - 1)
    ]
    costs = ran(facts, policy, failures, window_h, scopes).costs
    assert costs.finished.all()
    assert costs.wall_h[0] == pytest.approx(window_h, rel=1e-12)
    assert costs.useful_h + costs.hours.sum(axis=1) == pytest.approx(costs.wall_h, rel=1e-9)
    return float(costs.useful_h[0] * full_speed / costs.wall_h[0])


def assert_within(found: float, published: float, tolerance: float) -> None:
    message = f"{found:.1f} samples/s, the artifact {published:.1f}: {found / published - 1:+.2%}"
    print(message)
    assert abs(found / published - 1.0) <= tolerance, message


# --------------------------------------------------------------------------- the artifact


@pytest.mark.parametrize("starts_at_s", [0.0, 30.0])
@pytest.mark.parametrize("gap_s", GAPS)
def test_oobleck_trains_as_many_samples_as_the_artifact(
    artifact: Artifact, gap_s: float, starts_at_s: float
) -> None:
    full_speed = artifact.oobleck[0]
    facts = facts_of(BATCH / full_speed * SECOND)
    policy = oobleck.plan(facts, oobleck.OobleckOptions(throughput=artifact.oobleck), "oobleck")
    found = samples_per_s(policy, facts, full_speed, gap_s, starts_at_s)
    assert_within(found, OOBLECK[gap_s], 0.01)


def test_a_whole_step_lost_to_each_failure_would_be_below_oobleck(artifact: Artifact) -> None:
    # so that the step in hand, half of it on average, is what the artifact loses
    full_speed = artifact.oobleck[0]
    facts = facts_of(BATCH / full_speed * SECOND)
    policy = oobleck.plan(facts, oobleck.OobleckOptions(throughput=artifact.oobleck), "oobleck")
    undone = replace(policy.rules[0], to=To.STEP_BEFORE)
    policy = replace(policy, rules=(undone, *policy.rules[1:]))
    assert samples_per_s(policy, facts, full_speed, 601.2, 0.0) < 0.98 * OOBLECK[601.2]


def varuna_of(artifact: Artifact) -> tuple[Policy, JobFacts]:
    facts = facts_of(BATCH / artifact.varuna[0] * SECOND)
    # the column contains the stall of the next save
    restart_s = mean(artifact.restart_s[left] - 15.8 for left in range(FEWEST, MOST))
    options = varuna.VarunaOptions(throughput=artifact.varuna, restart=restart_s * SECOND)
    return varuna.plan(facts, options, "varuna"), facts


def with_restarts_by_nodes_left(artifact: Artifact) -> tuple[Policy, JobFacts]:
    """Each restart takes what it takes on the nodes that are left."""
    facts = facts_of(BATCH / artifact.varuna[0] * SECOND)
    lefts = range(MOST - 1, FEWEST - 1, -1)
    restarts = tuple((artifact.restart_s[left] - 15.8) * SECOND for left in lefts)
    options = varuna.VarunaOptions(throughput=artifact.varuna, restarts=restarts)
    return varuna.plan(facts, options, "varuna"), facts


@pytest.mark.parametrize("starts_at_s", [0.0, 30.0])
@pytest.mark.parametrize("gap_s", GAPS)
def test_varuna_trains_as_many_samples_as_the_artifact(
    artifact: Artifact, gap_s: float, starts_at_s: float
) -> None:
    policy, facts = with_restarts_by_nodes_left(artifact)
    found = samples_per_s(policy, facts, artifact.varuna[0], gap_s, starts_at_s)
    assert_within(found, VARUNA[gap_s], 0.025)


@pytest.mark.parametrize("gap_s", GAPS[:-1])
def test_a_mean_restart_does_where_varuna_saves_often_between_failures(
    artifact: Artifact, gap_s: float
) -> None:
    policy, facts = varuna_of(artifact)
    found = samples_per_s(policy, facts, artifact.varuna[0], gap_s, 0.0)
    assert_within(found, VARUNA[gap_s], 0.025)


def test_a_mean_restart_is_4_percent_off_where_varuna_saves_once_between_failures(
    artifact: Artifact,
) -> None:
    # whether a second save fits in hangs on the restart of each number of nodes
    policy, facts = varuna_of(artifact)
    found = samples_per_s(policy, facts, artifact.varuna[0], 601.2, 0.0)
    assert found / VARUNA[601.2] - 1.0 == pytest.approx(-0.043, abs=0.005)


# --------------------------------------------------------------------------- the policies


def test_oobleck_loses_the_step_in_hand_and_goes_on_at_the_speed_of_those_left() -> None:
    facts = facts_of(0.25, n_nodes=4)
    options = oobleck.OobleckOptions(throughput=(8.0, 4.0, 2.0), reconfigure=0.5)
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
        facts, oobleck.OobleckOptions(throughput=(1.0,), reconfigure=0.5), "oobleck"
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
    policy = oobleck.plan(facts, oobleck.OobleckOptions(every=every), "oobleck")
    both = ScopedFailure(1.375, (0, 1), 0, (0.5, 0.5))
    costs = ran(facts, policy, [both], 4.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert hours["lost"] == pytest.approx(1.375 - kept_h)
    assert hours["wait"] == pytest.approx(0.5)


def test_a_process_that_fails_leaves_oobleck_no_slower() -> None:
    facts = facts_of(0.25, n_nodes=4, scopes=(PROCESS,))
    options = oobleck.OobleckOptions(reconfigure=0.25, grows="at once")
    policy = oobleck.plan(facts, options, "oobleck")
    costs = ran(facts, policy, [ScopedFailure(1.125, (2,), 0, (inf,))], 4.0, (PROCESS,)).costs
    assert costs.useful_h[0] == pytest.approx(4.0 - 0.125 - 2 * 0.25)


def test_varuna_goes_back_to_its_last_save() -> None:
    facts = facts_of(0.125, n_nodes=4, save_stall=Constant(0.25))
    options = varuna.VarunaOptions(throughput=(8.0, 4.0), every=8 * 0.125, restart=0.5)
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
    policy = varuna.plan(facts, varuna.VarunaOptions(), "varuna")
    costs = ran(facts, policy, [ScopedFailure(0.5, (3,), 0, (inf,))], 6.0).costs
    hours = dict(zip(costs.parts, costs.hours[0], strict=True))
    assert (hours["reschedule"], hours["load"]) == (0.25, 0.5)


def test_without_a_table_the_speed_is_in_proportion_to_the_units_left() -> None:
    elastic = elastic_of(facts_of(0.1, n_nodes=8), None, 2, "oobleck")
    assert elastic.speed == (1.0, 0.75, 0.5, 0.25, 0.0)
    assert elastic.unit_nodes == 2


BAD_FOR_BOTH: list[tuple[dict[str, Any], str]] = [
    ({"unit_nodes": 4}, "units of 4 nodes do not divide the 30 nodes"),
    ({"throughput": (1.0,) * 32}, "at most 31"),
    ({"throughput": (0.0, 0.0)}, "positive with all units"),
    ({"throughput": (1.0, inf)}, "positive with all units"),
    ({"throughput": (1.0, 2.0)}, "begin with the number for all units"),
]
BAD_FOR_ONE: list[tuple[str, dict[str, Any], str]] = [
    ("oobleck", {"reconfigure": -1.0}, "negative"),
    ("oobleck", {"every": 0.0}, "positive"),
    ("varuna", {"every": 0.0}, "positive"),
    ("varuna", {"restart": -1.0}, "negative"),
]


@pytest.mark.parametrize(
    ("system", "options", "words"),
    [(system, *bad) for system in ("oobleck", "varuna") for bad in BAD_FOR_BOTH] + BAD_FOR_ONE,
)
def test_what_an_elastic_system_can_not_serve_is_said(
    system: str, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(ParameterError, match=words):
        SYSTEMS[system].plan(facts_of(0.1), SYSTEMS[system].options(**options), "elastic")


@pytest.mark.parametrize("system", ["oobleck", "varuna"])
def test_an_elastic_system_needs_the_time_of_a_step(system: str) -> None:
    with pytest.raises(ParameterError, match=r"job\.step"):
        SYSTEMS[system].plan(facts_of(None), SYSTEMS[system].options(), "elastic")


def test_nodes_that_leave_together_are_taken_back_one_by_one() -> None:
    # as on a spot market: one node leaves, two leave at once; each comes back on its own
    facts = facts_of(0.25, n_nodes=4)
    options = oobleck.OobleckOptions(
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
    options = oobleck.OobleckOptions(throughput=(8.0, 6.0, 4.0), reconfigure=0.25)
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
    options = oobleck.OobleckOptions(throughput=(1.0,), reconfigure=0.0)
    policy = oobleck.plan(facts, options, "oobleck")
    costs = ran(facts, policy, [ScopedFailure(1.0, (1,), 0, (2.0,))], 6.0).costs
    assert costs.useful_h[0] == pytest.approx(4.0)
