"""Jobs that go on without lost nodes: what is lost, how fast they are, and when it is fatal."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import sqrt

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Holds, Role
from cprsim.recovery.systems.elastic import recycled_speeds
from tests.recovery.systems.by_hand import (
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    RACK,
    RESCHEDULE_H,
    SCOPES,
    SNAPSHOT_H,
    STEP_H,
    approx,
    facts,
    planned,
    spent,
)

AT_H = 5.3125 + STEP_H / 4
RECONFIGURE_H = 0.125
OPTIONS = {"reconfigure": RECONFIGURE_H, "backstop": 16.0}


def after(name: str, slots: object = (0,), scope: int = NODE, **options: object) -> object:
    policy = planned(name, **OPTIONS | options)
    return spent(policy, (AT_H, slots, scope))


@pytest.mark.parametrize(
    ("name", "options"), [("bamboo", {}), ("lazarus", {"copies": 2}), ("recycle", {"pipelines": 2})]
)
def test_the_step_in_hand_two_reconfigurations_and_speed(
    name: str, options: dict[str, object]
) -> None:
    found = after(name, **options)
    slower = 1 / 2 if name == "recycle" else 1 / 8
    assert found == approx(
        {
            "detect": DETECT_H,
            "regroup": 2 * RECONFIGURE_H,
            "lost": STEP_H / 4,
            "degraded": RESCHEDULE_H * slower,
        }
    )


def test_each_has_its_own_fatal_pairs() -> None:
    fatal = {
        "bamboo": {(0, 1), (1, 2), (0, 7)},
        "lazarus": {(0, 1)},
        "recycle": {(0, 4)},
    }
    for name, pairs in fatal.items():
        options = {"recycle": {"pipelines": 2}, "lazarus": {"copies": 2}}.get(name, {})
        for pair in ((0, 1), (1, 2), (0, 7), (0, 4)):
            found = after(name, pair, RACK, **options)
            assert (found.get("load", 0.0) == approx(LOAD_H)) == (pair in pairs), (name, pair)


@pytest.mark.parametrize(("name", "options"), [("bamboo", {}), ("lazarus", {"copies": 2})])
def test_a_second_loss_next_to_the_first_is_survived_as_copies_are_made_again(
    name: str, options: dict[str, int]
) -> None:
    job = replace(facts(), cluster=Cluster((Role("worker", 8, Holds.SHARD),), n_spares=0))
    policy = planned(name, job, **OPTIONS, **options)

    def loads(*struck: tuple[float, tuple[int, ...]]) -> bool:
        return "load" in spent(policy, *((at_h, slots, RACK) for at_h, slots in struck), job=job)

    assert not loads((2.0, (2,)), (4.0, (3,)))
    assert not loads((2.0, (3,)), (4.0, (2,)), (5.0, (4,)))
    assert loads((2.0, (2,)), (2.125, (3,)))  # before that
    assert loads((2.0, (2,)), (4.0, (0, 1)))
    neighbours = (1, 3)  # of the smaller ring; groups are 0 and 1, 3 and 4, 5 to 7
    assert loads((2.0, (2,)), (4.0, neighbours)) == (name == "bamboo")
    assert loads((2.0, (2,)), (4.0, (3, 4)))
    assert loads((2.0, (2,)), (4.0, (0, 1, 3, 4, 5, 6, 7)))


def test_nodes_that_are_left_go_on_from_a_save_where_the_copies_are_lost() -> None:
    # with 2 of 8 nodes missing for 8 h, and until their processes are started
    cluster = Cluster((Role("worker", 8, Holds.SHARD),), n_spares=0)
    job = facts(cluster=cluster, save_stall=Constant(0.0), save_background=None)
    policy = planned("bamboo", job, reconfigure=0.0, backstop=0.5)
    found = spent(policy, (4.0, (2, 3), RACK), job=job)
    assert found["degraded"] == approx((8.0 + RESCHEDULE_H - DETECT_H - LOAD_H) * 2 / 8)
    assert "wait" not in found


def test_saves_behind_copies_are_for_racks_and_all_where_these_take_the_copies() -> None:
    # a fifth of a failure each 64 h is of a rack, a fifth of all nodes: at Young's interval
    rate = 1 / 64.0 / 5
    job = facts(useful_h=1e4, reschedule=Constant(0.0), mtbf_h=64.0)
    for name, rates in (("spare", 2 * rate), ("just-in-time", rate), ("flashrecovery", rate)):
        (capture,) = planned(name, job).captures
        assert capture.every_h == pytest.approx((2 * SNAPSHOT_H / rates) ** 0.5, rel=0.01), name
    recycle = planned("recycle", job, pipelines=4).captures[0].every_h
    assert recycle == pytest.approx((2 * SNAPSHOT_H / rate) ** 0.5, rel=0.01)
    lazarus = planned("lazarus", job, copies=2).captures[0].every_h
    assert lazarus == pytest.approx((2 * SNAPSHOT_H / (2 * rate)) ** 0.5, rel=0.01)


@pytest.mark.parametrize(
    ("system", "options", "n_nodes", "rack_too"),
    [("hsdp", {"group": 2}, 8, False), ("ecrec", {"data": 4, "parity": 1}, 10, True)],
)
def test_saves_behind_replicas_and_parity_are_for_racks_and_all_too(
    system: str, options: dict[str, object], n_nodes: int, rack_too: bool
) -> None:
    node, rack, whole = (
        planned(system, facts(n_nodes, useful_h=1e6, scopes=SCOPES, shares=shares), **options)
        .captures[0]
        .every_h
        for shares in ((0, 0, 1, 0, 0), (0, 0, 0.9, 0.1, 0), (0, 0, 0.9, 0, 0.1))
    )
    per_h = 0.1 / 64.0  # of failures that leave nothing
    both = 1.0 / sqrt(node**-2 + per_h / (2.0 * SNAPSHOT_H))
    assert rack == approx(both if rack_too else node)
    assert whole == approx(both)


def test_bamboo_computes_twice_all_the_time() -> None:
    policy = planned("bamboo", tax=0.25, **OPTIONS)
    assert spent(policy) == approx({"tax": 4.0})


def test_throughput_may_be_a_table() -> None:
    found = after("bamboo", throughput=(10.0, 9.5))
    assert found["degraded"] == approx(0.05 * RESCHEDULE_H)


@pytest.mark.parametrize(("d", "stages"), [(2, 3), (3, 2), (4, 2)])
def test_recycle_s_speed_is_that_of_the_slowest_stage_over_all_sets(d: int, stages: int) -> None:
    nodes = [(pipeline, stage) for pipeline in range(d) for stage in range(stages)]
    speeds = recycled_speeds(d, stages)
    assert len(speeds) == d * stages + 1
    for missing, speed in enumerate(speeds):
        counted = [
            1 - max(sum(stage == s for _, s in gone) for stage in range(stages)) / d
            for gone in combinations(nodes, missing)
        ]
        assert speed == approx(sum(counted) / len(counted))


def test_torchft_retries_the_step_and_hsdp_stalls() -> None:
    torchft = planned("torchft", group=2, quorum=RECONFIGURE_H, backstop=16.0)
    found = spent(torchft, (AT_H, (0,), NODE))
    degraded_h = (RESCHEDULE_H + COPY_H) / 4
    assert found == approx(
        {
            "detect": DETECT_H,
            "regroup": RECONFIGURE_H,
            "lost": STEP_H / 4,
            "degraded": degraded_h,
        }
    )
    hsdp = planned("hsdp", group=2, stall=RECONFIGURE_H, backstop=16.0)
    found = spent(hsdp, (AT_H, (0,), NODE))
    assert found == approx({"regroup": RECONFIGURE_H, "degraded": degraded_h})


def test_spare_masks_a_group_until_all_of_a_shard_are_lost() -> None:
    policy = planned("spare", stacked=2, regroup=RECONFIGURE_H, speed=0.5, backstop=16.0)
    absent_h = RESCHEDULE_H + 2 * COPY_H  # and both of its shards are copied
    masked = {"detect": DETECT_H, "regroup": RECONFIGURE_H, "lost": STEP_H / 4}
    for slots in ((0,), (0, 2), (0, 2, 4, 6)):  # one more stack, however many are missing
        found = spent(policy, (AT_H, slots, RACK))
        assert found == approx(masked | {"degraded": absent_h / 2}), slots
    assert spent(policy, (AT_H, (7, 0), RACK))["load"] == approx(LOAD_H)
    three = planned("spare", stacked=3, backstop=16.0)
    assert "load" not in spent(three, (AT_H, (7, 0), RACK))
    assert spent(three, (AT_H, (7, 0, 1), RACK))["load"] == approx(LOAD_H)
