"""What failures cost under each system, by hand: hours by part, all that are not zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from cprsim.failures.distributions import Constant
from cprsim.records import Cluster, Holds, Role
from tests.recovery.systems.by_hand import (
    ALL,
    BACK,
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    PERSIST_H,
    PROCESS,
    RACK,
    RESCHEDULE_H,
    RESTART,
    SCOPES,
    SNAPSHOT_H,
    STEP_H,
    approx,
    facts,
    planned,
    spent,
)

Struck = tuple[float, Any, int]  # wall hour, slots, scope
Case = tuple[str, dict[str, Any], list[Struck], dict[str, float]]  # options, failures, hours

AT_H = 5.3125 + STEP_H / 4  # a quarter of a step is done
SINCE_H = AT_H - SNAPSHOT_H - 4.0  # since the content of 4 h
STEP = {"lost": STEP_H / 4}
NO_SAVES = {"backstop": 16.0}  # as long as the job
RECONFIGURE_H, MOVE_H, DISK_H = 0.125, 0.0625, 0.5
LEFT = {"reconfigure": RECONFIGURE_H} | NO_SAVES
LEFT_OUT = STEP | {"detect": DETECT_H, "regroup": 2 * RECONFIGURE_H}
MASKED = STEP | {"detect": DETECT_H, "regroup": RECONFIGURE_H}
ABSENT_H = RESCHEDULE_H + COPY_H  # hours in which the other replica groups work
SAVES_H = 4 * SNAPSHOT_H + PERSIST_H  # at the end the job waits for the last to be written
QUICK = tuple(replace(one, notice_h=0.5 * (one.name == "node")) for one in SCOPES)
ANNOUNCED = facts(scopes=QUICK)  # losses of nodes, half an hour before

CASES: list[Case] = [
    # written behind: the first save holds 4 h, stalls until 4.125 and is there from 4.625 on
    ("async", {"every": 4.0}, [(4.75, (0,), NODE)],
     BACK | {"load": LOAD_H, "lost": 0.625, "save": SAVES_H}),
    ("async", {"every": 4.0}, [(4.5, (0,), NODE)],
     BACK | {"load": LOAD_H, "lost": 4.375, "save": SAVES_H + SNAPSHOT_H}),
    ("datastates", {"every": 4.0}, [], {"save": SAVES_H - 3 * STEP_H}),  # hidden but the last
    # each takes .625 h from its start, which is two intervals: there is room for two
    ("pccheck", {"every": 0.3125}, [], {}),
    ("portus", {"every": 4.0}, [(4.75, (0,), NODE)],
     BACK | {"load": COPY_H, "save": 4 * (COPY_H - STEP_H) + STEP_H,
             "lost": 4.75 - (COPY_H - STEP_H) - 4.0}),
    ("lc-checkpoint", {"every": 4.0}, [(4.75, (0,), NODE)],
     BACK | {"load": LOAD_H / 28, "lost": 0.625, "save": 4 * SNAPSHOT_H + PERSIST_H / 28}),
    # a step in hand is retried
    ("just-in-time", NO_SAVES, [(AT_H, (0,), NODE)],
     BACK | STEP | {"save": SNAPSHOT_H + PERSIST_H, "load": LOAD_H}),
    ("just-in-time", NO_SAVES | {"group": 4}, [(AT_H, (0, 4), RACK)],  # both of a shard
     BACK | {"lost": AT_H, "load": LOAD_H}),
    ("just-in-time", NO_SAVES | {"group": 4}, [(AT_H, (0, 1), RACK)],
     BACK | STEP | {"save": SNAPSHOT_H + PERSIST_H, "load": LOAD_H}),
    ("flashrecovery", NO_SAVES, [(AT_H, (0,), NODE)], BACK | STEP | {"load": COPY_H}),
    ("checkmate", {"shadow_nodes": 3}, [(AT_H, range(8), ALL)], BACK | STEP | {"load": COPY_H}),
    ("swift-undo", NO_SAVES, [(AT_H + STEP_H / 2, (0,), NODE)],
     BACK | {"lost": STEP_H, "load": COPY_H}),
    # the struck replay; with its log, on the next node, everybody goes back
    ("swift", {"every": 4.0, "replay_speed": 2.0}, [(AT_H, (0,), NODE)],
     BACK | {"replay": SINCE_H / 2, "load": LOAD_H, "save": SAVES_H}),
    ("swift", {"every": 4.0, "replay_speed": 2.0}, [(AT_H, (3, 4), RACK)],
     BACK | {"lost": SINCE_H, "load": LOAD_H, "save": SAVES_H}),
    # lost nodes are left out: two reconfigurations, and speed
    ("bamboo", LEFT, [(AT_H, (0,), NODE)], LEFT_OUT | {"degraded": RESCHEDULE_H / 8}),
    ("bamboo", LEFT | {"throughput": (10.0, 9.5)}, [(AT_H, (0,), NODE)],
     LEFT_OUT | {"degraded": 0.05 * RESCHEDULE_H}),
    ("bamboo", LEFT | {"tax": 0.25}, [], {"tax": 4.0}),  # it computes twice all the time
    ("lazarus", LEFT | {"copies": 2}, [(AT_H, (0,), NODE)],
     LEFT_OUT | {"degraded": RESCHEDULE_H / 8}),
    ("recycle", LEFT | {"pipelines": 2}, [(AT_H, (0,), NODE)],
     LEFT_OUT | {"degraded": RESCHEDULE_H / 2}),
    # SPARe: one more stack, however many are missing; both shards of the lost one are copied
    *(("spare", {"stacked": 2, "regroup": RECONFIGURE_H} | NO_SAVES, [(AT_H, slots, RACK)],
       MASKED | {"degraded": (RESCHEDULE_H + 2 * COPY_H) / 2})
      for slots in ((0,), (0, 2), (0, 2, 4, 6))),
    # replica groups: the groups that are left retry the step, or stall
    ("torchft", {"group": 2, "quorum": RECONFIGURE_H} | NO_SAVES, [(AT_H, (0,), NODE)],
     MASKED | {"degraded": ABSENT_H / 4}),
    ("hsdp", {"group": 2, "stall": RECONFIGURE_H} | NO_SAVES, [(AT_H, (0,), NODE)],
     {"regroup": RECONFIGURE_H, "degraded": ABSENT_H / 4}),
    ("hsdp", {"group": 2, "stall": RECONFIGURE_H} | NO_SAVES, [(AT_H, (2, 3), RACK)],  # a group
     {"regroup": RECONFIGURE_H, "degraded": ABSENT_H / 4}),
    ("hsdp", {"group": 2, "stall": RECONFIGURE_H, "copy": 1.0} | NO_SAVES, [(AT_H, (3, 4), RACK)],
     {"regroup": RECONFIGURE_H, "degraded": 2 * (RESCHEDULE_H + 1.0) / 4}),
    ("hsdp", {"group": 2, "stall": RECONFIGURE_H, "speed": 0.5} | NO_SAVES, [(AT_H, (2, 4), RACK)],
     {"regroup": RECONFIGURE_H, "wait": ABSENT_H}),  # without two groups it stands still
    # 2 groups of 4: 1 and 5 hold the same shard, until the first has copied the state again
    ("hsdp", {"group": 4, "stall": MOVE_H} | NO_SAVES, [(5.0, (1,), NODE), (5.5, (5,), NODE)],
     {"regroup": MOVE_H, "detect": DETECT_H, "reschedule": RESCHEDULE_H, "load": LOAD_H,
      "lost": 5.0 + (0.5 - MOVE_H) / 2, "degraded": (0.5 - MOVE_H) / 2}),
    ("hsdp", {"group": 4, "stall": MOVE_H} | NO_SAVES, [(5.0, (1,), NODE), (6.0, (5,), NODE)],
     {"regroup": 2 * MOVE_H, "degraded": 2 * ABSENT_H / 2}),
    # a copy of .25 h takes 4 steps; the one of 5 h is complete at 5.25
    ("gemini", {"remote_every": 16.0}, [(AT_H, (2,), NODE)],
     BACK | {"load": COPY_H, "save": COPY_H, "lost": AT_H - 5.0}),
    ("gemini", {"remote_every": 16.0}, [(5.125, (2,), NODE)],
     BACK | {"load": COPY_H, "save": COPY_H, "lost": 5.125 - 4.75}),
]  # fmt: skip


@pytest.mark.parametrize(("system", "options", "struck", "hours"), CASES)
def test_hours(
    system: str, options: dict[str, Any], struck: list[Struck], hours: dict[str, float]
) -> None:
    assert spent(planned(system, **options), *struck) == approx(hours)


ANNOUNCED_CASES: list[Case] = [
    ("parcae", {}, [(AT_H, (2,), NODE)], {"regroup": 2 * COPY_H, "degraded": RESCHEDULE_H / 8}),
    ("parcae", {}, [(AT_H, (2,), PROCESS)], BACK | {"lost": SINCE_H, "load": LOAD_H}),
    ("trainmover", {"downtime": MOVE_H}, [(AT_H, (2,), NODE)], {"regroup": MOVE_H}),
    *(("trainmover", {"downtime": MOVE_H} | options, [(AT_H, (2,), scope)],  # not in time
       {"detect": DETECT_H, "regroup": MOVE_H, "load": LOAD_H, "lost": SINCE_H})
      for options, scope in (({}, PROCESS), ({"prepare": 0.75}, NODE))),
]  # fmt: skip


@pytest.mark.parametrize(("system", "options", "struck", "hours"), ANNOUNCED_CASES)
def test_hours_of_failures_that_are_announced(
    system: str, options: dict[str, Any], struck: list[Struck], hours: dict[str, float]
) -> None:
    policy = planned(system, ANNOUNCED, every=4.0, **options)
    found = spent(policy, *struck, job=ANNOUNCED, scopes=QUICK)
    assert found == approx(hours | {"save": SAVES_H})


def test_the_loss_of_all_nodes_goes_back_however_it_is_announced() -> None:
    policy = planned("parcae", ANNOUNCED, every=4.0)
    found = spent(policy, (5.3125, range(8), NODE), job=ANNOUNCED, scopes=QUICK)
    assert found["load"] == approx(LOAD_H)


# --------------------------------------------------------------------------- where the state is

DISK = {"disk": 2.0}  # a node's state in half an hour
LEVEL_H, PARTNER_H = 0.125, 0.125 + COPY_H  # of disks that take an eighth of an hour
FETCH = {"near": (0.0, COPY_H, LOAD_H, LOAD_H), "across": (0.0, COPY_H, COPY_H, LOAD_H)}
STRUCK = (((0,), PROCESS), ((0,), NODE), ((0, 1), RACK), (range(8), ALL))
LOADS: list[tuple[str, float, dict[str, Any], tuple[float, ...]]] = [  # at, options, after STRUCK
    ("dlrover-flash", 10.5, {"every": 4.0}, (0.0, LOAD_H, LOAD_H, LOAD_H)),
    ("ml-flashpoint", 10.5, {"every": 4.0}, FETCH["near"]),
    ("transom", 10.5, {"every": 4.0}, FETCH["near"]),
    ("gemini", 10.5, {}, FETCH["near"]),
    ("adacheck", 10.5, {"unique": 0.25}, FETCH["near"]),  # of all of the state
    ("fftrainer", 10.5, {}, FETCH["near"]),
    ("byterobust", 10.5, {"every": 4.0}, FETCH["across"]),
    ("reft", 10.5, {"every": 4.0, "group": 4}, (0.0, 3 * COPY_H, LOAD_H, LOAD_H)),
    ("nvrx-local", 10.5, DISK | {"every": 4.0}, (DISK_H, COPY_H, COPY_H, LOAD_H)),
    ("fastpersist", 10.5, DISK | {"every": 4.0}, (DISK_H, LOAD_H, LOAD_H, LOAD_H)),
    ("pmem", 10.5, DISK | {"every": 4.0}, (DISK_H, LOAD_H, LOAD_H, LOAD_H)),
    ("moc", 10.5, {"every": 4.0, "experts": 2}, (0.0, LOAD_H, LOAD_H, LOAD_H)),
    # 8 h of progress are on all levels by then, and the ninth is not done
    ("scr", 11.3, {"disk": 8.0, "every": (1.0, 2.0, 8.0)}, (LEVEL_H, PARTNER_H, LOAD_H, LOAD_H)),
    ("fti", 12.0, {"disk": 8.0, "every": (1.0, 2.0, 4.0, 8.0), "data": 2, "parity": 2},
     (LEVEL_H, PARTNER_H, LEVEL_H + 2 * COPY_H, LOAD_H)),
    ("veloc", 9.7, {"disk": 8.0, "every": (1.0, 2.0, 8.0)}, (LEVEL_H, PARTNER_H, LOAD_H, LOAD_H)),
]  # fmt: skip


@pytest.mark.parametrize(("system", "at_h", "options", "loads"), LOADS)
def test_the_nearest_copy_that_survives_is_loaded(
    system: str, at_h: float, options: dict[str, Any], loads: tuple[float, ...]
) -> None:
    policy = planned(system, **options)
    found = [spent(policy, (at_h, slots, scope)).get("load", 0.0) for slots, scope in STRUCK]
    assert found == approx(list(loads))


PAIRS = ((0, 1), (1, 2), (0, 7), (0, 4), (0, 2))
FATAL: list[tuple[str, dict[str, Any], set[tuple[int, int]]]] = [  # pairs that leave no copy
    ("ml-flashpoint", {"every": 4.0}, {(0, 1)}),
    ("transom", {"every": 4.0}, {(0, 1), (1, 2), (0, 7)}),  # a ring
    ("gemini", {}, {(0, 1)}),
    ("fftrainer", {}, {(0, 1), (1, 2), (0, 7)}),
    ("hsdp", NO_SAVES | {"group": 4}, {(0, 4)}),
    ("swift", {"every": 4.0}, {(0, 1), (1, 2), (0, 7)}),
    ("bamboo", LEFT, {(0, 1), (1, 2), (0, 7)}),
    ("lazarus", LEFT | {"copies": 2}, {(0, 1)}),
    ("recycle", LEFT | {"pipelines": 2}, {(0, 4)}),
    ("spare", {"stacked": 2} | NO_SAVES, {(0, 1), (1, 2), (0, 7)}),
    ("spare", {"stacked": 3} | NO_SAVES, set()),
]  # fmt: skip


@pytest.mark.parametrize(("system", "options", "fatal"), FATAL)
def test_pairs_of_nodes_that_hold_all_copies_of_a_shard(
    system: str, options: dict[str, Any], fatal: set[tuple[int, int]]
) -> None:
    policy = planned(system, **options)
    at_h = 10.0 + AT_H
    found = {
        pair
        for pair in PAIRS
        if "replay" not in (hours := spent(policy, (at_h, pair, RACK)))
        and hours.get("load", 0.0) > 1.0
    }
    assert found == fatal


def test_persistent_memory_outlives_the_restart_of_a_node() -> None:
    at = (10.5, (0,), RESTART)
    assert spent(planned("dlrover-flash", every=4.0), at)["load"] == approx(LOAD_H)
    assert spent(planned("pmem", every=4.0, **DISK), at)["load"] == approx(DISK_H)


def test_a_copy_on_the_remote_storage_is_there_once_it_is_written() -> None:
    policy = planned("dlrover-flash", every=4.0)
    # content 8 is in memory at 8.25 wall hours, and outside half an hour later
    assert spent(policy, (8.5, (0,), PROCESS))["lost"] == approx(0.25)
    assert spent(policy, (8.5, (0,), NODE))["lost"] == approx(4.25)
    assert spent(policy, (8.875, (0,), NODE))["lost"] == approx(8.875 - 0.25 - 8.0)


def test_warm_standbys_take_the_place_of_rescheduling() -> None:
    hours = spent(planned("byterobust", every=4.0, wake=0.125), (10.5, (0,), NODE))
    assert hours["reschedule"] == approx(0.125)


def test_levels_stall_for_every_save_or_for_the_disk_alone() -> None:
    options = {"disk": 8.0, "every": (1.0, 2.0, 8.0)}
    scr = spent(planned("scr", **options))["save"]
    assert scr == approx(16 * LEVEL_H + 8 * PARTNER_H + 2 * SNAPSHOT_H + PERSIST_H)
    assert spent(planned("veloc", **options))["save"] == approx(16 * LEVEL_H)


# --------------------------------------------------------------------------- copies made again


@pytest.mark.parametrize(("name", "options"), [("bamboo", {}), ("lazarus", {"copies": 2})])
def test_a_second_loss_next_to_the_first_is_survived_as_copies_are_made_again(
    name: str, options: dict[str, int]
) -> None:
    job = replace(facts(), cluster=Cluster((Role("worker", 8, Holds.SHARD),), n_spares=0))
    policy = planned(name, job, **LEFT, **options)

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


# --------------------------------------------------------------------------- parity

V, REBUILD_H = 0.875, 1.0  # speed meanwhile; 4 shards of 1/4 h
REPLACED = BACK | {"degraded": REBUILD_H * (1.0 - V)}
TWICE = {part: 2.0 * hours for part, hours in REPLACED.items()}
ECREC: list[tuple[int, dict[str, Any], list[tuple[float, int]], dict[str, float]]] = [
    (5, {"tax": 0.0625}, [], {"tax": 1.0}),
    (5, {}, [(5.3, 2)], REPLACED),  # nobody goes back
    (4, {"data": 3}, [(5.3, 2)], REPLACED | {"degraded": 0.75 * (1.0 - V)}),
    (5, {"rebuild": 0.5}, [(5.3, 2)], REPLACED | {"degraded": 0.5 * (1.0 - V)}),
    (5, {"encoding": 2.0}, [(5.3, 2)], REPLACED | {"degraded": 2.0 * (1.0 - V)}),  # slower than
    (5, {"encoding": 8.0}, [(5.3, 2)], REPLACED),  # the link, and as fast
    # a second loss in the stripe before the rebuild ends goes back, and after it does not
    (5, {}, [(5.3, 2), (5.6, 0)], {"lost": 5.175 - 4.0, "load": LOAD_H}),
    (5, {}, [(5.3, 2), (6.8, 0)], {"lost": 5.175 + 0.75 * V - 4.0, "load": LOAD_H}),
    (5, {}, [(5.3, 2), (7.1, 0)], TWICE),  # rebuilt at 7.05
    (6, {"parity": 2}, [(5.3, 2), (6.8, 0)], {"lost": 0.0, "load": 0.0}),
    # in two stripes: after one another, in the last 1/4 h of the rebuild, overlapping
    (10, {}, [(5.3, 2), (7.1, 7)], TWICE),
    (10, {}, [(5.3, 2), (6.8, 7)], {"degraded": (REBUILD_H - 0.25 + REBUILD_H) * (1.0 - V)}),
    (10, {}, [(5.3, 2), (5.4, 7)], {"detect": 0.35, "reschedule": 0.5,
                                    "degraded": REBUILD_H * (1.0 - V)}),
]  # fmt: skip


@pytest.mark.parametrize(("n_servers", "options", "struck", "hours"), ECREC)
def test_lost_shards_are_rebuilt_from_parity(
    n_servers: int, options: dict[str, Any], struck: list[tuple[float, int]],
    hours: dict[str, float],
) -> None:  # fmt: skip
    job = facts(n_servers, save_background=None, replicas=1)
    policy = planned("ecrec", job, **{"backstop": 4.0, "speed_meanwhile": V} | options)
    found = spent(policy, *((at_h, (slot,), NODE) for at_h, slot in struck), job=job)
    assert {part: found.get(part, 0.0) for part in hours} == approx(hours)
