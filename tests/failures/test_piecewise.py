from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from cprsim.errors import ParameterError
from cprsim.failures.distributions import Exponential, PiecewiseHazard
from cprsim.fitting.families import fit_piecewise
from cprsim.fitting.lifetimes import lifetimes_of
from cprsim.fitting.likelihood import NotConvergedError

BATHTUB = PiecewiseHazard((0.0, 5.0, 50.0), (0.2, 0.01, 0.03))


def hazard(age_h: float) -> float:
    return 0.2 if age_h < 5 else 0.01 if age_h < 50 else 0.03


def survival(age_h: float) -> float:
    return math.exp(-integrate.quad(hazard, 0, age_h, points=[5.0, 50.0])[0])


def test_functions_follow_from_the_hazard() -> None:
    age_h = np.array([0.0, 2.0, 5.0, 30.0, 50.0, 200.0])
    by_hand = np.array([survival(age) for age in age_h])
    np.testing.assert_allclose(BATHTUB.survival(age_h), by_hand, rtol=1e-6)
    np.testing.assert_allclose(BATHTUB.hazard_per_h(age_h), [hazard(age) for age in age_h])
    np.testing.assert_allclose(BATHTUB.quantile(1 - by_hand), age_h, rtol=1e-6, atol=1e-9)
    mean_h = sum(integrate.quad(survival, a, b)[0] for a, b in ((0, 5), (5, 50), (50, 800)))
    assert BATHTUB.mean_h == pytest.approx(mean_h, rel=1e-5)
    moment = sum(
        integrate.quad(lambda t: 2 * t * survival(t), a, b)[0]
        for a, b in ((0, 5), (5, 50), (50, 900))
    )
    assert BATHTUB.squared_cv == pytest.approx(moment / mean_h**2 - 1, rel=1e-4)


def test_one_piece_is_exponential() -> None:
    one, twin = PiecewiseHazard((0.0,), (0.1,)), Exponential(10.0)
    assert one.mean_h == pytest.approx(10.0)
    assert one.squared_cv == pytest.approx(1.0)
    np.testing.assert_allclose(one.survival([3.0, 40.0]), twin.survival([3.0, 40.0]))


def test_samples_and_residuals_follow_the_hazard() -> None:
    rng = np.random.default_rng(1)
    lives = BATHTUB.sample(rng, 4000)
    assert stats.kstest(lives, lambda t: 1 - BATHTUB.survival(t)).pvalue > 1e-4
    residual = BATHTUB.sample_residual(rng, 20_000)
    expected = BATHTUB.mean_h * (1 + BATHTUB.squared_cv) / 2
    assert abs(residual.mean() - expected) <= 4 * residual.std() / math.sqrt(len(residual))


def test_a_hazard_that_is_high_at_the_start_is_found() -> None:
    drawn_h = BATHTUB.sample(np.random.default_rng(2), 4000)
    observed = drawn_h < 100.0
    fitted = fit_piecewise(lifetimes_of(np.minimum(drawn_h, 100.0), observed), n_pieces=8)
    distribution = fitted.distribution
    assert isinstance(distribution, PiecewiseHazard)
    assert distribution.rates_per_h[0] == pytest.approx(0.2, rel=0.15)
    ages = np.array([1.0, 10.0, 30.0, 90.0])
    p = BATHTUB.survival(ages)
    assert (np.abs(distribution.survival(ages) - p) <= 4 * np.sqrt(p * (1 - p) / 4000) + 0.01).all()
    # the log-likelihood is what the general formula says
    each = np.where(observed, distribution.log_density(np.minimum(drawn_h, 100.0)), 0.0)
    each -= np.where(observed, 0.0, distribution.cumulative_hazard(np.minimum(drawn_h, 100.0)))
    assert fitted.log_likelihood == pytest.approx(each.sum())
    assert fitted.n_parameters == 8 + 7  # hazards and borders


def test_late_entry_counts_as_no_time() -> None:
    late = lifetimes_of(np.linspace(11, 30, 20), entry_h=np.full(20, 10.0))
    rates = fit_piecewise(late, n_pieces=2).distribution.rates_per_h  # type: ignore[attr-defined]
    # ends at 11 to 30, the border at 21: time spent below it is 1 + 2 + .. + 10 and 10 times 11
    assert rates[0] == pytest.approx(10 / (55 + 110))


def test_too_little_for_pieces() -> None:
    with pytest.raises(NotConvergedError, match="too few"):
        fit_piecewise(lifetimes_of(np.array([1.0, 2.0, 3.0])))
    with pytest.raises(NotConvergedError, match="too few"):
        fit_piecewise(lifetimes_of(np.full(30, 5.0)))
    with pytest.raises(ParameterError, match="no failure"):
        fit_piecewise(lifetimes_of(np.array([1.0]), np.array([False])))


@pytest.mark.parametrize(
    ("from_h", "rates"),
    [((), ()), ((0.0,), (1.0, 2.0)), ((1.0,), (1.0,)), ((0.0, 0.0), (1.0, 1.0)), ((0.0,), (0.0,))],
)
def test_pieces_that_can_not_be(from_h: tuple[float, ...], rates: tuple[float, ...]) -> None:
    with pytest.raises(ParameterError):
        PiecewiseHazard(from_h, rates)
