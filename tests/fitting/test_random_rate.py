"""Random factors on a rate: likelihood by hand, known truths found, none claimed without one."""

from __future__ import annotations

import json
from itertools import pairwise, product
from math import exp
from pathlib import Path

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.failures.course import RateCourse
from cprsim.failures.outages import Outages
from cprsim.failures.random_factor import RandomFactor
from cprsim.fitting.correlated_fit import fit_correlated
from cprsim.fitting.loops import log_likelihoods, means_given_all
from cprsim.fitting.posterior_check import check_by_simulation, check_through_window
from cprsim.fitting.random_rate import fit_random_rate, random_rate, smoothed
from cprsim.fitting.rates import LOG_LINEAR, rates, rates_and_factor
from cprsim.records import Floats
from cprsim.scenario.failures import ChangingFailures
from cprsim.scenario.yaml_text import read_document
from tests.fitting.logs import log_of, write_log
from tests.fitting.test_rates import WINDOW_H, changing, ramp
from tests.making import call
from tests.scenario.writing import scenario

VARIANCE, LASTS_H = 0.5, 100.0
STEADY = RateCourse((0.0, WINDOW_H), (0.06,), (0.06,))


def wandering(
    seed: int, n: float, variance: float = VARIANCE, lasts_h: float = LASTS_H, n_nodes: int = 1
) -> Outages:
    """About n failures on random nodes; gamma factors hold for stretches of exponential length."""
    rng = np.random.default_rng(seed)
    lengths_h = rng.exponential(lasts_h, int(WINDOW_H / lasts_h * 3) + 100)
    factors = rng.gamma(1 / variance, variance, len(lengths_h))
    counts = rng.poisson(n / WINDOW_H * factors * lengths_h)
    begins_h = np.cumsum(lengths_h) - lengths_h
    at_h = np.repeat(begins_h, counts) + np.repeat(lengths_h, counts) * rng.random(counts.sum())
    at_h = np.sort(at_h)
    node = rng.integers(n_nodes, size=len(at_h)).astype(np.float64)
    return log_of(at_h, WINDOW_H, node, n_nodes, given=True)


# ------------------------------------------------------------------------------- the likelihood

COUNT, MEAN = np.array([0.0, 3.0, 2.0, 0.0, 1.0]), np.array([0.5, 1.0, 0.8, 1.2, 0.3])
FACTOR, WEIGHT, P_CHANGE = np.array([0.2, 1.0, 3.0]), np.array([0.5, 0.3, 0.2]), 0.3


def by_hand() -> tuple[float, Floats]:
    """Likelihood of all bins, and the mean of the factor in each: a sum over all paths."""
    total, means = 0.0, np.zeros(len(COUNT))
    for path in product(range(3), repeat=len(COUNT)):
        p = WEIGHT[path[0]]
        for before, after in pairwise(path):
            p *= P_CHANGE * WEIGHT[after] + (1 - P_CHANGE) * (before == after)
        z = FACTOR[list(path)]
        p *= float(np.prod(z**COUNT * np.exp(-z * MEAN)))
        total, means = total + p, means + p * z
    return total, means / total


def test_the_likelihood_is_the_sum_over_all_paths_of_the_factor() -> None:
    total, means = by_hand()
    found = log_likelihoods(COUNT, MEAN, FACTOR, WEIGHT, P_CHANGE)
    assert exp(found.sum()) == pytest.approx(total, rel=1e-12)
    assert means_given_all(COUNT, MEAN, FACTOR, WEIGHT, P_CHANGE) == pytest.approx(means)


# ------------------------------------------------------------------------------- known truths


def test_intervals_hold_the_true_factor() -> None:
    found = [fit_random_rate(wandering(seed, 600).start_h, STEADY) for seed in range(20)]
    assert all(one.is_claimed for one in found)
    held = [
        [one.variance.low < VARIANCE < one.variance.high for one in found],
        [one.lasts_h.low < LASTS_H < one.lasts_h.high for one in found],
    ]
    assert np.sum(held, axis=1).min() >= 15  # right intervals miss more than 5 once in 3,000
    middle = np.median([one.variance.mean for one in found])
    assert middle == pytest.approx(VARIANCE, rel=0.3)


def test_no_factor_is_claimed_where_there_is_none() -> None:
    claimed = []
    for seed in range(20):
        log = changing(seed, 300, np.ones_like)
        claimed.append(random_rate(log, rates(log).course).is_claimed)
    assert np.sum(claimed) <= 4  # of 5 % more come once in 390


def test_pieces_that_a_random_factor_makes_are_no_course() -> None:
    logs = [wandering(seed, 600, 0.3, 300.0) for seed in range(6)]
    fell_for_it = [rates(log).changes for log in logs]
    said = [rates_and_factor(log) for log in logs]
    assert sum(fell_for_it) >= 2
    assert sum(course.changes for course, _ in said) <= 1
    assert all(random is not None and random.is_claimed for _, random in said)
    course, random = rates_and_factor(changing(3, 600, ramp))
    assert course.name == LOG_LINEAR
    assert random is not None
    assert not random.is_claimed


