"""What would flip the decision: a selection on either side of the value says so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cprsim.experiments.assemble import Experiment
from cprsim.failures.distributions import Constant
from cprsim.failures.injected import Injected
from cprsim.failures.sources import Stretched
from cprsim.selector.choice import Flip
from cprsim.selector.limit import Limit, LimitedQuantity
from tests.selector.conftest import Job, choose, curve_of

JOB = Job(useful_h=50.0, mtbf_h=10.0, save_h=0.2, n_replications=1000)
LIMIT = Limit(LimitedQuantity.AUC, 0.04 * 0.01 * JOB.pls(0))
CURVE = curve_of(partial=0.01)


@pytest.fixture(scope="module")
def flips() -> dict[str, Flip]:
    found = choose(JOB.experiment(), CURVE, LIMIT, explain=True)
    assert found.chosen.strategy == "partial"
    return {flip.name: flip for flip in found.flips}


def falls_back(experiment: Experiment, limit: Limit = LIMIT) -> bool:
    return choose(experiment, CURVE, limit).fell_back


def test_the_limit_at_which_it_flips(flips: dict[str, Flip]) -> None:
    at = flips["a limit of the AUC loss"].at
    assert at is not None
    assert at < LIMIT.most
    assert not falls_back(JOB.experiment(), replace(LIMIT, most=at * 1.01))
    assert falls_back(JOB.experiment(), replace(LIMIT, most=at * 0.99))


def test_the_cost_of_a_save_at_which_it_flips(flips: dict[str, Flip]) -> None:
    at = flips["a cost of a save"].at
    assert at is not None
    assert at > JOB.save_h

    def with_save(save_h: float) -> Experiment:
        made = JOB.experiment()
        return replace(made, costs=replace(made.costs, save_stall=Constant(save_h)))

    assert not falls_back(with_save(at * 0.99))
    assert falls_back(with_save(at * 1.01))


def test_the_mtbf_at_which_it_flips(flips: dict[str, Flip]) -> None:
    at = flips["an MTBF of the job"].at
    assert at is not None
    assert at < JOB.mtbf_h

    def with_mtbf(mtbf_h: float) -> Experiment:
        made = JOB.experiment()
        return replace(made, failures=Stretched(made.failures, mtbf_h / JOB.mtbf_h))

    assert not falls_back(with_mtbf(at * 1.01))
    assert falls_back(with_mtbf(at * 0.99))


def test_a_recovery_costs_both_alike_and_flips_nothing(flips: dict[str, Flip]) -> None:
    flip = flips["a cost of a recovery (detection, rescheduling, load)"]
    assert flip.at is None
    assert flip.furthest == pytest.approx((JOB.recovery_h / 10, JOB.recovery_h * 10))


def test_the_number_of_injected_failures_at_which_it_flips() -> None:
    def with_failures(count: int) -> Experiment:
        slots = range(JOB.n_emb_ps)
        return JOB.experiment(failures=Injected(JOB.useful_h, slots, count=count))

    limit = replace(LIMIT, most=LIMIT.most / 2)
    found = {flip.name: flip for flip in choose(with_failures(3), CURVE, limit, explain=True).flips}
    at = found["a number of failures per job"].at
    assert at is not None
    assert at == round(at)
    assert at > 3
    assert falls_back(with_failures(int(at)), limit)
    assert not falls_back(with_failures(int(at) - 1), limit)
