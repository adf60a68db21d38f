"""A random factor on a rate: mean and variance of counts, a chunk's borders, both engines."""

from __future__ import annotations

from itertools import islice
from math import exp
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate

from cprsim.errors import BudgetError, ParameterError
from cprsim.failures import limits
from cprsim.failures.block import BlockFailures
from cprsim.failures.changing import ChangingRate
from cprsim.failures.course import RateCourse
from cprsim.failures.random_factor import CourseExpectation, RandomFactor
from cprsim.records import Clock, Cluster, Floats
from cprsim.scenario.failures import ChangingFailures
from tests.closed_forms.random_factor import variance_of_count
from tests.failures.test_changing import BOTH, rate
from tests.scenario.writing import changed, problems, scenario, write
from tests.simulate.building import FULL, block_of, engine, policy, setting

N = 12_000
RATE, VARIANCE, LASTS_H = 0.5, 0.8, 6.0
FACTOR = RandomFactor(VARIANCE, LASTS_H)
STEADY = ChangingRate(
    RateCourse((0.0, 10.0), (RATE,), (RATE,)), range(8), from_first=True, factor=FACTOR
)


def instants(source: ChangingRate, cluster: Cluster, borders_h: list[float]) -> tuple[Floats, ...]:
    """Replication and instant of all failures up to the last border."""
    chunks = list(islice(source.draw(cluster, 5, 0, N, borders_h), len(borders_h)))
    return (
        np.concatenate([one.replication for one in chunks]),
        np.concatenate([one.at_h for one in chunks]),
    )


def moments_agree(counts: Floats, mean: float, variance: float) -> None:
    """Within 4 standard errors, that of the variance by the fourth moment seen."""
    off = (counts - counts.mean()) ** 2
    assert abs(counts.mean() - mean) <= 4 * np.sqrt(variance / N)
    assert abs(off.mean() - variance) <= 4 * off.std() / np.sqrt(N)


@pytest.mark.parametrize("until_h", [0.5, 6.0, 40.0])
def test_counts_have_the_mean_and_the_variance_of_the_closed_form(
    until_h: float, cluster: Cluster
) -> None:
    replication, at_h = instants(STEADY, cluster, [3.0, 7.0, 40.0])  # across chunks
    counts = np.bincount(replication[at_h < until_h], minlength=N).astype(np.float64)
    moments_agree(counts, RATE * until_h, variance_of_count(FACTOR, RATE, until_h))


def test_the_closed_form_is_the_integral_of_the_covariance() -> None:
    def covariance(s: float, t: float) -> float:
        return RATE**2 * VARIANCE * exp(-(t - s) / LASTS_H)

    double = 2 * integrate.dblquad(covariance, 0, 9.0, 0, lambda t: t)[0]
    assert variance_of_count(FACTOR, RATE, 9.0) == pytest.approx(RATE * 9.0 + double)
    short, long = variance_of_count(FACTOR, RATE, 1e-4), variance_of_count(FACTOR, RATE, 1e6)
    assert short == pytest.approx(RATE * 1e-4, rel=1e-3)
    assert long / (RATE * 1e6) == pytest.approx(1 + 2 * VARIANCE * RATE * LASTS_H, rel=1e-4)


def test_a_factor_is_on_a_rate_that_changes(cluster: Cluster) -> None:
    source = ChangingRate(BOTH, range(8), from_first=True, factor=FACTOR)
    replication, at_h = instants(source, cluster, [4.0, 11.0])
    counts = np.bincount(replication, minlength=N).astype(np.float64)
    grid = (np.arange(1100) + 0.5) / 100
    rates = np.array([rate(BOTH, one) for one in grid.tolist()]) / 100
    together = np.exp(-np.abs(grid[:, None] - grid) / LASTS_H)
    mean = float(rates.sum())
    moments_agree(counts, mean, mean + VARIANCE * float(rates @ together @ rates))
    assert source.n_failures(11.0) == pytest.approx(mean, rel=1e-4)
    for first, last in ((0.0, 4.0), (6.0, 9.0)):  # and where they lie follows the course
        mine = rates[(grid > first) & (grid < last)].sum()
        seen = np.bincount(replication[(at_h >= first) & (at_h < last)], minlength=N)
        assert abs(seen.mean() - mine) <= 4 * seen.std() / np.sqrt(N)


def test_what_is_expected_of_a_pace_and_its_instants_are_inverse() -> None:
    rng, n, zeros = np.random.default_rng(3), 5, np.zeros(5)
    stretches = FACTOR.stretches(rng, FACTOR.sample(rng, n), 0.0, 12.0)
    pace = CourseExpectation.of(BOTH, stretches, zeros, zeros + BOTH.per_window)
    of = np.repeat(np.arange(n), 40)
    at_h = np.tile(np.linspace(0.0, 11.9, 40), n)
    expected = pace.expected(of, at_h)
    assert (np.diff(expected.reshape(n, 40)) > 0).all()
    assert pace.instant(of, expected) == pytest.approx(at_h, abs=1e-9)
    assert (expected < pace.mean[of]).all()


