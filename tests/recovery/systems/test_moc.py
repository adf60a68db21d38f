"""MoC-System: what its saves cost, and how stale experts are that were saved in turn."""

from __future__ import annotations

from math import inf, sqrt
from typing import Any

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Constant
from cprsim.records import Clock
from cprsim.recovery.legal import require_legal
from cprsim.recovery.policy import Policy, Reach, Scope
from cprsim.recovery.system import JobFacts
from cprsim.recovery.systems import SYSTEMS
from cprsim.recovery.systems.moc import (
    expert_staleness,
    mean_expert_staleness,
    portion_of_lost_tokens,
    save_fraction,
)
from cprsim.simulate.blocks import BlockDraws, SystemRan, run_block
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures
from tests.closed_forms import content_age_h
from tests.recovery.poisson import PoissonFailures
from tests.recovery.systems.by_hand import facts

PROCESS = Scope("process", Reach.PROCESS, Constant(0.25), needs_node=False)
NODE = Scope("node", Reach.NODE, Constant(0.25))
T, EVERY, MTBF = 60.0, 1.0, 6.0
OPTIONS, plan = SYSTEMS["moc"].options, SYSTEMS["moc"].plan
N_REPLICATIONS = 20_000


def facts_of(**known: Any) -> JobFacts:
    own: dict[str, Any] = {
        "useful_h": T, "scopes": (PROCESS, NODE), "mtbf_h": MTBF, "save_stall": Constant(0.5),
        "save_background": None, "load": Constant(0.125), "reschedule": Constant(0.0),
        "step_h": None,
    }  # fmt: skip
    return facts(4, **own | known)


def job_of(facts: JobFacts, policy: Policy) -> SimulatedJob:
    require_legal(policy, facts.cluster, facts.scopes)
    return SimulatedJob(facts.useful_h, facts.cluster, Clock.PROGRESS, facts.scopes, policy)


def ran(job: SimulatedJob, failures: PoissonFailures | GivenFailures) -> SystemRan:
    n = failures.n_replications
    return run_block(job, failures, BlockDraws(job, 3, 0, n, range(n)), range(n))


def assert_mean(values: np.ndarray, theory: float) -> None:
    mean, error = float(values.mean()), float(values.std(ddof=1) / sqrt(len(values)))
    message = f"mean {mean:.6g}, theory {theory:.6g}, standard error {error:.2g}"
    print(message)
    assert abs(mean - theory) <= 4.0 * error, message


# --------------------------------------------------------------------------- what a save costs


def test_a_save_of_some_experts_takes_their_share_of_the_bytes() -> None:
    assert save_fraction(16, 16, 0.86) == pytest.approx(1.0)
    assert save_fraction(16, 1, 0.86) == pytest.approx(0.14 + 0.86 / 16)
    options = OPTIONS(experts=16, saved_each=4, snapshot=2.0, persist=4.0, window=0.0, every=8.0)
    policy = plan(facts_of(), options, "moc")
    snapshot, remote = policy.captures
    part = 0.14 + 0.86 / 4
    assert snapshot.stall is not None
    assert snapshot.stall.mean_h == pytest.approx(2.0 * part)
    assert remote.background is not None
    assert remote.background.mean_h == pytest.approx(4.0 * part)
    assert policy.tax.memory == pytest.approx(part)


@pytest.mark.parametrize(("window", "stall_h"), [(0.0, 0.5), (0.375, 0.125), (0.5, 0.0), (2.0, 0)])
def test_a_snapshot_stalls_for_what_a_forward_and_backward_pass_does_not_hide(
    window: float, stall_h: float
) -> None:
    options = OPTIONS(experts=4, saved_each=4, snapshot=0.5, window=window, every=4.0)
    snapshot = plan(facts_of(), options, "moc").captures[0]
    assert snapshot.stall is not None
    assert snapshot.background is not None
    assert snapshot.stall.mean_h == pytest.approx(stall_h)
    assert snapshot.stall.mean_h + snapshot.background.mean_h == pytest.approx(0.5)


def test_what_is_not_said_follows_from_the_job() -> None:
    job_facts = facts_of(save_background=Constant(2.0), step_h=0.125)
    snapshot, remote = plan(job_facts, OPTIONS(experts=4, saved_each=4), "moc").captures
    assert snapshot.stall == Constant(0.5 - 0.125)
    assert remote.background == Constant(2.0)
    assert snapshot.every_h == pytest.approx(sqrt(2 * 0.375 * MTBF))
    snapshot, remote = plan(facts_of(), OPTIONS(experts=4, saved_each=4), "moc").captures
    assert (snapshot.stall, remote.background) == (Constant(0.5), Constant(0.5))


