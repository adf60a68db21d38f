"""Failures that are announced: saves on notice, Parcae and TrainMover, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf, sqrt

import pytest

from cprsim.records import Cluster
from cprsim.recovery.policy import Policy
from tests.recovery.systems.by_hand import (
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    PROCESS,
    RESCHEDULE_H,
    SCOPES,
    SNAPSHOT_H,
    approx,
    facts,
    planned,
    spent,
)

ANNOUNCED = tuple(replace(scope, notice_h=0.5) for scope in SCOPES)
JOB = facts(scopes=tuple(replace(one, notice_h=0.5 * (one.name == "node")) for one in SCOPES))


def test_it_saves_on_notice_and_at_youngs_interval() -> None:
    job = facts(scopes=ANNOUNCED)
    on_notice, besides = planned("on-notice", job).captures
    assert (on_notice.on_notice, on_notice.every_h) == (True, None)
    assert (besides.on_notice, besides.every_h) == (False, approx(sqrt(2 * SNAPSHOT_H * 64)))


def test_besides_nothing_is_saved_where_the_interval_has_no_end() -> None:
    (on_notice,) = planned("on-notice", facts(scopes=ANNOUNCED), every=inf).captures
    assert on_notice.on_notice


def parcae(**options: object) -> Policy:
    return planned("parcae", JOB, **({"every": 4.0} | options))


def test_an_announced_loss_costs_two_migrations_and_speed_and_no_work() -> None:
    found = spent(parcae(), (5.3125, (2,), NODE), job=JOB, scopes=JOB.scopes)
    saves = spent(parcae(), job=JOB, scopes=JOB.scopes)
    assert found == approx(saves | {"regroup": 2 * COPY_H, "degraded": RESCHEDULE_H / 8})


def test_what_is_not_announced_goes_back_to_the_last_save() -> None:
    found = spent(parcae(), (5.3125, (2,), PROCESS), job=JOB, scopes=JOB.scopes)
    assert found["lost"] == approx(5.3125 - SNAPSHOT_H - 4.0)
    assert found["load"] == approx(LOAD_H)


def test_the_loss_of_all_nodes_goes_back_too_however_it_is_announced() -> None:
    found = spent(parcae(), (5.3125, range(8), NODE), job=JOB, scopes=JOB.scopes)
    assert found["load"] == approx(LOAD_H)


def test_saves_are_for_the_failures_that_are_not_announced() -> None:
    long = replace(JOB, useful_h=1e4)
    (capture,) = planned("parcae", long).captures
    assert capture.every_h == approx(sqrt(2 * SNAPSHOT_H * 64.0 * 5 / 4))  # four of five kinds


MOVE_H, AT_H = 0.0625, 5.3125


def trainmover(**options: object) -> Policy:
    return planned("trainmover", JOB, **({"every": 4.0, "downtime": MOVE_H} | options))


def test_an_announced_loss_costs_a_change_of_places_and_no_work() -> None:
    found = spent(trainmover(), (AT_H, (2,), NODE), job=JOB, scopes=JOB.scopes)
    saves = spent(trainmover(), job=JOB, scopes=JOB.scopes)
    assert found == approx(saves | {"regroup": MOVE_H})


@pytest.mark.parametrize(("options", "scope"), [({}, PROCESS), ({"prepare": 0.75}, NODE)])
def test_what_is_not_announced_in_time_goes_back_to_the_last_save(
    options: dict[str, float], scope: int
) -> None:
    policy = trainmover(**options)
    found = spent(policy, (AT_H, (2,), scope), job=JOB, scopes=JOB.scopes)
    saves = spent(policy, job=JOB, scopes=JOB.scopes)
    lost_h = AT_H - SNAPSHOT_H - 4.0
    back = {"detect": DETECT_H, "regroup": MOVE_H, "load": LOAD_H, "lost": lost_h}
    assert found == approx(saves | back)


def test_a_notice_as_long_as_the_state_takes_to_a_standby_is_enough() -> None:
    scopes = tuple(replace(one, notice_h=COPY_H * (one.name == "node")) for one in SCOPES)
    assert len(planned("trainmover", facts(scopes=scopes)).rules) == 2
    assert len(planned("trainmover", facts()).rules) == 1


def test_standbys_are_the_spares_and_are_counted_where_the_job_has_none() -> None:
    often = facts(mtbf_h=0.75)  # three of five kinds take a node: 0.4 are being replaced
    assert planned("trainmover", often).tax.nodes == 2.0
    assert planned("trainmover").tax.nodes == 1.0
    roles = facts().cluster.roles
    assert planned("trainmover", facts(cluster=Cluster(roles, n_spares=2))).tax.nodes == 0.0