def test_both_engines_meet_the_same_failures_and_say_the_same() -> None:
    n, useful_h = 300, 30.0
    job = setting(useful_h, clock=Clock.WALL)
    source = ChangingRate(BOTH, job.cluster.shard_slots, factor=FACTOR)
    failures = BlockFailures(source, job.cluster, 20, 0, useful_h, range(n))
    costs = [
        engine(job, policy(FULL, 3.0), simpy_alone=simpy_alone, seed=20)
        .run(block_of(job, failures, seed=20), range(n)).costs
        for simpy_alone in (False, True)
    ]  # fmt: skip
    assert np.array_equal(costs[0].n_failures, costs[1].n_failures)
    assert np.abs(costs[0].wall_h - costs[1].wall_h).max() < 1e-9
    assert costs[0].n_failures.var() > 1.5 * costs[0].n_failures.mean()


def test_a_month_costs_as_much_on_average_and_varies_more() -> None:
    useful_h, n, mtbf_h = 720.0, 400, 20.0
    job = setting(useful_h, clock=Clock.WALL)
    course, factor = RateCourse((0.0, 10.0), (1 / mtbf_h,), (1 / mtbf_h,)), RandomFactor(0.4, 100.0)
    wall_h = []
    for one in (None, factor):
        source = ChangingRate(course, job.cluster.shard_slots, factor=one)
        failures = BlockFailures(source, job.cluster, 9, 0, useful_h, range(n))
        runs = engine(job, policy(FULL, 3.0), seed=9)
        wall_h.append(runs.run(block_of(job, failures, seed=9), range(n)).costs.wall_h)
    steady, random = wall_h
    error = np.sqrt((steady.var() + random.var()) / n)
    assert abs(random.mean() - steady.mean()) <= 4 * error
    counts = variance_of_count(factor, 1 / mtbf_h, useful_h) / (useful_h / mtbf_h)
    of_one = 1 / 3  # squared coefficient of variation of what one failure loses: uniform
    wider = (counts + of_one) / (1 + of_one)
    assert random.var() / steady.var() == pytest.approx(wider, rel=4 * 2 / np.sqrt(n))
    assert wider > 2 * (1 + 4 * 2 / np.sqrt(n))


def test_stretches_too_many_for_memory_are_refused(cluster: Cluster) -> None:
    source = ChangingRate(BOTH, range(8), factor=RandomFactor(0.5, 1e-6))
    with pytest.raises(BudgetError, match="stretches of a random factor"):
        next(source.draw(cluster, 1, 0, 100, [10.0]))
    assert source.block_replications(cluster, 10.0) == 1
    with pytest.raises(ParameterError, match="variance of the factor"):
        RandomFactor(0.0, 1.0)


# ------------------------------------------------------------------------------- in a scenario

SECTION = "kind: changing, borders: [0 h, 12 h], mtbf: [2 h], factor: {variance: 0.3, lasts: 100 h}"


def test_a_scenario_says_the_factor(tmp_path: Path) -> None:
    said = {"kind": "changing", "borders": ["0 h", "12 h"], "mtbf": ["2 h"]}
    wanders = scenario(failures={**said, "factor": {"variance": 0.3, "lasts": "4 d"}}).failures
    assert isinstance(wanders, ChangingFailures)
    assert wanders.factor is not None
    assert wanders.factor == RandomFactor(0.3, 96.0)
    for variance in limits.FACTOR_VARIANCE:  # what fits may write is what a scenario takes
        scenario(failures={**said, "factor": {"variance": variance, "lasts": "4 d"}})
    text = changed(("kind: injected, count: 5, together: 4", SECTION), ("0.3", "0.0"))
    (found,) = problems(write(tmp_path, text))
    assert "failures.factor.variance" in str(found)


@pytest.mark.parametrize(
    ("factor", "key", "message"),
    [
        ("{variance: 0.3, last: 4 d}", ".last", "unknown key; did you mean `lasts`?"),
        ("{lasts: 4 d}", ".variance", "is missing (variance of the factor, no unit"),
        ("0.3", "", "`0.3` is not a section with keys of its own"),
        ("{variance: 0.3, lasts: 100}", ".lasts", "is a bare number: write its unit"),
    ],
)
def test_a_record_that_is_a_section_names_what_is_wrong_with_it(
    tmp_path: Path, factor: str, key: str, message: str
) -> None:
    section = SECTION.replace("{variance: 0.3, lasts: 100 h}", factor)
    text = changed(("kind: injected, count: 5, together: 4", section))
    found = {one.key: one.message for one in problems(write(tmp_path, text))}
    assert message in found[f"failures.factor{key}"]
