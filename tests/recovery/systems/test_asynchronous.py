"""Saves written behind the job: what tells each from `async`, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest

from cprsim.errors import ParameterError
from cprsim.recovery.systems.asynchronous import checkfreq_steps
from tests.recovery.systems.by_hand import (
    BACK,
    LOAD_H,
    NODE,
    PERSIST_H,
    SNAPSHOT_H,
    STEP_H,
    approx,
    facts,
    lost,
    planned,
    spent,
)


def test_a_save_counts_once_it_is_written() -> None:
    policy = planned("async", every=4.0)
    # the first save holds 4 h; it stalls until 4.125 and is there from 4.625 on
    assert lost(policy, 4.5, (0,), NODE) == approx(4.5 - SNAPSHOT_H)
    assert lost(policy, 4.75, (0,), NODE) == approx(4.75 - SNAPSHOT_H - 4.0)


def test_what_async_costs() -> None:
    hours = spent(planned("async", every=4.0), (4.75, (0,), NODE))
    # 4 saves, and at the end the job waits for the last to be written
    saves_h = 4 * SNAPSHOT_H + PERSIST_H
    assert hours == approx(BACK | {"load": LOAD_H, "lost": 0.625, "save": saves_h})


def test_training_hides_a_snapshot_for_a_step_and_under_async_for_none() -> None:
    hours = spent(planned("datastates", every=4.0))
    at_the_end_h = SNAPSHOT_H - STEP_H + PERSIST_H + STEP_H  # stall, then hidden and written
    assert hours == approx({"save": 3 * (SNAPSHOT_H - STEP_H) + at_the_end_h})
    assert spent(planned("async", every=4.0))["save"] - hours["save"] == approx(3 * STEP_H)


def test_pccheck_has_saves_on_their_way_at_once() -> None:
    # each takes .625 h from its start, which is two intervals: there is room for two
    policy = planned("pccheck", every=0.3125)
    assert lost(policy, 1.0, (0,), NODE) == approx(1.0 - 0.3125)
    one = replace(policy, captures=(replace(policy.captures[0], in_flight=1),))
    assert spent(policy) == {}
    assert spent(one) == approx({"save": 50 * 0.3125})  # 51 saves; all but the first wait


def test_pccheck_saves_as_often_as_there_is_room() -> None:
    (capture,) = planned("pccheck", in_flight=4).captures
    assert capture.stall is not None
    assert capture.stall.mean_h == 0.0
    write_h = SNAPSHOT_H + PERSIST_H
    assert capture.every_h == approx(write_h / 4)


CHECKFREQ = [  # step, save, stall, steps between saves: by hand
    (1.0, 10.0, 0.0, 10),
    (1.0, 10.5, 0.5, 10),  # .5 in 10 steps is 5 %, the budget
    (1.0, 10.5, 0.6, 12),  # 10 steps; .6 in 10 is 6 %, in 12 it is 5 %
    (1.0, 3.0, 1.0, 20),  # 2 steps; 1 in 2, 4, ... 18 is more than 5 %
    (1.0, 0.5, 0.5, 11),  # 1 step at least; .5 in 9 is 5.6 %
    (4.0, 10.0, 0.1, 3),
]


@pytest.mark.parametrize(("step_h", "save_h", "stall_h", "steps"), CHECKFREQ)
def test_checkfreq_s_rule(step_h: float, save_h: float, stall_h: float, steps: int) -> None:
    assert checkfreq_steps(step_h, save_h, stall_h) == steps


def test_checkfreq_s_paper_has_another_budget() -> None:
    assert checkfreq_steps(1.0, 10.5, 0.5, budget_fraction=0.035) == 16  # .5 in 14 is 3.57 %


def test_checkfreq_saves_at_its_own_rule_and_datastates_at_young_s() -> None:
    (tuned,) = planned("checkfreq").captures
    assert tuned.every_h == approx(21 * STEP_H)  # 9 steps written; .0625 in 19 is 5.3 %
    (young,) = planned("datastates").captures
    assert young.every_h == approx((2 * STEP_H * 64.0) ** 0.5)


def test_portus_writes_and_reads_by_each_node_s_link() -> None:
    hours = spent(planned("portus", every=4.0), (4.75, (0,), NODE))
    assert hours["load"] == approx(0.25)
    assert hours["save"] == approx(4 * (0.25 - STEP_H) + STEP_H)


def test_paracckpt_writes_over_all_paths() -> None:
    (capture,) = planned("paracckpt", other_paths=8.0).captures
    assert capture.background is not None
    assert capture.background.mean_h == approx(8 * 1.0 / (8.0 + 8.0))


@pytest.mark.parametrize(("name", "size"), [("checkbullet", 0.3), ("lc-checkpoint", 1 / 28)])
def test_smaller_saves_are_written_and_read_sooner(name: str, size: float) -> None:
    policy = planned(name, every=4.0)
    hours = spent(policy, (4.75, (0,), NODE))
    assert hours["load"] == approx(size * LOAD_H)
    assert hours["save"] == approx(4 * SNAPSHOT_H + size * PERSIST_H)
    # written at 4.125 + size/2
    assert lost(policy, 4.13 + size * PERSIST_H, (0,), NODE) < 1.0
    assert lost(policy, 4.12 + size * PERSIST_H, (0,), NODE) > 4.0


def test_without_failures_or_stalls_it_saves_each_step_that_there_is_room_for() -> None:
    (capture,) = planned("pccheck", facts(mtbf_h=inf), persist=0.0, snapshot=0.0).captures
    assert capture.every_h == STEP_H


def test_saves_of_no_time_in_a_job_of_no_steps_have_no_interval_but_a_given_one() -> None:
    endless = facts(mtbf_h=inf, step_h=None)
    with pytest.raises(ParameterError, match="saves of async take no time here: give `every`"):
        planned("async", endless, persist=0.0, snapshot=0.0)
    (capture,) = planned("async", endless, persist=0.0, snapshot=0.0, every=4.0).captures
    assert capture.every_h == 4.0
