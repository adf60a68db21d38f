"""The common case, abreast, gives the rows of the general loops to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cprsim import engine
from cprsim.draws import CostDraws
from cprsim.engine import course
from cprsim.failures.block import BlockFailures
from cprsim.failures.distributions import with_mean
from cprsim.failures.job_clock import JobClock
from cprsim.records import Clock, RecoveryPolicy, SubSaves
from cprsim.setting import JobSetting
from tests.cluster.building import PARTIAL, policy
from tests.cluster.building import setting as make
from tests.engine.agreeing import columns_of
from tests.engine.test_agreement import HOW, INTERVALS_H, N_SCENARIOS, USEFUL_H, job, source


class General(course._Run):
    """Leaves nothing to `steady`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_common = False


def assert_rows_of_the_general_loops(
    setting: JobSetting, how: RecoveryPolicy, failures: BlockFailures, keep_losses: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    arguments = setting, how, failures, costs, range(500)
    ran = engine.simulate(*arguments, keep_losses=keep_losses)
    with monkeypatch.context() as patch:
        patch.setattr(course, "_Run", General)
        general = engine.simulate(*arguments, keep_losses=keep_losses)
    for ours, theirs in ((ran.costs, general.costs), (ran.losses, general.losses)):
        theirs_by_name = columns_of(theirs)
        for name, column in columns_of(ours).items():
            assert np.array_equal(column, theirs_by_name[name]), name
    assert np.array_equal(ran.stale_h, general.stale_h)
    assert np.array_equal(ran.stale_net_h, general.stale_net_h)
    assert np.array_equal(ran.left, general.left)


@pytest.mark.parametrize("number", range(0, N_SCENARIOS, 3))
def test_rows_are_those_of_the_general_loops(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = job(number)
    how = policy(HOW[number % len(HOW)], INTERVALS_H[number % len(INTERVALS_H)])
    failing = source(number, setting.cluster, setting.clock)
    failures = BlockFailures(failing, setting.cluster, number, 0, USEFUL_H)
    assert_rows_of_the_general_loops(setting, how, failures, number % 2 == 0, monkeypatch)


@pytest.mark.parametrize("clock", list(Clock))
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("keep_losses", [True, False])
@pytest.mark.parametrize("nodes", [(3, 0), (3, 3), (1, 1)])
def test_rows_where_failures_strike_recoveries_and_shards_again(
    clock: Clock, together: int, keep_losses: bool, nodes: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    setting = make(
        USEFUL_H, clock=clock, n_emb_ps=nodes[0], n_trainers=nodes[1],
        save_h=0.05, load_h=0.2, detect_h=0.05, reschedule_h=0.1,
    )  # fmt: skip
    failing = JobClock(
        with_mean("gamma", 0.5, 0.7), range(setting.cluster.n_nodes), min(together, sum(nodes)),
        clock,
    )  # fmt: skip
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    assert_rows_of_the_general_loops(
        setting, policy(PARTIAL, 0.9), failures, keep_losses, monkeypatch
    )


@pytest.mark.parametrize("parts", [2, 5])
def test_rows_where_sub_saves_make_a_whole_one(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = make(USEFUL_H, n_emb_ps=4, save_h=0.05, load_h=0.1, detect_h=0.05)
    failing = JobClock(with_mean("gamma", 0.7, 0.7), range(4), 1, setting.clock)
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    how = replace(policy(PARTIAL, 1.1), sub_saves=SubSaves("mfu", fraction=1 / parts))
    assert_rows_of_the_general_loops(setting, how, failures, False, monkeypatch)


def test_all_rows_of_a_common_job_are_done_abreast() -> None:
    setting = job(0)
    failures = BlockFailures(
        source(0, setting.cluster, setting.clock), setting.cluster, 5, 0, USEFUL_H
    )
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    plan = course.plan_of(setting, policy(HOW[0], INTERVALS_H[0]))
    run = course._Run(plan, setting, failures, costs, keeps=False)
    rows = np.arange(failures.n_replications)
    assert run._is_common
    assert len(run._hurry(failures.strikes(9), rows)) == 0


def test_a_save_that_commits_where_the_draws_end_is_no_doubt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    setting = make(USEFUL_H, n_emb_ps=4, save_h=0.125, load_h=0.1)
    failing = JobClock(with_mean("gamma", 9.0, 0.7), range(4), 1, setting.clock)
    failures = BlockFailures(failing, setting.cluster, 3, 0, USEFUL_H)
    how = policy(PARTIAL, 0.25)
    period_h = course.plan_of(setting, how).period_h
    assert failures.strikes(1).until_h == 20 * period_h
    assert_rows_of_the_general_loops(setting, how, failures, False, monkeypatch)
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    monkeypatch.setattr(course._Run, "_run", lambda *_: pytest.fail("not abreast"))
    ran = engine.simulate(setting, how, failures, costs, range(500), keep_losses=False)
    assert len(ran.left) == 0
