"""A rate that changes along a window: its integral, numbers per interval, both engines."""

from __future__ import annotations

from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from cprsim.errors import BudgetError, ParameterError
from cprsim.failures.block import BlockFailures
from cprsim.failures.changing import ChangingRate
from cprsim.failures.course import RateCourse
from cprsim.records import Clock, Cluster
from cprsim.scenario.failures import ChangingFailures
from tests.scenario.writing import changed, problems, scenario, write
from tests.simulate.building import FULL, block_of, engine, policy, setting

PIECES = RateCourse((0.0, 4.0, 10.0, 12.0), (0.5, 2.0, 0.1), (0.5, 2.0, 0.1))
LINE = RateCourse((0.0, 12.0), (2.0,), (0.2,))
BOTH = RateCourse((0.0, 5.0, 12.0), (0.3, 1.0), (3.0, 1.0))
COURSES = {"pieces": PIECES, "log-linear": LINE, "both": BOTH}
N = 4000
AT_H = np.array([0.0, 1.0, 3.5, 4.0, 7.0, 11.0, 12.0, 15.0, 29.0])  # the window ends at 12


def rate(course: RateCourse, at_h: float) -> float:
    """The rate at an instant, reckoned apart."""
    at_h %= course.window_h
    for k, (begin, end) in enumerate(pairwise(course.borders_h)):
        if begin <= at_h < end:
            first, last = course.begins_per_h[k], course.ends_per_h[k]
            return float(first * (last / first) ** ((at_h - begin) / (end - begin)))
    raise AssertionError(at_h)


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_what_has_passed_is_the_integral_of_the_rate_and_has_an_inverse(course: RateCourse) -> None:
    borders = [round_ * 12.0 + at for round_ in range(3) for at in course.borders_h]
    for at_h, passed in zip(AT_H.tolist(), course.passed(AT_H).tolist(), strict=True):
        points = [one for one in borders if 0 < one < at_h] or None
        integral = integrate.quad(lambda t: rate(course, t), 0, at_h, points=points, limit=200)[0]
        assert passed == pytest.approx(integral, abs=1e-7)
    assert course.instant(course.passed(AT_H + 0.3)) == pytest.approx(AT_H + 0.3)


@pytest.mark.parametrize("course", COURSES.values(), ids=COURSES)
def test_numbers_per_interval_are_poisson_with_the_mean_of_the_closed_form(
    course: RateCourse, cluster: Cluster
) -> None:
    source = ChangingRate(course, range(8), from_first=True)
    chunks = list(islice(source.draw(cluster, 5, 0, N, [2.0, 11.0, 29.0]), 3))
    replication = np.concatenate([one.replication for one in chunks])
    at_h = np.concatenate([one.at_h for one in chunks])
    for (a, b), mean in zip(pairwise(AT_H), np.diff(course.passed(AT_H)), strict=True):
        counts = np.bincount(replication[(at_h >= a) & (at_h < b)], minlength=N)
        assert abs(counts.mean() - mean) <= 4 * np.sqrt(mean / N)
        fourth = mean + 3 * mean**2  # central moment of a Poisson number
        assert abs(counts.var() - mean) <= 4 * np.sqrt((fourth - mean**2) / N)
    for one in chunks:  # in order within a replication, and the nodes of the role alone
        inner = np.diff(one.replication) == 0
        assert (np.diff(one.at_h)[inner] >= 0).all()
        assert set(one.slot.tolist()) == set(range(8))


def test_jobs_that_begin_anywhere_meet_the_mean_of_the_window(cluster: Cluster) -> None:
    source = ChangingRate(BOTH, range(8), together=2)
    chunk = next(source.draw(cluster, 6, 0, N, [3.0]))
    counts = np.diff(chunk.first)
    mean = 3.0 * BOTH.per_window / 12.0
    assert source.n_failures(3.0) == pytest.approx(mean)
    assert source.expected(cluster, 3.0).mtbf_h == pytest.approx(3.0 / mean)
    assert abs(counts.mean() - mean) <= 4 * counts.std() / np.sqrt(N)
    begins_h = (np.arange(1200) + 0.5) / 100
    variance = mean + (BOTH.passed(begins_h + 3.0) - BOTH.passed(begins_h)).var()
    assert variance > 1.2 * mean  # windows differ
    assert counts.var() == pytest.approx(variance, rel=4 * 1.2 * np.sqrt(2 / N))


