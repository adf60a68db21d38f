import math
from typing import ClassVar

import numpy as np
import pytest
from scipy import integrate, stats

from cprsim.errors import ParameterError
from cprsim.failures.renewal import Clocks
from cprsim.job.distributions import (
    Constant,
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    PiecewiseHazard,
    Weibull,
    with_mean,
)
from cprsim.job.records import Floats

DISTRIBUTIONS: list[Distribution] = [
    Exponential(28.0),
    Weibull.from_mean(28.0, 0.7),
    Weibull.from_mean(28.0, 3.0),
    Gamma.from_mean(28.0, 0.67),
    Gamma.from_mean(28.0, 2.5),
    LogNormal.from_mean(28.0, 1.0),
]
FAMILIES = pytest.mark.parametrize("lifetime", DISTRIBUTIONS, ids=repr)
BATHTUB = PiecewiseHazard((0.0, 5.0, 50.0), (0.2, 0.01, 0.03))


def scipy_twin(lifetime: Distribution) -> stats.rv_continuous:
    match lifetime:
        case Exponential():
            return stats.expon(scale=lifetime.mean_h)
        case Weibull():
            return stats.weibull_min(lifetime.shape, scale=lifetime.scale_h)
        case Gamma():
            return stats.gamma(lifetime.shape, scale=lifetime.scale_h)
        case LogNormal():
            return stats.lognorm(lifetime.sigma, scale=math.exp(lifetime.mu))
    raise AssertionError(lifetime)


@FAMILIES
def test_functions_agree_with_scipy(lifetime: Distribution) -> None:
    twin = scipy_twin(lifetime)
    age_h = np.array([0.01, 1.0, 10.0, 28.0, 100.0])
    np.testing.assert_allclose(lifetime.survival(age_h), twin.sf(age_h), rtol=1e-10)
    np.testing.assert_allclose(lifetime.cumulative_hazard(age_h), -twin.logsf(age_h), atol=1e-14)
    np.testing.assert_allclose(lifetime.hazard_per_h(age_h), twin.pdf(age_h) / twin.sf(age_h))
    np.testing.assert_allclose(lifetime.quantile([0.1, 0.5, 0.99]), twin.ppf([0.1, 0.5, 0.99]))
    assert lifetime.mean_h == pytest.approx(28.0)
    assert lifetime.squared_cv == pytest.approx(twin.var() / 28.0**2)


@pytest.mark.parametrize("lifetime", [*DISTRIBUTIONS, BATHTUB], ids=repr)
def test_samples_follow_the_survival_and_residual_lives_its_integral(
    lifetime: Distribution,
) -> None:
    drawn_h = lifetime.sample(np.random.default_rng(1), 5000)
    assert stats.kstest(drawn_h, lambda t: 1 - lifetime.survival(t)).pvalue > 1e-4
    drawn_h = lifetime.sample_residual(np.random.default_rng(2), 5000)
    for age_h in (3.0, 28.0, 80.0):
        ages = [at for at in (5.0, 50.0) if at < age_h] or None
        p = integrate.quad(lifetime.survival, 0, age_h, points=ages)[0] / lifetime.mean_h
        assert abs((drawn_h <= age_h).mean() - p) <= 4 * math.sqrt(p * (1 - p) / 5000)


def test_limits_of_weibull_and_gamma() -> None:
    age_h = np.array([0.5, 5.0, 50.0, 5000.0])
    for one in (Weibull(1.0, 28.0), Gamma(1.0, 28.0), PiecewiseHazard((0.0,), (1 / 28.0,))):
        np.testing.assert_allclose(one.cumulative_hazard(age_h), age_h / 28.0)
        assert (one.mean_h, one.squared_cv) == pytest.approx((28.0, 1.0))
    for shape in (0.67, 2.5):  # beyond the range of floats
        assert Gamma(shape, 4.0).hazard_per_h(1e6) == pytest.approx(1 / 4.0, rel=1e-5)


PIECES: list[tuple[tuple[float, ...], tuple[float, ...]]] = [
    ((), ()), ((0.0,), (1.0, 2.0)), ((1.0,), (1.0,)), ((0.0, 0.0), (1.0, 1.0)), ((0.0,), (0.0,)),
]  # fmt: skip
NO_NUMBERS = (math.nan, math.inf, -math.inf, 0.0, -1.0)
REFUSED: list[tuple[str, float, float | None, str]] = [
    *(("exponential", bad, None, "mean must be a finite number above 0") for bad in NO_NUMBERS),
    *(("weibull", 28.0, bad, "shape must be a finite number above 0") for bad in NO_NUMBERS),
    # no sample would show its mean
    ("weibull", 28.0, 0.05, "spreads too far"),
    ("gamma", 28.0, 1e-9, "spreads too far"),
    ("lognormal", 28.0, 30.0, "spreads too far"),
]


def test_values_outside_the_domain_are_refused() -> None:
    for family, mean_h, shape, complaint in REFUSED:
        with pytest.raises(ParameterError, match=complaint):
            with_mean(family, mean_h, shape)
    for from_h, rates in PIECES:
        with pytest.raises(ParameterError):
            PiecewiseHazard(from_h, rates)
    assert (Constant(0.0).sample(np.random.default_rng(3), 5) == 0.0).all()
    with pytest.raises(ParameterError, match="not negative"):
        Constant(-1.0)


class Unsound(Exponential):
    """Draws one lifetime that no lifetime can be."""

    wrong: ClassVar[float]

    def _draw(self, rng: np.random.Generator, size: int) -> Floats:
        drawn = super()._draw(rng, size)
        drawn[size // 2] = self.wrong
        return drawn


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_lifetime_that_is_none_is_refused(wrong: float) -> None:
    Unsound.wrong = wrong
    rng = np.random.default_rng(1)
    with pytest.raises(ParameterError, match="negative or not finite"):
        Unsound(10.0).sample(rng, 200)
    with pytest.raises(ParameterError, match="negative or not finite"):
        Clocks(Unsound(10.0), rng, np.ones(50)).until(50.0)


# --------------------------------------------------------------------------- piecewise hazards


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
    mean_h, moment = (
        sum(integrate.quad(of, *span)[0] for span in ((0, 5), (5, 50), (50, 900)))
        for of in (survival, lambda age: 2 * age * survival(age))
    )
    assert BATHTUB.mean_h == pytest.approx(mean_h, rel=1e-5)
    assert BATHTUB.squared_cv == pytest.approx(moment / mean_h**2 - 1, rel=1e-4)
