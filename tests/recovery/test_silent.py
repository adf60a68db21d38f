"""Silent errors: the engines and the naive interpreter say the same, and closed forms hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cprsim.failures.distributions import Constant, Exponential
from cprsim.recovery.policy import CHECK, NO_CONTENT, Capture, Reach, Scope, checked
from cprsim.simulate.events.replication import run as run_events
from cprsim.simulate.job import SimulatedJob
from cprsim.simulate.numbers import FINISHED, LEFT
from tests.recovery import by_fast, naive
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
    if status != LEFT:
        assert (status == FINISHED, *counts) == counts_of(expected)
        assert_same([*of_job, *hours], hours_of(expected))