@pytest.mark.parametrize("simpy_alone", [False, True], ids=["compiled", "simpy"])
def test_both_engines_strike_jobs_as_often_as_the_closed_form_has_it(simpy_alone: bool) -> None:
    n, ends_h = 600, [2.0, 6.0, 13.0]
    means, struck = [], []
    for useful_h in ends_h:  # nothing takes time, so that a job's end is its useful hours
        job = setting(useful_h, clock=Clock.WALL)
        source = ChangingRate(BOTH, job.cluster.shard_slots, from_first=True)
        failures = BlockFailures(source, job.cluster, 20, 0, useful_h, range(n))
        runs = engine(job, policy(FULL, 1e-3), simpy_alone=simpy_alone, seed=20)
        costs = runs.run(block_of(job, failures, seed=20), range(n)).costs
        means.append(float(costs.n_failures.mean()))
        struck.append(float(costs.wall_h.mean()))
    assert struck == pytest.approx(ends_h, rel=0.02)
    passed = BOTH.passed(np.array([0.0, *ends_h]))
    for mean, expected in zip(means, passed[1:].tolist(), strict=True):
        assert abs(mean - expected) <= 4 * np.sqrt(expected / n) + 0.02 * expected


# ------------------------------------------------------------------------------- in a scenario

SECTION = "kind: changing, borders: [0 h, 4 h, 12 h], mtbf: [2 h, 5 h]"


def test_a_scenario_says_pieces_or_a_line() -> None:
    said = {"kind": "changing", "borders": ["0 h", "4 h", "12 h"]}
    pieces = scenario(failures={**said, "mtbf": ["2 h", "5 h"]}).failures
    line = scenario(failures={**said, "mtbf": ["2 h", "5 h", "1 h"]}).failures
    assert isinstance(pieces, ChangingFailures)
    assert isinstance(line, ChangingFailures)
    assert pieces.course == RateCourse((0.0, 4.0, 12.0), (0.5, 0.2), (0.5, 0.2))
    assert line.course == RateCourse((0.0, 4.0, 12.0), (0.5, 0.2), (0.2, 1.0))


@pytest.mark.parametrize(
    ("replacement", "complaint"),
    [
        (("0 h, 4 h", "1 h, 4 h"), "a window begins at 0 h"),
        (("4 h, 12 h", "4 h, 4 h"), "4 h does not lie after the one before, 4 h"),
        (("[2 h, 5 h]", "[2 h]"), "give 2, one for each piece, or 3, one for each border"),
        (("[2 h, 5 h]", "[2 h, 0 h]"), "must lie between 1 s and"),
        (("kind: changing", "role: nobody, kind: changing"), "no node of role `nobody`"),
    ],
)
def test_what_is_no_rate_is_refused(
    tmp_path: Path, replacement: tuple[str, str], complaint: str
) -> None:
    text = changed(("kind: injected, count: 5, together: 4", SECTION), replacement)
    (found,) = problems(write(tmp_path, text))
    assert complaint in str(found)


def test_rates_too_high_to_simulate_are_refused(cluster: Cluster) -> None:
    fast = ChangingRate(RateCourse((0.0, 10.0), (1e7,), (1e7,)), range(8))
    with pytest.raises(BudgetError, match="failures come too fast to simulate"):
        next(fast.draw(cluster, 1, 0, 1, [10.0]))
    with pytest.raises(ParameterError, match="increase from 0 h"):
        RateCourse((0.0, 5.0, 5.0), (1.0, 1.0), (1.0, 1.0))
