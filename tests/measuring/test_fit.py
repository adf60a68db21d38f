"""The fit gives back what trials were made from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cprsim.errors import ParameterError
from cprsim.kernel.metrics import Quality
from cprsim.kernel.shared_run import Baseline
from cprsim.kernel.trials import Trial, stale_shards
from cprsim.measuring.checks import AdditivityVerdict, SeedMean, check
from cprsim.measuring.design import Design
from cprsim.measuring.fit import Fitted, fit
from cprsim.measuring.observed import Observed, observed
from cprsim.measuring.runs import SeedResult
from cprsim.measuring.shape import AT, STALENESS, hats
from cprsim.staleness import STRATEGIES, Metric

N_SERVERS = 8
SLOPE = {key: 0.03 / (1 + i) for i, key in enumerate(STRATEGIES)}
PHI = {key: 0.0 if key == "partial" else 0.1 * i for i, key in enumerate(STRATEGIES)}


def weight(at: float, staleness: float) -> float:
    """W of the made trials: what is lost late counts for less, the newest least."""
    return 1.5 - 1.5 * at + 0.8 * at * staleness


def loss(trial: Trial) -> float:
    key = trial.saving.strategy
    total = 0.0
    for one in stale_shards(trial):
        interval = min(trial.saving.interval_fraction, one.at_fraction)
        since = one.since_reload * weight(one.at_fraction, one.since_reload)
        whole = interval / 2 * weight(one.at_fraction, interval)
        total += ((1 - PHI[key]) * since + PHI[key] * whole) / N_SERVERS
    return SLOPE[key] * total


def made(
    n_seeds: int, noise: float, spread: float = 0.0, luck: float = 0.0, checks: bool = True
) -> list[SeedResult]:
    """Seeds whose slopes differ by `spread`, whose twins are better than their due by `luck`."""
    rng = np.random.default_rng(7)
    design, results = Design(), []
    for seed in range(n_seeds):
        factor, offset = 1 + spread * rng.standard_normal(), luck * rng.standard_normal()
        held_back = design.checks(seed, N_SERVERS) if checks else []
        trials = [*design.scenes(seed, N_SERVERS), *held_back]
        quality = {
            trial: Quality(
                0.8 - factor * loss(trial) - offset + noise * rng.standard_normal(),
                0.5 + 2 * factor * loss(trial) + noise * rng.standard_normal(),
            )
            for trial in trials
        }
        results.append(SeedResult(seed, Baseline(Quality(0.8, 0.5), {}), quality, 1.0))
    return results


@cache
def seen_of(n_seeds: int) -> Observed:
    """Seeds that are alike but for a little noise."""
    return observed(made(n_seeds, noise=1e-5), N_SERVERS)


@cache
def fitted_of(n_seeds: int) -> Fitted:
    return fit(seen_of(n_seeds), Metric.AUC)


def test_slopes_and_phi_come_back() -> None:
    found = fitted_of(6)
    knots = np.array([[weight(at, old) for old in STALENESS] for at in AT])
    mean = np.trapezoid(knots[:, 1], AT)  # the slope is per PLS at the reference staleness
    for key in STRATEGIES:
        error = 4 * found.slopes.standard_error(key) + 0.02 * SLOPE[key] * mean
        assert found.slopes.mean(key) == pytest.approx(SLOPE[key] * mean, abs=error), key
        assert found.shape.interval_share[key] == pytest.approx(PHI[key], abs=0.1), key
    inside = AT[:, None] >= STALENESS
    assert found.shape.weight[inside] == pytest.approx(knots[inside] / mean, abs=0.15)


def test_log_loss_has_slopes_of_its_own() -> None:
    slope = fitted_of(4).slopes.mean("partial")
    of_log_loss = fit(seen_of(4), Metric.LOG_LOSS).slopes.mean("partial")
    assert of_log_loss == pytest.approx(2 * slope, rel=0.05)


def test_histories_that_lose_more_than_the_sum_bend_the_line() -> None:
    seen = observed(made(5, noise=1e-6), N_SERVERS)
    more = np.array([1.4 if len(trial.failures) > 3 else 1.0 for trial in seen.trials])
    bent = replace(
        seen,
        loss={m: np.where(seen.held_back, more, 1.0) * loss for m, loss in seen.loss.items()},
    )
    plain, fitted = fit(seen, Metric.AUC), fit(bent, Metric.AUC)
    for one, other in zip(plain.joint, fitted.joint, strict=True):
        raised = 1.4 if one.n_failures > 3 else 1.0
        assert one.factor == pytest.approx(1.0, abs=0.05)
        assert other.factor / one.factor == pytest.approx(raised, rel=0.02)
    pls, loss, error = fitted.monotone_line("scar", most=0.5)
    slope = fitted.slopes.mean("scar")
    assert pls.tolist() == [0.0, *(one.weighted_pls for one in fitted.joint), 0.5]
    assert loss[:2] == pytest.approx(slope * pls[:2])
    assert loss[2:] == pytest.approx(1.4 * slope * pls[2:], rel=0.06)
    assert (error[1:] > 0).all()
    for one in check(bent, fitted).adding_up:
        assert one.verdict is not AdditivityVerdict.FAILS


def test_without_histories_the_line_is_straight() -> None:
    seen = observed(made(4, noise=1e-6, checks=False), N_SERVERS)
    fitted = fit(seen, Metric.AUC)
    pls, loss = fitted.line("mfu", most=0.4)
    assert pls.tolist() == [0.0, 0.4]
    assert loss[1] == pytest.approx(0.4 * fitted.slopes.mean("mfu"))


def test_the_checks_see_what_was_made() -> None:
    seen = observed(made(5, noise=1e-6), N_SERVERS)
    checks = check(seen, fit(seen, Metric.AUC))
    assert checks.weighted_correlation.mean > 0.98
    assert checks.fails_from_pls is None
    signs = {one.strategy: one.difference for one in checks.differences if one.other == "partial"}
    assert all(one.mean + one.half_width < 0 for one in signs.values())  # partial is the steepest
    assert all(one.detectable > one.standard_error for one in signs.values())


def test_a_lucky_twin_goes_into_the_intercept() -> None:
    calm = fitted_of(6)
    lucky = fit(observed(made(6, noise=1e-5, luck=1e-3), N_SERVERS), Metric.AUC)
    assert np.std(lucky.slopes.intercept) > 3e-4
    assert lucky.slopes.mean("partial") == pytest.approx(calm.slopes.mean("partial"), rel=0.05)


def test_the_standard_error_is_that_over_seeds() -> None:
    alike = fitted_of(6).slopes
    apart = fit(observed(made(6, noise=1e-5, spread=0.3), N_SERVERS), Metric.AUC).slopes
    assert apart.standard_error("partial") > 5 * alike.standard_error("partial")
    paired = SeedMean.over(apart.difference("scar", "partial"))
    unpaired = np.hypot(apart.standard_error("scar"), apart.standard_error("partial"))
    assert paired.mean < 0
    assert paired.standard_error < unpaired


def test_held_back_histories_do_not_enter() -> None:
    results = made(4, noise=1e-5)
    spoilt = [
        SeedResult(
            one.seed,
            one.twin,
            {t: q if len(t.failures) == 1 else Quality(0.1, 9.0) for t, q in one.quality.items()},
            one.cpu_s,
        )
        for one in results
    ]
    found = fit(observed(spoilt, N_SERVERS), Metric.AUC)
    np.testing.assert_array_equal(fitted_of(4).slopes.by_seed, found.slopes.by_seed)


def test_two_seeds_are_too_few() -> None:
    with pytest.raises(ParameterError, match="2 complete seeds are too few"):
        fit(observed(made(2, noise=1e-5), N_SERVERS), Metric.AUC)


def test_hats_add_up_to_one_and_interpolate() -> None:
    x = np.array([-1.0, 0.0, 0.33, 0.95, 1.0, 2.0])
    basis = hats(x, AT)
    assert basis.sum(axis=1) == pytest.approx(np.ones(len(x)))
    assert basis @ AT == pytest.approx(np.clip(x, 0, 1))
