"""Jobs of lower speed, against jobs that are followed from failure to failure."""

from __future__ import annotations

import numpy as np
import pytest

from cprsim.analytic.systems import erasure_coded_overhead_fraction
from cprsim.errors import ParameterError
from tests import closed_forms
from tests.analytic.sampling import assert_mean, draws

USEFUL_H, RATE = 400.0, 0.05


def rebuilding_job_h(
    rng: np.random.Generator, tax: float, stall_h: float, rebuild_h: float, speed: float
) -> tuple[float, float]:
    """Wall time of a job and the rebuilding that is left at its end.

    Rebuilds wait for those before them and stand still while the job does.
    """
    strikes_h = np.sort(rng.uniform(0.0, USEFUL_H, rng.poisson(RATE * USEFUL_H)))
    wall_h = waiting_h = 0.0  # waiting: hours of rebuilding still to come
    for piece_h in np.diff(strikes_h, prepend=0.0, append=USEFUL_H):
        effort_h = piece_h * (1.0 + tax)
        slow_h = min(waiting_h, effort_h / speed if speed else waiting_h)
        wall_h += slow_h + effort_h - speed * slow_h + stall_h
        waiting_h += rebuild_h - slow_h
    return wall_h - stall_h, waiting_h - rebuild_h  # no failure ends the last piece


@pytest.mark.parametrize(
    ("tax", "rebuild_h", "speed"), [(0.04, 2.0, 0.9), (0.1, 6.0, 0.5), (0.0, 0.5, 0.0)]
)
def test_the_overhead_of_rebuilding_is_that_of_a_job_that_rebuilds(
    tax: float, rebuild_h: float, speed: float
) -> None:
    rng = draws(f"rebuild/{tax}")
    jobs = [rebuilding_job_h(rng, tax, 0.3, rebuild_h, speed) for _ in range(3000)]
    walls_h, left_h = np.array(jobs).T
    theory = erasure_coded_overhead_fraction(RATE, tax, 0.1, 0.2, rebuild_h, speed)
    assert walls_h.mean() / USEFUL_H - 1.0 == pytest.approx(theory, rel=0.01)
    outlived_h = walls_h + left_h * (1.0 - speed)  # had the job gone on until all was rebuilt
    assert_mean(outlived_h / USEFUL_H - 1.0, theory)


def test_the_limits_of_erasure_coding() -> None:
    assert erasure_coded_overhead_fraction(0.0, 0.07, 0.1, 0.2, 3.0, 0.5) == 0.07
    detection_alone = erasure_coded_overhead_fraction(0.1, 0.0, 0.3, 0.0, 5.0, 1.0)
    assert detection_alone == pytest.approx(0.1 * 0.3)


def wall_of_elastic_job_h(rng: np.random.Generator, mtbf_h: float, speed: float) -> float:
    """One job in small steps; each may meet the first failure, at its own point of the step."""
    wall_h = done_h = 0.0
    now, strike_h = 1.0, rng.exponential(mtbf_h)
    while done_h < 10.0:
        until_h = strike_h if wall_h < strike_h else float("inf")
        step_h = min(1.0, until_h - wall_h, (10.0 - done_h) / now)
        wall_h, done_h = wall_h + step_h, done_h + now * step_h
        if wall_h >= strike_h:
            now = speed
        if 10.0 - done_h < 1e-9:
            break
    return wall_h


@pytest.mark.parametrize(("mtbf_h", "speed"), [(8.0, 0.75), (30.0, 0.25)])
def test_the_wall_time_is_that_of_a_job_that_goes_on_slower(mtbf_h: float, speed: float) -> None:
    rng = draws(f"elastic/{mtbf_h}")
    found = [wall_of_elastic_job_h(rng, mtbf_h, speed) for _ in range(10_000)]
    assert_mean(found, closed_forms.elastic_wall_h(10.0, mtbf_h, speed))


def test_the_limits_of_an_elastic_job() -> None:
    assert closed_forms.elastic_wall_h(10.0, float("inf"), 0.5) == 10.0
    assert closed_forms.elastic_wall_h(10.0, 1e-6, 0.5) == pytest.approx(20.0, abs=1e-5)
    assert closed_forms.elastic_wall_h(10.0, 3.0, 1.0) == pytest.approx(10.0)


def test_speeds_and_rates_that_can_not_be_are_refused() -> None:
    for speed in (-0.1, 0.0, 1.1):
        with pytest.raises(ParameterError):
            closed_forms.elastic_wall_h(10.0, 5.0, speed)
    with pytest.raises(ParameterError):
        closed_forms.elastic_wall_h(10.0, 0.0, 0.5)
    with pytest.raises(ParameterError):
        erasure_coded_overhead_fraction(0.1, 0.1, 0.1, 0.1, 0.1, 1.1)
    with pytest.raises(ParameterError):
        erasure_coded_overhead_fraction(-0.1, 0.1, 0.1, 0.1, 0.1, 0.5)