def test_the_interval_is_no_shorter_than_a_save_takes() -> None:
    options = OPTIONS(experts=4, saved_each=4, snapshot=0.5, window=1.0, persist=3.0)
    job_facts = facts_of(mtbf_h=inf)
    policy = plan(job_facts, options, "moc")
    assert policy.captures[0].every_h == pytest.approx(3.0, rel=1e-8)
    costs = ran(job_of(job_facts, policy), GivenFailures(((),))).costs
    assert costs.n_saves[0] == 19 + 18  # the last snapshot of 19 has not arrived at the end


def test_a_hidden_snapshot_is_as_old_as_it_took() -> None:
    # progress clock: the published O has no such term
    job_facts = facts_of(scopes=(PROCESS,))
    options = OPTIONS(experts=8, saved_each=8, snapshot=0.75, window=1.0, persist=0.25, every=EVERY)
    job = job_of(job_facts, plan(job_facts, options, "moc"))
    failures = PoissonFailures.draw(job, [1 / MTBF], N_REPLICATIONS, until_h=T, seed=6)
    costs = ran(job, failures).costs
    assert costs.hours_of("save") == pytest.approx(0.75)  # for the last one alone
    age_h = content_age_h(T, EVERY, 0.75)
    assert_mean(costs.hours_of("lost") - age_h * costs.n_failures, 0.0)


def test_a_node_takes_its_host_memory_with_it_and_a_process_does_not() -> None:
    job_facts = facts_of()
    options = OPTIONS(experts=2, saved_each=2, snapshot=0.0, window=0.0, persist=0.75, every=EVERY)
    job = job_of(job_facts, plan(job_facts, options, "moc"))
    lists = tuple((ScopedFailure(10.5, (1,), scope, (0.0,)),) for scope in (0, 1))
    costs = ran(job, GivenFailures(lists)).costs
    assert costs.hours_of("lost") == pytest.approx([0.5, 1.5])  # the save of 10 is on its way
    assert costs.hours_of("load") == pytest.approx([0.0, 0.125])


# --------------------------------------------------------------------------- stale experts


class Rotation:
    """Which save holds each expert: save after save, K of a queue of N each time."""

    def __init__(self, n_experts: int, n_saved_each: int) -> None:
        self.queue = list(range(n_experts))
        self.saved_in = [0] * n_experts
        self.n_saved_each = n_saved_each

    def save(self, number: int) -> None:
        for _ in range(self.n_saved_each):
            expert = self.queue.pop(0)
            self.saved_in[expert] = number
            self.queue.append(expert)


@pytest.mark.parametrize(("n_experts", "n_saved_each"), [(16, 1), (16, 4), (8, 8), (7, 3), (10, 4)])
def test_staleness_is_that_of_experts_saved_in_turn(n_experts: int, n_saved_each: int) -> None:
    rotation = Rotation(n_experts, n_saved_each)
    for number in range(3 * n_experts):
        if number:
            rotation.save(number)
        stale = [number - saved_in for saved_in in rotation.saved_in]
        assert expert_staleness(n_experts, n_saved_each, number).tolist() == stale
        if 0 not in rotation.saved_in:
            mean = mean_expert_staleness(n_experts, n_saved_each)
            assert np.mean(stale) == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize(("n_experts", "n_saved_each"), [(16, 1), (16, 4), (8, 8)])
def test_experts_lose_half_of_all_saves_of_a_turn_but_one(
    n_experts: int, n_saved_each: int
) -> None:
    assert mean_expert_staleness(n_experts, n_saved_each) == (n_experts / n_saved_each - 1) / 2


def test_lost_tokens_are_staleness_over_the_work_of_the_job() -> None:
    # 4 experts, one each: after save 3 they are 0, 1, 2 saves old, and one has none (3 of 3)
    assert portion_of_lost_tokens(4, 1, [3], 2.0, 100.0) == pytest.approx((0 + 1 + 2 + 3) / 4 / 50)
    later = portion_of_lost_tokens(4, 1, [9, 20], 2.0, 100.0)
    assert later == pytest.approx(2 * 1.5 / 50)
    assert portion_of_lost_tokens(4, 4, [9, 20], 2.0, 100.0) == 0.0
    assert portion_of_lost_tokens(4, 1, [], 2.0, 100.0) == 0.0


def test_staleness_before_the_job_is_refused() -> None:
    with pytest.raises(ParameterError, match="before the start"):
        expert_staleness(4, 1, -1)
    with pytest.raises(ParameterError, match="5 of 4"):
        mean_expert_staleness(4, 5)
