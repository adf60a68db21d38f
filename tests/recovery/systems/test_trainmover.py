"""TrainMover: a change of places is all that an announced loss costs, by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.records import Cluster
from cprsim.recovery.policy import Policy
from tests.recovery.systems.by_hand import (
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    PROCESS,
    SCOPES,
    SNAPSHOT_H,
    approx,
    facts,
    planned,
    spent,
)

JOB = facts(scopes=tuple(replace(one, notice_h=0.5 * (one.name == "node")) for one in SCOPES))
MOVE_H, AT_H = 0.0625, 5.3125


def policy_of(**options: object) -> Policy:
    return planned("trainmover", JOB, **({"every": 4.0, "downtime": MOVE_H} | options))


def test_an_announced_loss_costs_a_change_of_places_and_no_work() -> None:
    found = spent(policy_of(), (AT_H, (2,), NODE), job=JOB, scopes=JOB.scopes)
    saves = spent(policy_of(), job=JOB, scopes=JOB.scopes)
    assert found == approx(saves | {"regroup": MOVE_H})


@pytest.mark.parametrize(("options", "scope"), [({}, PROCESS), ({"prepare": 0.75}, NODE)])
def test_what_is_not_announced_in_time_goes_back_to_the_last_save(
    options: dict[str, float], scope: int
) -> None:
    policy = policy_of(**options)
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
