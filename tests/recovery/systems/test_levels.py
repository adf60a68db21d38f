"""Checkpoints on levels: each level's interval for its own failures, and what it survives."""

from __future__ import annotations

from math import comb, sqrt

import pytest

from tests.closed_forms import optimal_tier_intervals_h
from tests.recovery.systems.by_hand import (
    ALL,
    COPY_H,
    DETECT_H,
    LOAD_H,
    NODE,
    PERSIST_H,
    PROCESS,
    RACK,
    RESCHEDULE_H,
    SNAPSHOT_H,
    approx,
    facts,
    planned,
    spent,
)

DISK = {"disk": 8.0}  # an eighth of an hour
DISK_H, PARTNER_H = 0.125, 0.125 + COPY_H
CODE = {"data": 2, "parity": 2}
EVERY = (1.0, 2.0, 8.0)

AFTER = {  # load after failures of a process, a node, two neighbours, and all
    "scr": ({"every": EVERY}, (DISK_H, PARTNER_H, LOAD_H, LOAD_H)),
    "fti": (
        {"every": (1.0, 2.0, 4.0, 8.0)} | CODE,
        (DISK_H, PARTNER_H, DISK_H + 2 * COPY_H, LOAD_H),
    ),
    "veloc": ({"every": EVERY}, (DISK_H, PARTNER_H, LOAD_H, LOAD_H)),
}
STRUCK = (((0,), PROCESS), ((0,), NODE), ((0, 1), RACK), (range(8), ALL))


@pytest.mark.parametrize("name", AFTER)
def test_the_nearest_level_that_survives_is_loaded(name: str) -> None:
    options, loads = AFTER[name]
    job = facts(useful_h=9.0)
    policy = planned(name, job, **DISK, **options)
    # 8 h of progress are on all levels by then, and the ninth is not done
    for (slots, scope), load in zip(STRUCK, loads, strict=True):
        at_h = {"scr": 11.3, "fti": 12.0, "veloc": 9.7}[name]
        assert spent(policy, (at_h, slots, scope), job=job)["load"] == approx(load), scope


def test_scr_stalls_for_every_level_and_veloc_for_the_disk_alone() -> None:
    scr = spent(planned("scr", every=EVERY, **DISK))["save"]
    assert scr == approx(16 * DISK_H + 8 * PARTNER_H + 2 * SNAPSHOT_H + PERSIST_H)
    veloc = spent(planned("veloc", every=EVERY, **DISK))["save"]
    assert veloc == approx(16 * DISK_H)  # and nobody waits for the last copies


RATE = 1 / 64.0 / 5  # of each of five scopes


def test_each_level_has_young_s_interval_for_its_own_failures() -> None:
    job = facts(useful_h=1e6)
    q = (DETECT_H + RESCHEDULE_H) / (64.0 * 8)  # of the time that a node is down
    # process and restart; node, if no neighbour is down; rack, all and node else
    both = RATE * 2 * q
    rates = (2 * RATE, RATE - both, 2 * RATE + both)
    every = [capture.every_h for capture in planned("scr", job, **DISK).captures]
    by_formula = optimal_tier_intervals_h((DISK_H, PARTNER_H, SNAPSHOT_H), rates)
    assert every == approx(tuple(by_formula))
    assert every[0] == approx(sqrt(2 * DISK_H / (2 * RATE)))


def test_a_code_takes_the_racks_and_all_but_what_it_can_t_lose() -> None:
    job = facts(useful_h=1e9)
    q = (DETECT_H + RESCHEDULE_H) / (64.0 * 8)
    both, three = RATE * 2 * q, RATE * comb(3, 2) * q**2
    code_h = planned("fti", job, **DISK, **CODE).captures[2].every_h
    assert code_h == approx(sqrt(2 * PARTNER_H / (RATE + both - three)))


def test_a_level_that_no_failure_needs_is_not_saved() -> None:
    scopes = facts().scopes[ALL:]
    policy = planned("scr", facts(scopes=scopes), **DISK)
    assert [tier.name for tier in policy.tiers] == ["remote"]


def test_encoding_takes_its_time() -> None:
    job = facts(useful_h=1e9)
    code = planned("fti", job, **DISK, **CODE, encoding=2.0).captures[2]
    assert code.stall.mean_h == approx(PARTNER_H + 0.5)
