"""Silent errors: the engines and the naive interpreter say the same, and closed forms hold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from cprsim.estimate import Estimate
from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster, CostBreakdown, Duration, Holds, Role
from cprsim.recovery.policy import (
    CHECK,
    NO_CONTENT,
    Capture,
    Medium,
    Outside,
    Policy,
    Reach,
    Reverts,
    Rule,
    Scope,
    Stage,
    StageKind,
    Tier,
    checked,
)
from cprsim.simulate.blocks import BlockDraws, ScopedFailures, run_block
from cprsim.simulate.cluster import run as run_events
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.numbers import FINISHED
from cprsim.simulate.strikes import GivenFailures
from tests.closed_forms import (
    best_checked_interval_h,
    checked_first_order,
    checked_progress,
    p_none_clean,
)
from tests.recovery import by_fast, naive
from tests.recovery.poisson import PoissonFailures
from tests.recovery.random_policies import (
    Dice,
    RandomDraws,
    random_failures,
    random_job,
)
from tests.recovery.test_engines import (
    NAIVELY_H,
    Case,
    assert_same,
    counts_of,
    hours_of,
    rows_of,
    steady,
)
from tests.recovery.test_events import saving_often


def with_errors(dice: Dice, job: SimulatedJob) -> SimulatedJob:
    """Silent errors that are noticed after some time, by checks, or by either."""
    noticed_by = dice.one_of(["latency", "latency", "check", "both"])
    latency_h = job.useful_h * dice.one_of([0.002, 0.05, 0.2]) * dice.between(0.7, 1.3)
    latency = Exponential(latency_h) if dice.chance(0.3) else Constant(latency_h)
    scope = Scope(
        "silent", Reach.PROCESS, Constant(0.0), False, silent=True,
        latency=None if noticed_by == "check" else latency,
    )  # fmt: skip
    job = replace(job, scopes=(*job.scopes, scope))
    if noticed_by == "latency":
        return job
    every_h = job.useful_h / dice.between(5.0, 40.0) if dice.chance(0.5) else None
    takes = Constant(0.002 * job.useful_h * dice.between(0.5, 2.0))
    check = Capture(CHECK, every_h, stall=takes, parts=NO_CONTENT)
    return replace(job, policy=checked(job.policy, job.cluster, check))


def random_errors(seed: int) -> Case:
    dice = Dice(np.random.default_rng([seed, 9]))
    job = random_job(dice)
    job = with_errors(dice, saving_often(job) if dice.chance(0.3) else job)
    return job, random_failures(dice, job)[:300], RandomDraws(seed, 0.02 * job.useful_h)


def steady_errors(seed: int) -> Case:
    """Some errors among the failures of jobs that save often."""
    job, failures, draws = steady(seed)
    dice = Dice(np.random.default_rng([seed, 10]))
    job = with_errors(dice, job)
    errs = len(job.scopes) - 1
    failures = [replace(one, scope=errs) if dice.chance(0.4) else one for one in failures]
    return job, failures, draws


CASES: dict[str, Callable[[int], Case]] = {"random": random_errors, "steady": steady_errors}


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize(
    "seed",
    [pytest.param(seed, marks=[pytest.mark.long] if seed >= 40 else []) for seed in range(600)],
)
def test_all_three_say_the_same_of_silent_errors(kind: str, seed: int) -> None:
    job, failures, draws = CASES[kind](seed)
    expected = naive.run(job, failures, draws)
    by_events = run_events(job, iter(failures), draws, logged=False).outcome
    assert counts_of(by_events) == counts_of(expected)
    assert_same(hours_of(by_events), hours_of(expected), within_h=NAIVELY_H)
    assert_same(rows_of(by_events), rows_of(expected), within_h=NAIVELY_H)
    status, of_job, hours, counts = by_fast.run(job, failures, draws)
    if True:
        assert (status == FINISHED, *counts) == counts_of(expected)
        assert_same([*of_job, *hours], hours_of(expected))


# --------------------------------------------------------------------------- closed forms

SEED = 23
REMOTE = Tier("remote", Medium.REMOTE, Outside(), "nodes")
LATENT_H, SAVED_EVERY_H = 2.0, 1.0


def job_of(
    useful_h: float,
    every_h: float,
    latency: Duration | None,
    *,
    clock: Clock = Clock.PROGRESS,
    save_h: float = 0.0,
    load_h: float = 0.0,
    check_h: float = 0.0,
    n_kept: int = 1,
) -> SimulatedJob:
    """Saves and loads that take this long, silent errors, and failures that are noticed at once."""
    scopes = (
        Scope("silent", Reach.PROCESS, Constant(0.0), False, silent=True, latency=latency),
        Scope("process", Reach.PROCESS, Constant(0.0), False),
    )
    policy = Policy(
        "full",
        (Rule(Reverts.ALL, (Stage(StageKind.LOAD),), sources=("remote",)),),
        (replace(REMOTE, load=Constant(load_h), generations=n_kept),),
        (Capture("remote", every_h, stall=Constant(save_h)),),
    )
    cluster = Cluster((Role("nodes", 4, Holds.SHARD),))
    if check_h:
        check = Capture(CHECK, None, stall=Constant(check_h), parts=NO_CONTENT)
        policy = checked(policy, cluster, check)
    return SimulatedJob(useful_h, cluster, clock, scopes, policy)


def ran(job: SimulatedJob, failures: ScopedFailures, *, simpy_alone: bool = False) -> CostBreakdown:
    n = failures.n_replications
    draws = BlockDraws(job, SEED, 0, n, range(n))
    return run_block(job, failures, draws, range(n), simpy_alone=simpy_alone).costs


def overhead(job: SimulatedJob, rates_per_h: Sequence[float], n: int, simpy: bool) -> Estimate:
    """The mean in each hour of work, with its 95 % interval."""
    failures = PoissonFailures.draw(job, rates_per_h, n, until_h=job.useful_h, seed=SEED)
    wall_h = ran(job, failures, simpy_alone=simpy).wall_h
    return Estimate.of_mean(wall_h / job.useful_h - 1.0)


@pytest.mark.parametrize("simpy", [False, True])
@pytest.mark.parametrize("every_h", [1.0, 5.0])
def test_a_check_before_each_save_costs_what_the_closed_form_says(
    every_h: float, simpy: bool
) -> None:
    job = job_of(200.0, every_h, None, save_h=0.05, load_h=0.2, check_h=0.03)
    found = overhead(job, (0.05, 0.0), 500 if simpy else 10_000, simpy)
    exact = checked_progress(every_h, 0.05, 0.03, 0.2, 0.05)
    assert abs(found.mean - exact) < 2.0 * found.half_width, (found, exact)


@pytest.mark.parametrize(("errors_per_h", "failures_per_h"), [(0.004, 0.0), (0.004, 0.008)])
def test_the_best_interval_with_checks_is_that_of_the_closed_form(
    errors_per_h: float, failures_per_h: float
) -> None:
    save_h, check_h, load_h = 0.03, 0.02, 0.1
    best_h = best_checked_interval_h(save_h, check_h, errors_per_h, failures_per_h)
    found = {}
    for factor in (0.5, 1.0, 2.0):
        every_h = factor * best_h
        useful_h = every_h * round(300.0 / every_h)
        job = job_of(useful_h, every_h, None, save_h=save_h, load_h=load_h, check_h=check_h)
        found[factor] = overhead(job, (errors_per_h, failures_per_h), 4_000, False)
        costs = (save_h, check_h, load_h, errors_per_h, failures_per_h)
        assert found[factor].mean == pytest.approx(checked_first_order(every_h, *costs), rel=0.03)
    assert found[1.0].high < min(found[0.5].low, found[2.0].low)


def one_error(n: int, from_h: float, to_h: float) -> GivenFailures:
    """An error in each of n replications, at a uniform instant."""
    at_h = np.random.default_rng(SEED).uniform(from_h, to_h, n)
    return GivenFailures(tuple((ScopedFailure(hours, (1,), 0, (0.0,)),) for hours in at_h))


@pytest.mark.parametrize(
    ("n_kept", "p"), [(1, 0.787), (2, 0.477), (3, 0.289), (4, 0.176), (5, 0.107)]
)
@pytest.mark.parametrize("simpy", [False, True])
def test_as_often_as_the_closed_form_says_no_content_is_clean(
    n_kept: int, p: float, simpy: bool
) -> None:
    """Then the job begins again."""
    assert p_none_clean(n_kept, SAVED_EVERY_H, LATENT_H) == pytest.approx(p, abs=5e-4)
    job = job_of(150.0, SAVED_EVERY_H, Exponential(LATENT_H), clock=Clock.WALL, n_kept=n_kept)
    costs = ran(job, one_error(400 if simpy else 10_000, 100.0, 101.0), simpy_alone=simpy)
    assert (costs.n_failures == 1).all()
    begins_again = Estimate.of_mean((costs.hours_of("lost") > 99.0).astype(float))
    assert abs(begins_again.mean - p) < 2.0 * begins_again.half_width


@pytest.mark.parametrize("every_h", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("latency_h", [0.0, 0.8, 3.0])
def test_an_error_costs_its_latency_on_top_at_any_interval(
    every_h: float, latency_h: float
) -> None:
    job = job_of(60.0, every_h, Constant(latency_h), save_h=0.1, load_h=0.3, n_kept=8)
    failures = one_error(50, 30.0, 34.0)
    wall_h = ran(job, failures).wall_h
    since_save_h = np.array([one[0].at_h % every_h for one in failures.lists])
    assert wall_h == pytest.approx(60.0 + 0.1 * 60.0 / every_h + since_save_h + latency_h + 0.3)
