import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from cprsim.errors import ParameterError
from cprsim.job.distributions import Gamma, LogNormal, Weibull
from cprsim.logs.fit.correlated_fit import fit_frailty
from cprsim.logs.fit.families import (
    EXPONENTIAL,
    FAMILIES,
    GAMMA,
    LOGNORMAL,
    WEIBULL,
    SearchFamily,
    fit,
)
from cprsim.logs.fit.goodness import P_OF_REJECTED_FIT, distances, rank, resampled, survival_curve
from cprsim.logs.fit.lifetimes import lifetimes_of, uptimes
from cprsim.logs.fit.likelihood import NotConvergedError
from tests.fitting.logs import outages


def test_exponential_is_events_over_time() -> None:
    lifetimes = lifetimes_of(np.array([3.0, 5.0, 10.0, 2.0]), np.array([True, True, False, False]))
    fitted = fit(EXPONENTIAL, lifetimes)
    scale = fitted.by_name["scale_h"]
    assert scale.mean == pytest.approx(10.0)
    assert scale.standard_error == pytest.approx(10.0 / math.sqrt(2), rel=1e-4)
    assert scale.low == pytest.approx(10.0 * math.exp(-1.959964 / math.sqrt(2)), rel=1e-4)
    assert fitted.log_likelihood == pytest.approx(-2 * math.log(10.0) - 2)
    assert fitted.aic == pytest.approx(2 - 2 * fitted.log_likelihood)
    assert fitted.bic == pytest.approx(math.log(2) - 2 * fitted.log_likelihood)
    assert fitted.mean.mean == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("family", "twin"),
    [(WEIBULL, stats.weibull_min), (GAMMA, stats.gamma), (LOGNORMAL, stats.lognorm)],
    ids=lambda value: value.name,
)
def test_censored_fits_agree_with_scipy(family: SearchFamily, twin: stats.rv_continuous) -> None:
    rng = np.random.default_rng(5)
    drawn_h, limit_h = rng.gamma(0.7, 100.0, 300), rng.uniform(20.0, 150.0, 300)
    observed = drawn_h <= limit_h
    fitted = fit(family, lifetimes_of(np.minimum(drawn_h, limit_h), observed))
    censored = stats.CensoredData(uncensored=drawn_h[observed], right=limit_h[~observed])
    shape, _, scale = twin.fit(censored, floc=0)
    ours = [parameter.mean for parameter in fitted.parameters]
    theirs = [math.log(scale), shape] if family is LOGNORMAL else [shape, scale]
    np.testing.assert_allclose(ours, theirs, rtol=2e-3)


@pytest.mark.long
@pytest.mark.parametrize(
    ("family", "truth"), [(WEIBULL, Weibull(0.7, 100.0)), (GAMMA, Gamma(0.7, 100.0))]
)
def test_intervals_cover_the_truth(family: SearchFamily, truth: Weibull | Gamma) -> None:
    rng = np.random.default_rng(1)
    covered = dict.fromkeys(family.scales, 0)
    for _ in range(400):
        drawn_h = truth.sample(rng, 100)
        limit_h = np.sort(drawn_h)[39]  # 40 of 100 are observed
        fitted = fit(family, lifetimes_of(np.minimum(drawn_h, limit_h), drawn_h <= limit_h))
        for name in family.scales:
            estimate = fitted.by_name[name]
            covered[name] += estimate.low <= getattr(truth, name) <= estimate.high
    print(family.name, {name: n / 400 for name, n in covered.items()})
    assert all(0.92 <= n / 400 <= 0.98 for n in covered.values())


def test_what_cannot_be_fitted_says_so() -> None:
    with pytest.raises(ParameterError, match="no failure was observed"):
        fit(GAMMA, lifetimes_of(np.array([1.0, 2.0]), np.array([False, False])))
    same = lifetimes_of(np.full(10, 5.0))
    for name in ("weibull", "gamma", "lognormal"):
        with pytest.raises(NotConvergedError, match=name):
            fit(FAMILIES[name], same)
    ranking = rank(same, n_bootstrap=0)
    assert ranking.best.family == "exponential"
    assert [name for name, _ in ranking.failed] == ["weibull", "gamma", "lognormal", "piecewise"]


# --------------------------------------------------------------------------------- goodness


