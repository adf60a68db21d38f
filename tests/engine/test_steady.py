"""The common case in registers gives the rows of the general loops, to the last bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from cprsim import engine
from cprsim.draws import CostDraws
from cprsim.engine import course
from cprsim.failures.block import BlockFailures
from tests.cluster.building import policy
from tests.engine.test_agreement import HOW, INTERVALS_H, N_SCENARIOS, USEFUL_H, job, source


class General(course._Run):
    """Leaves nothing to `steady`."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._is_steady = False


@pytest.mark.parametrize("number", range(0, N_SCENARIOS, 3))
def test_rows_are_those_of_the_general_loops(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = job(number)
    how = policy(HOW[number % len(HOW)], INTERVALS_H[number % len(INTERVALS_H)])
    failing = source(number, setting.cluster, setting.clock)
    failures = BlockFailures(failing, setting.cluster, number, 0, USEFUL_H)
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    ran = engine.simulate(setting, how, failures, costs, range(500))
    monkeypatch.setattr(course, "_Run", General)
    general = engine.simulate(setting, how, failures, costs, range(500))
    for ours, theirs in ((ran.costs, general.costs), (ran.losses, general.losses)):
        for column in fields(ours):
            a, b = getattr(ours, column.name), getattr(theirs, column.name)
            assert np.array_equal(a, b), column.name
    assert np.array_equal(ran.stale_net_h, general.stale_net_h)
    assert np.array_equal(ran.left, general.left)


def test_most_rows_of_a_common_job_are_done_in_registers() -> None:
    setting = job(0)
    failures = BlockFailures(
        source(0, setting.cluster, setting.clock), setting.cluster, 5, 0, USEFUL_H
    )
    costs = CostDraws.of(setting.costs, 3, 0, failures.n_replications)
    plan = course.plan_of(setting, policy(HOW[0], INTERVALS_H[0]))
    run = course._Run(plan, setting, failures, costs, keeps=False)
    rows = np.arange(failures.n_replications)
    assert run._is_steady
    assert len(run._hurry(failures.strikes(3), rows)) < len(rows) / 5
