"""Random policies: the compiled loop, SimPy and the naive interpreter agree to 1e-9 h."""

from collections import defaultdict
from itertools import pairwise

import pytest

from cprsim.job.legal import problems
from cprsim.job.records import Activity
from tests.recovery.random_policies import CASES, on_grid, random_case
from tests.simulators import SIMULATORS, assert_same_outcome, draws_of, logged, ran

N_AT_ONCE = 14  # cases of a test
QUICK, ALL = 2, 12  # tests of each of 11 kinds: 308 and 1,848 cases
OVER_STORAGE = "on a grid", "at once", "together"  # transfers end with others, or share a link
RARE = {
    "random": (500_382,),  # two saves due at the end
    "together": (500_204,),
    # a node comes at the instant of a stop, or as a stage ends; a free save is due at a stop
    "stopping": (299, 50_021, 70_337),
    # two recoveries want the last node; two saves commit, and one room is wanted by the next; a
    # save tried again takes as long as one on the grid
    "on a grid": (890, 611_943, 70_243),
    "silent": (1_333,),  # a content is bad, and another copy of it is tried
    "at once": (1_172,),  # which of two flushes in flight is the older
}


def chunks(n_quick: int, n_all: int) -> list[object]:
    """Numbers of tests; those beyond the first few are long."""
    marks = [pytest.mark.long]
    return [pytest.param(n, marks=marks if n >= n_quick else []) for n in range(n_all)]


def require_agreement(kind: str, seed: int) -> None:
    job, failures = CASES[kind](seed)
    assert list(problems(job.policy, job.cluster, job.scopes)) == [], (kind, seed)
    draws = draws_of(job, seed)
    expected = ran("naive", job, failures, draws)
    assert expected.useful_h + sum(expected.hours) == pytest.approx(expected.wall_h, abs=1e-6)
    assert min(expected.hours, default=0.0) >= 0.0
    for simulator in ("simpy", "loop", "storage"):
        if simulator != "storage" or kind in OVER_STORAGE:
            outcome = ran(simulator, job, failures, draws)
            assert_same_outcome(outcome, expected, (kind, seed, simulator))


@pytest.mark.parametrize("chunk", chunks(QUICK, ALL))
@pytest.mark.parametrize("kind", CASES)
def test_all_three_agree(kind: str, chunk: int) -> None:
    for seed in range(N_AT_ONCE * chunk, N_AT_ONCE * (chunk + 1)):
        require_agreement(kind, seed)


@pytest.mark.parametrize("kind", RARE)
def test_cases_that_were_wrong_once_or_that_show_what_hardly_another_does(kind: str) -> None:
    for seed in RARE[kind]:
        require_agreement(kind, seed)


@pytest.mark.parametrize("chunk", chunks(1, 10))
def test_rounding_decides_nothing(chunk: int) -> None:
    """With 1.1 h for each hour, instants that are one differ by rounding."""
    for seed in range(N_AT_ONCE * chunk, N_AT_ONCE * (chunk + 1)):
        job, failures = on_grid(seed)
        expected = ran("naive", job, failures, draws_of(job, seed))
        job, failures = on_grid(seed, unit_h=1.1)
        for simulator in (*SIMULATORS, "storage"):
            outcome = ran(simulator, job, failures, draws_of(job, seed))
            assert_same_outcome(outcome, expected, (seed, simulator), times=1.1)


@pytest.mark.parametrize("first", [0, 25])
def test_the_log_of_a_random_job_says_in_order_where_its_hours_went(first: int) -> None:
    for seed in range(first, first + 25):
        job, failures = random_case(seed)
        log = logged(job, failures, draws_of(job, seed))
        assert log.at_h.tolist() == sorted(log.at_h)
        hours: dict[str, float] = defaultdict(float)
        for activity, (at_h, after_h) in zip(log.activity, pairwise(log.at_h), strict=False):
            hours[Activity(activity).name.lower()] += after_h - at_h
        outcome = ran("simpy", job, failures, draws_of(job, seed))
        booked = dict(zip(job.policy.parts, outcome.hours, strict=True))
        for part in booked.keys() - {"lost", "degraded", "tax"}:  # all of work
            assert hours[part] == pytest.approx(booked[part], abs=1e-9), (seed, part)
