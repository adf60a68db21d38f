"""Nodes that differ and shocks: drawn as described, found again by the fit, true to the logs."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from cprsim.errors import ParameterError
from cprsim.failures.correlated import CorrelatedNodes
from cprsim.failures.frailty import Frailty
from cprsim.failures.sources import Start
from cprsim.job.distributions import Weibull
from cprsim.logs.fit.correlated_fit import fit_correlated, fit_frailty
from cprsim.logs.fit.lifetimes import lifetimes_of, uptimes
from cprsim.logs.fit.observation import concentration, dispersion, failure_groups, weekly_counts
from tests.fitting.logs import log_drawn, outages

SPREADS = [Frailty(), Frailty(shape=2.5), Frailty(0.1, 4.0), Frailty(0.2, 3.0, 20.0)]


# ---------------------------------------------------------------------------------- frailty


@pytest.mark.parametrize("frailty", SPREADS, ids=repr)
def test_quadrature_and_samples_agree(frailty: Frailty) -> None:
    points, weights = frailty.quadrature()
    drawn = frailty.sample(np.random.default_rng(1), 40_000)
    assert weights.sum() == pytest.approx(1.0)
    for power in (1.0, 1.4):
        values = drawn**power
        error = values.std() / math.sqrt(len(values))
        assert abs(values.mean() - weights @ points**power) <= 4 * error + 1e-12


def test_gamma_frailty_integrates_out() -> None:
    shape, n_failures, hazard = 2.5, 3.0, 1.7

    def integrand(z: float) -> float:
        return z**n_failures * math.exp(-z * hazard) * stats.gamma(shape, scale=1 / shape).pdf(z)

    by_hand = math.log(integrate.quad(integrand, 0, math.inf)[0])
    ours = Frailty(shape=shape).log_likelihood(np.array([n_failures]), np.array([hazard]))
    assert ours[0] == pytest.approx(by_hand)


def test_frailty_is_found_again() -> None:
    source = CorrelatedNodes(Weibull(0.7, 500.0), Frailty(shape=2.0), start=Start.FRESH)
    fits = fit_frailty(uptimes(log_drawn(source, 400, 3000.0, seed=3)))
    by_name = {fit.family: fit for fit in fits}
    truth = {"shape": 0.7, "scale_h": 500.0, "frailty_shape": 2.0}
    for estimate in by_name["gamma"].parameters:
        log_error = estimate.standard_error / estimate.mean
        assert abs(math.log(estimate.mean / truth[estimate.name])) <= 4 * log_error
    assert by_name["gamma"].aic < by_name["alike"].aic - 100


def test_equal_nodes_are_not_told_apart() -> None:
    source = CorrelatedNodes(Weibull(0.7, 500.0), start=Start.FRESH)
    fits = fit_frailty(uptimes(log_drawn(source, 200, 2000.0, seed=4)))
    best, alike = fits[0], next(fit for fit in fits if fit.family == "alike")
    assert alike.aic - best.aic < 6


@pytest.mark.parametrize("share", [-0.1, 1.0, math.nan])
def test_lemons_out_of_range_are_refused(share: float) -> None:
    with pytest.raises(ParameterError, match="share of lemons"):
        Frailty(share, 3.0)


# ------------------------------------------------------------------------------- statistics


def test_statistics_by_hand() -> None:
    at_h = np.array([10.0, 10.0, 200.0, 400.0])
    assert dispersion(weekly_counts(at_h, 4 * 168.0)) == pytest.approx(2 / 3)  # 2, 1, 1, 0
    assert concentration(np.array([0, 1, 0, 0]), 10) == 0.75
    assert weekly_counts(at_h, 500.0).tolist() == [2, 1]  # whole weeks only
    assert concentration(np.array([3, 3, 1]), 4, 0.5) == 1.0
    assert math.isnan(dispersion(np.array([3])))


def test_uptimes_need_single_failures() -> None:
    both = outages((0, 10, 10), (1, 10, 10), n_nodes=2)
    assert failure_groups(both).tolist() == [2]
    with pytest.raises(ParameterError, match="only 0 nodes failed alone"):
        fit_correlated(both)


def test_one_time_of_a_node_is_enough() -> None:
    fits = fit_frailty(lifetimes_of(np.random.default_rng(1).weibull(0.7, 200) * 100))
    assert fits[0].distribution.shape == pytest.approx(0.7, abs=0.25)
