"""Silent errors cost what closed forms say, and leave no clean content as often."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from cprsim.failures.distributions import Constant, Exponential
from cprsim.records import Clock, Cluster, Duration, Estimate
from cprsim.recovery.policy import CHECK, NO_CONTENT, Capture, Policy, Reach, Scope, checked
from cprsim.simulate.job import ScopedFailure, SimulatedJob
from cprsim.simulate.strikes import GivenFailures
from tests.closed_forms import (
    best_checked_interval_h,
    checked_first_order,
    checked_progress,
    p_none_clean,
)
from tests.engines import run_many
from tests.recovery.lives import STATE, remote, rule, saves
from tests.recovery.poisson import PoissonFailures

SEED = 23
SAVED_EVERY_H, LATENT_H = 1.0, 2.0


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
    rules, tiers = (rule("all", "load", "remote"),), (remote(load_h, generations=n_kept),)
    policy = Policy("full", rules, tiers, (saves("remote", every_h, save_h),))
    cluster = Cluster((STATE,))
    if check_h:
        check = Capture(CHECK, None, stall=Constant(check_h), parts=NO_CONTENT)
        policy = checked(policy, cluster, check)
    return SimulatedJob(useful_h, cluster, clock, scopes, policy)


def overhead(job: SimulatedJob, rates_per_h: Sequence[float], n: int, engine: str) -> Estimate:
    """The mean in each hour of work, with its 95 % interval."""
    failures = PoissonFailures.draw(job, rates_per_h, n, until_h=job.useful_h, seed=SEED)
    costs, _ = run_many(job, failures, engine)
    return Estimate.of_mean(costs.wall_h / job.useful_h - 1.0)


@pytest.mark.parametrize(("engine", "n"), [("loop", 10_000), ("simpy", 500)])
@pytest.mark.parametrize("every_h", [1.0, 5.0])
def test_a_check_before_each_save(every_h: float, engine: str, n: int) -> None:
    job = job_of(200.0, every_h, None, save_h=0.05, load_h=0.2, check_h=0.03)
    found = overhead(job, (0.05, 0.0), n, engine)
    exact = checked_progress(every_h, 0.05, 0.03, 0.2, 0.05)
    assert abs(found.mean - exact) < 2.0 * found.half_width, (found, exact)


@pytest.mark.parametrize(("errors_per_h", "failures_per_h"), [(0.004, 0.0), (0.004, 0.008)])
def test_the_best_interval_with_checks(errors_per_h: float, failures_per_h: float) -> None:
    save_h, check_h, load_h = 0.03, 0.02, 0.1
    best_h = best_checked_interval_h(save_h, check_h, errors_per_h, failures_per_h)
    found = {}
    for factor in (0.5, 1.0, 2.0):
        every_h = factor * best_h
        useful_h = every_h * round(300.0 / every_h)
        job = job_of(useful_h, every_h, None, save_h=save_h, load_h=load_h, check_h=check_h)
        found[factor] = overhead(job, (errors_per_h, failures_per_h), 4_000, "loop")
        costs = (save_h, check_h, load_h, errors_per_h, failures_per_h)
        theory = checked_first_order(every_h, *costs)
        assert found[factor].mean == pytest.approx(theory, rel=0.03)
    assert found[1.0].high < min(found[0.5].low, found[2.0].low)


def one_error(n: int, from_h: float, to_h: float) -> GivenFailures:
    """An error in each of n replications, at a uniform instant."""
    at_h = np.random.default_rng(SEED).uniform(from_h, to_h, n)
    return GivenFailures(tuple((ScopedFailure(hours, (1,), 0, (0.0,)),) for hours in at_h))


@pytest.mark.parametrize(("engine", "n"), [("loop", 10_000), ("simpy", 400)])
@pytest.mark.parametrize(
    ("n_kept", "p"), [(1, 0.787), (2, 0.477), (3, 0.289), (4, 0.176), (5, 0.107)]
)
def test_how_often_no_content_is_clean(n_kept: int, p: float, engine: str, n: int) -> None:
    """Then the job begins again."""
    assert p_none_clean(n_kept, SAVED_EVERY_H, LATENT_H) == pytest.approx(p, abs=5e-4)
    job = job_of(150.0, SAVED_EVERY_H, Exponential(LATENT_H), clock=Clock.WALL, n_kept=n_kept)
    costs, _ = run_many(job, one_error(n, 100.0, 101.0), engine)
    assert (costs.n_failures == 1).all()
    begins_again = Estimate.of_mean((costs.hours_of("lost") > 99.0).astype(float))
    assert abs(begins_again.mean - p) < 2.0 * begins_again.half_width


@pytest.mark.parametrize("every_h", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("latency_h", [0.0, 0.8, 3.0])
def test_an_error_costs_its_latency_at_any_interval(every_h: float, latency_h: float) -> None:
    job = job_of(60.0, every_h, Constant(latency_h), save_h=0.1, load_h=0.3, n_kept=8)
    failures = one_error(50, 30.0, 34.0)
    costs, _ = run_many(job, failures, "loop")
    since_save_h = failures.strikes(1).at_h % every_h
    saved_h = 0.1 * 60.0 / every_h
    assert costs.wall_h == pytest.approx(60.0 + saved_h + since_save_h + latency_h + 0.3)
