"""How many renewals a fresh clock has on average."""

import math

import numpy as np
import pytest

from cprsim.failures.renewal import expected_renewals, renewals_by_lives
from cprsim.job.distributions import Distribution, Exponential, Gamma, LogNormal, Weibull

GAMMA_2 = Gamma.from_mean(28.0, 2.0)


def of_gamma_2(horizon_h: float) -> float:
    """In closed form: rate r, m(t) = r t / 2 - 1/4 + exp(-2 r t) / 4."""
    turns = 2 / 28.0 * horizon_h
    return turns / 2 - 0.25 + math.exp(-2 * turns) / 4


@pytest.mark.parametrize(
    ("lifetime", "horizon_h", "renewals", "precision"),
    [
        (Exponential(28.0), 56.0, 2.0, 0.0),
        (Exponential(28.0), 0.0, 0.0, 0.0),
        *((GAMMA_2, horizon_h, of_gamma_2(horizon_h), 1e-6) for horizon_h in (1.0, 56.0, 500.0)),
        (Weibull.from_mean(2400.0, 0.7), 240.0, 0.24437, 2e-5),
        (LogNormal.from_mean(2400.0, 1.0), 240.0, 0.03584, 2e-4),
        *(
            (shape_1, lives * 28.0, lives, 1e-4)
            for shape_1 in (Weibull(1.0, 28.0), Gamma(1.0, 28.0))
            for lives in (0.07, 2.0, 35.0, 4000.0)
        ),
        *(  # at long horizons, the asymptote
            (long, 2000 * 28.0, 2000 + (long.squared_cv - 1) / 2, 2e-4)
            for long in (Weibull.from_mean(28.0, 0.7), Gamma.from_mean(28.0, 0.67))
        ),
    ],
    ids=str,
)
def test_expected_renewals(
    lifetime: Distribution, horizon_h: float, renewals: float, precision: float
) -> None:
    assert expected_renewals(lifetime, horizon_h) == pytest.approx(renewals, rel=precision)


@pytest.mark.parametrize("shape", [0.4, 1.0, 2.0, 5.0, 30.0])
def test_renewals_of_all_horizons_follow_from_some(shape: float) -> None:
    """At one life in a thousand million rounding leaves nothing, whose logarithm is none."""
    lifetime = Weibull.from_mean(1.0, shape)
    horizons = np.append(np.logspace(-12, -4, 40), [1.0, 1e3])
    renewals = renewals_by_lives(lifetime)(horizons)
    assert np.isfinite(renewals).all()
    assert (np.diff(renewals) >= 0).all()
    assert renewals[39] == pytest.approx(-np.expm1(-lifetime.cumulative_hazard(1e-4)), rel=0.1)
    assert renewals[-1] == pytest.approx(horizons[-1], rel=0.01)
