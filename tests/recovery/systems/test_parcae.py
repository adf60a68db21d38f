"""Parcae: what is announced in time costs a migration, and all else a save's age, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

import pytest

from cprsim.errors import ParameterError
from cprsim.recovery.policy import Policy
from tests.recovery.systems.by_hand import (
    COPY_H,
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

JOB = facts(scopes=tuple(replace(one, notice_h=0.5 * (one.name == "node")) for one in SCOPES))


def policy_of(**options: object) -> Policy:
    return planned("parcae", JOB, **({"every": 4.0} | options))


def test_an_announced_loss_costs_two_migrations_and_speed_and_no_work() -> None:
    found = spent(policy_of(), (5.3125, (2,), NODE), job=JOB, scopes=JOB.scopes)
    saves = spent(policy_of(), job=JOB, scopes=JOB.scopes)
    assert found == approx(saves | {"regroup": 2 * COPY_H, "degraded": RESCHEDULE_H / 8})


def test_what_is_not_announced_goes_back_to_the_last_save() -> None:
    found = spent(policy_of(), (5.3125, (2,), PROCESS), job=JOB, scopes=JOB.scopes)
    assert found["lost"] == approx(5.3125 - SNAPSHOT_H - 4.0)
    assert found["load"] == approx(LOAD_H)


def test_the_loss_of_all_nodes_goes_back_too_however_it_is_announced() -> None:
    found = spent(policy_of(), (5.3125, range(8), NODE), job=JOB, scopes=JOB.scopes)
    assert found["load"] == approx(LOAD_H)


def test_saves_are_for_the_failures_that_are_not_announced() -> None:
    long = replace(JOB, useful_h=1e4)
    (capture,) = planned("parcae", long).captures
    assert capture.every_h == approx(sqrt(2 * SNAPSHOT_H * 64.0 * 5 / 4))  # four of five kinds


def test_a_notice_shorter_than_a_migration_is_of_no_use() -> None:
    with pytest.raises(ParameterError, match="no failure is announced as long before"):
        policy_of(migrate=0.75)
    with pytest.raises(ParameterError, match="give `notice` to one of `scopes`"):
        planned("parcae", facts())