def test_survival_curve_by_hand() -> None:
    # the textbook's way: at 1: 4 at risk, at 3: 2 at risk (2 was censored), the last one at 4
    observed = np.array([True, False, True, True])
    curve = survival_curve(lifetimes_of(np.array([1.0, 2.0, 3.0, 4.0]), observed))
    assert curve.age_h.tolist() == [1, 3, 4]
    np.testing.assert_allclose(curve.survival, [0.75, 0.375, 0.0])
    np.testing.assert_allclose(curve.standard_error[0], 0.75 * math.sqrt(1 / 12))
    # late entry: at 1 only two were under observation, at 3 there were two, at 4 one
    late = lifetimes_of(np.array([1.0, 3.0, 4.0]), entry_h=np.array([0.0, 2.0, 0.0]))
    np.testing.assert_allclose(survival_curve(late).survival, [0.5, 0.25, 0.0])


def test_ks_of_uncensored_times_is_the_usual_one() -> None:
    drawn_h = np.random.default_rng(4).gamma(0.7, 100.0, 200)
    ks, rmse = distances(Gamma(0.8, 90.0), lifetimes_of(drawn_h))
    assert ks == pytest.approx(stats.kstest(drawn_h, stats.gamma(0.8, scale=90.0).cdf).statistic)
    midway = (np.arange(200) + 0.5) / 200
    errors = stats.gamma(0.8, scale=90.0).cdf(np.sort(drawn_h)) - midway
    assert rmse == pytest.approx(math.sqrt((errors**2).mean()))


def test_the_true_family_is_kept_and_a_wrong_one_refused() -> None:
    drawn_h = LogNormal(3.0, 1.5).sample(np.random.default_rng(8), 400)
    times = lifetimes_of(np.minimum(drawn_h, 60.0), drawn_h < 60.0)
    ranking = rank(times, n_bootstrap=101, seed=1, families=["exponential", "lognormal"])
    best, refused = ranking.judged
    assert (best.family, refused.family) == ("lognormal", "exponential")
    assert best.p_value > 0.05
    assert refused.p_value == pytest.approx(1 / 102)
    assert refused.p_value < P_OF_REJECTED_FIT
    assert not ranking.none_fits
    ranking = rank(lifetimes_of(drawn_h), n_bootstrap=0)
    assert ranking.best.family == "lognormal"
    assert not ranking.none_fits  # nothing was tested


def test_resampled_times_are_entered_and_censored_alike() -> None:
    n = 4000
    entry_h, limit_h = np.full(n, 30.0), np.full(n, 80.0)
    lifetimes = lifetimes_of(np.full(n, 50.0), entry_h=entry_h, limit_h=limit_h)
    again = resampled(Weibull(0.7, 100.0), lifetimes, np.random.default_rng(3))
    assert (again.duration_h > 30.0).all()
    assert (again.duration_h <= 80.0).all()
    twin = stats.weibull_min(0.7, scale=100.0)
    p = twin.sf(80.0) / twin.sf(30.0)
    assert abs((~again.observed).mean() - p) <= 4 * math.sqrt(p * (1 - p) / n)


# --------------------------------------------------------------------------------- up-times


def test_uptimes_by_hand() -> None:
    # node 0 fails at 10 until 20, and at 15 (while down); node 1 is down at first and at the end;
    # node 2 never fails
    log = outages((0, 10, 20), (0, 15, 18), (1, -5, 3), (1, 60, math.nan), n_nodes=3)
    new = uptimes(log)
    rows = zip(new.unit, new.duration_h, new.observed, new.limit_h, strict=True)
    assert sorted(rows) == [
        (0, 10.0, True, 100.0),
        (0, 80.0, False, 80.0),
        (1, 57.0, True, 97.0),
        (2, 100.0, False, 100.0),
    ]
    known = uptimes(log, "unknown")
    assert sorted(zip(known.unit, known.duration_h, strict=True)) == [(0, 80.0), (1, 57.0)]


def test_equal_times_are_reckoned_once_and_count_each() -> None:
    """Nodes that never failed: the fit is that of all times, one by one."""
    rng = np.random.default_rng(5)
    short_h = rng.weibull(0.8, 60) * 300
    ended = np.append(short_h < 400, np.zeros(1000, bool))
    times = lifetimes_of(np.append(np.minimum(short_h, 400), np.full(1000, 400.0)), ended)
    apart = replace(times, duration_h=times.duration_h * (1 + 1e-13 * np.arange(times.n)))
    for fits in (partial(fit, WEIBULL), partial(fit, GAMMA), lambda times: fit_frailty(times)[0]):
        one, other = fits(times), fits(apart)
        assert one.log_likelihood == pytest.approx(other.log_likelihood, rel=1e-9)
        for mine, theirs in zip(one.parameters, other.parameters, strict=True):
            assert mine.mean == pytest.approx(theirs.mean, rel=1e-3)
            assert mine.standard_error == pytest.approx(theirs.standard_error, rel=1e-2)
