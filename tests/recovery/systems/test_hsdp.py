"""Fault-tolerant HSDP: small cases by hand; its effective time is in the study `systems`."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest

from cprsim.recovery.system import JobFacts
from tests.recovery.systems import by_hand
from tests.recovery.systems.by_hand import (
    ALL,
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    RESCHEDULE_H,
    approx,
    planned,
    spent,
)

STALL_H = 0.0625
ABSENT_H = RESCHEDULE_H + COPY_H  # hours in which the others work


def facts(n_nodes: int = 8, **changes: object) -> JobFacts:
    return by_hand.facts(n_nodes, **{"save_background": None, "mtbf_h": 1000.0, **changes})


def hours(
    job: JobFacts, *struck: tuple[float, tuple[int, ...]], scope: int = NODE, **options: object
) -> dict[str, object]:
    """Parts of one replication that took any time, for failures of the wall clock."""
    policy = planned("hsdp", job, **{"group": 2, "stall": STALL_H, "backstop": 4.0} | options)
    found = spent(policy, *((at_h, slots, scope) for at_h, slots in struck), job=job)
    return {part: approx(spent_h) for part, spent_h in found.items()}


# --------------------------------------------------------------------------- the mechanism

SAVES = {"save": 4 * 0.125}


def test_without_failures_it_costs_its_saves_alone() -> None:
    assert hours(facts()) == SAVES
    assert hours(facts(), backstop=16.0) == {}


def test_a_failure_stalls_the_job_and_takes_the_speed_of_one_group() -> None:
    spent = hours(facts(), (5.3, (2,)))
    assert spent == SAVES | {"regroup": STALL_H, "degraded": approx(ABSENT_H / 4.0)}


def test_two_nodes_of_a_group_are_one_group_less_and_of_two_groups_two() -> None:
    assert hours(facts(), (5.3, (2, 3)))["degraded"] == approx(ABSENT_H / 4.0)
    assert hours(facts(), (5.3, (3, 4)))["degraded"] == approx(2.0 * ABSENT_H / 4.0)


def test_a_group_waits_for_its_node_while_the_others_work() -> None:
    # the second failure finds no spare: its group waits until the first node is repaired, at 13.3
    job = facts()
    job = replace(job, cluster=replace(job.cluster, n_spares=1))
    spent = hours(job, (5.3, (2,)), (9.1, (5,)), backstop=16.0)
    waited_h = 13.3 - 9.1 - STALL_H
    assert spent == {
        "regroup": approx(2.0 * STALL_H),
        "degraded": approx((2.0 * ABSENT_H + waited_h) / 4.0),
    }


def test_the_copy_is_as_long_as_the_link_or_the_user_says() -> None:
    spent = hours(facts(node_bytes_per_h=None), (5.3, (2,)), copy=1.0)
    assert spent["degraded"] == approx((RESCHEDULE_H + 1.0) / 4.0)


def test_speed_may_be_that_of_the_user() -> None:
    assert "degraded" not in hours(facts(), (5.3, (2,)), speed=1.0)
    assert hours(facts(), (5.3, (2,)), speed=0.5)["degraded"] == approx(ABSENT_H / 2.0)
    stands_still = hours(facts(), (5.3, (2, 4)), speed=0.5)
    assert stands_still["wait"] == approx(ABSENT_H)


def test_a_shard_lost_in_all_groups_takes_all_back_to_the_last_save() -> None:
    # 2 groups of 4: 1 and 5 hold the same shard, 1 and 4 do not
    spent = hours(facts(), (5.3, (1,)), (5.8, (5,)), group=4)
    progress_h = 5.3 - 0.125 + 0.5 * (0.5 - STALL_H)
    assert spent["lost"] == approx(progress_h - 4.0)
    assert spent["load"] == approx(LOAD_H)
    assert "lost" not in hours(facts(), (5.3, (1,)), (5.8, (4,)), group=4)
    # once the first has copied the state it holds the shard again
    assert "lost" not in hours(facts(), (5.3, (1,)), (6.2, (5,)), group=4)


def test_a_failure_of_all_nodes_does_so_too() -> None:
    spent = hours(facts(), (5.3, tuple(range(8))), scope=ALL)
    stages = {"detect": DETECT_H, "reschedule": RESCHEDULE_H, "load": LOAD_H}
    assert spent == SAVES | stages | {"lost": approx(1.175)}


def test_a_large_job_knows_the_speed_without_as_many_groups_as_a_table_holds() -> None:
    elastic = planned("hsdp", facts(10_000)).elastic
    assert elastic is not None
    assert elastic.speed[:3] == approx((1.0, 0.9999, 0.9998))


def test_the_backstop_is_young_s_interval_for_the_losses_of_all_replicas() -> None:
    job = facts(useful_h=1e6, shares=(0.0, 0.0, 1.0, 0.0, 0.0))
    absent_h = STALL_H + ABSENT_H
    beyond_per_h = 1e-3 * (4 * absent_h / 8000.0)  # the other group of 4 is out
    every_h = planned("hsdp", job, group=4, stall=STALL_H).captures[0].every_h
    assert every_h == pytest.approx(sqrt(2.0 * 0.125 / beyond_per_h))
    assert planned("hsdp", facts(mtbf_h=inf)).captures[0].every_h == 16.0