def test_a_course_that_is_there_stays_beside_a_random_factor() -> None:
    log = wandering(4, 1200)
    kept = np.random.default_rng(1).random(log.n_outages) < ramp(log.start_h / WINDOW_H)
    course, random = rates_and_factor(log.where(kept))
    assert course.changes
    assert random is not None
    assert random.variance.low < VARIANCE < random.variance.high


def test_many_failures_in_a_bin_are_no_trouble() -> None:
    for variance in (0.02, 1.5):
        log = wandering(7, 300_000, variance)
        found = fit_random_rate(log.start_h, RateCourse((0.0, WINDOW_H), (30.0,), (30.0,)))
        assert found.variance.mean == pytest.approx(variance, rel=0.5)
        assert found.lasts_h.mean == pytest.approx(LASTS_H, rel=0.5)
    even_h = np.linspace(0, WINDOW_H, 300_000, endpoint=False)
    steady = fit_random_rate(even_h, RateCourse((0.0, WINDOW_H), (30.0,), (30.0,)))
    assert steady.gain == pytest.approx(0.0, abs=0.5)


def test_bursts_last_as_short_as_is_looked_at() -> None:
    at_h = np.sort(np.random.default_rng(5).uniform(0, WINDOW_H, 100))
    found = fit_random_rate(
        np.sort((at_h[:, None] + [0.0, 0.1, 0.2]).ravel()),
        RateCourse((0.0, WINDOW_H), (0.03,), (0.03,)),
    )
    assert found.is_claimed
    assert not found.lasts_h.has_interval
    assert "or shorter: failures come in bursts" in found.in_words()
    assert found.variance.low < found.variance.mean < found.variance.high


def test_the_log_is_even_on_the_clock_of_the_smoothed_course() -> None:
    log = wandering(3, 2000)
    course = rates(log, "constant").course
    seen = smoothed(log, course, RandomFactor(VARIANCE, LASTS_H))
    fleet = np.diff(np.histogram(seen.passed(log.start_h), 100)[1]).mean()
    even = np.histogram(seen.passed(log.start_h), 100, (0, seen.per_window))[0]
    plain = np.histogram(log.start_h, 100, (0, WINDOW_H))[0]
    assert fleet > 0
    assert even.var() / even.mean() < 1.5 < 4 < plain.var() / plain.mean()


def test_a_log_too_short_is_refused() -> None:
    with pytest.raises(ParameterError, match="40 h are needed"):
        fit_random_rate(np.arange(10.0), RateCourse((0.0, 20.0), (0.5,), (0.5,)))


# ------------------------------------------------------------------------------- what is made of it


def test_the_circle_has_the_weeks_that_a_random_factor_makes() -> None:
    log = wandering(4, 900, n_nodes=40)
    course = rates(log, "constant").course
    factor = random_rate(log, course).factor
    assert factor is not None
    wide = check_through_window(log, course, n=100, factor=factor)
    plain = check_by_simulation(log, fit_correlated(log), n=100)
    weekly = [next(row for row in rows if row.name == "weekly_dispersion") for rows in
              (wide, plain)]  # fmt: skip
    assert weekly[0].inside
    assert not weekly[1].inside
    assert all(row.inside for row in wide)


def test_the_fragment_has_the_factor(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.csv", wandering(6, 900))
    asked = ("fit", path, "--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0)
    said = json.loads(call(*asked, "--through-window", "--json").stdout)
    found = said["random_rate"]
    assert found["claimed"]
    written = read_document(said["fragment"], "").data["failures"]
    assert written.pop("nodes") == 1
    section = scenario(failures=written).failures
    assert isinstance(section, ChangingFailures)
    assert section.factor is not None
    assert section.factor.variance == pytest.approx(found["variance"]["mean"], rel=1e-4)
    assert section.factor.lasts_h == pytest.approx(found["lasts_h"]["mean"], rel=1e-4)
    assert found["variance"]["low"] < VARIANCE < found["variance"]["high"]
    plain = call(*asked).stdout
    assert "besides, a random factor of variance" in plain
    assert "--through-window: has it" in plain


def test_a_steady_log_has_a_fragment_without_a_factor(tmp_path: Path) -> None:
    path = write_log(tmp_path / "log.csv", changing(3, 300, np.ones_like))
    asked = ("fit", path, "--time-unit", "h", "--from", 0, "--to", WINDOW_H, "--bootstrap", 0)
    said = json.loads(call(*asked, "--through-window", "--json").stdout)
    assert not said["random_rate"]["claimed"]
    assert "factor:" not in said["fragment"]
