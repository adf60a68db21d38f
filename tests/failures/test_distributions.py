from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from cprsim.errors import ParameterError
from cprsim.failures.distributions import (
    Constant,
    Distribution,
    Exponential,
    Gamma,
    LogNormal,
    Weibull,
    with_mean,
)

DISTRIBUTIONS: list[Distribution] = [
    Exponential(28.0),
    Weibull.from_mean(28.0, 0.7),
    Weibull.from_mean(28.0, 3.0),
    Gamma.from_mean(28.0, 0.67),
    Gamma.from_mean(28.0, 2.5),
    LogNormal.from_mean(28.0, 1.0),
]
FAMILIES = pytest.mark.parametrize("lifetime", DISTRIBUTIONS, ids=repr)


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


@FAMILIES
def test_samples_follow_the_survival(lifetime: Distribution) -> None:
    drawn_h = lifetime.sample(np.random.default_rng(1), 5000)
    assert stats.kstest(drawn_h, scipy_twin(lifetime).cdf).pvalue > 1e-4


@FAMILIES
def test_residual_life_is_the_equilibrium_distribution(lifetime: Distribution) -> None:
    survives = scipy_twin(lifetime).sf
    drawn_h = lifetime.sample_residual(np.random.default_rng(2), 5000)
    # the equilibrium distribution: integral of the survival over the mean
    for age_h in (3.0, 28.0, 80.0):
        p = integrate.quad(survives, 0, age_h)[0] / 28.0
        error = math.sqrt(p * (1 - p) / 5000)
        assert abs((drawn_h <= age_h).mean() - p) <= 4 * error


def test_a_constant_is_met_at_a_uniform_place() -> None:
    drawn_h = Constant(3.0).sample_residual(np.random.default_rng(3), 5000)
    assert stats.kstest(drawn_h, stats.uniform(0, 3).cdf).pvalue > 1e-4
    assert (Constant(3.0).sample(np.random.default_rng(3), 5) == 3.0).all()
    assert (Constant(0.0).sample(np.random.default_rng(3), 5) == 0.0).all()


def test_limits_at_shape_one_are_exponential() -> None:
    age_h = np.array([0.5, 5.0, 50.0, 5000.0])
    for lifetime in (Weibull(1.0, 28.0), Gamma(1.0, 28.0)):
        np.testing.assert_allclose(lifetime.cumulative_hazard(age_h), age_h / 28.0)


def test_gamma_hazard_reaches_its_limit_beyond_the_range_of_floats() -> None:
    assert Gamma(0.67, 4.0).hazard_per_h(1e6) == pytest.approx(1 / 4.0, rel=1e-5)
    assert Gamma(2.5, 4.0).hazard_per_h(1e6) == pytest.approx(1 / 4.0, rel=1e-5)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, 0.0, -1.0])
@pytest.mark.parametrize("family", ["exponential", "weibull", "gamma", "lognormal"])
def test_values_outside_the_domain_are_refused(family: str, bad: float) -> None:
    shape = None if family == "exponential" else 0.7
    with pytest.raises(ParameterError):
        with_mean(family, bad, shape)
    if shape is not None:
        with pytest.raises(ParameterError):
            with_mean(family, 28.0, bad)


@pytest.mark.parametrize(
    ("family", "shape"), [("weibull", 1e-3), ("gamma", 1e-9), ("lognormal", 30.0)]
)
def test_a_spread_that_no_sample_shows_is_refused(family: str, shape: float) -> None:
    with pytest.raises(ParameterError, match="spreads too far"):
        with_mean(family, 28.0, shape)


def test_unknown_families_and_superfluous_shapes_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"unknown family 'pareto'; known are .*weibull"):
        with_mean("pareto", 28.0)
    with pytest.raises(ParameterError, match="needs its shape"):
        with_mean("gamma", 28.0)
    with pytest.raises(ParameterError, match="has no shape"):
        with_mean("exponential", 28.0, 0.7)
    with pytest.raises(ParameterError, match="not negative"):
        Constant(-1.0)


@given(
    family=st.sampled_from(["weibull", "gamma", "lognormal"]),
    mean_h=st.floats(1e-3, 1e6),
    shape=st.floats(0.2, 3.0),
)
def test_quantile_inverts_survival_and_the_mean_is_kept(
    family: str, mean_h: float, shape: float
) -> None:
    lifetime = with_mean(family, mean_h, shape)
    assert lifetime.mean_h == pytest.approx(mean_h)
    p = np.array([0.05, 0.5, 0.95])
    np.testing.assert_allclose(1 - lifetime.survival(lifetime.quantile(p)), p, rtol=1e-6)
