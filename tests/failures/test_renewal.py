from __future__ import annotations

import math

import numpy as np
import pytest

from cprsim.failures.distributions import (
    Constant,
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    Weibull,
)
from cprsim.failures.renewal import expected_renewals, renewals_by_lives


def test_exponential_renewals_are_proportional_to_time() -> None:
    assert expected_renewals(Exponential(28.0), 56.0) == 2.0
    assert expected_renewals(Exponential(28.0), 0.0) == 0.0


@pytest.mark.parametrize("shape", [0.4, 1.0, 2.0, 30.0])
def test_renewals_within_a_tiny_horizon_are_first_failures(shape: float) -> None:
    lifetime = Weibull.from_mean(1.0, shape)
    horizons = np.logspace(-9, -4, 30)
    renewals = renewals_by_lives(lifetime)(horizons)
    assert (np.diff(renewals) >= 0).all()
    assert renewals[-1] == pytest.approx(-np.expm1(-lifetime.cumulative_hazard(1e-4)), rel=0.1)


@pytest.mark.parametrize("horizon_h", [1.0, 56.0, 500.0])
def test_gamma_of_shape_two_has_a_closed_form(horizon_h: float) -> None:
    # shape 2, rate r: m(t) = r t / 2 - 1/4 + exp(-2 r t) / 4
    rate = 2 / 28.0
    closed = rate * horizon_h / 2 - 0.25 + math.exp(-2 * rate * horizon_h) / 4
    assert expected_renewals(Gamma.from_mean(28.0, 2.0), horizon_h) == pytest.approx(closed)


def test_constant_lifetimes_count_what_comes_before_the_horizon() -> None:
    assert expected_renewals(Constant(5.0), 15.0) == 2.0  # at 5 and 10
    assert expected_renewals(Constant(5.0), 15.1) == 3.0


@pytest.mark.parametrize(
    ("lifetime", "failures"),
    [
        (Weibull.from_mean(2400.0, 0.7), 244.37),
        (LogNormal.from_mean(2400.0, 1.0), 35.84),
        (Exponential(2400.0), 100.0),
    ],
    ids=repr,
)
def test_a_thousand_fresh_nodes(lifetime: Distribution, failures: float) -> None:
    assert 1000 * expected_renewals(lifetime, 240.0) == pytest.approx(failures, abs=0.005)


@pytest.mark.parametrize("lifetime", [Weibull(1.0, 28.0), Gamma(1.0, 28.0)], ids=repr)
@pytest.mark.parametrize("horizon_h", [2.0, 56.0, 28.0 * 35, 28.0 * 4000])
def test_shape_one_is_exponential(lifetime: Distribution, horizon_h: float) -> None:
    assert expected_renewals(lifetime, horizon_h) == pytest.approx(horizon_h / 28.0, rel=1e-4)


@pytest.mark.parametrize(
    "lifetime", [Weibull.from_mean(28.0, 0.7), Gamma.from_mean(28.0, 0.67)], ids=repr
)
def test_long_horizons_come_to_the_asymptote(lifetime: Distribution) -> None:
    lives = 2000.0
    expected = lives + (lifetime.squared_cv - 1) / 2
    assert expected_renewals(lifetime, lives * 28.0) == pytest.approx(expected, rel=2e-4)


@pytest.mark.parametrize("shape", [2.0, 5.0])
def test_horizons_too_short_for_any_failure_have_a_number_all_the_same(shape: float) -> None:
    """One life in a thousand million: rounding leaves nothing, whose logarithm is none."""
    horizons = np.logspace(-12, 3, 40)
    renewals = renewals_by_lives(Weibull.from_mean(1.0, shape))(horizons)
    assert np.isfinite(renewals).all()
    assert (np.diff(renewals) >= 0).all()
    assert renewals[0] < 1e-12
    assert renewals[-1] == pytest.approx(horizons[-1], rel=0.01)
